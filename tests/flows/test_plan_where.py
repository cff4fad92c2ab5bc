"""Where a change should live, said by a flag, by the configuration or by a person before a terminal."""

import pytest

from git_setups import BEGIN, BRANCH, WAYS, home, is_untouched, place, prepare_project
from playbooks import FOLDER
from program import AGENTD
from scenario import Scenario
from terminal import DOWN, ENTER, INTERRUPT, Person, start_on_terminal

QUESTION = "Where should add-oauth live?"
COMMIT = "A branch needs agentd/ committed. Commit agentd/specs/gone.md, agentd/*.md now?"
ASKED = "[git]\n"


def at_terminal(box: Scenario, *flags: str) -> Person:
    return start_on_terminal([AGENTD, *BEGIN, *flags], box.env, width=110, height=40)


@pytest.mark.parametrize("way", WAYS)
def test_configuration_selects_the_git_setup(project: Scenario, way: str) -> None:
    prepare_project(project, f'[git]\nsetup = "{way}"\n')
    begun = project.agentd(*BEGIN, "--json")
    assert (begun.code, begun.json["git"]["setup"]) == (0, way)


def test_flag_overrides_the_configured_git_setup(project: Scenario) -> None:
    prepare_project(project, '[git]\nsetup = "worktree"\n')
    assert project.agentd(*BEGIN, "--git", "branch", "--json").json["git"]["setup"] == "branch"


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_git_setup_defaults_to_in_place_without_a_terminal(project: Scenario, flags: tuple[str, ...]) -> None:
    prepare_project(project, ASKED)
    begun = project.agentd(*BEGIN, "--json", *flags)
    assert (begun.code, begun.json["git"]["setup"]) == (0, "in-place")


@pytest.mark.parametrize(("keys", "way"), [("", "branch"), (DOWN, "worktree"), (DOWN * 2, "in-place")])
def test_user_is_asked_and_a_branch_is_recommended(project: Scenario, keys: str, way: str) -> None:
    prepare_project(project, ASKED)
    person = at_terminal(project)
    person.sees(QUESTION)
    person.sees("On its own branch (recommended)")
    person.press(keys + ENTER)
    assert person.waits() == 0, person.display.text
    found = place(home(project, way))
    assert (found.setup, found.branch) == (way, None if way == "in-place" else BRANCH)


def test_interrupting_the_question_changes_nothing(project: Scenario) -> None:
    prepare_project(project, ASKED)
    person = at_terminal(project)
    person.sees(QUESTION)
    person.press(INTERRUPT)
    assert person.waits() == 130
    assert is_untouched(project)


@pytest.mark.parametrize("is_wanted", [True, False])
def test_commit_of_only_the_agentd_folder_is_offered(project: Scenario, is_wanted: bool) -> None:
    prepare_project(project, ASKED)
    project.write("agentd/specs/gone.md", "old\n")
    another = project.write("agentd/changes/another/proposal.md")
    project.commit("specs")
    another.write_text("somebody is writing\n")
    project.write("agentd/*.md", "new\n")  # no pattern for that one
    project.git("rm", "-q", "agentd/specs/gone.md")
    project.write("src/staged.py", "by a person\n")
    project.git("add", "src/staged.py")
    head = project.git("rev-parse", "HEAD")
    person = at_terminal(project, "--git", "branch")
    person.sees(COMMIT)
    person.press(ENTER if is_wanted else DOWN + ENTER)
    code = person.waits()
    if not is_wanted:
        assert code == 3 and is_untouched(project) and project.git("rev-parse", "HEAD") == head
        return
    assert code == 0, person.display.text
    assert project.git("rev-parse", "HEAD~1") == head == project.git("rev-parse", "main~1")
    assert project.git("show", "--format=", "--name-only").split("\n") == ["agentd/*.md", "agentd/specs/gone.md"]
    rest = ["M agentd/changes/another/proposal.md", "A  src/staged.py", f"?? {FOLDER}/"]
    assert project.git("status", "--porcelain").split("\n") == rest
    assert place(project.root).branch == BRANCH and (project.root / FOLDER / "proposal.md").is_file()

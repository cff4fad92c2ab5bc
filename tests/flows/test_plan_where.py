"""Where a change should live, said by a flag, by the configuration or by a person before a terminal."""

import pytest

from placed import BEGIN, BRANCH, OWN, WAYS, home, nothing_made, place, ready
from program import AGENTD
from support import Box
from terminal import DOWN, ENTER, INTERRUPT, Person, before_terminal

QUESTION = "Where should add-oauth live?"
COMMIT = "Commit it now?"
ASKED = "[git]\n"


def at_terminal(box: Box, *flags: str) -> Person:
    return before_terminal([AGENTD, *BEGIN, *flags], box.env, width=110, height=40)


@pytest.mark.parametrize("way", WAYS)
def test_the_configuration_says_it(project: Box, way: str) -> None:
    ready(project, f'[git]\nsetup = "{way}"\n')
    begun = project.agentd(*BEGIN, "--json")
    assert (begun.code, begun.json["git"]["setup"]) == (0, way)


def test_a_flag_wins_over_the_configuration(project: Box) -> None:
    ready(project, '[git]\nsetup = "worktree"\n')
    assert project.agentd(*BEGIN, "--git", "branch", "--json").json["git"]["setup"] == "branch"


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_with_nobody_to_ask_it_lives_in_place(project: Box, flags: tuple[str, ...]) -> None:
    ready(project, ASKED)
    begun = project.agentd(*BEGIN, "--json", *flags)
    assert (begun.code, begun.json["git"]["setup"]) == (0, "in-place")


@pytest.mark.parametrize(("keys", "way"), [("", "branch"), (DOWN, "worktree"), (DOWN * 2, "in-place")])
def test_a_person_is_asked_and_a_branch_is_recommended(project: Box, keys: str, way: str) -> None:
    ready(project, ASKED)
    person = at_terminal(project)
    person.sees(QUESTION)
    person.sees("On a branch of its own (recommended)")
    person.press(keys + ENTER)
    assert person.waits() == 0, person.display.text
    found = place(home(project, way))
    assert (found.setup, found.branch) == (way, None if way == "in-place" else BRANCH)


def test_a_person_who_does_not_answer_has_made_nothing(project: Box) -> None:
    ready(project, ASKED)
    person = at_terminal(project)
    person.sees(QUESTION)
    person.press(INTERRUPT)
    assert person.waits() == 130
    assert nothing_made(project)


@pytest.mark.parametrize("is_wanted", [True, False])
def test_agentd_that_is_not_committed_is_offered_and_only_that(project: Box, is_wanted: bool) -> None:
    ready(project, ASKED)
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
        assert code == 3 and nothing_made(project) and project.git("rev-parse", "HEAD") == head
        return
    assert code == 0, person.display.text
    assert project.git("rev-parse", "HEAD~1") == head == project.git("rev-parse", "main~1")
    assert project.git("show", "--format=", "--name-only").split("\n") == ["agentd/*.md", "agentd/specs/gone.md"]
    rest = ["M agentd/changes/another/proposal.md", "A  src/staged.py", f"?? {OWN}/"]
    assert project.git("status", "--porcelain").split("\n") == rest
    assert place(project.root).branch == BRANCH and (project.root / OWN / "proposal.md").is_file()

"""Every error of the machine, the repository and what lies on disk, met as a person meets it."""

import os
import re
import shutil
from pathlib import Path

import pytest
from error_messages import leads_on, refused, shown, told

from agentd.agents.playbook import InvalidPlaybook
from agentd.change import lifecycle
from agentd.domain.errors import BadConfig, Bug, NoGit, NoProject, NotTrusted, SetupError, StateError
from agentd.engine.prompts.prompt_renderer import InvalidPrompt
from agentd.project.git import GitFailed, NestedRepository
from agentd.project.layout import find_project
from agentd.project.trust.items import UnreadablePrompt
from agentd.project.trust.store import InvalidTrustFile, NoHomeFolder
from agentd.storage.files import CannotRead, CannotWrite
from git_setups import BEGIN, prepare_project
from playbooks import implement
from program import AGENTD
from scenario import Scenario

CHECKED = 'schema_version = 1\n\n[[checks]]\nname = "tests"\ncommand = "true"\n'


@pytest.fixture
def one(project: Scenario) -> Scenario:
    """A change that is begun."""
    lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")
    return project


@pytest.fixture
def checked(project: Scenario) -> Scenario:
    """A project that wants something run."""
    project.write("agentd/config.toml", CHECKED)
    return project


def trust_file(box: Scenario) -> Path:
    path = box.home / ".config/agentd/trust.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# ---- where we stand


def test_folder_without_git_suggests_git_init(box: Scenario) -> None:
    shutil.rmtree(box.root / ".git")
    hint = refused(NoGit, box, "status", names=str(box.root))
    box.paste(hint)
    assert box.agentd("init", "--no-commit").code == 0


def test_repository_without_a_project_suggests_init(box: Scenario) -> None:
    hint = refused(NoProject, box, "status", names="agentd/config.toml")
    assert leads_on(box, hint).code == 0
    assert box.agentd("status").code == 0


def test_missing_git_program_is_reported(project: Scenario, tmp_path: Path) -> None:
    prepare_project(project)
    project.env["PATH"] = str(tmp_path)
    hint = refused(GitFailed, project, *BEGIN, names="git is not installed")
    assert hint == "install git, then run the command again"


def test_nested_repository_without_commits_suggests_gitignore(project: Scenario) -> None:
    project.greeting_approved({"implement-*": implement()})
    project.git("init", "-q", "sub")
    hint = refused(NestedRepository, project, "impl", "greet", names="sub", code="nested-repository")
    assert ".gitignore" in hint
    with (project.root / ".gitignore").open("a") as file:
        file.write("sub/\n")
    assert project.agentd("impl", "greet").code == 0


def test_uncommitted_agentd_folder_blocks_a_new_branch(project: Scenario) -> None:
    prepare_project(project)
    project.write("agentd/specs/more.md", "# Spec: More\n")
    hint = refused(SetupError, project, *BEGIN, "--git", "branch", names="agentd/")
    project.paste(hint.partition(", ")[0])
    assert project.agentd(*BEGIN, "--git", "branch").code == 0


# ---- what is configured


def test_unknown_config_key_names_file_and_line(project: Scenario) -> None:
    project.write("agentd/config.toml", "schema_version = 1\n[workflow]\nplaning_iterations = 2\n")
    hint = refused(BadConfig, project, "config", names="agentd/config.toml:3: ")
    assert hint.startswith("agentd config ")
    project.write("agentd/config.toml", "schema_version = 1\n[workflow]\nplanning_iterations = 2\n")
    assert leads_on(project, "agentd config").code == 0


def test_invalid_playbook_is_reported_by_doctor(project: Scenario) -> None:
    """Scripted agents are for trying things out; doctor looks at their playbooks."""
    prepare_project(project)
    project.write("playbook.json", '{"steps": {"chalenge": []}}')
    looked = project.agentd("doctor")
    assert looked.code == InvalidPlaybook.exit_code
    shown(InvalidPlaybook, looked.out, names="there is no step chalenge; did you mean challenge?")


# ---- what is trusted


def test_untrusted_commands_suggest_trust(checked: Scenario) -> None:
    hint = refused(NotTrusted, checked, "plan", "add-oauth", "Sign in", names="you have not trusted")
    assert hint == "agentd trust"
    assert "true" in leads_on(checked, f"{hint} --yes").out


def test_trust_without_a_home_folder_is_refused(checked: Scenario) -> None:
    del checked.env["HOME"]
    hint = refused(NoHomeFolder, checked, "trust", "--yes", names="no home folder")
    assert hint.startswith("set HOME ")
    checked.env["HOME"] = str(checked.home)
    assert leads_on(checked, "agentd trust --yes").code == 0


def test_invalid_trust_file_is_named(checked: Scenario) -> None:
    file = trust_file(checked)
    file.write_text("yes to all\n")
    hint = refused(InvalidTrustFile, checked, "trust", "--yes", names=str(file))
    assert hint == "mend that file, or remove it to begin anew with agentd trust"
    file.unlink()
    assert leads_on(checked, "agentd trust --yes").code == 0


def test_unreadable_trust_file_is_named(checked: Scenario) -> None:
    """A folder in its place; that stops root too."""
    trust_file(checked).mkdir()
    hint = refused(CannotRead, checked, "trust", "--yes", names="trust.json")
    assert hint == "check the permissions of that file, then run the command again"


def test_prompt_that_is_a_dangling_symlink_is_refused(project: Scenario) -> None:
    (project.root / "agentd/prompts").mkdir()
    link = project.root / "agentd/prompts/challenge.md"
    link.symlink_to("nowhere.md")
    hint = refused(UnreadablePrompt, project, "trust", names="agentd/prompts/challenge.md")
    assert hint == "put the text itself into a file there, or remove it"
    link.unlink()
    assert project.agentd("trust").code == 0


def test_unknown_prompt_file_is_refused(project: Scenario) -> None:
    prepare_project(project)
    project.write("agentd/prompts/chalenge.md", "Look closely.\n")
    project.paste(f"{AGENTD} trust --yes")
    assert refused(InvalidPrompt, project, *BEGIN, names="agentd/prompts/chalenge.md")
    (project.root / "agentd/prompts/chalenge.md").unlink()
    assert project.agentd(*BEGIN).code == 0


# ---- what lies on disk


def test_unreadable_state_suggests_git_log(one: Scenario) -> None:
    state = one.root / "agentd/changes/add-oauth/STATE.yaml"
    one.commit("the change")
    state.write_text("phase: [drafting\n")
    hint = refused(StateError, one, "impl", "add-oauth", names=f"{state}: line ")
    typed = hint.partition(": ")[2]
    assert typed == f"git log -p -- {state}"
    assert "+change_id: add-oauth" in leads_on(one, f"{typed} | cat").out
    one.git("checkout", "-q", str(state))
    assert one.agentd("status", "add-oauth").code == 0


def test_unwritable_folder_is_named(one: Scenario) -> None:
    """A file in its place; that stops root too."""
    one.write("agentd/archive", "")
    hint = refused(CannotWrite, one, "drop", "add-oauth", "--yes", names="agentd/archive")
    assert hint == "check the disk space and the permissions of that folder, then run the command again"
    (one.root / "agentd/archive").unlink()
    assert one.agentd("drop", "add-oauth", "--yes").code == 0


# ---- and what should never happen


def test_bug_is_reported_with_a_report_file(one: Scenario) -> None:
    broken = "import agentd.change.locator as p; p.ChangeLocator.open = lambda self: 1 / 0"
    ran = one.python(f"import sys; sys.argv = ['agentd', 'list']; {broken}; from agentd.cli import main; main()")
    hint = told(Bug, ran, names="ZeroDivisionError")
    (report,) = re.findall(r"details for a bug report: (\S+)", hint)
    assert "Traceback" in Path(report).read_text()
    os.unlink(report)

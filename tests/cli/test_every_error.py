"""Every error of what is typed and how a change stands, met as a person meets it; the last test counts them all.

Those of the machine, of the disk and of agents are in test_every_error_of_place.py and test_every_error_at_work.py.
"""

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from error_messages import leads_on, refused

import agentd
from agentd.agents.playbook_player import PlaybookMismatch
from agentd.change import lifecycle
from agentd.change.state import GitLocation
from agentd.documents.frontmatter import InvalidFrontmatter
from agentd.documents.text import InvalidDocument
from agentd.domain.errors import (
    AgentdError,
    BadId,
    ChangeNotComplete,
    ChangeNotFound,
    ChangeNotReady,
    FormatInvalid,
    MissingDescription,
    NotCheckedOut,
    Refusal,
    StaleBranch,
    Unanswered,
    UsageError,
    WrongPhase,
)
from agentd.domain.terms import GitSetup
from agentd.domain.yaml12 import InvalidYaml
from agentd.engine.archive.preview import MergeConflict
from agentd.project.layout import find_project
from plans import SHORT_TITLES, delta_text, greeting_plan, requirement_text
from scenario import Scenario

# Errors that nobody meets as such, each with the reason.
EXEMPT: dict[type[AgentdError], str] = {
    AgentdError: "the root of the tree, never raised itself",
    InvalidDocument: "caught where a document is read: told as a finding, as a refusal to an agent or as FormatInvalid",
    InvalidFrontmatter: "a BadDocument",
    InvalidYaml: "caught by whoever reads the file, who can name it: BadPlaybook, StateError, a finding",
    PlaybookMismatch: "within a scripted agent's own process, which tells it as a crash; doctor tells it as a row",
}


@pytest.fixture
def one(project: Scenario) -> Scenario:
    """A change that is begun."""
    lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")
    return project


# ---- what was typed


def test_unknown_config_key_is_a_usage_error(project: Scenario) -> None:
    hint = refused(UsageError, project, "config", "budget.per_chnage", names="budget.per_chnage")
    assert hint == "agentd config lists all keys"
    assert leads_on(project, "agentd config").code == 0


def test_sentence_as_id_is_refused_with_a_suggested_id(project: Scenario) -> None:
    hint = refused(BadId, project, "plan", "Add OAuth", names="invalid change id 'Add OAuth'")
    assert hint == 'agentd plan add-oauth "Add OAuth"'
    leads_on(project, hint)


def test_new_change_without_description_is_refused(project: Scenario) -> None:
    hint = refused(MissingDescription, project, "plan", "add-oauth", names="add-oauth")
    assert hint == 'agentd plan add-oauth "what should change"'
    leads_on(project, hint)


def test_unanswered_question_names_its_flag(one: Scenario) -> None:
    hint = refused(Unanswered, one, "drop", "add-oauth", names="add-oauth")
    assert hint == "agentd drop add-oauth --yes"
    assert leads_on(one, hint).code == 0


# ---- which change


def test_unknown_change_points_to_list(one: Scenario) -> None:
    assert refused(ChangeNotFound, one, "impl", "nosuch", names="nosuch") == "agentd list"
    assert "add-oauth" in leads_on(one, "agentd list").out


@pytest.mark.parametrize("command", ["validate", "impl", "archive", "stop", "wait", "rebase"])
def test_ended_change_error_names_its_folder_and_the_log(one: Scenario, command: str) -> None:
    assert one.agentd("drop", "add-oauth", "--yes").code == 0
    hint = refused(ChangeNotFound, one, command, "add-oauth", names="is dropped; it is in agentd/archive/")
    assert hint == "agentd log add-oauth shows its history, agentd list --all shows all changes"
    assert "dropped" in leads_on(one, "agentd log add-oauth").out
    assert "add-oauth" in leads_on(one, "agentd list --all").out


def test_change_on_a_branch_that_is_not_checked_out_names_git_switch(project: Scenario) -> None:
    project.git("switch", "-qc", "agentd/add-oauth")
    lifecycle.create_change(
        find_project(), "add-oauth", "x", GitLocation(GitSetup.BRANCH, "agentd/add-oauth", ".", "main")
    )
    project.commit("the change")
    project.git("switch", "-q", "main")
    hint = refused(NotCheckedOut, project, "status", "add-oauth", names="agentd/add-oauth")
    project.paste(hint)
    assert project.agentd("status", "add-oauth").code == 0


# ---- how it stands


def test_view_of_a_change_without_documents_points_to_plan(one: Scenario) -> None:
    hint = refused(Refusal, one, "view", "add-oauth", "--plain", names="add-oauth", json=False)
    assert hint == "agentd plan add-oauth"
    leads_on(one, hint)


def test_rebase_of_a_draft_is_the_wrong_phase(one: Scenario) -> None:
    hint = refused(WrongPhase, one, "rebase", "add-oauth", names="add-oauth is drafting")
    assert hint == "agentd status add-oauth"
    assert leads_on(one, hint).code == 0


def test_change_without_a_plan_cannot_be_implemented(one: Scenario) -> None:
    hint = refused(ChangeNotReady, one, "impl", "add-oauth", names="add-oauth is drafting")
    assert "agentd plan add-oauth" in hint
    leads_on(one, "agentd plan add-oauth")


def test_change_without_code_cannot_be_archived(one: Scenario) -> None:
    hint = refused(ChangeNotComplete, one, "archive", "add-oauth", names="add-oauth is drafting")
    assert "agentd plan add-oauth" in hint
    leads_on(one, "agentd plan add-oauth")


def test_plan_without_tasks_cannot_be_implemented(project: Scenario) -> None:
    project.greeting_approved({}, documents=greeting_plan())
    hint = refused(FormatInvalid, project, "impl", "greet", names="greet")
    assert "agentd validate greet" in hint
    assert "tasks" in leads_on(project, "agentd validate greet").out


# ---- at its end


def test_archive_on_a_stale_branch_suggests_the_merge(project: Scenario) -> None:
    project.with_notes()
    project.complete_short_titles(project.on_branch("short-titles"))
    project.git("switch", "-q", "main")
    project.write("other.txt", "more")
    project.commit("main moves on")
    project.git("switch", "-q", "agentd/short-titles")
    hint = refused(StaleBranch, project, "archive", "short-titles", names="agentd/short-titles lacks a commit of main")
    merge, _, again = hint.partition(", then ")
    project.paste(merge)
    assert leads_on(project, again).code == 0


def test_conflicting_change_suggests_rebase(project: Scenario) -> None:
    project.with_notes()
    tiny = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 20 characters."))
    for change_id, spec in (("first", SHORT_TITLES), ("second", tiny)):
        project.notes_complete(change_id, {"notes": spec})
    assert project.agentd("archive", "first").code == 0
    hint = refused(MergeConflict, project, "archive", "second", names="second", code="merge-conflict")
    assert hint.startswith("agentd rebase second")
    leads_on(project, "agentd rebase second")


# ---- all of them


def classes(top: type[AgentdError] = AgentdError) -> Iterator[type[AgentdError]]:
    yield top
    for one in top.__subclasses__():
        yield from classes(one)


def seen() -> set[str]:
    """Whose refusal these files look at: `refused(Class, …)`, `told(Class, …)`, `shown(Class, …)`."""
    found = set()
    for file in Path(__file__).parent.glob("test_every_error*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id in ("refused", "told", "shown"):
                found.add(ast.unparse(call.args[0]).rpartition(".")[2])
    return found


def test_every_error_class_is_covered() -> None:
    for module in pkgutil.walk_packages(agentd.__path__, "agentd."):
        if not module.name.endswith("__main__") and ".sample" not in module.name:
            importlib.import_module(module.name)
    ours = {kind for kind in classes() if kind.__module__.startswith("agentd.")}
    left = {kind.__name__ for kind in ours - EXEMPT.keys()} - seen()
    assert not left, "a test has to meet these as a person does, or EXEMPT say why nobody can"
    assert not seen() & {kind.__name__ for kind in EXEMPT}, "these are met, so they are not exempt"

"""A change that depends on another: said while it is planned, and archived after it."""

from dataclasses import replace

from agentd.change.folder import read_state
from agentd.change.lifecycle import open_change
from agentd.domain import events
from agentd.project.layout import find_project
from git_setups import prepare_project
from plans import NOTES, delta_text, scenario_text
from scenario import Scenario, journal_of

TAGGED = delta_text("notes", scenarios=scenario_text("Tagged", "R1", "it is found"))


def test_dependency_must_be_archived_first(project: Scenario) -> None:
    project.write("agentd/specs/notes.md", NOTES)
    change = project.notes_complete("tagged", {"notes": TAGGED})
    project.notes_complete("typo", {})
    change.update(lambda old: replace(old, depends_on=("typo",)))
    refused = project.agentd("archive", "tagged", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (1, "tagged depends on typo, which is complete")
    assert refused.json["error"]["hint"].startswith("agentd archive typo first")
    assert project.agentd("archive", "typo").code == 0
    assert project.agentd("archive", "tagged").code == 0


def test_dropped_dependency_stops_the_archive_with_a_hint(project: Scenario) -> None:
    change = project.notes_complete("tagged", {})
    project.notes_proposed("typo", {})
    change.update(lambda old: replace(old, depends_on=("typo", "nobody")))
    assert project.agentd("drop", "typo", "--yes").code == 0
    refused = project.agentd("archive", "tagged", "--json")
    assert refused.json["error"]["message"] == "tagged depends on typo, which is dropped"
    assert refused.json["error"]["hint"] == "take it out of depends_on in agentd/changes/tagged/STATE.yaml"


def test_dependency_archived_only_in_another_worktree_is_not_enough(project: Scenario) -> None:
    place = project.in_worktree("typo")
    project.notes_complete("typo", {}, place)
    change = project.notes_complete("tagged", {})
    change.update(lambda old: replace(old, depends_on=("typo",)))
    assert project.agentd("archive", "typo").code == 0
    refused = project.agentd("archive", "tagged", "--json")
    words = "tagged depends on typo, which is archived, but not in this worktree"
    assert refused.json["error"]["message"] == words


def test_plan_reports_open_dependencies(project: Scenario) -> None:
    prepare_project(project)
    project.notes_proposed("typo", {})
    ran = project.agentd("plan", "add-oauth", "Sign in", "--skip-clarify", "--depends-on", "typo", "--rounds", "0")
    assert "add-oauth depends on typo, which is proposed" in ran.err
    change = open_change(find_project(), "add-oauth")
    assert change.read().depends_on == ("typo",)
    assert [one.code for one in journal_of(change, events.WarningIssued)].count("depends") == 1
    shown = project.agentd("status", "add-oauth")
    assert "typo (proposed)" in shown.out


def test_unknown_or_circular_dependency_is_refused(project: Scenario) -> None:
    prepare_project(project)
    nobody = project.agentd("plan", "new", "It", "--depends-on", "nobody", "--json")
    assert (nobody.code, nobody.json["error"]["code"]) == (1, "change-not-found")
    assert not (project.root / "agentd/changes/new").exists()
    one, two = project.notes_proposed("one", {}), project.notes_proposed("two", {})
    two.update(lambda old: replace(old, depends_on=("one",)))
    round_ = project.agentd("plan", "one", "--depends-on", "two", "--json")
    assert (round_.code, round_.json["error"]["message"]) == (2, "one would wait for itself: one → two → one")
    itself = project.agentd("plan", "one", "--depends-on", "one", "--json")
    assert itself.json["error"]["message"] == "one would wait for itself: one → one"
    assert read_state(one.folder).depends_on == ()

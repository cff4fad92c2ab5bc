"""A change that depends on another: said while it is planned, and archived after it."""

from dataclasses import replace

from agentd import events
from agentd.change.entry import open_change
from agentd.change.folder import read_state
from agentd.project import find_project
from git_setups import prepare_project
from plans import NOTES, delta_text, scenario_text
from scenario import Scenario, journal_of

TAGGED = delta_text("notes", scenarios=scenario_text("Tagged", "R1", "it is found"))


def test_what_it_depends_on_is_archived_first(project: Scenario) -> None:
    project.write("agentd/specs/notes.md", NOTES)
    change = project.notes_complete("tagged", {"notes": TAGGED})
    project.notes_complete("typo", {})
    change.update(lambda old: replace(old, depends_on=("typo",)))
    refused = project.agentd("archive", "tagged", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (1, "tagged depends on typo, which is complete")
    assert refused.json["error"]["hint"].startswith("agentd archive typo first")
    assert project.agentd("archive", "typo").code == 0
    assert project.agentd("archive", "tagged").code == 0


def test_one_that_was_dropped_is_never_waited_for_in_silence(project: Scenario) -> None:
    change = project.notes_complete("tagged", {})
    project.notes_proposed("typo", {})
    change.update(lambda old: replace(old, depends_on=("typo", "nobody")))
    assert project.agentd("drop", "typo", "--yes").code == 0
    refused = project.agentd("archive", "tagged", "--json")
    assert refused.json["error"]["message"] == "tagged depends on typo, which is dropped"
    assert refused.json["error"]["hint"] == "take it out of depends_on in agentd/changes/tagged/STATE.yaml"


def test_what_is_archived_in_another_work_tree_only_is_waited_for(project: Scenario) -> None:
    place = project.in_worktree("typo")
    project.notes_complete("typo", {}, place)
    change = project.notes_complete("tagged", {})
    change.update(lambda old: replace(old, depends_on=("typo",)))
    assert project.agentd("archive", "typo").code == 0
    refused = project.agentd("archive", "tagged", "--json")
    words = "tagged depends on typo, which is archived, but not in this work tree"
    assert refused.json["error"]["message"] == words


def test_a_plan_says_what_it_waits_for(project: Scenario) -> None:
    prepare_project(project)
    project.notes_proposed("typo", {})
    ran = project.agentd("plan", "add-oauth", "Sign in", "--skip-clarify", "--depends-on", "typo", "--rounds", "0")
    assert "add-oauth depends on typo, which is proposed" in ran.err
    change = open_change(find_project(), "add-oauth")
    assert change.read().depends_on == ("typo",)
    assert [one.code for one in journal_of(change, events.Warned)].count("depends") == 1
    shown = project.agentd("status", "add-oauth")
    assert "typo (proposed)" in shown.out


def test_nothing_is_begun_that_would_wait_for_ever(project: Scenario) -> None:
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

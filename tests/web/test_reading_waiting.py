"""The inbox: what waits for a person in each change, since when, and in which order."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.change import comment_store, lifecycle
from agentd.change.folder import Change
from agentd.change.state import RunState
from agentd.documents.comments import COMMENTS_FILE
from agentd.domain import clock, events
from agentd.domain.state_machine import TransitionEvent
from agentd.project.layout import find_project
from agentd.web import inbox_view
from agentd.web.inbox_view import InboxRow
from plans import SHORT_TITLES, delta_text, requirement_text
from playbooks import NEEDS_REVISION, plan_steps, say, usage
from questions import PROVIDERS, TOKEN, asks, proposing
from scenario import NO_REVIEWS, Scenario, move
from terminal import ENTER, INTERRUPT, at_question

LONGER = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 120 characters."))


def rows() -> dict[str, InboxRow]:
    return {row.id: row for row in inbox_view.inbox_rows(find_project())}


def waits(change_id: str = "add-oauth") -> tuple[str, str]:
    row = rows()[change_id]
    return row.kind, row.waits


def since(change: Change, at: str) -> None:
    """As if its last step was then."""
    text = (change.folder / "STATE.yaml").read_text()
    (change.folder / "STATE.yaml").write_text(text.replace(change.read().updated_at, at))


# ---- by phase


def test_each_phase_shows_what_it_waits_for(project: Scenario) -> None:
    project.with_notes(start="specs")
    lifecycle.create_change(find_project(), "drafted", "A plan")
    project.notes_proposed("planned", {})
    move(project.notes_proposed("approved", {}), TransitionEvent.CHALLENGE_APPROVED)
    move(project.notes_proposed("rejected", {}), TransitionEvent.CHALLENGE_REJECTED)
    building = project.notes_proposed("building", {})
    move(building, TransitionEvent.CHALLENGE_APPROVED)
    move(building, TransitionEvent.IMPLEMENTATION_STARTED)
    project.notes_complete("complete", {})
    found = rows()
    assert {id_: (row.kind, row.waits) for id_, row in found.items()} == {
        "drafted": ("unfinished", "the plan is not complete yet"),
        "planned": ("unfinished", "the plan has not been challenged yet"),
        "approved": ("ready", "ready to implement"),
        "rejected": ("rejected", "rejected: edit the plan, or drop it"),
        "building": ("unfinished", "the code is not complete yet"),
        "complete": ("archive", "complete, ready to archive"),
    }
    assert found["complete"].next == "agentd archive complete"
    assert all(row.since == row.updated_at != "" for row in found.values())


def test_plan_edited_since_its_approval_is_not_ready(project: Scenario) -> None:
    project.with_notes(start="specs")
    change = project.notes_proposed("short-titles", {"notes": SHORT_TITLES})
    move(change, TransitionEvent.CHALLENGE_APPROVED)
    path = change.folder / "specs/notes.md"
    ready, edited = "ready to implement", "edited since it was approved: challenge it again, or accept it"
    assert waits("short-titles") == ("ready", ready)
    path.write_text(path.read_text().replace("at most 40", "at most 50"))
    row, one = rows()["short-titles"], inbox_view.change_inbox_row(find_project(), "short-titles")
    assert (row.kind, row.waits, row.next) == ("edited", edited, "agentd plan short-titles --rechallenge")
    assert one and (one.kind, one.words) == ("edited", edited) and row.since == one.since >= change.read().updated_at
    path.write_text(path.read_text().replace("at most 50", "at most 40"))
    assert waits("short-titles") == ("ready", ready), "put back as it was"
    (change.folder / "specs/more.md").write_text("# More\n")
    assert waits("short-titles") == ("edited", edited)
    (change.folder / "specs/more.md").unlink()
    move(change, TransitionEvent.IMPLEMENTATION_STARTED)
    path.write_text("# Other\n")
    assert waits("short-titles")[0] == "unfinished", "there the code is what is judged"


def test_unchanged_files_are_not_compared_again(project: Scenario) -> None:
    project.with_notes(start="specs")
    change = project.notes_proposed("short-titles", {"notes": SHORT_TITLES})
    move(change, TransitionEvent.CHALLENGE_APPROVED)
    path = change.folder / "specs/notes.md"
    time.sleep(0.1)  # what is younger than a tick is compared each time
    assert waits("short-titles")[0] == "ready"
    stamp = path.stat()
    with path.open("r+") as file:
        text = file.read().replace("at most 40", "at most 50")
        file.seek(0)
        file.write(text)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert waits("short-titles")[0] == "ready"
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert waits("short-titles")[0] == "edited"


def test_verdict_waits_with_its_findings(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"), ("low", "It is plain"))
    row = rows()["add-oauth"]
    assert (row.kind, row.waits) == ("verdict", "the challenge found 1 high, 1 low")
    assert (row.verdict, row.round, row.open) == ("NEEDS_REVISION", 1, (("high", 1), ("low", 1)))
    assert (row.next, row.is_running, row.is_here) == ("agentd plan add-oauth", False, True)


def test_effective_budget_is_shown_next_to_the_cost(project: Scenario) -> None:
    project.with_agents(plan_steps(), "[budget]\nper_change = 4\n", NO_REVIEWS)
    assert project.run("plan").code == 0
    row = rows()["add-oauth"]
    assert row.cost == pytest.approx(0.08) and row.budget == 4.0
    (other,) = inbox_view.inbox_rows(find_project(), ("budget.per_change=0",))
    assert other.budget is None
    project.write("agentd/config.toml", "schema_version = [")
    assert rows()["add-oauth"].budget is None


# ---- what comes before the phase


def test_question_of_a_run_is_shown_until_the_run_ends(project: Scenario) -> None:
    project.proposed(NEEDS_REVISION, rounds=1)
    person = at_question(project)
    row = rows()["add-oauth"]
    assert (row.kind, row.waits) == ("question", "The challenge found 1 high and 1 medium. What next?")
    assert row.is_running and row.since >= row.updated_at and row.next == "agentd wait add-oauth"
    person.press(INTERRUPT)
    person.waits()
    assert waits()[0] == "failed"


def test_question_left_by_a_killed_run_is_ignored(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    left = Path(change.project.local_state_path("inbox", change.id, "asked.json"))
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text('{"id": "x", "question": "What next?", "options": [], "at": "2026-01-19T10:30:00Z"}')
    assert waits() == ("verdict", "the challenge found 1 high")


def test_planners_questions_wait_until_they_are_answered(project: Scenario) -> None:
    project.with_agents(plan_steps(clarify=asks(PROVIDERS, TOKEN)))
    person = proposing(project)
    person.sees(PROVIDERS["question"])
    person.sees("❯")
    person.press(INTERRUPT)
    person.waits()
    assert waits() == ("clarify", "2 questions of the planner wait for an answer")
    person = proposing(project)
    person.sees(PROVIDERS["question"])
    person.sees("❯")
    person.press(ENTER)
    person.sees(TOKEN["question"])
    person.press(INTERRUPT)
    person.waits()
    assert waits() == ("clarify", "a question of the planner waits for an answer")


def test_failed_run_shows_its_error_until_something_changes(project: Scenario) -> None:
    project.with_agents(
        plan_steps(proposal_gen=[usage(9.0), say("Nothing.")]), "[budget]\nper_change = 2\n", NO_REVIEWS
    )
    ran = project.run("plan")
    assert ran.code == 7
    kind, words = waits()
    assert kind == "budget" and words == "add-oauth has cost 9.00 USD of its 2.00 USD"
    time.sleep(1.1)  # STATE.yaml tells times by the second
    find = lifecycle.open_change(find_project(), "add-oauth")
    find.update(lambda old: replace(old, description="Other words"))
    assert waits() == ("unfinished", "a run was interrupted; run the same command to continue")


def test_unreadable_state_is_listed_as_broken(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "drafted", "A plan")
    (change.folder / "STATE.yaml").write_text("phase: [")
    row = rows()["drafted"]
    assert row.kind == "broken" and row.waits.startswith("STATE.yaml cannot be read: ") and row.problem
    assert row.since and row.next == ""


def test_change_that_is_not_checked_out_waits_for_nothing(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.notes_proposed("away", {}, project.on_branch("away"))
    project.commit("planned")
    rows()
    project.git("switch", "-q", "main")
    row = rows()["away"]
    assert (row.is_here, row.waits, row.next) == (False, "", "git switch agentd/away")


# ---- order and neighbours


def test_longest_waiting_changes_come_first_then_active_ones(project: Scenario) -> None:
    project.with_notes(start="specs")
    away = project.notes_proposed("away", {}, project.on_branch("away"))
    since(away, "2020-01-01T00:00:00Z")
    project.commit("planned")
    rows()
    project.git("switch", "-q", "main")
    since(project.notes_proposed("newer", {}), "2026-01-02T00:00:00Z")
    since(project.notes_proposed("older", {}), "2026-01-01T00:00:00Z")
    busy = project.notes_proposed("busy", {})
    busy.update(lambda old: replace(old, run=RunState("plan", clock.now())))
    with busy.running("agentd plan busy"):
        assert [row.id for row in inbox_view.inbox_rows(find_project())] == ["older", "newer", "busy", "away"]
    assert waits("busy") == ("unfinished", "a run was interrupted; run the same command to continue")


def test_active_change_shows_its_step(project: Scenario) -> None:
    busy = lifecycle.create_change(find_project(), "busy", "A plan")
    busy.update(lambda old: replace(old, run=RunState("plan", clock.now())))
    with busy.running("agentd plan busy"):
        assert rows()["busy"].at_work == ""
        busy.journal().append(events.RunStarted(workflow="plan", command="agentd plan busy"))
        step: dict[str, Any] = {"step": "tasks-gen", "round": 1, "number": 1, "attempt": 1}
        who: dict[str, Any] = {"role": "planner", "agent": "play", "model": None, "session": None, "resumed": False}
        busy.journal().append(events.StepStarted(**step, **who))
        assert rows()["busy"].at_work == "Tasks"
    assert rows()["busy"].at_work == ""


def test_comments_are_counted_until_they_are_findings_or_resolved(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", ("high", "It breaks")).change
    anchor = comment_store.comment_anchor(change, "proposal.md", "## Why")
    first, second = (comment_store.add_comment(change, anchor, "Why?", "person:dev").id for _ in range(2))
    comment_store.add_comment(change, anchor, "", "person:dev")
    assert (rows()["add-oauth"].open, rows()["add-oauth"].comments) == ((("high", 1),), 2)
    comment_store.resolve_comment(change, first, "person:dev")
    assert rows()["add-oauth"].comments == 1
    comment_store.resolve_comment(change, second, "person:dev")
    assert rows()["add-oauth"].comments == 0
    (change.folder / COMMENTS_FILE).write_text("- {\n")
    assert rows()["add-oauth"].comments == 0, "whoever opens it is told"


def test_overlapping_changes_name_each_other(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.notes_proposed("short-titles", {"notes": SHORT_TITLES})
    project.notes_proposed("long-titles", {"notes": LONGER})
    assert {id_: row.overlaps for id_, row in rows().items()} == {
        "short-titles": ("long-titles in notes:R2",),
        "long-titles": ("short-titles in notes:R2",),
    }


def test_ended_changes_are_listed_separately(project: Scenario) -> None:
    project.with_notes(start="specs")
    project.complete_short_titles()
    assert project.agentd("archive", "short-titles").code == 0
    assert inbox_view.inbox_rows(find_project()) == []
    (one,) = inbox_view.archived_rows(find_project())
    assert (one.id, one.phase, one.at[:2]) == ("short-titles", "archived", "20")


def test_single_change_matches_its_inbox_row(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    found, row = inbox_view.change_inbox_row(find_project(), "add-oauth"), rows()["add-oauth"]
    assert found and (found.kind, found.words, found.since) == (row.kind, row.waits, row.since)


def test_indexed_change_is_not_read_again(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "drafted", "A plan")
    path = change.folder / "STATE.yaml"
    time.sleep(0.1)  # a file younger than a tick is not kept in the index
    rows()
    stamp = path.stat()
    with path.open("r+") as file:
        text = file.read().replace("A plan", "B plan")
        file.seek(0)
        file.write(text)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert rows()["drafted"].description == "A plan"

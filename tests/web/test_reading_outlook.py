"""The specs as they would be after the archive, and what a change has cost."""

from dataclasses import replace
from typing import Any

import pytest

from agentd.agents.protocol import TokenUsage
from agentd.change.folder import Change
from agentd.change.state import BudgetIncrease, CallRecord, RunState, StepRecord
from agentd.domain import clock
from agentd.domain.terms import StepStatus
from agentd.engine.calls.call_costs import OpenCall
from agentd.project.layout import find_project
from agentd.web import archive_view, cost_view, inbox_view
from agentd.web.markup import cost_chart
from plans import NOTES, SHORT_TITLES, TAGS, delta_text, requirement_text
from scenario import Scenario

LONGER = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 120 characters."))


@pytest.fixture
def notes(project: Scenario) -> Scenario:
    return project.with_notes(start="specs")


# ---- specs


def test_preview_shows_each_spec_after_the_archive(notes: Scenario) -> None:
    change = notes.notes_complete("short-titles", {"notes": SHORT_TITLES, "tags": TAGS})
    found = archive_view.read_archive_view(change)
    one, two = found.specs
    assert (one.id, one.is_new, one.before, one.version) == ("notes", False, NOTES, 2)
    assert one.after and "at most 40" in one.after and "Notes are kept" in one.after
    assert [(str(touch.how), touch.name) for touch in one.touches] == [("modified", "notes:R2")]
    assert (two.id, two.is_new, two.before) == ("tags", True, "") and two.after
    assert (found.refused, found.problem) == ("", "")
    assert not (notes.root / "agentd/specs/tags.md").exists(), "nothing is written"


def test_preview_of_an_incomplete_change_says_why_the_archive_would_be_refused(notes: Scenario) -> None:
    found = archive_view.read_archive_view(notes.notes_proposed("short-titles", {"notes": SHORT_TITLES}))
    assert found.refused == "short-titles is proposed; only a complete change is archived"
    assert found.hint == "agentd plan short-titles"
    assert found.specs[0].after and "at most 40" in found.specs[0].after


def test_conflict_has_its_three_texts(notes: Scenario) -> None:
    change = notes.notes_complete("short-titles", {"notes": SHORT_TITLES})
    notes.write("agentd/specs/notes.md", NOTES.replace("80 characters", "60 characters"))
    found = archive_view.read_archive_view(change)
    (conflict,) = found.specs[0].conflicts
    texts = (conflict.base or "", conflict.theirs or "", conflict.yours or "")
    assert [size in text for size, text in zip(("80", "60", "40"), texts, strict=True)] == [True] * 3
    assert found.specs[0].after is None and "was changed by others" in found.refused and "rebase" in found.hint


def test_unreadable_spec_does_not_hide_the_others(notes: Scenario) -> None:
    change = notes.notes_complete("short-titles", {"notes": SHORT_TITLES, "tags": TAGS})
    (change.folder / "specs/notes.md").write_bytes(b"\xff\xfe")
    found = archive_view.read_archive_view(change)
    broken, whole = found.specs
    assert "not UTF-8 text" in broken.problem and broken.after is None and not broken.is_new
    assert whole.after and not whole.problem


def test_overlapping_open_changes_are_listed(notes: Scenario) -> None:
    change = notes.notes_proposed("short-titles", {"notes": SHORT_TITLES})
    notes.notes_proposed("long-titles", {"notes": LONGER})
    (rival,) = archive_view.read_archive_view(change).overlaps
    assert (rival.id, rival.phase, rival.requirements) == ("long-titles", "proposed", ("notes:R2",))


def test_archived_change_has_no_preview(notes: Scenario) -> None:
    notes.complete_short_titles()
    assert notes.agentd("archive", "short-titles").code == 0
    folder = next((notes.root / "agentd/archive").glob("*-short-titles"))
    found = archive_view.read_archive_view(Change(find_project(), "short-titles", str(notes.root), folder))
    assert (found.specs, found.refused, found.problem) == ((), "", "")


def test_broken_state_or_config_is_a_problem(notes: Scenario) -> None:
    change = notes.notes_proposed("short-titles", {"notes": SHORT_TITLES})
    config = (notes.root / "agentd/config.toml").read_text()
    notes.write("agentd/config.toml", "schema_version = [")
    assert archive_view.read_archive_view(change).problem and cost_view.read_costs(change).problem
    notes.write("agentd/config.toml", config)
    (change.folder / "STATE.yaml").write_text("phase: [")
    assert archive_view.read_archive_view(change).problem and cost_view.read_costs(change).problem


# ---- costs


def call(step: str, at: str, cost: float | None, model: str | None = "m1") -> CallRecord:
    return CallRecord(step, "play", "planner", model, 1000, 10, 100, 5, cost, f"2026-01-19T{at}:00Z", None)


def ended(step: str, round_: int, at: str) -> StepRecord:
    return StepRecord(step, round_, 1, 1, StepStatus.DONE, {}, f"2026-01-19T{at}:00Z")


@pytest.fixture
def paid(notes: Scenario) -> Change:
    change = notes.notes_proposed("short-titles", {"notes": SHORT_TITLES})
    calls = (
        call("proposal-gen", "10:00", 0.5),
        call("challenge", "10:10", 1.0, "m2"),
        call("reproposal", "10:20", None, None),
        call("challenge", "10:30", 0.25, "m2"),
        call("implement-notes", "11:00", 2.0),
        call("review", "11:10", None, "m2"),
    )
    steps = (
        ended("proposal-gen", 1, "10:00"),
        ended("challenge", 1, "10:10"),
        ended("reproposal", 2, "10:20"),
        ended("challenge", 2, "10:30"),
        ended("implement-notes", 1, "11:00"),
        ended("review", 1, "11:10"),
    )
    change.update(lambda old: replace(old, llm_calls=calls, steps=steps))
    return change


def test_costs_are_grouped_by_step_model_and_round(paid: Change) -> None:
    found = cost_view.read_costs(paid)
    assert found.by_step[1:3] == (cost_chart.ChartRow("challenge", 1.25), cost_chart.ChartRow("reproposal", None, 1))
    assert found.by_model == (
        cost_chart.ChartRow("m1", 2.5),
        cost_chart.ChartRow("m2", 1.25, 1),
        cost_chart.ChartRow("not named", None, 1),
    )
    assert found.by_round == (
        cost_chart.ChartRow("plan, round 1", 1.5),
        cost_chart.ChartRow("plan, round 2", 0.25, 1),
        cost_chart.ChartRow("code, round 1", 2.0, 1),
    )
    assert (found.total, found.budget) == (3.75, 10.0)
    assert (found.calls, found.without_price, found.tokens_in, found.tokens_out) == (6, 2, 6000, 60)


def test_call_in_progress_counts_and_command_line_limits_apply(paid: Change) -> None:
    paid.update(lambda old: replace(old, run=RunState("plan", clock.now())))
    with paid.running("agentd plan short-titles") as held:
        who: dict[str, Any] = {"agent": "play", "role": "challenger", "model": "m2", "session": None}
        opened = OpenCall.begin(paid, held.token, step="challenge", round=3, number=1, attempt=1, **who)
        opened.update(TokenUsage(tokens_in=10, tokens_out=1), 0.75)
        found = cost_view.read_costs(paid, ("budget.per_change=5",))
        (row,) = inbox_view.inbox_rows(paid.project)
    assert row.cost == 4.5, "in the inbox too"
    assert (found.total, found.budget) == (4.5, 5.0)
    assert cost_view.read_costs(paid, ("budget.per_change=0",)).budget is None


def test_raised_budget_applies(paid: Change) -> None:
    paid.update(lambda old: replace(old, budget=BudgetIncrease(25.0, "person:dev", "2026-01-19T12:00:00Z")))
    assert cost_view.read_costs(paid).budget == 25.0
    (row,) = inbox_view.inbox_rows(paid.project)
    assert (row.budget, row.cost) == (25.0, 3.75)

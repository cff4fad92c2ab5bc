"""Events: names and fields are stable, the example's lines are written back to their bytes."""

import pytest

from agentd.change import journal
from agentd.domain import events
from plans import EXAMPLE

LINES = (EXAMPLE / "events.jsonl").read_text().splitlines()


@pytest.mark.parametrize("line", LINES)
def test_example_line_round_trips(line: str) -> None:
    entry = events.parse_entry(line)
    assert entry is not None
    assert entry.line() == line


def test_event_names_match_the_contract() -> None:
    assert list(events.EVENT_TYPES) == [
        "run.started",
        "run.finished",
        "step.started",
        "step.finished",
        "agent.activity",
        "usage",
        "check.finished",
        "finding",
        "transition",
        "decision.asked",
        "decision.made",
        "note",
        "warning",
        "error",
    ]


def _finished(message: str = "") -> events.StepFinished:
    return events.StepFinished(
        step="review", round=1, number=1, attempt=1, status="done", duration_ms=38000, outputs={}, message=message
    )


def test_step_message_round_trips() -> None:
    entry = events.JournalEntry(
        seq=1, at="2026-01-01T00:00:00Z", change_id="a", run="r", event=_finished("Review 1: PASS")
    )
    assert entry.data()["message"] == "Review 1: PASS"
    assert events.parse_entry(entry.line()) == entry


def test_step_without_a_message_has_no_message_key() -> None:
    assert "message" not in _finished().data()


def test_finished_step_and_note_are_described_in_words() -> None:
    assert journal.describe_event(_finished()) == "done after 38 s"
    assert journal.describe_event(_finished("Review 1: PASS")) == "done after 38 s: Review 1: PASS"
    assert (
        journal.describe_event(events.NoticeIssued(code="no-specs", message="No specs required")) == "No specs required"
    )


def test_note_outside_a_step_has_no_step() -> None:
    assert events.NoticeIssued(code="no-specs", message="none").data() == {"code": "no-specs", "message": "none"}


def test_warning_outside_a_step_has_no_step() -> None:
    assert events.WarningIssued(code="no-checks", message="none").data() == {"code": "no-checks", "message": "none"}


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "null", '{"seq": 1}', LINES[0][:-20], LINES[0].replace("run.started", "x")]
)
def test_torn_or_unknown_line_is_ignored(line: str) -> None:
    assert events.parse_entry(line) is None

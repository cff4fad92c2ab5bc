"""Events: names and fields are stable, the example's lines are written back to their bytes."""

import pytest

from agentd import events
from support import EXAMPLE

LINES = (EXAMPLE / "events.jsonl").read_text().splitlines()


@pytest.mark.parametrize("line", LINES)
def test_an_example_line_is_read_and_written_back(line: str) -> None:
    entry = events.parse(line)
    assert entry is not None
    assert entry.line() == line


def test_the_names_are_those_of_the_contract() -> None:
    assert list(events.KINDS) == [
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
        "warning",
        "error",
    ]


def test_a_warning_outside_a_step_has_no_step() -> None:
    assert events.Warned(code="no-checks", message="none").data() == {"code": "no-checks", "message": "none"}


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "null", '{"seq": 1}', LINES[0][:-20], LINES[0].replace("run.started", "x")]
)
def test_a_torn_or_unknown_line_is_nothing(line: str) -> None:
    assert events.parse(line) is None

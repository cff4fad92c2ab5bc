"""A run as its events tell it, for drivers that show one: the words of a test, nothing of a run's own doing."""

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from agentd.cli.live_display import watch_run  # noqa: F401
from agentd.domain import clock, events
from agentd.engine.workflows.step_lists import PlannedStep

_numbers = count(1)

COURSE = (
    PlannedStep("proposal-gen", 1, 1, "Proposal"),
    PlannedStep("proposal-review", 1, 1, "Review"),
    PlannedStep("spec-gen-auth-flow", 1, 1, "Spec 1/2: auth-flow"),
    PlannedStep("spec-gen-user-model", 1, 1, "Spec 2/2: user-model"),
    PlannedStep("tasks-gen", 1, 1, "Tasks"),
    PlannedStep("challenge", 1, 1, "Challenge"),
)


def entry(event: events.Event) -> events.JournalEntry:
    return events.JournalEntry(seq=next(_numbers), at=clock.now_ms(), change_id="add-oauth", run="r1", event=event)


def at(step: str, round_: int = 1, attempt: int = 1) -> dict[str, Any]:
    return {"step": step, "round": round_, "number": 1, "attempt": attempt}


def started(step: str, round_: int = 1, attempt: int = 1, agent: str | None = "gemini") -> events.JournalEntry:
    who: dict[str, Any] = {"role": "planner", "agent": agent, "model": agent and "gemini-3-flash-preview"}
    return entry(events.StepStarted(**at(step, round_, attempt), **who, session=None, resumed=False))


def finished(
    step: str, round_: int = 1, message: str = "", status: str = "done", ms: int = 38_000
) -> events.JournalEntry:
    return entry(events.StepFinished(**at(step, round_), status=status, duration_ms=ms, outputs={}, message=message))


def did(step: str, text: str, kind: str = "tool", ok: bool | None = True) -> events.JournalEntry:
    return entry(events.AgentActivity(**at(step), kind=kind, text=text, ok=ok))


def used(step: str, cost: float | None = 0.0125, total: float = 0.2) -> events.JournalEntry:
    tokens: dict[str, Any] = {"tokens_in": 152_367, "tokens_out": 9_686, "tokens_cached": 0}
    return entry(events.UsageRecorded(**at(step), agent="gemini", model="m", **tokens, cost=cost, total_cost=total))


def failed(step: str, message: str, again: float | None = None) -> events.JournalEntry:
    return entry(
        events.ErrorOccurred(**at(step), code="crashed", message=message, retry_in_secs=again, final=again is None)
    )


def checked(step: str, name: str, status: str) -> events.JournalEntry:
    names: dict[str, Any] = {"name": name, "status": status, "required": True, "exit_code": 0, "duration_ms": 5}
    return entry(events.CheckFinished(**at(step), **names))


def over(exit_code: int) -> events.JournalEntry:
    return entry(events.RunFinished(workflow="plan", exit_code=exit_code, message=""))


def warned(message: str, step: str | None = None) -> events.JournalEntry:
    return entry(events.WarningIssued(**(at(step) if step else {}), code="price-unknown", message=message))


def course(labels: Sequence[str]) -> Callable[[], Sequence[PlannedStep]]:
    """Steps that are called s0, s1, …"""
    return lambda: [PlannedStep(f"s{number}", 1, 1, label) for number, label in enumerate(labels)]


def look(seconds: float = 0.3) -> None:
    """Let the view draw."""
    time.sleep(seconds)

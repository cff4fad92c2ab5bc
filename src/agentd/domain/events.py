"""Typed events. Logic emits them, interfaces render them, the journal stores them.

The names are stable: other programs read them from `--events` and the journal.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Event:
    type: ClassVar[str]

    def data(self) -> dict[str, Any]:
        """Return the fields in order; an unknown step is left out."""
        values = {field.name.rstrip("_"): getattr(self, field.name) for field in fields(self)}
        if values.get("step", "") is None:
            values = {name: value for name, value in values.items() if name not in _STEP}
        return values


_STEP = ("step", "round", "number", "attempt")


@dataclass(frozen=True, kw_only=True)
class StepEvent(Event):
    step: str
    round: int
    number: int
    attempt: int


@dataclass(frozen=True, kw_only=True)
class OptionalStepEvent(Event):
    step: str | None = None
    round: int | None = None
    number: int | None = None
    attempt: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    type = "run.started"
    workflow: str
    command: str


@dataclass(frozen=True, kw_only=True)
class RunFinished(Event):
    type = "run.finished"
    workflow: str
    exit_code: int
    message: str


@dataclass(frozen=True, kw_only=True)
class StepStarted(StepEvent):
    type = "step.started"
    role: str | None
    agent: str | None
    model: str | None
    session: str | None
    resumed: bool


@dataclass(frozen=True, kw_only=True)
class StepFinished(StepEvent):
    type = "step.finished"
    status: str
    duration_ms: int
    outputs: Mapping[str, str]
    message: str = ""  # the result

    def data(self) -> dict[str, Any]:
        """Return the fields, without an empty message."""
        values = super().data()
        return values if self.message else {name: value for name, value in values.items() if name != "message"}


@dataclass(frozen=True, kw_only=True)
class AgentActivity(StepEvent):
    """What the agent does now: `kind` is tool, text or shell."""

    type = "agent.activity"
    kind: str
    text: str
    ok: bool | None


@dataclass(frozen=True, kw_only=True)
class UsageRecorded(StepEvent):
    """What a call used and cost; null is unknown."""

    type = "usage"
    agent: str
    model: str | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    cost: float | None
    total_cost: float


@dataclass(frozen=True, kw_only=True)
class CheckFinished(OptionalStepEvent):
    type = "check.finished"
    name: str
    status: str
    required: bool
    exit_code: int | None
    duration_ms: int


@dataclass(frozen=True, kw_only=True)
class FindingReported(OptionalStepEvent):
    type = "finding"
    id: str
    severity: str
    title: str
    where: str | None
    verified: bool
    by: str
    state: str


@dataclass(frozen=True, kw_only=True)
class Transition(Event):
    type = "transition"
    from_: str
    to: str
    event: str
    by: str
    why: str


@dataclass(frozen=True, kw_only=True)
class DecisionRequested(Event):
    type = "decision.asked"
    id: str
    question: str
    options: tuple[str, ...]
    recommended: str | None


@dataclass(frozen=True, kw_only=True)
class DecisionMade(Event):
    type = "decision.made"
    id: str
    answer: str
    reason: str | None
    by: str
    via: str


@dataclass(frozen=True, kw_only=True)
class NoticeIssued(OptionalStepEvent):
    """Information that is not a warning."""

    type = "note"
    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class WarningIssued(OptionalStepEvent):
    type = "warning"
    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ErrorOccurred(OptionalStepEvent):
    """A failure; `final` means that it is not retried."""

    type = "error"
    code: str
    message: str
    retry_in_secs: float | None
    final: bool


EVENT_TYPES: dict[str, type[Event]] = {
    kind.type: kind
    for kind in (
        RunStarted,
        RunFinished,
        StepStarted,
        StepFinished,
        AgentActivity,
        UsageRecorded,
        CheckFinished,
        FindingReported,
        Transition,
        DecisionRequested,
        DecisionMade,
        NoticeIssued,
        WarningIssued,
        ErrorOccurred,
    )
}


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """An event in the journal: the seq-th of its change, in a run (None: a command outside a run)."""

    seq: int
    at: str
    change_id: str
    run: str | None
    event: Event

    def data(self) -> dict[str, Any]:
        head = {"seq": self.seq, "at": self.at, "change_id": self.change_id, "run": self.run}
        return {**head, "type": self.event.type, **self.event.data()}

    def line(self) -> str:
        return json.dumps(self.data(), ensure_ascii=False)


def parse_entry(line: str) -> JournalEntry | None:
    """Return None for an incomplete line or an unknown event type."""
    try:
        data = json.loads(line)
        head = {name: data.pop(name) for name in ("seq", "at", "change_id", "run")}
        kind = EVENT_TYPES[data.pop("type")]
        if "from" in data:
            data["from_"] = data.pop("from")
        if "options" in data:
            data["options"] = tuple(data["options"])
        return JournalEntry(**head, event=kind(**data))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

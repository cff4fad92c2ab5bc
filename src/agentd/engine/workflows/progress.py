"""The progress of a run, derived from its events; live views render it and escape its texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agentd.change import describe_event
from agentd.domain import ChallengeVerdict, CheckStatus, ReviewVerdict, StepStatus, events
from agentd.engine.workflows.step_lists import PlannedStep

StepSource = Callable[[], Sequence[PlannedStep]]
StepKey = tuple[str, int, int]

_LONGEST = 2000  # characters; an agent's line can be a megabyte


class StepProgress(StrEnum):
    AHEAD = "ahead"
    EARLIER = "earlier"  # done by an earlier command
    RUNNING = "running"
    WAITING = "waiting"  # failed, will be retried
    DONE = "done"
    FAILED = "failed"


class StepAnswer(StrEnum):
    """The result of a finished step."""

    GOOD = "good"
    NO = "no"  # a judge asks for changes
    FAILED = "failed"  # a check failed


_ASKING = {*ChallengeVerdict, *ReviewVerdict} - {ChallengeVerdict.APPROVED}  # for changes
_ENDS = {StepStatus.DONE: StepProgress.DONE, StepStatus.SKIPPED: StepProgress.EARLIER}


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """The progress of one step; times are in seconds of the clock given to `ProgressBoard.add`."""

    label: str
    stand: StepProgress = StepProgress.AHEAD
    agent: str = ""
    attempt: int = 1
    since: float = 0.0  # when this attempt began
    took: float = 0.0  # seconds of the attempts that ended
    heard: float = 0.0  # the last event
    again: float = 0.0  # when it is retried
    words: str = ""  # what the agent is doing, why it failed, or the result
    answer: StepAnswer = StepAnswer.GOOD

    def elapsed(self, at: float) -> float:
        return self.took + (at - self.since if self.stand is StepProgress.RUNNING else 0.0)


@dataclass(frozen=True, slots=True)
class ProgressCost:
    """Usage of this run; `total` is the cost of the change including earlier runs."""

    calls: int = 0
    without_price: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    total: float = 0.0

    def plus(self, usage: events.UsageRecorded) -> "ProgressCost":
        return ProgressCost(
            self.calls + 1,
            self.without_price + (usage.cost is None),
            self.tokens_in + (usage.tokens_in or 0),
            self.tokens_out + (usage.tokens_out or 0),
            self.cost + (usage.cost or 0.0),
            usage.total_cost,
        )


class ProgressBoard:
    """Rows for all steps. The planned steps are read when a step starts or ends, because that may read files."""

    def __init__(self, planned: StepSource) -> None:
        self._read_planned = planned
        self._planned = {step.key: step.label for step in planned()}
        self._rows: dict[StepKey, ProgressRow] = {}  # steps with events, in order
        self.spent = ProgressCost()
        self.exit_code: int | None = None  # None while running

    def add(self, event: events.Event, at: float) -> None:
        if isinstance(event, events.UsageRecorded):
            self.spent = self.spent.plus(event)
        if isinstance(event, events.RunFinished):
            self.exit_code = event.exit_code
        if not isinstance(event, events.AgentActivity | events.UsageRecorded):
            self._planned = {step.key: step.label for step in self._read_planned()}
        if (key := _key_of(event)) is None:
            return
        old = self._rows.get(key, ProgressRow("", since=at))
        if isinstance(event, events.StepStarted) and key in self._rows:
            del self._rows[key]  # a restarted step moves to the end
        self._rows[key] = replace(_after(old, event, at), label=self._label(key), heard=at)

    def label_of(self, event: events.Event) -> str:
        """Return the label of the event's step; empty outside of steps."""
        key = _key_of(event)
        return self._label(key) if key else ""

    def _label(self, key: StepKey) -> str:
        name, round_, _ = key
        rounds = f", round {round_}" if round_ > 1 else ""
        return _cut(self._planned.get(key) or name.replace("-", " ").capitalize() + rounds)

    def rows(self) -> list[ProgressRow]:
        """Return the rows in planned order; an unplanned step comes after the one before it."""
        order = list(self._planned)
        before: StepKey | None = None
        for key in self._rows:
            if key not in self._planned:
                order.insert(order.index(before) + 1 if before else 0, key)
            before = key
        last = max((order.index(key) for key in self._rows), default=-1)
        return [
            self._rows.get(key)
            or ProgressRow(self._label(key), StepProgress.EARLIER if place < last else StepProgress.AHEAD)
            for place, key in enumerate(order)
        ]


def _cut(text: str) -> str:
    return text[:_LONGEST]


def _after(row: ProgressRow, event: events.Event, at: float) -> ProgressRow:
    match event:
        case events.StepStarted(attempt=attempt):
            who = ", ".join(word for word in (event.agent, event.model) if word)
            message = f"retried after: {row.words}" if row.stand is StepProgress.WAITING else ""
            row = replace(row, stand=StepProgress.RUNNING, agent=_cut(who), attempt=attempt, since=at, words=message)
            return replace(row, answer=StepAnswer.GOOD)
        case events.StepFinished(status=status, duration_ms=took):
            row = replace(row, took=row.took + took / 1000)
            if status in _ENDS:
                answer = StepAnswer.NO if event.message in _ASKING else row.answer
                return replace(row, stand=_ENDS[StepStatus(status)], words=_cut(event.message), answer=answer)
            if row.stand is StepProgress.WAITING:
                return row
            return replace(row, stand=StepProgress.FAILED, words=_cut(event.message) or row.words)
        case events.ErrorOccurred(message=message, retry_in_secs=wait):
            if wait is None:
                return replace(row, stand=StepProgress.FAILED, words=_cut(message))
            return replace(row, stand=StepProgress.WAITING, words=_cut(message), again=at + wait)
        case events.AgentActivity() | events.CheckFinished() if row.stand is StepProgress.RUNNING:
            failed = isinstance(event, events.CheckFinished) and event.status != CheckStatus.PASSED
            answer = StepAnswer.FAILED if failed else row.answer
            return replace(row, words=_cut(describe_event(event)), answer=answer)
    return row


def _key_of(event: events.Event) -> StepKey | None:
    """Return the key of the event's step; None outside of steps."""
    if not isinstance(event, events.StepEvent | events.OptionalStepEvent) or event.step is None:
        return None
    return (event.step, 1 if event.round is None else event.round, event.number or 1)

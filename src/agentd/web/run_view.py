"""The active run of a change, how the last one ended, and recent events, read from the end of its journal."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentd.agents import transcript_path
from agentd.change import Change, Inbox, describe_event, last_outcome
from agentd.domain import AgentdError, Workflow, clock, events
from agentd.engine import (
    PlannedStep,
    ProgressBoard,
    ProgressRow,
    StepProgress,
    change_project,
    change_spending,
    impl_steps,
    plan_steps,
)
from agentd.project import load_config
from agentd.storage import LockHolder
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, Query

_ACTIONS = 40
_HISTORY = 200  # events
_SAID = 2000  # characters shown of one agent action
_ACTIVITY = b'"type": "agent.activity"'
_STARTED = b'"type": "run.started"'
_HEAD = 400  # bytes at the start of a line, which include its type


@dataclass(frozen=True, slots=True)
class StepView:
    """`stand`: ahead, earlier, running, waiting, done or failed."""

    label: str
    stand: str
    agent: str
    attempt: int
    seconds: float
    words: str


@dataclass(frozen=True, slots=True)
class AgentActionView:
    """`kind`: tool, text or shell. `ok` is None while it is running, or if it cannot succeed or fail."""

    kind: str
    text: str
    ok: bool | None
    at: str


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that waits for a person."""

    question: str
    at: str


@dataclass(frozen=True, slots=True)
class ActiveRunView:
    """The active run; its step is empty between steps. `quiet_for`: seconds since the last output."""

    command: str
    since: str
    step: str
    label: str
    agent: str
    model: str
    steps: tuple[StepView, ...]
    actions: tuple[AgentActionView, ...]
    last_output_at: str
    quiet_for: float | None
    cost: float
    total: float
    warnings: tuple[str, ...]
    asked: WaitingQuestion | None
    problem: str


@dataclass(frozen=True, slots=True)
class LastRun:
    """`exit_code` is None if the run was killed or the machine stopped."""

    command: str
    message: str
    hint: str
    exit_code: int | None
    at: str


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """`actions`: consecutive agent actions, only the last ones if `is_cut`; `words` is then the last action."""

    seq: int
    at: str
    type: str
    label: str
    words: str
    actions: tuple[AgentActionView, ...] = ()
    is_cut: bool = False


# ---- active run


def active_run_view(change: Change, settings: Sequence[str] = ()) -> ActiveRunView | None:
    """Return the active run, or None. `settings` come from the command line."""
    holder = change.active_run()
    if holder is None:
        return None
    entries = _last_run(change)
    if any(isinstance(one.event, events.RunFinished) for one in entries):
        entries = []  # from an earlier run; this one has written nothing yet
    began = next((one.event for one in entries if isinstance(one.event, events.RunStarted)), None)
    ahead, problem = _ahead(change, began, settings)
    return _running(change, holder, began, entries, ahead, problem)


def _running(
    change: Change,
    holder: LockHolder,
    began: events.RunStarted | None,
    entries: Sequence[events.JournalEntry],
    ahead: Sequence[PlannedStep],
    problem: str,
) -> ActiveRunView:
    board = ProgressBoard(lambda: ahead)
    for entry in entries:
        board.add(entry.event, _seconds(entry.at))
    step = _at_work(entries)
    total, under_way = _money(change)
    heard, at = _heard(change, entries, step), clock.utc_now().timestamp()
    return ActiveRunView(
        command=began.command if began else holder.command,
        since=entries[0].at if entries else holder.since,
        step=step.step if step else "",
        label=board.label_of(step) if step else "",
        agent=(step.agent if step else None) or "",
        model=(step.model if step else None) or "",
        steps=tuple(_step(row, at) for row in board.rows()),
        actions=_actions(entries)[-_ACTIONS:],
        last_output_at=f"{datetime.fromtimestamp(heard, UTC):%Y-%m-%dT%H:%M:%SZ}" if heard else "",
        quiet_for=max(0.0, round(at - heard, 1)) if heard else None,
        cost=round(board.spent.cost + under_way, 6),
        total=total,
        warnings=tuple(one.event.message for one in entries if isinstance(one.event, events.WarningIssued)),
        asked=waiting_question(change),
        problem=problem,
    )


def waiting_question(change: Change) -> WaitingQuestion | None:
    """Return the active run's question. The file may be left from an earlier run, so check for an active one first."""
    asked = Inbox(change).asked()
    return WaitingQuestion(_word(asked, "question"), _word(asked, "at")) if asked is not None else None


def _word(data: dict[str, Any], name: str) -> str:
    return str(data.get(name) or "")


def _ahead(
    change: Change, began: events.RunStarted | None, settings: Sequence[str]
) -> tuple[Sequence[PlannedStep], str]:
    """Return the planned steps, as the terminal shows them; none if they are unknown."""
    if began is None:
        return (), ""
    try:
        wanted = load_config(change_project(change).config_file, flags=settings).workflow
        is_plan = began.workflow == Workflow.PLAN
        return (plan_steps if is_plan else impl_steps)(change, wanted), ""
    except AgentdError as error:
        return (), error.message


def _at_work(entries: Sequence[events.JournalEntry]) -> events.StepStarted | None:
    """Return the last started step if it has not finished, else None."""
    for entry in reversed(entries):
        if isinstance(entry.event, events.StepFinished):
            return None
        if isinstance(entry.event, events.StepStarted):
            return entry.event
    return None


def _step(row: ProgressRow, at: float) -> StepView:
    is_over = row.stand in (StepProgress.AHEAD, StepProgress.EARLIER)
    seconds = 0.0 if is_over else max(0.0, round(row.elapsed(at), 1))
    return StepView(row.label, str(row.stand), row.agent, row.attempt, seconds, row.words)


def _actions(entries: Sequence[events.JournalEntry]) -> tuple[AgentActionView, ...]:
    """Return what the agent did; the start of a finished action is left out."""
    found: list[AgentActionView] = []
    for entry in entries:
        event = entry.event
        if isinstance(event, events.AgentActivity):
            done = AgentActionView(event.kind, event.text[:_SAID], event.ok, entry.at)
            if found and _is_its_end(found[-1], done):
                found.pop()
            found.append(done)
    return tuple(found)


def _is_its_end(begun: AgentActionView, done: AgentActionView) -> bool:
    is_same = (begun.kind, begun.text) == (done.kind, done.text)
    return is_same and begun.kind != "text" and begun.ok is None and done.ok is not None


def _heard(change: Change, entries: Sequence[events.JournalEntry], step: events.StepStarted | None) -> float | None:
    """Return the time of the last output, from the journal and the transcript of the active call."""
    signs = [_seconds(entries[-1].at)] if entries else []
    if step and entries[-1].run:
        place = (step.step, step.round, step.number, step.attempt)
        with contextlib.suppress(OSError):  # agentd's own steps have no transcript
            folder = change.project.local_state_path("transcripts", change.id)
            signs.append(os.stat(transcript_path(folder, entries[-1].run, *place)).st_mtime)
    return max(signs, default=None)


def _money(change: Change) -> tuple[float, float]:
    """Return the total cost of the change, and the part that no event has reported yet."""
    try:
        spent, counted = change_spending(change).change, change.read().total_cost
    except AgentdError:
        return 0.0, 0.0
    return spent, max(0.0, spent - counted)


# ---- past runs


def last_run(change: Change) -> LastRun | None:
    """Return how the last run ended, or None if there was none or one is active."""
    entries = _last_run(change)
    if not entries or change.active_run():
        return None
    began = entries[0].event
    command = began.command if isinstance(began, events.RunStarted) else ""
    end = next((one for one in reversed(entries) if isinstance(one.event, events.RunFinished)), None)
    if end is None:
        return LastRun(command, "it was interrupted", "run the same command again to continue", None, entries[-1].at)
    assert isinstance(end.event, events.RunFinished)
    return LastRun(command, end.event.message, _hint(change, end.event.exit_code), end.event.exit_code, end.at)


def _hint(change: Change, exit_code: int) -> str:
    """Return what to do next, if the stored outcome belongs to this run."""
    kept = last_outcome(change)
    error = kept.result.get("error") if kept and kept.result.get("exit_code") == exit_code else None
    return _word(error, "hint") if isinstance(error, dict) else ""


def run_history(change: Change, limit: int) -> tuple[HistoryLine, ...]:
    """Return the last events, oldest first; consecutive agent actions count as one."""
    found: list[HistoryLine] = []
    row: list[events.JournalEntry] = []
    length = 0  # of the row; only the last of thousands are parsed
    for line in change.journal().backwards():
        if _ACTIVITY in line[:_HEAD]:
            length += 1
            if length > 2 * _ACTIONS:
                continue
        entry = events.parse_entry(line.decode("utf-8", "replace"))
        if entry is not None and isinstance(entry.event, events.AgentActivity):
            row.append(entry)
        elif entry is not None:
            found += _acts(row, length > 2 * _ACTIONS)
            row, length = [], 0
            if len(found) >= limit:
                break
            label = getattr(entry.event, "step", None) or ""
            found.append(HistoryLine(entry.seq, entry.at, entry.event.type, label, describe_event(entry.event)[:_SAID]))
    return tuple(reversed([*found, *_acts(row, length > 2 * _ACTIONS)][:limit]))


def _acts(row: Sequence[events.JournalEntry], is_cut: bool) -> Iterator[HistoryLine]:
    """Yield a row of actions, newest first, as one line."""
    if row and isinstance(last := row[0].event, events.AgentActivity):
        done = _actions(row[::-1])
        shown, is_cut = done[-_ACTIONS:], is_cut or len(done) > _ACTIONS
        yield HistoryLine(row[0].seq, row[0].at, last.type, last.step, last.text[:_SAID], shown, is_cut)


def _last_run(change: Change) -> list[events.JournalEntry]:
    """Return the events of the last run; of its agent actions only the last ones, as there can be thousands."""
    found: list[events.JournalEntry] = []
    left = 2 * _ACTIONS
    for line in change.journal().backwards():
        head = line[:_HEAD]
        if _ACTIVITY in head:
            left -= 1
            if left < 0:
                continue
        if entry := events.parse_entry(line.decode("utf-8", "replace")):
            found.append(entry)
        if _STARTED in head:
            break
    return found[::-1]


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def _values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    return {"last": last_run(change), "story": run_history(change, _HISTORY)[::-1]}


TABS = (ChangeTab("run", 100, _values),)

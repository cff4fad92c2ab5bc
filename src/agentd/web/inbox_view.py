"""The inbox: one row per open change, with what waits for a person and since when.

Most of it comes from the index. Local state folders are listed once; a file there is read only if it exists.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from agentd.change import (
    NAMES_SHOWN,
    STATE_FILE,
    Change,
    ChangeLocator,
    ChangeSummary,
    LocatedChange,
    Overlap,
    OverlapIndex,
    build_overlap_index,
    current_comments,
    format_names,
    is_change_running,
    next_command,
    read_outcome,
)
from agentd.documents import COMMENTS_FILE
from agentd.domain import AgentdError, OverBudget, Phase
from agentd.engine import is_plan_edited, saved_questions
from agentd.project import Project, load_config
from agentd.web import run_view

_EDITED = "edited"
_RECHALLENGE = "agentd plan %s --rechallenge"
_TICK = 50_000_000  # ns; a younger file may change again without a new timestamp
_Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Why a change waits for a person, and since when.

    `kind`: question, clarify, verdict, ready, edited, review, archive, rejected, budget, failed, unfinished or broken.
    """

    kind: str
    words: str
    since: str


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One open change. `waits` is "" if nothing waits for a person; `at_work` is the current step.

    `open`: open findings per severity, without zeros; `comments`: open comments that are not findings yet.
    """

    id: str
    phase: str
    description: str
    verdict: str
    round: int
    open: tuple[tuple[str, int], ...]
    comments: int
    cost: float
    budget: float | None
    is_running: bool
    at_work: str
    is_here: bool
    """False: its branch is not checked out, and `next` is what to type."""
    updated_at: str
    kind: str
    waits: str
    since: str
    next: str
    overlaps: tuple[str, ...]
    """Whom it meets, and in what: `long-titles in notes:R2`; of many the first ones."""
    problem: str


@dataclass(frozen=True, slots=True)
class EndedChange:
    """An archived or dropped change."""

    id: str
    phase: str
    at: str
    description: str


@dataclass(frozen=True)
class _LocalState:
    """The ids of changes that have a file in the local state."""

    project: Project
    asked: frozenset[str]
    questions: frozenset[str]
    outcomes: frozenset[str]


def inbox_rows(project: Project, settings: Sequence[str] = ()) -> list[InboxRow]:
    """Return what waits for a person, longest first; then running; then the rest. `settings`: from `--set`."""
    found = ChangeLocator(project).open()
    met, budget, room = _meetings(build_overlap_index(found)), _budget(project, settings), _look(project)
    made = [_row(one, met.get(one.id, ()), budget, room, settings) for one in found]
    return sorted(made, key=_place)


def archived_rows(project: Project) -> list[EndedChange]:
    """Return ended changes, newest first."""
    found = ChangeLocator(project).archived()
    return [
        EndedChange(one.id, str(one.summary.phase), one.summary.updated_at, one.summary.description) for one in found
    ]


def change_inbox_row(project: Project, change_id: str) -> WaitReason | None:
    """Return what one open, checked-out change waits for."""
    found = ChangeLocator(project).find(change_id)
    return _waits(found, is_change_running(project, found), _look(project))


def _place(row: InboxRow) -> tuple[int, str]:
    return (0 if row.waits else 1 if row.is_running else 2, row.since)


def _budget(project: Project, settings: Sequence[str]) -> float | None:
    """Return the budget per change; None if the configuration cannot be read, which other pages report."""
    try:
        return load_config(project.config_file, flags=settings).budget.per_change or None
    except AgentdError:
        return None


def _look(project: Project) -> _LocalState:
    def names(folder: str) -> frozenset[str]:
        path = project.local_state_path(folder)
        return frozenset(name.removesuffix(".json") for name in (os.listdir(path) if os.path.isdir(path) else ()))

    return _LocalState(project, names("inbox"), names("questions"), names("outcomes"))


def _meetings(among: OverlapIndex) -> dict[str, list[Overlap]]:
    """Group overlaps by change, in time linear in the number of changes, not of pairs."""
    met: dict[str, list[Overlap]] = {}
    for meeting in among.all_overlaps():
        for change_id in meeting.changes:
            met.setdefault(change_id, []).append(meeting)
    return met


def _row(
    found: LocatedChange, met: Sequence[Overlap], budget: float | None, room: _LocalState, settings: Sequence[str]
) -> InboxRow:
    project, summary = room.project, found.summary
    is_running = is_change_running(project, found)
    waits, change = _waits(found, is_running, room), _change(found, room)
    run = run_view.active_run_view(change, settings) if change and is_running else None
    counts = (("high", summary.high), ("medium", summary.medium), ("low", summary.low))
    return InboxRow(
        id=found.id,
        phase=str(summary.phase),
        description=summary.description,
        verdict=summary.verdict or "",
        round=summary.round,
        open=tuple(pair for pair in counts if pair[1]),
        comments=_said(change, is_running) if change else 0,
        cost=run.total if run else summary.cost,
        budget=max(budget, summary.raised or 0.0) if budget else None,
        is_running=is_running,
        at_work=run.label if run else "",
        is_here=found.folder is not None,
        updated_at=summary.updated_at,
        kind=waits.kind if waits else "",
        waits=waits.words if waits else "",
        since=waits.since if waits else "",
        next=_RECHALLENGE % found.id if waits and waits.kind == _EDITED else next_command(project, found) or "",
        overlaps=tuple(
            f"{format_names(one.changes, found.id)} in {format_names(one.requirements)}" for one in met[:NAMES_SHOWN]
        ),
        problem=summary.problem or "",
    )


def _change(found: LocatedChange, room: _LocalState) -> Change | None:
    """Return the change, or None if it is not checked out."""
    if found.folder is None or found.tree is None:
        return None
    return Change(room.project, found.id, found.tree, Path(found.folder))


def _said(change: Change, is_running: bool) -> int:
    """Count open comments, cached while the file is unchanged; not during a run, which keeps some elsewhere."""
    stamp = _stamp(os.path.join(change.folder, COMMENTS_FILE))
    is_settled = not is_running and time.time_ns() - stamp[0] > _TICK
    return (_open_comments if is_settled else _open_comments.__wrapped__)(change, stamp)


@lru_cache(maxsize=4096)
def _open_comments(change: Change, stamp: _Stamp) -> int:
    """Count open comments; `stamp` is the cache key."""
    try:
        return sum(one.is_open and bool(one.words) and not one.finding for one in current_comments(change))
    except (AgentdError, OSError):
        return 0  # the change's page reports it


# ---- wait reasons


def _waits(found: LocatedChange, is_running: bool, room: _LocalState) -> WaitReason | None:
    """Return the first reason that applies: broken, a question, a failure, else what the phase says."""
    change = _change(found, room)
    if change is None:
        return None
    summary = found.summary
    if summary.problem:
        return WaitReason(
            "broken", f"{STATE_FILE} cannot be read: {summary.problem}", _written(f"{found.folder}/{STATE_FILE}")
        )
    if is_running:
        return _asked(change) if found.id in room.asked else None
    return (
        (_unanswered(change) if found.id in room.questions and summary.phase is Phase.DRAFTING else None)
        or (_failed(room.project, found) if found.id in room.outcomes else None)
        or (_edited(change) if summary.phase is Phase.CHALLENGED and not summary.running else None)
        or _by_phase(summary)
    )


def _asked(change: Change) -> WaitReason | None:
    asked = run_view.waiting_question(change)
    return WaitReason("question", asked.question, asked.at) if asked else None


def _unanswered(change: Change) -> WaitReason | None:
    try:
        asked = saved_questions(change)
    except AgentdError:
        return None
    left = len(asked.questions) - len(asked.answers) if asked else 0
    if left <= 0:
        return None
    words = "a question of the planner waits" if left == 1 else f"{left} questions of the planner wait"
    return WaitReason(
        "clarify", f"{words} for an answer", _written(change.project.local_state_path("questions", f"{change.id}.json"))
    )


def _failed(project: Project, found: LocatedChange) -> WaitReason | None:
    """Return how the last run failed, if nothing has happened since."""
    path = project.local_state_path("outcomes", f"{found.id}.json")
    try:
        stamp = os.stat(path).st_mtime_ns
    except OSError:
        return None
    end = _end(path, stamp)
    if end is None or end[0] != found.summary.updated_at:
        return None
    _, code, words = end
    return WaitReason("budget" if code == OverBudget.exit_code else "failed", words, _written(path))


@lru_cache(maxsize=4096)
def _end(path: str, stamp: int) -> tuple[str, int, str] | None:
    """Return STATE.yaml's time, exit code and message of a failed run; cached until the file is written again."""
    kept = read_outcome(Path(path))
    error = kept.result.get("error") if kept else None
    if kept is None or not isinstance(error, dict):
        return None
    code = kept.result.get("exit_code")
    return kept.updated_at, code if isinstance(code, int) else 0, str(error.get("message") or "the run failed")


def _edited(change: Change) -> WaitReason | None:
    """Return a reason if the plan was edited after its approval; cached until one of its files is written."""
    stamps = _stamps(change.folder)
    is_settled = time.time_ns() - max(stamp[0] for stamp in stamps) > _TICK
    if not (_is_edited if is_settled else _is_edited.__wrapped__)(change, stamps):
        return None
    at = datetime.fromtimestamp(max(stamp[0] for stamp in stamps[1:]) / 1e9, UTC)
    return WaitReason(
        _EDITED, "edited since it was approved: challenge it again, or accept it", f"{at:%Y-%m-%dT%H:%M:%SZ}"
    )


@lru_cache(maxsize=4096)
def _is_edited(change: Change, stamps: tuple[_Stamp, ...]) -> bool:
    """Return whether the plan was edited; `stamps` are the cache key."""
    try:
        return is_plan_edited(change)
    except (AgentdError, OSError):
        return False  # the change's page reports it


def _stamps(folder: Path) -> tuple[_Stamp, ...]:
    """Return the stamps of STATE.yaml and the plan; folder stamps change when files are added or removed."""
    specs = os.path.join(folder, "specs")
    names = sorted(os.listdir(specs)) if os.path.isdir(specs) else []
    wanted = (STATE_FILE, "proposal.md", "tasks.md", "specs", *(f"specs/{name}" for name in names))
    return tuple(_stamp(os.path.join(folder, name)) for name in wanted)


def _stamp(path: str) -> _Stamp:
    try:
        status = os.lstat(path)
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _by_phase(summary: ChangeSummary) -> WaitReason:
    kind, words = _stands(summary)
    if summary.running:
        kind, words = "unfinished", "a run was interrupted; run the same command to continue"
    return WaitReason(kind, words, summary.updated_at)


def _stands(summary: ChangeSummary) -> tuple[str, str]:
    counts = ((summary.high, "high"), (summary.medium, "medium"), (summary.low, "low"))
    left = ", ".join(f"{count} {word}" for count, word in counts if count)
    match summary.phase:
        case Phase.DRAFTING:
            return "unfinished", "the plan is not complete yet"
        case Phase.PROPOSED if summary.verdict is None:
            return "unfinished", "the plan has not been challenged yet"
        case Phase.PROPOSED:
            return "verdict", f"the challenge found {left}" if left else "no finding is open: challenge it again"
        case Phase.CHALLENGED:
            return "ready", f"ready to implement, {left} open" if left else "ready to implement"
        case Phase.REJECTED:
            return "rejected", "rejected: edit the plan, or drop it"
        case Phase.IMPLEMENTING if summary.verdict is None:
            return "unfinished", "the code is not complete yet"
        case Phase.IMPLEMENTING:
            return "review", f"the review found {left}" if left else "the code was reviewed; no finding is open"
        case Phase.COMPLETE:
            return "archive", "complete, ready to archive"
    return "unfinished", f"{summary.phase}, but not archived yet"


def _written(path: str) -> str:
    try:
        return f"{datetime.fromtimestamp(os.stat(path).st_mtime, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except OSError:
        return ""

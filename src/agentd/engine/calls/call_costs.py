"""What calls cost, counted so that no crash loses or doubles a cent.

STATE.yaml has the calls of a change, the ledger those of a day. A call in progress has a file in the local state
until it is in both; the next run settles what a killed run left open.
"""

import contextlib
import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from agentd.agents import TokenUsage, sanitize_usage
from agentd.change import STATE_FILE, CallRecord, Change, ChangeState, parse_call
from agentd.domain import FieldReader, StateError, clock
from agentd.project import Project
from agentd.storage import files


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A call outside STATE.yaml: in its own file while in progress, then in the ledger.

    `call` is exactly what STATE.yaml gets; `before` is the number of calls there when this one began.
    """

    id: str
    change_id: str
    began: str
    round: int
    number: int
    attempt: int
    reported: bool  # the agent reported its usage
    before: int
    call: CallRecord

    @property
    def day(self) -> str:
        return self.began[:10]

    def line(self) -> str:
        return json.dumps(asdict(self))


def parse_ledger_line(line: str | bytes) -> LedgerEntry | None:
    """Parse a line; None if it is incomplete or not ours."""
    try:
        row = FieldReader(json.loads(line), "entry")
        inner = row.inner("call")
        if inner is None:
            return None
        entry = LedgerEntry(
            id=row.text("id"),
            change_id=row.text("change_id"),
            began=row.text("began"),
            round=row.count("round"),
            number=row.count("number"),
            attempt=row.count("attempt"),
            reported=row.flag("reported"),
            before=row.count("before"),
            call=replace(parse_call(inner), extra=inner.mapping("extra")),
        )
        json.dumps(asdict(entry), ensure_ascii=False).encode()  # lone surrogates cannot be stored in STATE.yaml
        return None if (entry.call.cost or 0.0) < 0 else entry
    except (ValueError, RecursionError, StateError):
        return None


def append_entry(project: Project, entry: LedgerEntry) -> None:
    """Append durably, after any incomplete line a killed writer left."""
    path = _path(project, entry.day)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            file.write((b"\n" if torn else b"") + entry.line().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if size == 0:
            files.sync_folder(path.parent)
    except OSError as error:
        raise files.CannotWrite(f"cannot write {path}: {error.strerror or error}") from error


def read_ledger(project: Project, day: str) -> dict[str, LedgerEntry]:
    """Return the day's calls by id."""
    try:
        lines = files.read(_path(project, day)).split(b"\n")
    except FileNotFoundError:
        return {}
    return {entry.id: entry for line in lines if (entry := parse_ledger_line(line))}


def ledger_size(project: Project, day: str) -> int:
    """Return the size in bytes; lines are only appended, so the same size means the same content."""
    try:
        return os.path.getsize(_path(project, day))
    except OSError:
        return 0  # reading it reports the error


def _path(project: Project, day: str) -> Path:
    return Path(project.local_state_path("spend", f"{day}.jsonl"))


_FOLDER = "calls"
_LONGEST = 200  # characters of a name from an agent


@dataclass(frozen=True, slots=True)
class Spending:
    """USD spent, as far as known: by the change, by the project on this UTC day, and by the run."""

    change: float
    today: float
    run: float = 0.0


class OpenCall:
    """A call in progress. Its usage so far is on disk."""

    def __init__(self, change: Change, token: str, entry: LedgerEntry) -> None:
        self._change = change
        self._token = token
        self._entry = entry
        self._path = _folder(change.project, change.id) / f"{entry.id}.json"
        self._start = time.monotonic()
        self._write(entry)

    @classmethod
    def begin(
        cls,
        change: Change,
        token: str,
        *,
        step: str,
        round: int,  # noqa: A002 - a term of the product
        number: int,
        attempt: int,
        agent: str,
        role: str,
        model: str | None,
        session: str | None,
    ) -> "OpenCall":
        now = clock.now()
        call = CallRecord(
            step, agent, role, _name(model), None, None, None, 0, None, now, _name(session), {"cut": True}
        )
        entry = LedgerEntry(
            id=f"{now.translate(_NO_MARKS)}-{os.urandom(6).hex()}",
            change_id=change.id,
            began=now,
            round=round,
            number=number,
            attempt=attempt,
            reported=False,
            before=len(change.read().llm_calls),
            call=call,
        )
        return cls(change, token, entry)

    @property
    def id(self) -> str:
        return self._entry.id

    @property
    def cost(self) -> float:
        """The cost so far, as far as known."""
        return self._entry.call.cost or 0.0

    def update(self, usage: TokenUsage, cost: float | None) -> None:
        """Store the call's total usage so far. A known cost is never replaced by an unknown one."""
        usage = sanitize_usage(usage)
        known = self._entry.call
        seen = replace(
            known,
            model=_name(usage.model) or known.model,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            tokens_cached=usage.tokens_cached,
            cost=known.cost if cost is None else round(cost, 6),
        )
        if seen == known and self._entry.reported:
            return
        passed = round((time.monotonic() - self._start) * 1000)
        seen = replace(seen, timestamp=clock.now(), duration_ms=passed)
        self._write(replace(self._entry, reported=True, call=seen))

    def finish(self, duration_ms: int, session: str | None) -> CallRecord:
        """Count the call. Usage that was not reported is unknown, never 0."""
        known = self._entry.call
        named = _name(session) or known.session
        last = replace(known, duration_ms=duration_ms, session=named, timestamp=clock.now(), extra={})
        self._write(replace(self._entry, call=last))
        _close(self._change, self._token, self._entry)
        return last

    def withdraw(self) -> None:
        """Discard the call, because its program could not be started."""
        _remove(self._change, self._entry)

    def _write(self, entry: LedgerEntry) -> None:
        files.write(self._path, entry.line().encode())
        self._entry = entry


def settle_open_calls(change: Change, token: str, has_begun: bool = True) -> tuple[CallRecord, ...]:
    """Count the calls a killed run left open, at the start of the next run.

    If not `has_begun`, its agent never started, so only a call that reported usage counts.
    """
    for left in _folder(change.project, change.id).glob(".*.json.*.tmp"):
        left.unlink(missing_ok=True)
    entries = _open(change.project, change.id)
    calls = [entry for entry in entries if has_begun or entry.reported]
    for entry in entries:
        if entry in calls:
            _close(change, token, entry)
        else:
            _remove(change, entry)
    return tuple(entry.call for entry in calls)


def counted_usage(change: Change, session: str | None) -> TokenUsage:
    """Return the usage of a session's earlier calls."""
    calls = [call for call in change.read().llm_calls if session and call.session == session]
    return TokenUsage(
        tokens_in=sum(call.tokens_in or 0 for call in calls),
        tokens_out=sum(call.tokens_out or 0 for call in calls),
        tokens_cached=sum(call.tokens_cached or 0 for call in calls),
    )


def change_spending(change: Change, but: str | None = None) -> Spending:
    """Return what was spent, without the call `but`."""
    state, entries = _read_consistently(change)
    open_ones = [entry for entry in entries if entry.id != but and not _is_counted(state, entry)]
    total = state.total_cost + sum(entry.call.cost or 0.0 for entry in open_ones)
    return Spending(round(total, 6), day_spending(change.project, clock.now()[:10], but))


def day_spending(project: Project, day: str, but: str | None = None) -> float:
    """Return the USD of all calls of every change that began on that day, finished or not."""
    # open calls first: one that ends meanwhile is then in both, never in neither
    changes = _names(project.local_state_path(_FOLDER))
    open_calls = {entry.id: entry for name in changes for entry in _open(project, name) if entry.day == day}
    entries = {**open_calls, **read_ledger(project, day)}
    return round(sum(entry.call.cost or 0.0 for entry in entries.values() if entry.id != but), 6)


def _close(change: Change, token: str, entry: LedgerEntry) -> None:
    """Write ledger, then STATE.yaml, then remove the file: repeating it after a crash counts nothing twice."""
    if entry.reported:
        append_entry(change.project, entry)
    change.update(lambda old: old if _is_counted(old, entry) else old.with_call(entry.call), token)
    _remove(change, entry)


def _remove(change: Change, entry: LedgerEntry) -> None:
    folder = _folder(change.project, change.id)
    (folder / f"{entry.id}.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty
        folder.rmdir()


def _is_counted(state: ChangeState, entry: LedgerEntry) -> bool:
    """Whether STATE.yaml has the call; an equal one from before it began is another call."""
    return entry.call in state.llm_calls[entry.before :]


def _read_consistently(change: Change) -> tuple[ChangeState, list[LedgerEntry]]:
    """Read STATE.yaml and the open calls consistently, even if a call ends meanwhile."""
    while True:
        stamp = _stamp(change)
        state, entries = change.read(), _open(change.project, change.id)
        if _stamp(change) == stamp:
            return state, entries


def _stamp(change: Change) -> tuple[int, int]:
    try:
        status = os.stat(change.folder / STATE_FILE)
    except OSError:
        return 0, 0  # reading it reports the error
    return status.st_ino, status.st_mtime_ns


def _open(project: Project, change_id: str) -> list[LedgerEntry]:
    """Return the open calls, oldest first. Invalid or foreign files are ignored."""
    found = []
    for name in _names(project.local_state_path(_FOLDER, change_id)):
        path = project.local_state_path(_FOLDER, change_id, name)
        if not name.endswith(".json") or not os.path.isfile(path):
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is not readable
            entry = parse_ledger_line(Path(path).read_bytes())
            if entry and (entry.change_id, f"{entry.id}.json") == (change_id, name):
                found.append(entry)
    return found


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _folder(project: Project, change_id: str) -> Path:
    return Path(project.local_state_path(_FOLDER, change_id))


def _name(text: str | None) -> str | None:
    """Make a name from an agent safe to store in STATE.yaml."""
    return "".join(char if char.isprintable() else "�" for char in text[:_LONGEST]) if text else None


_NO_MARKS = str.maketrans("", "", "-:")

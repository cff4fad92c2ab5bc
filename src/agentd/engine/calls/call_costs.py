"""What calls cost, so that no crash forgets or doubles a cent.

STATE.yaml counts the calls of a change, the ledger those of a day. A call under way has a file in the local state
until it stands in both; one that a killed run left open is settled by the next run.
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
    """A call as it is kept outside STATE.yaml: under way in a file of its own, ended in the ledger.

    `call` is exactly what STATE.yaml gets; `before` is how many calls stood there when this one began.
    """

    id: str
    change_id: str
    began: str
    round: int
    number: int
    attempt: int
    reported: bool  # the agent told its usage
    before: int
    call: CallRecord

    @property
    def day(self) -> str:
        return self.began[:10]

    def line(self) -> str:
        return json.dumps(asdict(self))


def parse_ledger_line(line: str | bytes) -> LedgerEntry | None:
    """None for what is torn, or was written by somebody else."""
    try:
        row = FieldReader(json.loads(line), "slip")
        inner = row.inner("call")
        if inner is None:
            return None
        slip = LedgerEntry(
            id=row.text("id"),
            change_id=row.text("change_id"),
            began=row.text("began"),
            round=row.count("round"),
            number=row.count("number"),
            attempt=row.count("attempt"),
            reported=row.flag("reported"),
            before=row.count("before"),
            call=_call(inner),
        )
        json.dumps(asdict(slip), ensure_ascii=False).encode()  # half a character could not be kept in STATE.yaml
        return None if (slip.call.cost or 0.0) < 0 else slip
    except (ValueError, RecursionError, StateError):
        return None


def append_entry(project: Project, slip: LedgerEntry) -> None:
    """On disk when this returns, behind whatever line a killed writer left torn."""
    path = _path(project, slip.day)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            file.write((b"\n" if torn else b"") + slip.line().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if size == 0:
            files.sync_folder(path.parent)
    except OSError as error:
        raise files.CannotWrite(f"cannot write {path}: {error.strerror or error}") from error


def read_ledger(project: Project, day: str) -> dict[str, LedgerEntry]:
    """The day's calls by their ids."""
    try:
        lines = files.read(_path(project, day)).split(b"\n")
    except FileNotFoundError:
        return {}
    return {slip.id: slip for line in lines if (slip := parse_ledger_line(line))}


def ledger_size(project: Project, day: str) -> int:
    """In bytes: as lines are only added, a ledger of the same size says the same."""
    try:
        return os.path.getsize(_path(project, day))
    except OSError:
        return 0  # reading it says what is wrong


def _path(project: Project, day: str) -> Path:
    return Path(project.local_state_path("spend", f"{day}.jsonl"))


def _call(row: FieldReader) -> CallRecord:
    extra = row.mapping("extra")
    return replace(parse_call(row), extra=extra)


_ROOM = "calls"
_LONGEST = 200  # of a name that an agent gave


@dataclass(frozen=True, slots=True)
class Spending:
    """USD over all known costs: by one change so far, by the whole project on this UTC day, and by one run."""

    change: float
    today: float
    run: float = 0.0


class OpenCall:
    """One call under way, of the run that holds the token. What it has seen is on disk."""

    def __init__(self, change: Change, token: str, slip: LedgerEntry) -> None:
        self._change = change
        self._token = token
        self._slip = slip
        self._path = _folder(change.project, change.id) / f"{slip.id}.json"
        self._start = time.monotonic()
        self._write(slip)

    @classmethod
    def begin(
        cls,
        change: Change,
        token: str,
        *,
        step: str,
        round: int,  # noqa: A002 - the word of the product
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
        slip = LedgerEntry(
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
        return cls(change, token, slip)

    @property
    def id(self) -> str:
        return self._slip.id

    @property
    def cost(self) -> float:
        """As far as it is known."""
        return self._slip.call.cost or 0.0

    def saw(self, usage: TokenUsage, cost: float | None) -> None:
        """The whole call's usage so far. A cost that was known once is not forgotten for an unknown one."""
        usage = sanitize_usage(usage)
        known = self._slip.call
        seen = replace(
            known,
            model=_name(usage.model) or known.model,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            tokens_cached=usage.tokens_cached,
            cost=known.cost if cost is None else round(cost, 6),
        )
        if seen == known and self._slip.reported:
            return
        passed = round((time.monotonic() - self._start) * 1000)
        seen = replace(seen, timestamp=clock.now(), duration_ms=passed)
        self._write(replace(self._slip, reported=True, call=seen))

    def finish(self, duration_ms: int, session: str | None) -> CallRecord:
        """Count the call. Usage that was not reported is unknown, never 0."""
        known = self._slip.call
        named = _name(session) or known.session
        last = replace(known, duration_ms=duration_ms, session=named, timestamp=clock.now(), extra={})
        self._write(replace(self._slip, call=last))
        _close(self._change, self._token, self._slip)
        return last

    def withdraw(self) -> None:
        """Its program could not be started: there was no call."""
        _remove(self._change, self._slip)

    def _write(self, slip: LedgerEntry) -> None:
        files.write(self._path, slip.line().encode())
        self._slip = slip


def settle_open_calls(change: Change, token: str, has_begun: bool = True) -> tuple[CallRecord, ...]:
    """Count what a killed run left open. At the start of a run, before its first call.

    `has_begun` False: its agent never started, so only what was reported is a call.
    """
    for left in _folder(change.project, change.id).glob(".*.json.*.tmp"):
        left.unlink(missing_ok=True)
    slips = _open(change.project, change.id)
    calls = [slip for slip in slips if has_begun or slip.reported]
    for slip in slips:
        if slip in calls:
            _close(change, token, slip)
        else:
            _remove(change, slip)
    return tuple(slip.call for slip in calls)


def counted_usage(change: Change, session: str | None) -> TokenUsage:
    """What the earlier calls of a session stand in STATE.yaml with."""
    calls = [call for call in change.read().llm_calls if session and call.session == session]
    return TokenUsage(
        tokens_in=sum(call.tokens_in or 0 for call in calls),
        tokens_out=sum(call.tokens_out or 0 for call in calls),
        tokens_cached=sum(call.tokens_cached or 0 for call in calls),
    )


def change_spending(change: Change, but: str | None = None) -> Spending:
    """`but` leaves out the call of that id, for whoever knows better what it costs just now."""
    state, slips = _one_look(change)
    open_ones = [slip for slip in slips if slip.id != but and not _is_counted(state, slip)]
    total = state.total_cost + sum(slip.call.cost or 0.0 for slip in open_ones)
    return Spending(round(total, 6), day_spending(change.project, clock.now()[:10], but))


def day_spending(project: Project, day: str, but: str | None = None) -> float:
    """USD of all calls that began on that day, of every change, under way or ended."""
    # the open ones first: a call that ends meanwhile is then in the ledger, maybe twice, never nowhere
    under_way = {slip.id: slip for name in _changes(project) for slip in _open(project, name) if slip.day == day}
    slips = {**under_way, **read_ledger(project, day)}
    return round(sum(slip.call.cost or 0.0 for slip in slips.values() if slip.id != but), 6)


def _close(change: Change, token: str, slip: LedgerEntry) -> None:
    """Ledger, STATE.yaml, then the file goes: cut off anywhere, doing it again counts nothing twice."""
    if slip.reported:
        append_entry(change.project, slip)
    change.update(lambda old: old if _is_counted(old, slip) else old.with_call(slip.call), token)
    _remove(change, slip)


def _remove(change: Change, slip: LedgerEntry) -> None:
    folder = _folder(change.project, change.id)
    (folder / f"{slip.id}.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it stays while anything is in it
        folder.rmdir()


def _is_counted(state: ChangeState, slip: LedgerEntry) -> bool:
    """An equal call from before it began is another one."""
    return slip.call in state.llm_calls[slip.before :]


def _one_look(change: Change) -> tuple[ChangeState, list[LedgerEntry]]:
    """STATE.yaml and the open calls as they were at one moment: a call may end while we read."""
    while True:
        stamp = _stamp(change)
        state, slips = change.read(), _open(change.project, change.id)
        if _stamp(change) == stamp:
            return state, slips


def _stamp(change: Change) -> tuple[int, int]:
    try:
        status = os.stat(change.folder / STATE_FILE)
    except OSError:
        return 0, 0  # reading it says what is wrong
    return status.st_ino, status.st_mtime_ns


def _open(project: Project, change_id: str) -> list[LedgerEntry]:
    """In the order of their beginning. What is broken or not ours stays where it is and counts for nothing."""
    found = []
    for name in _names(project.local_state_path(_ROOM, change_id)):
        path = project.local_state_path(_ROOM, change_id, name)
        if not name.endswith(".json") or not os.path.isfile(path):
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or may not be read
            slip = parse_ledger_line(Path(path).read_bytes())
            if slip and (slip.change_id, f"{slip.id}.json") == (change_id, name):
                found.append(slip)
    return found


def _changes(project: Project) -> list[str]:
    return _names(project.local_state_path(_ROOM))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _folder(project: Project, change_id: str) -> Path:
    return Path(project.local_state_path(_ROOM, change_id))


def _name(text: str | None) -> str | None:
    """A name from outside, as STATE.yaml can keep it."""
    return "".join(char if char.isprintable() else "�" for char in text[:_LONGEST]) if text else None


_NO_MARKS = str.maketrans("", "", "-:")

"""The day's ledger in the local room: a line for every call that ended with usage, whatever became of its change.

A call belongs to the UTC day on which it began. Lines are only added; a call that stands twice counts by its last line.
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from agentd.change import CallRecord, parse_call
from agentd.domain import FieldReader, StateError
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
    return Path(project.in_room("spend", f"{day}.jsonl"))


def _call(row: FieldReader) -> CallRecord:
    extra = row.mapping("extra")
    return replace(parse_call(row), extra=extra)

"""A small project, what `archive` does to it as one transaction, and how it is before and after."""

import ctypes
import os
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePath

from agentd.storage.transaction import finish_transaction, run_transaction, undo_transaction
from agentd.storage.transaction_record import (
    MovePath,
    Operation,
    RemoveFile,
    TransactionRecord,
    WriteFile,
    pending_transactions,
    read_transaction,
    sweep_transactions,
)

TITLE = "agentd archive add-oauth"
BACK = "agentd archive add-oauth --undo"
CHANGE = PurePath("agentd/changes/add-oauth")
ARCHIVED = PurePath("agentd/archive/20260119-add-oauth")
SPEC, NEW_SPEC = PurePath("agentd/specs/auth-flow.md"), PurePath("agentd/specs/user/core/user-model.md")
STATE, CONTEXT = CHANGE / "STATE.yaml", CHANGE / "GEMINI.md"

OPERATIONS: tuple[Operation, ...] = (
    WriteFile(SPEC, b"# Auth flow\n\nmerged\n"),
    WriteFile(NEW_SPEC, b"# User model\n" + b"a long text\n" * 1000),
    WriteFile(STATE, b"phase: archived\n"),
    RemoveFile(CONTEXT),
    MovePath(CHANGE, ARCHIVED),
)
_ODD = (b"with space.md", b"line\nbreak.md", b"latin-\xe9.md", b"[x]*?.md")


@dataclass(frozen=True)
class Ground:
    top: Path

    @property
    def root(self) -> Path:
        return self.top / "notes-service"

    @property
    def records(self) -> Path:
        return self.top / "room" / "archives"

    @property
    def record(self) -> Path:
        return self.records / "20260119-add-oauth"

    def carry_out(self, *operations: Operation) -> None:
        run_transaction(self.record, self.root, TITLE, operations or OPERATIONS, {"change": "add-oauth"})

    def done(self) -> TransactionRecord:
        record = read_transaction(self.record)
        assert record and record.is_done
        return record

    def undo(self) -> None:
        undo_transaction(self.done(), BACK)

    def recover(self) -> None:
        """What the next command does first."""
        sweep_transactions(self.records)
        for record in pending_transactions(self.records):
            finish_transaction(record)


def laid_out(top: Path) -> Ground:
    """The project before it; whatever was there goes."""
    shutil.rmtree(top, ignore_errors=True)
    ground = Ground(top)
    specs = (SPEC, STATE, CONTEXT, CHANGE / "proposal.md", CHANGE / "specs/deep/auth-flow.md")
    for path in specs:
        (ground.root / path).parent.mkdir(parents=True, exist_ok=True)
        (ground.root / path).write_text(f"the old {path}\n")
    deep = os.fsencode(ground.root / CHANGE / "specs/deep")
    for name in _ODD:
        Path(os.fsdecode(os.path.join(deep, name))).write_bytes(name)
    (ground.root / CHANGE / "link").symlink_to("../elsewhere")
    (ground.root / CHANGE / "empty").mkdir(mode=0o710)
    (ground.root / CHANGE / "specs").chmod(0o750)
    (ground.root / SPEC).chmod(0o640)
    (ground.root / CONTEXT).chmod(0o600)
    return ground


def bound_by_rights() -> None:
    """Also for root, for the rest of this process: its power over other people's files is laid down."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
        nothing = (ctypes.c_uint32 * 6)()
        assert libc.capset(version_3, nothing) == 0, os.strerror(ctypes.get_errno())

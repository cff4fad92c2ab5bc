"""Complete interrupted archives (and interrupted undos of archives) before changes are read.

Transaction records live in local state: in `archiving` while they are in progress, then in `archived` for as long as
they can be undone.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentd.project import Project, git
from agentd.storage import (
    TransactionRecord,
    drop_transaction,
    files,
    finish_transaction,
    pending_transactions,
    read_transaction,
    sweep_transactions,
    undo_transaction,
    write_lock,
)

_PENDING, _DONE = "archiving", "archived"
CHANGE_FACT = "change"  # a record with this fact is an archive, which can be undone


@contextmanager
def archive_lock(project: Project) -> Iterator[None]:
    """Hold the lock that serializes archives, which all write the same specs. Completes interrupted ones first."""
    with write_lock(Path(project.local_state_path("locks", "@specs.write"))):
        _finish_pending(project)
        yield
        _move_finished(project)


def finish_archives(project: Project) -> None:
    """Complete interrupted archives."""
    with archive_lock(project):
        pass


def archive_record_path(project: Project, name: str) -> Path:
    """Return the path at which to create a record."""
    return Path(project.local_state_path(_PENDING, name))


def completed_archives(project: Project) -> list[TransactionRecord]:
    """Return the archives that can be undone, sorted by name."""
    folder = Path(project.local_state_path(_DONE))
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [record for name in names if (record := read_transaction(folder / name))]


def undo_record(project: Project, record: TransactionRecord, title: str) -> None:
    """Undo an archive. The caller holds `archive_lock`."""
    path = archive_record_path(project, record.folder.name)
    files.move(record.folder, path)
    pending = read_transaction(path)
    assert pending
    undo_transaction(pending, title)


def _finish_pending(project: Project) -> None:
    folder = Path(project.local_state_path(_PENDING))
    for record in pending_transactions(folder):
        if not any(record.root.is_relative_to(tree.path) for tree in git.worktrees(project.repo)):
            # its worktree was removed, and the half-done work with it
            drop_transaction(record.folder)
        else:
            finish_transaction(record)
    _move_finished(project)


def _move_finished(project: Project) -> None:
    folder = Path(project.local_state_path(_PENDING))
    sweep_transactions(folder)
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        record = read_transaction(path)
        if record and record.is_done and CHANGE_FACT in record.facts:
            files.move(path, _free_path(Path(project.local_state_path(_DONE, path.name))))
        elif record and record.is_done:
            drop_transaction(path)


def _free_path(path: Path) -> Path:
    """Return the path, with a number if a record of that name was left by an archive reverted outside agentd."""
    number = 0
    candidate = path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}.{number}")
    return candidate

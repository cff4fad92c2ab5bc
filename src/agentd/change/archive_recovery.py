"""What was begun as one and cut off, an archive or its undoing: completed before anybody looks at the changes.

Records lie in the local room: in `archiving` while they are under way, in `archived` for as long as they can be undone.
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

UNDER_WAY, DONE = "archiving", "archived"
CHANGE_FACT = "change"  # the fact by which a record is known to be an archive, which can be undone


@contextmanager
def archive_lock(project: Project) -> Iterator[None]:
    """One at a time: all archives write the same specs. What a killed one left is completed first."""
    with write_lock(Path(project.in_room("locks", "@specs.write"))):
        _finish(project)
        yield
        _tidy(project)


def finish_archives(project: Project) -> None:
    """For whoever looks at the changes and finds a record under way."""
    with archive_lock(project):
        pass


def archive_record_path(project: Project, name: str) -> Path:
    """Where a record of that name is made."""
    return Path(project.in_room(UNDER_WAY, name))


def completed_archives(project: Project) -> list[TransactionRecord]:
    """Those that can be undone, in the order of their names."""
    folder = Path(project.in_room(DONE))
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [record for name in names if (record := read_transaction(folder / name))]


def undo_record(project: Project, record: TransactionRecord, title: str) -> None:
    """Within `alone`."""
    back = archive_record_path(project, record.folder.name)
    files.move(record.folder, back)
    again = read_transaction(back)
    assert again
    undo_transaction(again, title)


def _finish(project: Project) -> None:
    folder = Path(project.in_room(UNDER_WAY))
    for record in pending_transactions(folder):
        if _is_lost(project, record):
            drop_transaction(record.folder)
        else:
            finish_transaction(record)
    _tidy(project)


def _is_lost(project: Project, record: TransactionRecord) -> bool:
    """Its work tree was removed, and with it all that was half done."""
    return not any(record.root.is_relative_to(tree.path) for tree in git.worktrees(project.repo))


def _tidy(project: Project) -> None:
    folder = Path(project.in_room(UNDER_WAY))
    sweep_transactions(folder)
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        record = read_transaction(path)
        if record and record.is_done and CHANGE_FACT in record.facts:
            files.move(path, _free(Path(project.in_room(DONE, path.name))))
        elif record and record.is_done:
            drop_transaction(path)


def _free(path: Path) -> Path:
    """An older record of that name, of an archive that was taken back by other means, makes room."""
    number = 0
    found = path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.{number}")
    return found

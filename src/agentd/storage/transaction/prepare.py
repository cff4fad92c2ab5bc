"""The beginning of a transaction: what is refused, and what is laid down before anything is touched."""

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from agentd.domain import InternalError, Refusal
from agentd.storage import files
from agentd.storage.transaction import record_store
from agentd.storage.transaction.operations import MovePath, Operation, RemoveFile, WriteFile, check_disjoint, is_within
from agentd.storage.transaction.paths import AGAIN, hash_tree, make_folder, mode_of, printable_path, safe_path
from agentd.storage.transaction.record_store import FileChange, MovedPath, StoredText, TransactionRecord

_FileBefore = tuple[bytes, int] | None  # text and rights


def begin_transaction(
    folder: Path,
    root: Path,
    title: str,
    operations: Sequence[Operation],
    facts: Mapping[str, str],
    cleared: tuple[str, ...] = (),
) -> TransactionRecord:
    """The record, on disk; or an error, and there is none. One that is done makes room for the next of that name."""
    if record_store.is_pending(folder):
        raise InternalError(f"{folder} has to be finished before something else can be begun there")
    check_disjoint(operations)
    changes = [(one, _before(root, one)) for one in operations if not isinstance(one, MovePath)]
    moves = [one for one in operations if isinstance(one, MovePath)]
    for move in moves:
        _check_move(root, move)
    if folder.exists():
        record_store.drop_transaction(folder)
    try:
        make_folder(folder)
        rows = tuple(_lay_down(folder, number, *change) for number, change in enumerate(changes))
        moved = tuple(_moved(root, move, rows) for move in moves)
        record = TransactionRecord(folder, root, title, dict(facts), rows, moved, _missing(root, operations), cleared)
        record_store.write_transaction(record)
    except BaseException:
        with contextlib.suppress(files.CannotWrite):  # what cannot go now is swept later
            record_store.drop_transaction(folder)
        raise
    return record


def _before(root: Path, change: WriteFile | RemoveFile) -> _FileBefore:
    before = _found(root, change)
    digest = files.hash_bytes(before[0]) if before else ""
    if isinstance(change, WriteFile) and change.seen not in (None, digest):
        raise Refusal(f"{printable_path(change.path)} was changed just now by somebody else", "run the command again")
    return before


def _found(root: Path, change: WriteFile | RemoveFile) -> _FileBefore:
    place = safe_path(root, change.path)
    kind = mode_of(place)
    if kind is None:
        if isinstance(change, RemoveFile):
            raise Refusal(f"{printable_path(change.path)} is not there, so it cannot be removed", "git status")
        return None
    if not stat.S_ISREG(kind):
        raise Refusal(f"{printable_path(change.path)} is not a file", f"move it elsewhere, {AGAIN}")
    return files.read(place), stat.S_IMODE(kind)


def _check_move(root: Path, move: MovePath) -> None:
    source, target = safe_path(root, move.source), safe_path(root, move.target)
    if mode_of(source) is None:
        raise Refusal(f"{printable_path(move.source)} is not there, so it cannot be moved", "git status")
    if mode_of(target) is not None:
        raise Refusal(f"{printable_path(move.target)} is there already", f"move it elsewhere, {AGAIN}")
    above = next(one for one in target.parents if one.exists())
    if os.lstat(source).st_dev != os.lstat(above).st_dev:  # half done is too late to find out
        what = f"{printable_path(move.source)} and {printable_path(move.target)} are on two file systems"
        raise Refusal(what, f"bring them onto one, {AGAIN}")


def _lay_down(folder: Path, number: int, change: WriteFile | RemoveFile, before: _FileBefore) -> FileChange:
    old = _text(record_store.stored_text_path(folder, "old", number), *before) if before else None
    if isinstance(change, RemoveFile):
        return FileChange(str(change.path), old, None)
    mode = before[1] if before and change.mode is None else change.mode
    return FileChange(
        str(change.path), old, _text(record_store.stored_text_path(folder, "new", number), change.data, mode)
    )


def _text(path: Path, data: bytes, mode: int | None) -> StoredText:
    """A new file will have the rights that its laid down text was given."""
    files.write(path, data, mode)
    return StoredText(files.hash_bytes(data), stat.S_IMODE(path.stat().st_mode))


def _moved(root: Path, move: MovePath, rows: Iterable[FileChange]) -> MovedPath:
    holds = hash_tree(root / move.source)
    for file in rows:
        if is_within(PurePath(file.path), move.source):
            name = os.path.relpath(file.path, move.source)
            holds.pop(name, None)
            holds |= {name: file.new.digest} if file.new else {}
    return MovedPath(str(move.source), str(move.target), holds)


def _missing(root: Path, operations: Iterable[Operation]) -> tuple[str, ...]:
    """The folders that have to be made."""
    paths = [one.target if isinstance(one, MovePath) else one.path for one in operations]
    above = {folder for path in paths for folder in path.parents if not (root / folder).exists()}
    return tuple(str(folder) for folder in sorted(above))

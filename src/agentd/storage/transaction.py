"""Write, remove and move several files as one transaction: all or nothing, and undoable byte for byte.

A transaction has its own folder, the record. It stores the old and new contents first, and the plan last. Until the
plan is written, nothing has happened; from then on the transaction will be completed, by the next command if it is
interrupted. Files are written before folders are moved, so all files in a moved folder are done.
Nothing here takes a lock: the caller holds one for the folder of records.

Every step is idempotent.
"""

import contextlib
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from agentd.domain import Bug, Refusal, StateError
from agentd.storage import files, transaction_record
from agentd.storage.transaction_record import (
    AGAIN,
    FileChange,
    MovedPath,
    MovePath,
    Operation,
    RemoveFile,
    StoredText,
    TransactionRecord,
    WriteFile,
    check_disjoint,
    hash_path,
    hash_tree,
    is_within,
    make_folder,
    mode_of,
    printable_path,
    remove_file,
    remove_if_empty,
    safe_path,
    stored_text_path,
)

_FileBefore = tuple[bytes, int] | None  # content and permissions


def begin_transaction(
    folder: Path,
    root: Path,
    title: str,
    operations: Sequence[Operation],
    facts: Mapping[str, str],
    cleared: tuple[str, ...] = (),
) -> TransactionRecord:
    """Write the record and return it; on errors, none is left. Replaces a completed record of the same name."""
    if transaction_record.is_pending(folder):
        raise Bug(f"{folder} must be finished before another transaction can start there")
    check_disjoint(operations)
    changes = [(change, _read_before(root, change)) for change in operations if not isinstance(change, MovePath)]
    moves = [move for move in operations if isinstance(move, MovePath)]
    for move in moves:
        _check_move(root, move)
    if folder.exists():
        transaction_record.drop_transaction(folder)
    try:
        make_folder(folder)
        rows = tuple(_store_change(folder, number, *change) for number, change in enumerate(changes))
        moved = tuple(_plan_move(root, move, rows) for move in moves)
        made = _missing_folders(root, operations)
        record = TransactionRecord(folder, root, title, dict(facts), rows, moved, made, cleared)
        transaction_record.write_transaction(record)
    except BaseException:
        with contextlib.suppress(files.CannotWrite):  # swept later
            transaction_record.drop_transaction(folder)
        raise
    return record


def _read_before(root: Path, change: WriteFile | RemoveFile) -> _FileBefore:
    before = _read_current(root, change)
    digest = files.hash_bytes(before[0]) if before else ""
    if isinstance(change, WriteFile) and change.seen not in (None, digest):
        raise Refusal(f"{printable_path(change.path)} was just changed by someone else", "run the command again")
    return before


def _read_current(root: Path, change: WriteFile | RemoveFile) -> _FileBefore:
    place = safe_path(root, change.path)
    kind = mode_of(place)
    if kind is None:
        if isinstance(change, RemoveFile):
            raise Refusal(f"{printable_path(change.path)} does not exist, so it cannot be removed", "git status")
        return None
    if not stat.S_ISREG(kind):
        raise Refusal(f"{printable_path(change.path)} is not a file", f"move it elsewhere, {AGAIN}")
    return files.read(place), stat.S_IMODE(kind)


def _check_move(root: Path, move: MovePath) -> None:
    source, target = safe_path(root, move.source), safe_path(root, move.target)
    if mode_of(source) is None:
        raise Refusal(f"{printable_path(move.source)} does not exist, so it cannot be moved", "git status")
    if mode_of(target) is not None:
        raise Refusal(f"{printable_path(move.target)} already exists", f"move it elsewhere, {AGAIN}")
    above = next(folder for folder in target.parents if folder.exists())
    if os.lstat(source).st_dev != os.lstat(above).st_dev:  # the rename would fail halfway through
        message = f"{printable_path(move.source)} and {printable_path(move.target)} are on different file systems"
        raise Refusal(message, f"move them to the same one, {AGAIN}")


def _store_change(folder: Path, number: int, change: WriteFile | RemoveFile, before: _FileBefore) -> FileChange:
    old = _store_text(stored_text_path(folder, "old", number), *before) if before else None
    if isinstance(change, RemoveFile):
        return FileChange(str(change.path), old, None)
    mode = before[1] if before and change.mode is None else change.mode
    return FileChange(str(change.path), old, _store_text(stored_text_path(folder, "new", number), change.data, mode))


def _store_text(path: Path, data: bytes, mode: int | None) -> StoredText:
    """Store a file's content in the record. A new file will get the permissions of the stored one."""
    files.write(path, data, mode)
    return StoredText(files.hash_bytes(data), stat.S_IMODE(path.stat().st_mode))


def _plan_move(root: Path, move: MovePath, rows: Iterable[FileChange]) -> MovedPath:
    holds = hash_tree(root / move.source)
    for file in rows:
        if is_within(PurePath(file.path), move.source):
            name = os.path.relpath(file.path, move.source)
            holds.pop(name, None)
            holds |= {name: file.new.digest} if file.new else {}
    return MovedPath(str(move.source), str(move.target), holds)


def _missing_folders(root: Path, operations: Iterable[Operation]) -> tuple[str, ...]:
    """Return the folders that have to be created."""
    paths = [each.target if isinstance(each, MovePath) else each.path for each in operations]
    above = {folder for path in paths for folder in path.parents if not (root / folder).exists()}
    return tuple(str(folder) for folder in sorted(above))


def run_transaction(
    record: Path, root: Path, title: str, operations: Sequence[Operation], facts: Mapping[str, str] | None = None
) -> None:
    """Run all operations. Messages call the transaction `title`; `facts` are stored for the caller.

    If the operations are refused or the folder `record` cannot be written, nothing has changed; after any other error,
    or a crash, the transaction is pending.
    """
    finish_transaction(begin_transaction(record, root, title, operations, facts or {}))


def finish_transaction(record: TransactionRecord) -> None:
    """Complete a transaction from where it stopped. Raise StateError at paths that someone else changed."""
    if not record.root.is_dir():
        raise StateError(f"{record.root} is missing, and {record.title} is half done there", f"restore it, {AGAIN}")
    _check_conflicts(record)
    if not _has_moved(record):
        for number in range(len(record.files)):
            _write_file(record, number)
    for moved in record.moves:
        _move(record, moved)
    for folder in record.cleared:
        remove_if_empty(safe_path(record.root, folder))
    transaction_record.complete_transaction(record)


def undo_transaction(record: TransactionRecord, title: str) -> None:
    """Run the reverse as a transaction of its own. Refused if anything has changed since."""
    if not record.is_done or transaction_record.is_pending(record.folder):
        raise Bug(f"{record.folder} must be finished before it can be undone")
    if changes := list(_later_changes(record)):
        hint = f"move new files elsewhere and revert the changes (see git diff), {AGAIN}"
        raise Refusal(f"{record.title} cannot be undone: since then {', '.join(changes)}", hint)
    reverse: list[Operation] = [_reverse(record, number, file) for number, file in enumerate(record.files)]
    reverse += [MovePath(PurePath(moved.target), PurePath(moved.source)) for moved in record.moves]
    finish_transaction(
        begin_transaction(record.undo, record.root, title, reverse, record.facts, cleared=record.made[::-1])
    )


# ---- steps


def _write_file(record: TransactionRecord, number: int) -> None:
    file = record.files[number]
    place = safe_path(record.root, file.path)
    files.remove_leftovers(place)
    before, after = file.hashes
    found = hash_path(place)
    if found == after:
        return
    if found != before:
        _check_conflicts(record)
    if file.new:
        make_folder(place.parent)
        files.write(place, record.text("new", number), file.new.mode)
    else:
        remove_file(place)


def _move(record: TransactionRecord, moved: MovedPath) -> None:
    source, target = safe_path(record.root, moved.source), safe_path(record.root, moved.target)
    if mode_of(source) is None:
        return
    if mode_of(target) is not None:
        _check_conflicts(record)
    make_folder(target.parent)
    files.move(source, target)


def _has_moved(record: TransactionRecord) -> bool:
    """Return whether a move has happened. If so, all files are written."""
    paths = [(safe_path(record.root, moved.source), safe_path(record.root, moved.target)) for moved in record.moves]
    return any(mode_of(source) is None and mode_of(target) is not None for source, target in paths)


# ---- changes made by someone else


def _check_conflicts(record: TransactionRecord) -> None:
    conflicts = list(_folder_conflicts(record))
    if not conflicts and not _has_moved(record):
        conflicts = list(_file_conflicts(record))
    if conflicts:
        message = f"{record.title} is half done, and someone else changed what it has to change: "
        commands = " && ".join(command for _, commands in conflicts for command in commands)
        raise StateError(message + "; ".join(text for text, _ in conflicts), f"{commands or 'git status'}; {AGAIN}")


def _file_conflicts(record: TransactionRecord) -> Iterator[tuple[str, list[str]]]:
    """Yield each conflict and the commands that resolve it without losing anything."""
    for number, file in enumerate(record.files):
        place = safe_path(record.root, file.path)
        found = hash_path(place)
        if found in file.hashes:
            continue
        old, new = (stored_text_path(record.folder, side, number) for side in ("old", "new"))
        before = f"was {old}" if file.old else "did not exist"
        after = f"becomes {new}" if file.new else "will be removed"
        aside = [_command("mv", place, _free_path(place))] if found else []
        yield (
            f"{printable_path(file.path)} ({before} and {after})",
            aside + ([_command("cp", new, place)] if file.new else []),
        )


def _folder_conflicts(record: TransactionRecord) -> Iterator[tuple[str, list[str]]]:
    for moved in record.moves:
        source, target = safe_path(record.root, moved.source), safe_path(record.root, moved.target)
        existing = [place for place in (source, target) if mode_of(place) is not None]
        text = f"{printable_path(moved.source)} becomes {printable_path(moved.target)}, and"
        if not existing:
            yield f"{text} both are missing", []
        if len(existing) == 2:
            foreign = source if hash_tree(target) == moved.holds else target
            yield f"{text} both exist", [_command("mv", foreign, _free_path(foreign))]


def _later_changes(record: TransactionRecord) -> Iterator[str]:
    for file in record.files:
        if not any(is_within(PurePath(file.path), PurePath(moved.source)) for moved in record.moves):
            yield from _describe_difference(file.path, file.hashes[1], hash_path(safe_path(record.root, file.path)))
    for moved in record.moves:
        if mode_of(safe_path(record.root, moved.source)) is not None:
            yield f"{printable_path(moved.source)} was created"
        target = safe_path(record.root, moved.target)
        if mode_of(target) is None:
            yield f"{printable_path(moved.target)} was removed"
            continue
        found = hash_tree(target)
        for name in sorted({*moved.holds, *found}):
            yield from _describe_difference(f"{moved.target}/{name}", moved.holds.get(name), found.get(name))


def _describe_difference(path: str, before: str | None, now: str | None) -> Iterator[str]:
    if before != now:
        change = "was added" if before is None else "was removed" if now is None else "was changed"
        yield f"{printable_path(path)} {change}"


def _reverse(record: TransactionRecord, number: int, file: FileChange) -> WriteFile | RemoveFile:
    path = record.final_path(file.path)
    return WriteFile(path, record.text("old", number), file.old.mode) if file.old else RemoveFile(path)


def _command(*words: object) -> str:
    return shlex.join(map(str, words))


def _free_path(place: Path) -> Path:
    """Return an unused path next to this one."""
    candidates = (place.with_name(f"{place.name}.yours-{number}") for number in range(1, 1_000_000))
    return next(path for path in candidates if mode_of(path) is None)

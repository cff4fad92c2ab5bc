"""Carrying out a transaction, finishing one that was cut off, undoing one. Each step looks, and can be done again."""

import contextlib
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from agentd.domain import Bug, Refusal, StateError
from agentd.storage import files
from agentd.storage.transaction import record_store
from agentd.storage.transaction.paths import (
    AGAIN,
    MovePath,
    Operation,
    RemoveFile,
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
)
from agentd.storage.transaction.record_store import (
    FileChange,
    MovedPath,
    StoredText,
    TransactionRecord,
    stored_text_path,
)

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
        raise Bug(f"{folder} has to be finished before something else can be begun there")
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


def run_transaction(
    record: Path, root: Path, title: str, operations: Sequence[Operation], facts: Mapping[str, str] | None = None
) -> None:
    """All of them. What is refused, or cannot be laid down in the folder `record`, has touched nothing; after any other
    error, as after a crash, it is pending. `title` is how it is called then; `facts` are kept for the caller."""
    finish_transaction(begin_transaction(record, root, title, operations, facts or {}))


def finish_transaction(record: TransactionRecord) -> None:
    """Go on from where it is. What is neither as before nor as after is somebody else's: it stops all, and stays."""
    if not record.root.is_dir():
        raise StateError(f"{record.root} is gone, and {record.title} is half done there", f"bring it back, {AGAIN}")
    _check(record)
    if not _has_moved(record):
        for number in range(len(record.files)):
            _put(record, number)
    for moved in record.moves:
        _move(record, moved)
    for folder in record.cleared:
        remove_if_empty(safe_path(record.root, folder))
    record_store.complete_transaction(record)


def undo_transaction(record: TransactionRecord, title: str) -> None:
    """The reverse, as a transaction of its own. Refused if anything is no longer as it was left."""
    if not record.is_done or record_store.is_pending(record.folder):
        raise Bug(f"{record.folder} has to be finished before it can be undone")
    if built := list(_built_on_it(record)):
        hint = f"keep elsewhere what is new, put back what was changed (git diff shows it), {AGAIN}"
        raise Refusal(f"{record.title} cannot be undone, since then {', '.join(built)}", hint)
    back: list[Operation] = [_reverse(record, number, file) for number, file in enumerate(record.files)]
    back += [MovePath(PurePath(moved.target), PurePath(moved.source)) for moved in record.moves]
    finish_transaction(
        begin_transaction(record.undo, record.root, title, back, record.facts, cleared=record.made[::-1])
    )


# ---- steps


def _put(record: TransactionRecord, number: int) -> None:
    file = record.files[number]
    place = safe_path(record.root, file.path)
    files.remove_leftovers(place)  # a killed writer's
    before, after = file.hashes
    found = hash_path(place)
    if found == after:
        return
    if found != before:
        _check(record)
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
        _check(record)
    make_folder(target.parent)
    files.move(source, target)


def _has_moved(record: TransactionRecord) -> bool:
    """Then all files are done, and not where they were."""
    ways = [(safe_path(record.root, moved.source), safe_path(record.root, moved.target)) for moved in record.moves]
    return any(mode_of(source) is None and mode_of(target) is not None for source, target in ways)


# ---- what somebody else has done meanwhile


def _check(record: TransactionRecord) -> None:
    rows = list(_foreign_folders(record))
    if not rows and not _has_moved(record):
        rows = list(_foreign_files(record))
    if rows:
        what = f"{record.title} is half done, and what it has to change was changed by somebody else: "
        typed = " && ".join(command for _, commands in rows for command in commands)
        raise StateError(what + "; ".join(words for words, _ in rows), f"{typed or 'git status'}; {AGAIN}")


def _foreign_files(record: TransactionRecord) -> Iterator[tuple[str, list[str]]]:
    """What is wrong, and what to type so that nothing is lost."""
    for number, file in enumerate(record.files):
        place = safe_path(record.root, file.path)
        found = hash_path(place)
        if found in file.hashes:
            continue
        old, new = (stored_text_path(record.folder, side, number) for side in ("old", "new"))
        was = f"it was {old}" if file.old else "it was not there"
        becomes = f"becomes {new}" if file.new else "goes"
        aside = [_typed("mv", place, _free(place))] if found else []
        yield (
            f"{printable_path(file.path)} ({was} and {becomes})",
            aside + ([_typed("cp", new, place)] if file.new else []),
        )


def _foreign_folders(record: TransactionRecord) -> Iterator[tuple[str, list[str]]]:
    for moved in record.moves:
        source, target = safe_path(record.root, moved.source), safe_path(record.root, moved.target)
        there = [place for place in (source, target) if mode_of(place) is not None]
        words = f"{printable_path(moved.source)} becomes {printable_path(moved.target)}, and"
        if not there:
            yield f"{words} both are gone", []
        if len(there) == 2:
            foreign = source if hash_tree(target) == moved.holds else target
            yield f"{words} both are there", [_typed("mv", foreign, _free(foreign))]


def _built_on_it(record: TransactionRecord) -> Iterator[str]:
    for file in record.files:
        if not any(is_within(PurePath(file.path), PurePath(moved.source)) for moved in record.moves):
            yield from _differs(file.path, file.hashes[1], hash_path(safe_path(record.root, file.path)))
    for moved in record.moves:
        if mode_of(safe_path(record.root, moved.source)) is not None:
            yield f"{printable_path(moved.source)} came to be there"
        target = safe_path(record.root, moved.target)
        if mode_of(target) is None:
            yield f"{printable_path(moved.target)} is gone"
            continue
        found = hash_tree(target)
        for name in sorted({*moved.holds, *found}):
            yield from _differs(f"{moved.target}/{name}", moved.holds.get(name), found.get(name))


def _differs(path: str, left: str | None, found: str | None) -> Iterator[str]:
    if left != found:
        yield f"{printable_path(path)} {'was added' if left is None else 'is gone' if found is None else 'was changed'}"


def _reverse(record: TransactionRecord, number: int, file: FileChange) -> WriteFile | RemoveFile:
    path = record.afterwards(file.path)
    return WriteFile(path, record.text("old", number), file.old.mode) if file.old else RemoveFile(path)


def _typed(*words: object) -> str:
    return shlex.join(map(str, words))


def _free(place: Path) -> Path:
    """A name beside it that nobody has."""
    numbers = iter(range(1, 1_000_000))
    return next(one for n in numbers if mode_of(one := place.with_name(f"{place.name}.yours-{n}")) is None)

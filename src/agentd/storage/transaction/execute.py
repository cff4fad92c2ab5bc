"""Carrying out a transaction, finishing one that was cut off, undoing one. Each step looks, and can be done again."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from agentd.domain import InternalError, Refusal, StateError
from agentd.storage import files
from agentd.storage.transaction import record_store
from agentd.storage.transaction.operations import MovePath, Operation, RemoveFile, WriteFile, is_within
from agentd.storage.transaction.paths import (
    AGAIN,
    hash_path,
    hash_tree,
    make_folder,
    mode_of,
    printable_path,
    remove_file,
    remove_if_empty,
    safe_path,
)
from agentd.storage.transaction.prepare import begin_transaction
from agentd.storage.transaction.record_store import FileChange, MovedPath, TransactionRecord, stored_text_path


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
        raise InternalError(f"{record.folder} has to be finished before it can be undone")
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

"""Carrying out a transaction, finishing one that was cut off, undoing one. Each step looks, and can be done again."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from agentd import files
from agentd.domain.errors import InternalError, Refusal, StateError
from agentd.together import records
from agentd.together.beginning import begin
from agentd.together.operations import Move, Operation, Remove, Write, is_within
from agentd.together.places import (
    AGAIN,
    hash_of,
    hashes_of,
    kind_of,
    make_folder,
    remove_file,
    remove_if_empty,
    shown,
    way,
)
from agentd.together.records import File, Moved, Record, kept


def carry_out(
    record: Path, root: Path, title: str, operations: Sequence[Operation], facts: Mapping[str, str] | None = None
) -> None:
    """All of them. What is refused, or cannot be laid down in the folder `record`, has touched nothing; after any other
    error, as after a crash, it is pending. `title` is how it is called then; `facts` are kept for the caller."""
    finish(begin(record, root, title, operations, facts or {}))


def finish(record: Record) -> None:
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
        remove_if_empty(way(record.root, folder))
    records.end(record)


def undo(record: Record, title: str) -> None:
    """The reverse, as a transaction of its own. Refused if anything is no longer as it was left."""
    if not record.is_done or records.is_pending(record.folder):
        raise InternalError(f"{record.folder} has to be finished before it can be undone")
    if built := list(_built_on_it(record)):
        hint = f"keep elsewhere what is new, put back what was changed (git diff shows it), {AGAIN}"
        raise Refusal(f"{record.title} cannot be undone, since then {', '.join(built)}", hint)
    back: list[Operation] = [_reverse(record, number, file) for number, file in enumerate(record.files)]
    back += [Move(PurePath(moved.target), PurePath(moved.source)) for moved in record.moves]
    finish(begin(record.undo, record.root, title, back, record.facts, cleared=record.made[::-1]))


# ---- steps


def _put(record: Record, number: int) -> None:
    file = record.files[number]
    place = way(record.root, file.path)
    files.sweep(place)  # a killed writer's
    before, after = file.hashes
    found = hash_of(place)
    if found == after:
        return
    if found != before:
        _check(record)
    if file.new:
        make_folder(place.parent)
        files.write(place, record.text("new", number), file.new.mode)
    else:
        remove_file(place)


def _move(record: Record, moved: Moved) -> None:
    source, target = way(record.root, moved.source), way(record.root, moved.target)
    if kind_of(source) is None:
        return
    if kind_of(target) is not None:
        _check(record)
    make_folder(target.parent)
    files.move(source, target)


def _has_moved(record: Record) -> bool:
    """Then all files are done, and not where they were."""
    ways = [(way(record.root, moved.source), way(record.root, moved.target)) for moved in record.moves]
    return any(kind_of(source) is None and kind_of(target) is not None for source, target in ways)


# ---- what somebody else has done meanwhile


def _check(record: Record) -> None:
    rows = list(_foreign_folders(record))
    if not rows and not _has_moved(record):
        rows = list(_foreign_files(record))
    if rows:
        what = f"{record.title} is half done, and what it has to change was changed by somebody else: "
        typed = " && ".join(command for _, commands in rows for command in commands)
        raise StateError(what + "; ".join(words for words, _ in rows), f"{typed or 'git status'}; {AGAIN}")


def _foreign_files(record: Record) -> Iterator[tuple[str, list[str]]]:
    """What is wrong, and what to type so that nothing is lost."""
    for number, file in enumerate(record.files):
        place = way(record.root, file.path)
        found = hash_of(place)
        if found in file.hashes:
            continue
        old, new = (kept(record.folder, side, number) for side in ("old", "new"))
        was = f"it was {old}" if file.old else "it was not there"
        becomes = f"becomes {new}" if file.new else "goes"
        aside = [_typed("mv", place, _free(place))] if found else []
        yield f"{shown(file.path)} ({was} and {becomes})", aside + ([_typed("cp", new, place)] if file.new else [])


def _foreign_folders(record: Record) -> Iterator[tuple[str, list[str]]]:
    for moved in record.moves:
        source, target = way(record.root, moved.source), way(record.root, moved.target)
        there = [place for place in (source, target) if kind_of(place) is not None]
        words = f"{shown(moved.source)} becomes {shown(moved.target)}, and"
        if not there:
            yield f"{words} both are gone", []
        if len(there) == 2:
            foreign = source if hashes_of(target) == moved.holds else target
            yield f"{words} both are there", [_typed("mv", foreign, _free(foreign))]


def _built_on_it(record: Record) -> Iterator[str]:
    for file in record.files:
        if not any(is_within(PurePath(file.path), PurePath(moved.source)) for moved in record.moves):
            yield from _differs(file.path, file.hashes[1], hash_of(way(record.root, file.path)))
    for moved in record.moves:
        if kind_of(way(record.root, moved.source)) is not None:
            yield f"{shown(moved.source)} came to be there"
        target = way(record.root, moved.target)
        if kind_of(target) is None:
            yield f"{shown(moved.target)} is gone"
            continue
        found = hashes_of(target)
        for name in sorted({*moved.holds, *found}):
            yield from _differs(f"{moved.target}/{name}", moved.holds.get(name), found.get(name))


def _differs(path: str, left: str | None, found: str | None) -> Iterator[str]:
    if left != found:
        yield f"{shown(path)} {'was added' if left is None else 'is gone' if found is None else 'was changed'}"


def _reverse(record: Record, number: int, file: File) -> Write | Remove:
    path = record.afterwards(file.path)
    return Write(path, record.text("old", number), file.old.mode) if file.old else Remove(path)


def _typed(*words: object) -> str:
    return shlex.join(map(str, words))


def _free(place: Path) -> Path:
    """A name beside it that nobody has."""
    numbers = iter(range(1, 1_000_000))
    return next(one for n in numbers if kind_of(one := place.with_name(f"{place.name}.yours-{n}")) is None)

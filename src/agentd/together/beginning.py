"""The beginning of a transaction: what is refused, and what is laid down before anything is touched."""

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from agentd import files
from agentd.domain.errors import InternalError, Refusal
from agentd.together import records
from agentd.together.operations import Move, Operation, Remove, Write, check_apart, is_within
from agentd.together.places import AGAIN, hashes_of, kind_of, make_folder, shown, way
from agentd.together.records import File, Moved, Record, Text

_Before = tuple[bytes, int] | None  # text and rights


def begin(
    folder: Path,
    root: Path,
    title: str,
    operations: Sequence[Operation],
    facts: Mapping[str, str],
    cleared: tuple[str, ...] = (),
) -> Record:
    """The record, on disk; or an error, and there is none. One that is done makes room for the next of that name."""
    if records.is_pending(folder):
        raise InternalError(f"{folder} has to be finished before something else can be begun there")
    check_apart(operations)
    changes = [(one, _before(root, one)) for one in operations if not isinstance(one, Move)]
    moves = [one for one in operations if isinstance(one, Move)]
    for move in moves:
        _check_move(root, move)
    if folder.exists():
        records.drop(folder)
    try:
        make_folder(folder)
        rows = tuple(_lay_down(folder, number, *change) for number, change in enumerate(changes))
        moved = tuple(_moved(root, move, rows) for move in moves)
        record = Record(folder, root, title, dict(facts), rows, moved, _missing(root, operations), cleared)
        records.write(record)
    except BaseException:
        with contextlib.suppress(files.CannotWrite):  # what cannot go now is swept later
            records.drop(folder)
        raise
    return record


def _before(root: Path, change: Write | Remove) -> _Before:
    before = _found(root, change)
    digest = files.digest(before[0]) if before else ""
    if isinstance(change, Write) and change.seen not in (None, digest):
        raise Refusal(f"{shown(change.path)} was changed just now by somebody else", "run the command again")
    return before


def _found(root: Path, change: Write | Remove) -> _Before:
    place = way(root, change.path)
    kind = kind_of(place)
    if kind is None:
        if isinstance(change, Remove):
            raise Refusal(f"{shown(change.path)} is not there, so it cannot be removed", "git status")
        return None
    if not stat.S_ISREG(kind):
        raise Refusal(f"{shown(change.path)} is not a file", f"move it elsewhere, {AGAIN}")
    return files.read(place), stat.S_IMODE(kind)


def _check_move(root: Path, move: Move) -> None:
    source, target = way(root, move.source), way(root, move.target)
    if kind_of(source) is None:
        raise Refusal(f"{shown(move.source)} is not there, so it cannot be moved", "git status")
    if kind_of(target) is not None:
        raise Refusal(f"{shown(move.target)} is there already", f"move it elsewhere, {AGAIN}")
    above = next(one for one in target.parents if one.exists())
    if os.lstat(source).st_dev != os.lstat(above).st_dev:  # half done is too late to find out
        what = f"{shown(move.source)} and {shown(move.target)} are on two file systems"
        raise Refusal(what, f"bring them onto one, {AGAIN}")


def _lay_down(folder: Path, number: int, change: Write | Remove, before: _Before) -> File:
    old = _text(records.kept(folder, "old", number), *before) if before else None
    if isinstance(change, Remove):
        return File(str(change.path), old, None)
    mode = before[1] if before and change.mode is None else change.mode
    return File(str(change.path), old, _text(records.kept(folder, "new", number), change.data, mode))


def _text(path: Path, data: bytes, mode: int | None) -> Text:
    """A new file will have the rights that its laid down text was given."""
    files.write(path, data, mode)
    return Text(files.digest(data), stat.S_IMODE(path.stat().st_mode))


def _moved(root: Path, move: Move, rows: Iterable[File]) -> Moved:
    holds = hashes_of(root / move.source)
    for file in rows:
        if is_within(PurePath(file.path), move.source):
            name = os.path.relpath(file.path, move.source)
            holds.pop(name, None)
            holds |= {name: file.new.digest} if file.new else {}
    return Moved(str(move.source), str(move.target), holds)


def _missing(root: Path, operations: Iterable[Operation]) -> tuple[str, ...]:
    """The folders that have to be made."""
    paths = [one.target if isinstance(one, Move) else one.path for one in operations]
    above = {folder for path in paths for folder in path.parents if not (root / folder).exists()}
    return tuple(str(folder) for folder in sorted(above))

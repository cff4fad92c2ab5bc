"""What a transaction can be asked for. Paths are below its root, and as they are before anything has moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import PurePath

from agentd.errors import Bug


@dataclass(frozen=True, slots=True)
class Write:
    path: PurePath
    data: bytes
    mode: int | None = None  # None: as it was, and of a new file as the system gives it
    seen: str | None = None
    """The hash of the text that this was made from, empty for none: another one there is refused. None: any."""


@dataclass(frozen=True, slots=True)
class Remove:
    path: PurePath


@dataclass(frozen=True, slots=True)
class Move:
    """A file or a folder; the target is its new path, not the folder it goes into."""

    source: PurePath
    target: PurePath


Operation = Write | Remove | Move


def check_apart(operations: Sequence[Operation]) -> None:
    """No two have to do with one path, but for the files of a folder that moves: so their order does not matter."""
    written = [one.path for one in operations if not isinstance(one, Move)]
    sources = [one.source for one in operations if isinstance(one, Move)]
    targets = [one.target for one in operations if isinstance(one, Move)]
    meeting = [pair for group in (written, sources, targets) for pair in combinations(group, 2) if _meet(*pair)]
    meeting += [pair for pair in product(targets, written + sources) if _meet(*pair)]
    meeting += [(file, source) for file, source in product(written, sources) if file in source.parents]
    for one, other in meeting:
        raise Bug(f"{one} and {other} cannot be changed in one transaction")


def is_within(path: PurePath, folder: PurePath) -> bool:
    return folder == path or folder in path.parents


def _meet(one: PurePath, other: PurePath) -> bool:
    return is_within(one, other) or is_within(other, one)

"""What a transaction can be asked for. Paths are below its root, and as they are before anything has moved."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from agentd.domain import InternalError


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: PurePath
    data: bytes
    mode: int | None = None  # None: as it was, and of a new file as the system gives it
    seen: str | None = None
    """The hash of the text that this was made from, empty for none: another one there is refused. None: any."""


@dataclass(frozen=True, slots=True)
class RemoveFile:
    path: PurePath


@dataclass(frozen=True, slots=True)
class MovePath:
    """A file or a folder; the target is its new path, not the folder it goes into."""

    source: PurePath
    target: PurePath


Operation = WriteFile | RemoveFile | MovePath


def check_disjoint(operations: Sequence[Operation]) -> None:
    """No two have to do with one path, but for the files of a folder that moves: so their order does not matter."""
    written = [one.path for one in operations if not isinstance(one, MovePath)]
    sources = [one.source for one in operations if isinstance(one, MovePath)]
    targets = [one.target for one in operations if isinstance(one, MovePath)]
    groups = [(one, one) for one in (written, sources, targets)]
    groups += [(targets, written + sources), (written + sources, targets), (sources, written)]
    meeting = [pair for paths, folders in groups for pair in _below(paths, folders)]
    counts = (Counter(written), Counter(sources), Counter(targets), Counter({*targets}) + Counter({*written, *sources}))
    meeting += [(path, path) for counted in counts for path, count in counted.items() if count > 1]
    for one, other in meeting:
        raise InternalError(f"{one} and {other} cannot be changed in one transaction")


def _below(paths: Sequence[PurePath], folders: Sequence[PurePath]) -> Iterator[tuple[PurePath, PurePath]]:
    """Each path with a folder that it lies in; looked up, as there may be thousands."""
    known = set(folders)
    yield from ((path, above) for path in paths for above in path.parents if above in known)


def is_within(path: PurePath, folder: PurePath) -> bool:
    return folder == path or folder in path.parents

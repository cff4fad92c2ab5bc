"""The operations of a transaction, and access to paths below a root that never follows links."""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from agentd.domain import Bug, Refusal
from agentd.storage import files


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: PurePath
    data: bytes
    mode: int | None = None  # None: keep the permissions, or use the default for a new file
    seen: str | None = None
    """The hash of the file this is based on (empty: no file). Refused if the file has changed. None: not checked."""


@dataclass(frozen=True, slots=True)
class RemoveFile:
    path: PurePath


@dataclass(frozen=True, slots=True)
class MovePath:
    """Move a file or folder; the target is its new path, not the folder to put it in."""

    source: PurePath
    target: PurePath


Operation = WriteFile | RemoveFile | MovePath


def check_disjoint(operations: Sequence[Operation]) -> None:
    """Check that no two operations share a path, so that order does not matter. Files in a moved folder may change."""
    written = [change.path for change in operations if not isinstance(change, MovePath)]
    sources = [move.source for move in operations if isinstance(move, MovePath)]
    targets = [move.target for move in operations if isinstance(move, MovePath)]
    groups = [(paths, paths) for paths in (written, sources, targets)]
    groups += [(targets, written + sources), (written + sources, targets), (sources, written)]
    conflicts = [pair for paths, folders in groups for pair in _nested(paths, folders)]
    counts = (Counter(written), Counter(sources), Counter(targets), Counter({*targets}) + Counter({*written, *sources}))
    conflicts += [(path, path) for counted in counts for path, count in counted.items() if count > 1]
    for path, other in conflicts:
        raise Bug(f"{path} and {other} cannot be changed in one transaction")


def _nested(paths: Sequence[PurePath], folders: Sequence[PurePath]) -> Iterator[tuple[PurePath, PurePath]]:
    """Yield each path with a folder that contains it. There may be thousands, so folders are looked up in a set."""
    known = set(folders)
    yield from ((path, above) for path in paths for above in path.parents if above in known)


def is_within(path: PurePath, folder: PurePath) -> bool:
    return folder == path or folder in path.parents


AGAIN = "then run the command again"
_NO_FILE = "no file"  # instead of a hash


def safe_path(root: Path, path: PurePath | str) -> Path:
    """Return the full path. Paths through links are refused, as a link may lead out of the root."""
    parts = PurePath(path).parts
    if not parts or ".." in parts or PurePath(path).is_absolute():
        raise Refusal(f"{printable_path(path)} is not inside {root}", "use a path inside it")
    place = root
    for number, part in enumerate(parts, 1):
        place = place / part
        kind = mode_of(place)
        if kind is None:
            break
        if stat.S_ISLNK(kind):
            message = f"{printable_path(place)} is a symbolic link, and agentd does not write through links"
            raise Refusal(message, f"replace it with its target, {AGAIN}")
        if number < len(parts) and not stat.S_ISDIR(kind):
            raise Refusal(f"{printable_path(place)} is not a folder", f"move it elsewhere, {AGAIN}")
    return root.joinpath(*parts)


def mode_of(place: Path) -> int | None:
    """Return the mode (file type and permissions), or None if the path does not exist."""
    with cannot_continue(place, files.CannotRead):
        try:
            return os.lstat(place).st_mode
        except FileNotFoundError:
            return None


def hash_path(place: Path) -> str | None:
    kind = mode_of(place)
    if kind is None:
        return None
    return files.hash_bytes(files.read(place)) if stat.S_ISREG(kind) else _NO_FILE


def hash_tree(place: Path) -> dict[str, str]:
    """Return the hash of every file at or below a path, by relative path; for a link, its target."""
    kind = mode_of(place)
    if kind is None:
        return {}
    with cannot_continue(place, files.CannotRead):
        if stat.S_ISLNK(kind):
            return {".": f"a link to {os.readlink(place)}"}
        names = sorted(os.listdir(place)) if stat.S_ISDIR(kind) else None
    if names is None:
        return {".": hash_path(place) or _NO_FILE}
    return {
        os.path.normpath(f"{name}/{path}"): digest for name in names for path, digest in hash_tree(place / name).items()
    }


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync them to disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        with cannot_continue(folder):
            folder.mkdir(exist_ok=True)
            files.sync_folder(folder.parent)


def remove_file(place: Path) -> None:
    with cannot_continue(place):
        place.unlink(missing_ok=True)
        files.sync_folder(place.parent)


def remove_if_empty(folder: Path) -> None:
    with cannot_continue(folder):
        if folder.is_dir() and not os.listdir(folder):
            folder.rmdir()
            files.sync_folder(folder.parent)


def printable_path(path: PurePath | str) -> str:
    """Escape a path that has line breaks or undecodable bytes."""
    return str(path) if str(path).isprintable() else ascii(str(path))


@contextlib.contextmanager
def cannot_continue(
    place: Path, error_type: type[files.CannotRead] | type[files.CannotWrite] = files.CannotWrite
) -> Iterator[None]:
    verb = "read" if error_type is files.CannotRead else "write"
    try:
        yield
    except OSError as error:
        raise error_type(f"cannot {verb} {printable_path(place)}: {error.strerror or error}") from error

"""What stands where below a root, with no link on the way, and folders made and files removed for good."""

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
        raise Bug(f"{one} and {other} cannot be changed in one transaction")


def _below(paths: Sequence[PurePath], folders: Sequence[PurePath]) -> Iterator[tuple[PurePath, PurePath]]:
    """Each path with a folder that it lies in; looked up, as there may be thousands."""
    known = set(folders)
    yield from ((path, above) for path in paths for above in path.parents if above in known)


def is_within(path: PurePath, folder: PurePath) -> bool:
    return folder == path or folder in path.parents


AGAIN = "then run the command again"
_NO_FILE = "no file"  # where a hash would be


def safe_path(root: Path, path: PurePath | str) -> Path:
    """The place of a path. A link may lead out of the root, so there is none on the way."""
    parts = PurePath(path).parts
    if not parts or ".." in parts or PurePath(path).is_absolute():
        raise Refusal(f"{printable_path(path)} does not lie within {root}", "name a path below it")
    place = root
    for number, part in enumerate(parts, 1):
        place = place / part
        kind = mode_of(place)
        if kind is None:
            break
        if stat.S_ISLNK(kind):
            what = f"{printable_path(place)} is a symbolic link, and agentd does not write through one"
            raise Refusal(what, f"put there what it leads to, {AGAIN}")
        if number < len(parts) and not stat.S_ISDIR(kind):
            raise Refusal(f"{printable_path(place)} is not a folder", f"move it elsewhere, {AGAIN}")
    return root.joinpath(*parts)


def mode_of(place: Path) -> int | None:
    """Kind and rights of what stands there, as `stat` has them."""
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
    """By path, of every file at or below a place; of a link, what it says."""
    kind = mode_of(place)
    if kind is None:
        return {}
    with cannot_continue(place, files.CannotRead):
        if stat.S_ISLNK(kind):
            return {".": f"a link to {os.readlink(place)}"}
        names = sorted(os.listdir(place)) if stat.S_ISDIR(kind) else None
    if names is None:
        return {".": hash_path(place) or _NO_FILE}
    return {os.path.normpath(f"{name}/{path}"): one for name in names for path, one in hash_tree(place / name).items()}


def make_folder(folder: Path) -> None:
    """With those above it, each on disk."""
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
    """A name may have a line break in it, or be in another encoding."""
    return str(path) if str(path).isprintable() else ascii(str(path))


@contextlib.contextmanager
def cannot_continue(
    place: Path, what: type[files.CannotRead] | type[files.CannotWrite] = files.CannotWrite
) -> Iterator[None]:
    verb = "read" if what is files.CannotRead else "write"
    try:
        yield
    except OSError as error:
        raise what(f"cannot {verb} {printable_path(place)}: {error.strerror or error}") from error

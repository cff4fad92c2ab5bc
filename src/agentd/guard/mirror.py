"""Copies of protected files as they were before an agent call, kept from call to call of a run, and what differs now.

A file whose stat has not moved is neither copied nor read again. Folders are opened one under the other and never
through a link, so nothing planted in their place leads out of the root.
"""

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentd import files

DEPTH = 64  # folders held open at once; what lies deeper is seen as part of the last of them
_RACY = 50_000_000  # ns: a write this soon after another may leave the same stat behind
_CHUNK = 1 << 20

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: a pipe without a writer must not hold us
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Area(NamedTuple):
    """Protected places below one root: files, or folders with all that is in them."""

    root: str
    paths: tuple[str, ...]
    left_out: tuple[str, ...] = ()


class Seen(NamedTuple):
    mode: int
    mtime: int
    ctime: int  # 0 in a copy: too fresh to go by, so the bytes are compared
    size: int
    inode: int


class Copy(NamedTuple):
    seen: Seen
    start: int = -1  # of a file's bytes in the store; -1: there are none
    target: str = ""  # of a link


class Difference(NamedTuple):
    """Of one path: its copy (None: it was not there) and how it looks now (None: it is gone)."""

    area: str
    path: str
    before: Copy | None
    after: Seen | None

    @property
    def was_folder(self) -> bool:
        return self.before is not None and stat.S_ISDIR(self.before.seen.mode)

    @property
    def is_folder(self) -> bool:
        return self.after is not None and stat.S_ISDIR(self.after.mode)


_Row = list[Any]  # a copy as JSON has it; there are tens of thousands, and few are looked at
Visit = Callable[[str, Seen, int, str], None]  # a path, how it looks, its folder's handle and its name in there


class Mirror:
    """The copies: their stats in `mirror.json`, all bytes in one file `store`, which only grows."""

    def __init__(self, folder: Path) -> None:
        self._table = folder / "mirror.json"
        self._store = folder / "store"
        self._rows: dict[str, dict[str, _Row]] = {}

    def load(self) -> bool:
        """False if there is none that can be read."""
        try:
            self._rows = json.loads(self._table.read_bytes())
        except (OSError, ValueError):
            return False
        return self._store.is_file()

    def paths(self, area: str) -> Sequence[str]:
        return tuple(self._rows.get(area, ()))

    def take(self, areas: Mapping[str, Area]) -> None:
        """Make the copies be what is there now; only what moved is read."""
        before = dict(self._rows)
        with self._filling() as fill:
            for name, area in areas.items():
                self._rows[name] = self._taken(before.get(name, {}), area, fill)
        if self._rows != before:
            self._save()

    def follow(self, name: str, root: str, path: str) -> None:
        """The copy of one file becomes what is there now."""
        rows = self._rows.setdefault(name, {})
        old = {path: rows.pop(path)} if path in rows else {}
        with self._filling() as fill:
            rows.update(self._taken(old, Area(root, (path,)), fill))
        self._save()

    def differences(self, name: str, area: Area) -> list[Difference]:
        """What was changed, deleted or created, folders before what is in them."""
        below = tuple(f"{path}/" for path in area.paths)
        rows = self._rows.get(name, {})
        missing = {path: row for path, row in rows.items() if path in area.paths or path.startswith(below)}
        found = []

        def visit(path: str, seen: Seen, handle: int, leaf: str) -> None:
            row = missing.pop(path, None)
            if row is None:
                found.append(Difference(name, path, None, seen))
            elif row[:5] != [*seen] and self._differs(_copy(row), seen, handle, leaf):
                found.append(Difference(name, path, _copy(row), seen))

        scan(area, visit)
        found += [Difference(name, path, _copy(row), None) for path, row in missing.items()]
        return sorted(found, key=lambda one: one.path.split("/"))

    def pieces(self, copy: Copy) -> Iterator[bytes]:
        """The bytes of a copied file."""
        if copy.start < 0:
            raise OSError(0, "it could not be read before the call")
        with open(self._store, "rb") as store:
            store.seek(copy.start)
            left = copy.seen.size
            while left:
                piece = store.read(min(left, _CHUNK))
                if not piece:
                    raise OSError(0, "its copy is gone")
                left -= len(piece)
                yield piece

    def _taken(self, old: Mapping[str, _Row], area: Area, fill: Callable[[int], int]) -> dict[str, _Row]:
        now = time.time_ns()
        rows: dict[str, _Row] = {}

        def visit(path: str, seen: Seen, handle: int, leaf: str) -> None:
            known = old.get(path)
            if known and known[:5] == [*seen]:
                rows[path] = known
                return
            start, target = -1, ""
            if stat.S_ISREG(seen.mode):
                with contextlib.suppress(OSError), opened(leaf, handle) as file:
                    start = fill(file)
                    seen = seen._replace(size=os.lseek(file, 0, os.SEEK_CUR))  # as many as were copied
            elif stat.S_ISLNK(seen.mode):
                with contextlib.suppress(OSError):
                    target = os.readlink(leaf, dir_fd=handle)
            if seen.ctime > now - _RACY:
                seen = seen._replace(ctime=0)
            rows[path] = [*seen, start, target]

        scan(area, visit)
        return rows

    @contextlib.contextmanager
    def _filling(self) -> Iterator[Callable[[int], int]]:
        """A function that puts a file's bytes into the store and tells where they begin."""
        self._store.parent.mkdir(parents=True, exist_ok=True)
        with open(self._store, "ab") as store:

            def fill(file: int) -> int:
                start = store.tell()
                while piece := os.read(file, _CHUNK):
                    try:
                        store.write(piece)
                    except OSError as error:
                        raise self._cannot_keep(error) from error
                return start

            first = store.tell()
            yield fill
            try:
                store.flush()
                if store.tell() != first:
                    os.fsync(store.fileno())
            except OSError as error:
                raise self._cannot_keep(error) from error

    def _cannot_keep(self, error: OSError) -> files.CannotWrite:
        return files.CannotWrite(f"cannot keep copies of protected files in {self._store}: {error.strerror}")

    def _save(self) -> None:
        files.write(self._table, json.dumps(self._rows, separators=(",", ":")).encode())

    def _differs(self, old: Copy, seen: Seen, handle: int, leaf: str) -> bool:
        """The stat moved; only content and rights count."""
        if old.seen.mode != seen.mode:
            return True
        if stat.S_ISDIR(seen.mode):
            return False
        try:
            if stat.S_ISLNK(seen.mode):
                return os.readlink(leaf, dir_fd=handle) != old.target
            if not stat.S_ISREG(seen.mode) or old.start < 0:
                return old.seen.inode != seen.inode or old.seen.size != seen.size
            return old.seen.size != seen.size or not self._same_bytes(old, handle, leaf)
        except OSError:
            return True  # nobody can say that it is the same

    def _same_bytes(self, old: Copy, handle: int, leaf: str) -> bool:
        with opened(leaf, handle) as file:
            return all(os.read(file, len(piece)) == piece for piece in self.pieces(old)) and not os.read(file, 1)


def _copy(row: _Row) -> Copy:
    return Copy(Seen._make(row[:5]), *row[5:])


def scan(area: Area, visit: Visit) -> None:
    """Everything in the area, each folder before what is in it."""

    for path in area.paths:
        above, _, leaf = path.rpartition("/")
        with contextlib.suppress(OSError), folder(area.root, above) as handle:  # not there, or no way to it
            seen = look(leaf, handle)
            visit(path, seen, handle, leaf)
            if stat.S_ISDIR(seen.mode):
                _inside(path, handle, leaf, visit, 1, area.left_out)


def _inside(path: str, above: int, name: str, visit: Visit, depth: int, left_out: tuple[str, ...]) -> None:
    try:
        handle = os.open(name, _FOLDER, dir_fd=above)
    except OSError:
        return  # gone, swapped or closed to us: then it differs by itself
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                inner = f"{path}/{entry.name}"
                if inner in left_out:
                    continue
                try:
                    seen = _seen(entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
                visit(inner, seen, handle, entry.name)
                if depth < DEPTH and stat.S_ISDIR(seen.mode):
                    _inside(inner, handle, entry.name, visit, depth + 1, left_out)
    finally:
        os.close(handle)


@contextlib.contextmanager
def folder(root: str, path: str) -> Iterator[int]:
    """A handle of a folder below the root, with no link on the way; a link on it is NotADirectoryError."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in path.split("/") if path else ():
            inner = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def opened(name: str, handle: int) -> Iterator[int]:
    file = os.open(name, _FILE, dir_fd=handle)
    try:
        yield file
    finally:
        os.close(file)


def look(name: str, handle: int) -> Seen:
    return _seen(os.lstat(name, dir_fd=handle))


def _seen(found: os.stat_result) -> Seen:
    return Seen(found.st_mode, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)

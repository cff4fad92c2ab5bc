"""Copies of protected files from before an agent call, kept across the calls of a run, and the differences from them.

A file whose stat is unchanged is neither copied nor read again.
"""

import contextlib
import hashlib
import json
import os
import stat
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentd.guard.scan import FileStamp, ProtectedArea, open_file, open_folder, scan_area, stamp_of, stat_name
from agentd.storage import files

_CHUNK = 1 << 20
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class TamperedCopy(OSError):
    """Raised when someone has written to the copies."""

    def __init__(self) -> None:
        super().__init__(0, "its copy was tampered with")


Fill = Callable[[Iterator[bytes]], tuple[int, int, str]]  # a file's bytes -> their offset, size and hash


class CopyStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self._left: FileStamp | None = None  # of the file when we last wrote it

    def open(self) -> bool:
        """Open the existing file; return False if there is none that can be read."""
        self.close()
        try:
            self._open(_FLAGS)
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self._handle >= 0:
            self._closing()
        self._handle = -1

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
        self.close()

    def pieces(self, start: int, size: int, hash_: str) -> Iterator[bytes]:
        """Yield the bytes. They are verified only once the iteration ends without an error."""
        hasher = hashlib.sha256()
        end = start + size
        while start < end:
            piece = os.pread(self._handle, min(end - start, _CHUNK), start)
            if not piece:
                raise TamperedCopy
            hasher.update(piece)
            start += len(piece)
            yield piece
        if hasher.hexdigest() != hash_:
            raise TamperedCopy

    @contextlib.contextmanager
    def filling(self) -> Iterator[Fill]:
        with self._told():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._handle < 0:
                self._open(_FLAGS | os.O_CREAT)
            first = place = os.fstat(self._handle).st_size
            with open(self._handle, "ab", closefd=False) as writer:

                def fill(pieces: Iterator[bytes]) -> tuple[int, int, str]:
                    nonlocal place
                    start, hasher = place, hashlib.sha256()
                    for piece in pieces:
                        hasher.update(piece)
                        place += len(piece)
                        with self._told():
                            writer.write(piece)
                    return start, place - start, hasher.hexdigest()

                yield fill
            if place != first:
                os.fsync(self._handle)
            self._left = stamp_of(os.fstat(self._handle))

    def is_untouched(self) -> bool:
        """Return whether the file on disk is the one we wrote last."""
        try:
            return stamp_of(os.lstat(self._path)) == self._left
        except OSError:
            return False

    def rewrite(self) -> None:
        """Write everything to disk again under the same name, which must not exist."""
        old, closing, place = self._handle, self._closing, 0
        with self._told():
            self._open(_FLAGS | os.O_CREAT | os.O_EXCL)
            with open(self._handle, "ab", closefd=False) as writer:
                while piece := os.pread(old, _CHUNK, place):
                    place += writer.write(piece)
            os.fsync(self._handle)
        self._left = stamp_of(os.fstat(self._handle))
        closing()

    def _open(self, flags: int) -> None:
        self._handle = os.open(self._path, flags, 0o600)
        self._closing = weakref.finalize(self, os.close, self._handle)
        self._left = stamp_of(os.fstat(self._handle))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = f"cannot keep copies of protected files in {self._path}: {error.strerror}"
            raise files.CannotWrite(what) from error


def hash_pieces(pieces: Iterator[bytes]) -> str:
    hasher = hashlib.sha256()
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


_RACY = 50_000_000  # ns: a second write this soon after the first may leave the same stat


class FileCopy(NamedTuple):
    seen: FileStamp
    start: int = -1  # offset of the file's bytes in the store; -1: not stored
    target: str = ""  # of a link
    hash: str = ""  # of a file's bytes


class FileDifference(NamedTuple):
    """A path that differs: its copy (None: it did not exist) and its current stamp (None: it was deleted)."""

    area: str
    path: str
    before: FileCopy | None
    after: FileStamp | None

    @property
    def was_folder(self) -> bool:
        return self.before is not None and stat.S_ISDIR(self.before.seen.mode)

    @property
    def is_folder(self) -> bool:
        return self.after is not None and stat.S_ISDIR(self.after.mode)


Row = list[Any]  # a copy as JSON; there are tens of thousands, and few are accessed


class Snapshot:
    """The copies: stats and hashes in `mirror.json` and in memory, which is authoritative; bytes in `store`."""

    def __init__(self, folder: Path) -> None:
        self._table = folder / "mirror.json"
        self._store = CopyStore(folder / "store")
        self._rows: dict[str, dict[str, Row]] = {}
        self._left: FileStamp | None = None  # of the table when we last wrote it

    def load(self) -> bool:
        """Load the snapshot from disk; return False if there is none that can be read."""
        self._rows = {}
        try:
            self._rows = json.loads(self._table.read_bytes())
            self._left = stamp_of(os.lstat(self._table))
        except (OSError, ValueError):
            return False
        return self._store.open()

    def close(self) -> None:
        self._store.close()

    def paths(self, area: str) -> Sequence[str]:
        return tuple(self._rows.get(area, ()))

    def take(self, areas: Mapping[str, ProtectedArea]) -> None:
        """Update the copies to the current state; only files whose stat changed are read."""
        before = dict(self._rows)
        with self._store.filling() as fill:
            for name, area in areas.items():
                self._rows[name] = _taken(before.get(name, {}), area, fill)
        if self._rows != before:
            self._save()

    def follow(self, name: str, root: str, path: str) -> None:
        """Update the copy of one file to its current state."""
        rows = self._rows.setdefault(name, {})
        old = {path: rows.pop(path)} if path in rows else {}
        with self._store.filling() as fill:
            rows.update(_taken(old, ProtectedArea(root, (path,)), fill))
        self._save()

    def lay(self, name: str, path: str, data: bytes, like: FileStamp) -> None:
        """Replace the copy of one file with these bytes. It keeps its permissions; a new one gets those of `like`."""
        rows = self._rows.setdefault(name, {})
        if path in rows and _copy(rows[path]).hash == hash_pieces(iter((data,))):
            return
        mode = rows[path][0] if path in rows else like.mode
        with self._store.filling() as fill:
            start, size, hash_ = fill(iter((data,)))
        rows[path] = [*FileStamp(mode, like.mtime, 0, size, 0), start, "", hash_]
        self._save()

    def adopt(self, name: str, other: "Snapshot", theirs: Sequence[FileDifference]) -> dict[str, Row | None]:
        """Replace our copies of these paths with another guard's, and return ours."""
        rows = self._rows[name]
        ours: dict[str, Row | None] = {}
        with self._store.filling() as fill:
            for one in theirs:
                row: Row | None = None
                if copy := one.before:
                    try:
                        start = fill(other.pieces(copy))[0] if copy.start >= 0 else -1
                    except OSError:
                        continue  # keep our own copy
                    row = [*copy.seen._replace(ctime=0), start, copy.target, copy.hash]
                ours[one.path] = rows.pop(one.path, None)
                if row:
                    rows[one.path] = row
        self._save()
        return ours

    def is_as(self, row: Row | None, one: FileDifference, root: str) -> bool:
        """Return whether the current state of a path matches the row; None means that it does not exist."""
        if row is None or one.after is None:
            return row is None and one.after is None
        above, _, leaf = one.path.rpartition("/")
        try:
            with open_folder(root, above) as handle:
                return not _differs(_copy(row), stat_name(leaf, handle), handle, leaf)
        except OSError:
            return False

    def differences(self, name: str, area: ProtectedArea) -> list[FileDifference]:
        """Return what was changed, deleted or created, folders before their contents."""
        below = tuple(f"{path}/" for path in area.paths)
        rows = self._rows.get(name, {})
        missing = {path: row for path, row in rows.items() if path in area.paths or path.startswith(below)}
        found = []

        def visit(path: str, seen: FileStamp, handle: int, leaf: str) -> None:
            row = missing.pop(path, None)
            if row is None:
                found.append(FileDifference(name, path, None, seen))
            elif row[:5] != [*seen] and _differs(_copy(row), seen, handle, leaf):
                found.append(FileDifference(name, path, _copy(row), seen))

        scan_area(area, visit)
        found += [FileDifference(name, path, _copy(row), None) for path, row in missing.items()]
        return sorted(found, key=lambda one: one.path.split("/"))

    def pieces(self, copy: FileCopy) -> Iterator[bytes]:
        """Return the bytes of a copied file. They are verified only once the iteration ends without an error."""
        if copy.start < 0:
            raise OSError(0, "it could not be read before the call")
        return self._store.pieces(copy.start, copy.seen.size, copy.hash)

    def is_untouched(self) -> bool:
        """Return whether everything on disk is as we left it."""
        try:
            return stamp_of(os.lstat(self._table)) == self._left and self._store.is_untouched()
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the copies from disk; the next snapshot is made from scratch."""
        self._table.unlink(missing_ok=True)
        self._store.remove()

    def rewrite(self) -> None:
        """Write the copies that this process holds to disk again, into an empty folder."""
        self._store.rewrite()
        self._save()

    def _save(self) -> None:
        files.write(self._table, json.dumps(self._rows, separators=(",", ":")).encode(), mode=0o600)
        self._left = stamp_of(os.lstat(self._table))


def _taken(old: Mapping[str, Row], area: ProtectedArea, fill: Fill) -> dict[str, Row]:
    now = time.time_ns()
    rows: dict[str, Row] = {}

    def visit(path: str, seen: FileStamp, handle: int, leaf: str) -> None:
        known = old.get(path)
        if known and known[:5] == [*seen]:
            rows[path] = known
            return
        start, target, hash_ = -1, "", ""
        if stat.S_ISREG(seen.mode):
            with contextlib.suppress(OSError), open_file(leaf, handle) as file:
                start, size, hash_ = fill(_read(file))
                seen = seen._replace(size=size)  # the size that was copied
        elif stat.S_ISLNK(seen.mode):
            with contextlib.suppress(OSError):
                target = os.readlink(leaf, dir_fd=handle)
        if seen.ctime > now - _RACY:
            seen = seen._replace(ctime=0)
        rows[path] = [*seen, start, target, hash_]

    scan_area(area, visit)
    return rows


def _read(file: int) -> Iterator[bytes]:
    while piece := os.read(file, 1 << 20):
        yield piece


def _differs(old: FileCopy, seen: FileStamp, handle: int, leaf: str) -> bool:
    """Return whether a path whose stat changed really differs: only content and permissions count."""
    if old.seen.mode != seen.mode:
        return True
    if stat.S_ISDIR(seen.mode):
        return False
    try:
        if stat.S_ISLNK(seen.mode):
            return os.readlink(leaf, dir_fd=handle) != old.target
        if not stat.S_ISREG(seen.mode) or old.start < 0:
            return old.seen.inode != seen.inode or old.seen.size != seen.size
        if old.seen.size != seen.size:
            return True
        with open_file(leaf, handle) as file:
            return hash_pieces(_read(file)) != old.hash
    except OSError:
        return True  # it cannot be verified, so assume that it differs


def _copy(row: Row) -> FileCopy:
    return FileCopy(FileStamp._make(row[:5]), *row[5:])

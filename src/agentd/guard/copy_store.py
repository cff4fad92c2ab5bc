"""The bytes of all copies, in one file that only grows and that we hold open.

Deleted, it can still be read by us; and nothing is given out that does not have the hash it came in with.
"""

import contextlib
import hashlib
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from agentd.guard.scan import FileStamp, stamp_of
from agentd.storage import files

_CHUNK = 1 << 20
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class TamperedCopy(OSError):
    """Somebody wrote into the copies."""

    def __init__(self) -> None:
        super().__init__(0, "its copy was tampered with")


Fill = Callable[[Iterator[bytes]], tuple[int, int, str]]  # a file's bytes -> where they begin, how many, their hash


class CopyStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self._left: FileStamp | None = None  # how it looked when we last wrote

    def open(self) -> bool:
        """The one that is there; False if there is none that can be read."""
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
        """They count when the last one came without an error: only then are all as they came in."""
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
        """The file on disk is the one we wrote last."""
        try:
            return stamp_of(os.lstat(self._path)) == self._left
        except OSError:
            return False

    def rewrite(self) -> None:
        """All that we hold, on disk again under its name, which is free."""
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

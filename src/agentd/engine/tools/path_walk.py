"""Walk from the project root to a file, one folder at a time.

Each component is opened relative to the handle of its parent folder, never by full path, so files that are moved or
linked in the meantime cannot lead outside the root.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Self

LINKS = 20  # links followed in one walk
DEPTH = 128  # every folder on the path keeps a handle open

# NONBLOCK: a pipe without a writer must not block. NOCTTY: a terminal must not become the controlling terminal.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOW_A_LINK = (errno.ELOOP, errno.EMLINK)
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
_SPECIAL = (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP)

MayEnter = Callable[[Sequence[str], str], bool]  # the parent folders from the root, and a name in the last one


class WalkProblem(Enum):
    ABSENT = "nothing of that name"
    FILE = "a file where the way needs a folder"
    FOLDER = "a folder where a file is wanted"
    OUTSIDE = "out of the root, or hidden"
    LINKED = "a link where none may be"
    LINKS = "too many links"
    SPECIAL = "a pipe, a socket or a device"


class WalkStopped(Exception):
    """The walk cannot continue. `at` is the index of the failed component; `direct` is False if a link led there."""

    def __init__(self, why: WalkProblem) -> None:
        super().__init__(why.value)
        self.why = why
        self.at = -1
        self.direct = False


class PathWalk:
    """A walk that starts at the root; `go` moves it. `names` is the current position, links resolved."""

    def __init__(self, root: str, may: MayEnter) -> None:
        self._root = root
        self._may = may
        self.names: list[str] = []
        self._handles = [os.open(os.fsencode(root), _OPEN | os.O_DIRECTORY)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._handles:
            os.close(self._handles.pop())

    @property
    def handle(self) -> int:
        return self._handles[-1]

    @property
    def stat(self) -> os.stat_result:
        return os.fstat(self.handle)

    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.stat.st_mode)

    def go(self, parts: Sequence[str], links: int = LINKS) -> None:
        """Move to a regular file or folder below the current position. With `links=0`, stop at the first link."""
        rest = [*reversed(parts)]
        asked, left = len(rest), links
        while rest:
            name = rest.pop()
            direct, asked = len(rest) < asked, min(asked, len(rest))
            try:
                target = self._step(name)
                if target is not None:
                    left -= 1
                    if left < 0:
                        raise WalkStopped(WalkProblem.LINKS if links else WalkProblem.LINKED)
                    rest += reversed(self._placed(target))
            except WalkStopped as stop:
                stop.at, stop.direct = len(parts) - asked - 1, direct
                raise

    def inside(self) -> Iterator[tuple[str, bool]]:
        """Yield the visible names in this folder, and whether each is a link, which `look` follows."""
        with os.scandir(self.handle) as found:
            for entry in found:
                name = _text(os.fsencode(entry.name))
                plain = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
                if (plain or entry.is_symlink()) and self._may(self.names, name):
                    yield name, not plain

    def look(self, name: str) -> os.stat_result | None:
        """Return the status of a file or folder, following links; None if it is not visible."""
        try:
            seen = os.lstat(_raw(name), dir_fd=self.handle)
            if not stat.S_ISLNK(seen.st_mode):
                return seen if _plain(seen) else None
            with PathWalk(self._root, self._may) as other:
                other.go([*self.names, name])
                return other.stat
        except (OSError, WalkStopped):
            return None

    def read(self, most: int) -> bytes:
        """Return the file's bytes, at most one more than `most`."""
        chunks, left = [], most + 1
        while left and (chunk := os.read(self.handle, min(left, 1 << 20))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)

    def make(self, name: str) -> None:
        """Create a folder unless the name exists."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(_raw(name), dir_fd=self.handle)
            os.fsync(self.handle)

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file in this folder durably. If interrupted, the old file stays intact."""
        rights = self._rights(name)
        temporary = _raw(f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
        handle = os.open(temporary, _NEW, 0o666, dir_fd=self.handle)
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                if rights is not None:
                    os.fchmod(handle, rights)
                os.fsync(handle)
            os.replace(temporary, _raw(name), src_dir_fd=self.handle, dst_dir_fd=self.handle)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=self.handle)
            if isinstance(error, IsADirectoryError):
                raise WalkStopped(WalkProblem.FOLDER) from None
            raise
        os.fsync(self.handle)

    def _rights(self, name: str) -> int | None:
        """Return the permissions of the file to be replaced, or None if there is none."""
        try:
            mode = os.lstat(_raw(name), dir_fd=self.handle).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(mode):
            raise WalkStopped(WalkProblem.LINKED)
        if stat.S_ISDIR(mode):
            raise WalkStopped(WalkProblem.FOLDER)
        if not stat.S_ISREG(mode):
            raise WalkStopped(WalkProblem.SPECIAL)
        return mode & 0o777

    def _step(self, name: str) -> str | None:
        """Enter one component. Do not enter a link; return its target instead."""
        if not self.is_folder():
            raise WalkStopped(WalkProblem.FILE)
        if name == "..":  # only occurs in the target of a link
            self._up()
            return None
        if len(self.names) == DEPTH or not self._may(self.names, name):
            raise WalkStopped(WalkProblem.OUTSIDE)
        try:
            return self._enter(name)
        except OSError as error:
            if error.errno in _NOW_A_LINK:
                return name  # became a link between lstat and open: retry, as if it were a link to itself
            if error.errno in _ABSENT:
                raise WalkStopped(WalkProblem.ABSENT) from None
            if error.errno in _SPECIAL:
                raise WalkStopped(WalkProblem.SPECIAL) from None
            raise

    def _enter(self, name: str) -> str | None:
        seen = os.lstat(_raw(name), dir_fd=self.handle)
        if stat.S_ISLNK(seen.st_mode):
            return _text(os.readlink(_raw(name), dir_fd=self.handle))
        if not _plain(seen):
            raise WalkStopped(WalkProblem.SPECIAL)
        self._handles.append(os.open(_raw(name), _OPEN, dir_fd=self.handle))
        self.names.append(name)
        if not _plain(self.stat):
            raise WalkStopped(WalkProblem.SPECIAL)
        return None

    def _placed(self, target: str) -> list[str]:
        """Return the components of a link's target, relative to the walk's position.

        For an absolute target, move the walk back to the root first.
        """
        parts = _parts(target)
        if not target.startswith("/"):
            return parts
        root = _parts(_text(os.fsencode(self._root)))
        if parts[: len(root)] != root:
            raise WalkStopped(WalkProblem.OUTSIDE)
        while self.names:
            self._up()
        return parts[len(root) :]

    def _up(self) -> None:
        if not self.names:
            raise WalkStopped(WalkProblem.OUTSIDE)
        self.names.pop()
        os.close(self._handles.pop())


def _plain(seen: os.stat_result) -> bool:
    return stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _raw(name: str) -> bytes:
    """Encode a file name as UTF-8, regardless of the locale; other bytes pass through."""
    return name.encode("utf-8", "surrogateescape")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")

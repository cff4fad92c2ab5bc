"""Read protected paths. Folders are opened one inside the other and never through a link.

So nothing planted in their place can lead out of the root.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

DEPTH = 64  # folders held open at once; anything deeper counts as part of the last one

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: opening a pipe without a writer must not block
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class ProtectedArea(NamedTuple):
    """Protected paths below one root: files, or folders with all their contents."""

    root: str
    paths: tuple[str, ...]
    left_out: tuple[str, ...] = ()


class FileStamp(NamedTuple):
    mode: int
    mtime: int
    ctime: int  # 0 in a copy: too recent to be reliable, so the bytes are compared
    size: int
    inode: int


Visit = Callable[[str, FileStamp, int, str], None]  # path, stamp, handle of its folder, name in that folder


def scan_area(area: ProtectedArea, visit: Visit) -> None:
    """Visit everything in the area, each folder before its contents."""

    for path in area.paths:
        above, _, leaf = path.rpartition("/")
        with contextlib.suppress(OSError), open_folder(area.root, above) as handle:  # missing or not reachable
            seen = stat_name(leaf, handle)
            visit(path, seen, handle, leaf)
            if stat.S_ISDIR(seen.mode):
                _inside(path, handle, leaf, visit, 1, area.left_out)


def _inside(path: str, above: int, name: str, visit: Visit, depth: int, left_out: tuple[str, ...]) -> None:
    try:
        handle = os.open(name, _FOLDER, dir_fd=above)
    except OSError:
        return  # deleted, replaced or not accessible: it is reported as a difference anyway
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                inner = f"{path}/{entry.name}"
                if inner in left_out:
                    continue
                try:
                    seen = stamp_of(entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
                visit(inner, seen, handle, entry.name)
                if depth < DEPTH and stat.S_ISDIR(seen.mode):
                    _inside(inner, handle, entry.name, visit, depth + 1, left_out)
    finally:
        os.close(handle)


@contextlib.contextmanager
def open_folder(root: str, path: str) -> Iterator[int]:
    """Open a folder below the root without following links; raise NotADirectoryError if there is one on the path."""
    parts = path.split("/") if path else []
    if ".." in parts:
        raise OSError(errno.EINVAL, "it leads out of its root")
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def open_file(name: str, handle: int) -> Iterator[int]:
    file = os.open(name, _FILE, dir_fd=handle)
    try:
        yield file
    finally:
        os.close(file)


def stat_name(name: str, handle: int) -> FileStamp:
    return stamp_of(os.lstat(name, dir_fd=handle))


def stat_path(root: str, path: str) -> FileStamp | None:
    """Return the stamp of a path, or None if it is missing or not reachable."""
    above, _, leaf = path.rpartition("/")
    try:
        with open_folder(root, above) as handle:
            return stat_name(leaf or ".", handle)
    except OSError:
        return None


def read_path(root: str, path: str) -> bytes:
    above, _, leaf = path.rpartition("/")
    with open_folder(root, above) as handle, open_file(leaf, handle) as file, open(file, "rb", closefd=False) as reader:
        return reader.read()


def stamp_of(found: os.stat_result) -> FileStamp:
    return FileStamp(found.st_mode, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def parent_folders(path: str) -> list[str]:
    """Return the folders that contain a path, nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(len(parts) - 1, 0, -1)]

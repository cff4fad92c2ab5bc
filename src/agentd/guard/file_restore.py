"""Putting a protected path back as it was; what stands there now is kept first.

Every step works under the handle of the folder, reached without following a link.
"""

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentd.guard.scan import FileStamp, open_file, open_folder, stat_name
from agentd.guard.snapshot import FileCopy, FileDifference, Snapshot

HALF = re.compile(r"\.\d+-[0-9a-f]{16}\.tmp")  # what a guard that was killed here leaves behind

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def restore_path(
    mirror: Snapshot, root: str, one: FileDifference, kept: Path, flush: bool, data: bytes | None = None
) -> None:
    """`kept` is where the version of now goes, whole and exact; nothing goes there if nothing stands here.

    `data`: the bytes of a file, if others than those of its copy.

    `flush`: it is on disk when this returns; where there are thousands, the caller sees to that at once.
    """
    above, _, leaf = one.path.rpartition("/")
    with _reached(root, above, kept) as handle:
        if one.before is None:
            _keep(handle, leaf, root, one.path, kept)
            _remove(handle, leaf)
        elif one.was_folder:
            _put_folder(handle, leaf, root, one, one.before.seen, kept)
        else:
            _keep(handle, leaf, root, one.path, kept)
            pieces = mirror.pieces(one.before) if data is None and stat.S_ISREG(one.before.seen.mode) else [data or b""]
            _put(pieces, handle, leaf, one.before, flush)
        if flush:
            os.fsync(handle)


@contextlib.contextmanager
def _reached(root: str, path: str, kept: Path) -> Iterator[int]:
    """The folder's handle. What is missing of the way is made; what stands in it is moved to the kept things."""
    if not _is_clear(root, path):
        _clear(root, path.split("/"), kept)
    with open_folder(root, path) as handle:
        yield handle


def _is_clear(root: str, path: str) -> bool:
    try:
        with open_folder(root, path):
            return True
    except (FileNotFoundError, NotADirectoryError):
        return False


def _clear(root: str, parts: list[str], kept: Path) -> None:
    for number, part in enumerate(parts):
        with open_folder(root, "/".join(parts[:number])) as handle:
            if (seen := _look(part, handle)) and not stat.S_ISDIR(seen.mode):
                aside = kept.parents[len(parts) - number - 1]
                _keep(handle, part, root, "/".join(parts[: number + 1]), aside.with_name(f"{aside.name}.in-the-way"))
                os.unlink(part, dir_fd=handle)
                seen = None
            if seen is None:
                os.mkdir(part, dir_fd=handle)


def _look(name: str, handle: int) -> FileStamp | None:
    try:
        return stat_name(name, handle)
    except FileNotFoundError:
        return None


def _keep(handle: int, name: str, root: str, path: str, kept: Path) -> None:
    """A folder is moved away. Of anything else the kept one is a second name, or a copy where that cannot be."""
    seen = _look(name, handle)
    if seen is None:
        return
    kept.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISDIR(seen.mode):
        try:
            os.rename(name, kept, src_dir_fd=handle)
        except OSError:  # another file system
            shutil.copytree(os.path.join(root, path), kept, symlinks=True)
        return
    try:
        os.link(name, kept, src_dir_fd=handle, follow_symlinks=False)
    except OSError:
        _copy(handle, name, seen, kept)


def _copy(handle: int, name: str, seen: FileStamp, kept: Path) -> None:
    if stat.S_ISLNK(seen.mode):
        os.symlink(os.readlink(name, dir_fd=handle), kept)
    elif stat.S_ISREG(seen.mode):
        with open_file(name, handle) as source, open(kept, "xb") as target:
            while piece := os.read(source, 1 << 20):
                target.write(piece)
            os.fchmod(target.fileno(), stat.S_IMODE(seen.mode))


def _remove(handle: int, name: str) -> None:
    seen = _look(name, handle)
    if seen is None:
        return  # a folder was moved away already
    if stat.S_ISDIR(seen.mode):
        shutil.rmtree(name, dir_fd=handle)
    else:
        os.unlink(name, dir_fd=handle)


def _put_folder(handle: int, name: str, root: str, one: FileDifference, before: FileStamp, kept: Path) -> None:
    if not one.is_folder:
        _keep(handle, name, root, one.path, kept)
        _remove(handle, name)
        os.mkdir(name, dir_fd=handle)
    try:
        with open_folder(root, one.path) as inner:
            os.fchmod(inner, stat.S_IMODE(before.mode))
    except PermissionError:  # closed to ourselves
        os.chmod(name, stat.S_IMODE(before.mode), dir_fd=handle)


def _put(pieces: Iterable[bytes], handle: int, name: str, before: FileCopy, flush: bool) -> None:
    """A file or link as it was, whole or not at all."""
    if (seen := _look(name, handle)) and stat.S_ISDIR(seen.mode):
        shutil.rmtree(name, dir_fd=handle)  # it was copied, not moved
    temporary = f".{os.getpid()}-{os.urandom(8).hex()}.tmp"
    try:
        if stat.S_ISLNK(before.seen.mode):
            os.symlink(before.target, temporary, dir_fd=handle)
        elif stat.S_ISREG(before.seen.mode):
            with open(os.open(temporary, _NEW, 0o600, dir_fd=handle), "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fchmod(file.fileno(), stat.S_IMODE(before.seen.mode))
                os.utime(file.fileno(), ns=(before.seen.mtime, before.seen.mtime))
                if flush:
                    os.fsync(file.fileno())
        else:
            raise OSError(0, "it was neither a file nor a link nor a folder")
        os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=handle)
        raise

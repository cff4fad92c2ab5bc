"""Read, write and move files safely, and hash them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from agentd.domain import SetupError


class CannotWrite(SetupError):
    hint = "check the disk space and the permissions of that folder, then run the command again"


class CannotRead(SetupError):
    hint = "check the permissions of that file, then run the command again"


def write(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write the file atomically: if interrupted, the old file is intact.

    An existing file keeps its permissions unless `mode` is given.
    """
    with _raise_cannot_write(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = _permissions(path) if mode is None else mode
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode or 0o666)
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files left by killed writers. The caller holds the file's lock."""
    import glob  # deferred: only writers need it

    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        temporary.unlink(missing_ok=True)


def move(source: Path, target: Path) -> None:
    """Rename and sync to disk. The target must not exist."""
    with _raise_cannot_write(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(source, target)
        sync_folder(target.parent)
        sync_folder(source.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}") from error


def hash_bytes(data: bytes) -> str:
    import hashlib  # deferred: listing commands never hash

    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _permissions(path: Path) -> int | None:
    try:
        return os.stat(path).st_mode & 0o7777
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _raise_cannot_write(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror or error}") from error

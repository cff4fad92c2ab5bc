"""The run lock allows one workflow per change; the write lock is held briefly around each write.

Both are kernel locks, so they are released when their holder is killed.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from agentd.domain import Busy, StateError, clock

_WRITE_TIMEOUT = 30.0  # seconds; a write takes milliseconds, so a longer wait means the holder is stuck
_LARGEST_PID = 2**31 - 1
_MAX_BYTES = 64 * 1024  # of the holder's data in a lock file
_MAX_COMMAND = 1000  # characters of the holder's command
_held: dict[str, int] = {}  # run locks of this process: token to handle
_RUN_TIMEOUT = 0.5  # seconds; checking for an active run holds the lock for an instant


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that runs a workflow. Its token allows its own servers to write. Unknown holders have no pid."""

    pid: int
    command: str
    since: str
    token: str

    @property
    def is_known(self) -> bool:
        return self.pid > 1

    def __str__(self) -> str:
        return f"'{self.command}' (process {self.pid}, since {self.since})" if self.is_known else "another process"


_UNKNOWN = LockHolder(0, "", "", "")


@dataclass(frozen=True, slots=True)
class RunLock:
    """A held run lock. A process that inherits `handle` holds it too, until all holders close it."""

    holder: LockHolder
    handle: int

    @property
    def token(self) -> str:
        return self.holder.token


@contextlib.contextmanager
def write_lock(path: Path) -> Iterator[None]:
    with _open(path) as handle:
        if not _lock(handle, fcntl.LOCK_EX, _WRITE_TIMEOUT):
            raise Busy(f"another process has been writing for {_WRITE_TIMEOUT:.0f} seconds ({path})")
        os.utime(handle)  # before and after, so that the guard of another run can tell that agentd was writing
        try:
            yield
        finally:
            os.utime(handle)


@contextlib.contextmanager
def run_lock(path: Path, command: str) -> Iterator[RunLock]:
    """Hold the run lock. If it is taken, the error names the holder."""
    with _open(path) as handle:
        if not _lock(handle, fcntl.LOCK_EX, _RUN_TIMEOUT):
            message = f"{path.stem} is being worked on by {_read_holder(handle) or _UNKNOWN}"
            raise Busy(message, f"agentd wait {path.stem}, or agentd stop {path.stem}")
        shown = command if len(command) <= _MAX_COMMAND else command[: _MAX_COMMAND - 1] + "…"
        holder = LockHolder(os.getpid(), shown, clock.now(), os.urandom(16).hex())
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(asdict(holder)).encode(), 0)
        _held[holder.token] = handle
        try:
            yield RunLock(holder, handle)
        finally:
            del _held[holder.token]
            os.ftruncate(handle, 0)


def is_lock_lost(path: Path, token: str) -> bool:
    """Return whether the lock file of our own run was removed or replaced, so that a second run could start."""
    handle = _held.get(token)
    if handle is None:
        return False
    try:
        return not os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return True


def active_run(path: Path) -> LockHolder | None:
    """Return the holder of the run lock, if any."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _lock(handle, fcntl.LOCK_SH, 0):
            return None
        return _read_holder(handle) or _UNKNOWN
    finally:
        os.close(handle)


def interrupted_run(path: Path) -> LockHolder | None:
    """Return the holder of the last run if it was killed: a run that ends normally clears its lock file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _read_holder(handle) if _lock(handle, fcntl.LOCK_SH, 0) else None
    finally:
        os.close(handle)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int, kind: int, timeout: float) -> bool:
    end = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        except OSError as error:
            message = f"this file system does not support file locks: {error.strerror}"
            raise StateError(message, "keep the repository on a local disk") from error


def _read_holder(handle: int) -> LockHolder | None:
    """Return the holder, or None if it is not written yet or is invalid (an agent could have written it)."""
    try:
        data = json.loads(os.pread(handle, _MAX_BYTES, 0))
    except (ValueError, RecursionError, OSError):
        return None
    match data:
        case {"pid": int(pid), "command": str(command), "since": str(since), "token": str(token)}:
            if 1 < pid <= _LARGEST_PID:
                return LockHolder(pid, _printable(command), _printable(since), token)
    return None


def _printable(text: str) -> str:
    """Replace characters that are not safe to print on a terminal."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)

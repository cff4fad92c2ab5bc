"""Two locks. The run lock: one workflow per change. The write lock: short, around each write, by everyone.

Both are held by the kernel, so a killed holder holds nothing.
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

_PATIENCE = 30.0  # seconds; a write takes milliseconds, so whoever holds longer is stuck
_LARGEST_PID = 2**31 - 1
_LONGEST = 64 * 1024  # bytes of the word in a lock
_SHOWN = 1000  # characters of a command in it
_held: dict[str, int] = {}  # this process's own run locks: token to handle
_PROBE = 0.5  # a look at the run lock holds it for an instant; a taker waits that out


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who runs a workflow; the token is what its own servers write under. An unknown one has no process id."""

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
    """The run lock in our hands. Whoever is given `handle` holds it too, until the last of us lets go."""

    holder: LockHolder
    handle: int

    @property
    def token(self) -> str:
        return self.holder.token


@contextlib.contextmanager
def write_lock(path: Path) -> Iterator[None]:
    with _opened(path) as handle:
        if not _lock(handle, fcntl.LOCK_EX, _PATIENCE):
            raise Busy(f"another process has been writing for {_PATIENCE:.0f} seconds ({path})")
        os.utime(handle)  # before and after: a guard around another change's agent sees that we were at work
        try:
            yield
        finally:
            os.utime(handle)


@contextlib.contextmanager
def run_lock(path: Path, command: str) -> Iterator[RunLock]:
    """Held until the block ends; a second taker is told who holds it."""
    with _opened(path) as handle:
        if not _lock(handle, fcntl.LOCK_EX, _PROBE):
            words = f"{path.stem} is being worked on by {_holder(handle) or _UNKNOWN}"
            raise Busy(words, f"agentd wait {path.stem}, or agentd stop {path.stem}")
        shown = command if len(command) <= _SHOWN else command[: _SHOWN - 1] + "…"
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
    """Is this our own run, and its lock no longer at its place? Then nothing keeps a second run from starting."""
    handle = _held.get(token)
    if handle is None:
        return False
    try:
        return not os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return True


def active_run(path: Path) -> LockHolder | None:
    """Who holds the run lock now, if anybody."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _lock(handle, fcntl.LOCK_SH, 0):
            return None
        return _holder(handle) or _UNKNOWN
    finally:
        os.close(handle)


def interrupted_run(path: Path) -> LockHolder | None:
    """Whose run was killed, if the last one was: one that ends takes its word out of the lock."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _holder(handle) if _lock(handle, fcntl.LOCK_SH, 0) else None
    finally:
        os.close(handle)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int, kind: int, patience: float) -> bool:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        except OSError as error:
            words = f"this file system cannot lock files: {error.strerror}"
            raise StateError(words, "keep the repository on a disk of this machine") from error


def _holder(handle: int) -> LockHolder | None:
    """None between lock and word, and for anything that we would not have written: an agent could have."""
    try:
        word = json.loads(os.pread(handle, _LONGEST, 0))
    except (ValueError, RecursionError, OSError):
        return None
    match word:
        case {"pid": int(pid), "command": str(command), "since": str(since), "token": str(token)}:
            if 1 < pid <= _LARGEST_PID:
                return LockHolder(pid, _plain(command), _plain(since), token)
    return None


def _plain(text: str) -> str:
    """Fit for a terminal."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)

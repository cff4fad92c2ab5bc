"""Run a program so that nothing it starts outlives the call. Only this module starts agents.

One loop in the caller's thread writes to the program, reads its output line by line, and enforces its limits. The
program runs under a small helper process (`reaper.py`), which ends everything the program started, even if agentd is
killed. If the agent kills or stops the helper, agentd takes over: an inherited variable identifies the processes.
"""

import contextlib
import errno
import fcntl
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from agentd.agents import reaper
from agentd.agents.streams import CHUNK, InputFeed, LineListener, LineSplitter

_CLEANUP_SECS = 10.0  # after the grace period, for all processes to end; KILL takes milliseconds
_MAX_PAUSE = 3600.0
_KILL_SECS = 5.0  # for all processes to end after KILL
_VARIABLE = "AGENTD_CALL"  # has a random value, inherited by all processes the agent starts


class ProcessEnding(StrEnum):
    """How a run ended: by itself, or because it reached a limit."""

    EXITED = "exited"
    WALL = "wall"
    IDLE = "idle"
    OUTPUT = "output"


@dataclass(frozen=True, kw_only=True)
class ProcessLimits:
    wall_secs: float
    idle_secs: float  # without any output
    output_bytes: int  # of both streams together
    line_bytes: int = 8 * 1024 * 1024  # most bytes kept of one line


@dataclass(frozen=True, kw_only=True)
class ProcessOutcome:
    """`exit_code` is negative for a signal, None if unknown.

    `is_gone` is False if a process could not be ended, such as another user's. The reaper keeps trying and holds the
    lock.
    """

    ending: ProcessEnding
    exit_code: int | None
    duration_ms: int
    is_gone: bool = True


class CannotStart(Exception):
    """The program could not be started. `is_missing`: it does not exist."""

    def __init__(self, message: str, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes,
    bounds: ProcessLimits,
    on_line: LineListener,
    lock: int | None = None,
    mark: Path | None = None,
) -> ProcessOutcome:
    """Run until the program and everything it started have ended. An error in `on_line` or Ctrl-C ends them first.

    `on_line` receives each line without its newline, and how many bytes were cut off. The reaper holds `lock` until all
    processes have ended, then creates the file `mark`.
    """
    call = os.urandom(16).hex()
    order = _build_order(argv, {**env, _VARIABLE: call}, cwd, mark)
    run = _ProcessRun(order.packed(), f"{_VARIABLE}={call}".encode(), stdin, bounds, on_line, lock)
    try:
        run.follow()
    except BaseException:
        run.drop()
        raise
    finally:
        run.close()
    if run.pid is None or run.failure:
        raise _cannot_start(order, run.failure)
    return run.outcome()


def find_program(name: str, path: str, cwd: Path | None = None) -> str | None:
    """Find a program: a name with a slash relative to `cwd`, any other name in the absolute folders of `path`.

    Relative folders in `path` are ignored, because a repository could have planted the program there.
    """
    if "/" in name:
        places = [os.path.join(cwd or "", name)]
    else:
        places = [os.path.join(folder, name) for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def _build_order(argv: Sequence[str], env: Mapping[str, str], cwd: Path, mark: Path | None) -> reaper.ReaperOrder:
    name = argv[0]
    folder = os.path.abspath(cwd)
    program = os.path.join(folder, name) if "/" in name else find_program(name, env.get("PATH", ""))
    if program is None:
        raise CannotStart(f"{name} is not on PATH", is_missing=True)
    order = reaper.ReaperOrder(
        os.fsencode(program),
        os.fsencode(folder),
        os.fsencode(os.path.abspath(mark)) if mark else b"",
        [os.fsencode(word) for word in argv],
        {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
    )
    if any(b"\0" in word for word in (*order.argv, *order.env, *order.env.values(), order.cwd, order.mark)):
        raise CannotStart(f"{name} cannot be started: an argument or a variable contains a NUL byte")
    return order


def _cannot_start(order: reaper.ReaperOrder, failure: str) -> CannotStart:
    """Build the error from the reaper's message: the failed step and the errno."""
    program = os.fsdecode(order.program)
    step, _, number = failure.partition(" ")
    if not number.isdigit():
        return CannotStart(f"{program} was not started: its supervising process ended immediately")
    why = os.strerror(int(number))
    if step == "cwd":
        return CannotStart(f"{program} cannot be started in {os.fsdecode(order.cwd)}: {why}")
    if int(number) != errno.ENOENT:
        return CannotStart(f"{program} cannot be started: {why}")
    if os.path.exists(program):
        return CannotStart(f"{program} cannot be started: the interpreter in its first line does not exist")
    return CannotStart(f"{program} cannot be started: {why}", is_missing=True)


class _ProcessRun:
    """One run and its open handles."""

    def __init__(
        self,
        order: bytes,
        variable: bytes,
        stdin: bytes,
        bounds: ProcessLimits,
        on_line: LineListener,
        lock: int | None,
    ) -> None:
        self._variable = variable
        self._bounds = bounds
        self._started = self._last_byte = time.monotonic()
        self._wall = self._read_until = self._started + bounds.wall_secs
        self._give_up: float | None = None  # None: the agent is running
        self._exited: float | None = None
        self._exit_code: int | None = None
        self._ending = ProcessEnding.EXITED
        self._size = 0
        self._buffer = b""
        self._is_muted = self._is_gone = False
        self._is_followed = True
        self.pid: int | None = None
        self.failure = ""
        with contextlib.ExitStack() as opened:
            self._selector = opened.enter_context(selectors.DefaultSelector())
            ours, theirs = socket.socketpair()
            opened.enter_context(ours)
            with theirs:
                self._reaper = _start_reaper(theirs.fileno(), lock)
            self._stdin, stdout, stderr = (opened.enter_context(pipe) for pipe in _pipes(self._reaper))
            self._control = ours.fileno()
            self._orders = InputFeed(self._control, order)
            self._prompt = InputFeed(self._stdin.fileno(), stdin)
            self._lines = {
                stdout.fileno(): LineSplitter("out", bounds.line_bytes, on_line),
                stderr.fileno(): LineSplitter("err", bounds.line_bytes, on_line),
            }
            for handle in (self._control, self._stdin.fileno(), *self._lines):
                os.set_blocking(handle, False)
            self._selector.register(self._control, selectors.EVENT_READ | selectors.EVENT_WRITE, self._handle_control)
            self._selector.register(self._stdin, selectors.EVENT_WRITE, self._feed)
            for handle in self._lines:
                self._selector.register(handle, selectors.EVENT_READ, self._read_output)
            self._opened = opened.pop_all()

    def follow(self) -> None:
        """Run until the reaper reports that all processes have ended. If it dies or takes too long, take over."""
        while self._is_followed:
            is_late = self._give_up is not None and time.monotonic() >= self._give_up
            for key, _ in self._selector.select(self._pause()):
                key.data(key.fd)
            if self._give_up is None:
                self._check_limits(time.monotonic())
            if is_late:
                break
        if not self._is_gone:
            self._is_gone = self._kill_remaining()
        if self._is_gone or not self._is_followed:
            self._reaper.kill()  # it has nothing left to do; if it was stopped, it would hold the lock forever
            self._reaper.wait()
        for handle in list(self._lines):
            while self._read_output(handle):
                pass
            self._finish(handle)

    def drop(self) -> None:
        """End everything and discard the output. Ctrl-C skips the grace period."""
        self._is_muted = True
        request = reaper.END
        while True:
            try:
                self._send_request(request)
                return self.follow()
            except KeyboardInterrupt:
                request = reaper.NOW

    def close(self) -> None:
        self._opened.close()

    def outcome(self) -> ProcessOutcome:
        ended = self._exited or time.monotonic()
        code = -signal.SIGKILL if self._exit_code is None and self._is_gone else self._exit_code
        duration = round((ended - self._started) * 1000)
        return ProcessOutcome(ending=self._ending, exit_code=code, duration_ms=duration, is_gone=self._is_gone)

    def _pause(self) -> float:
        until = self._give_up
        if until is None:
            until = min(self._wall, self._last_byte + self._bounds.idle_secs)
        return max(0.0, min(until - time.monotonic(), _MAX_PAUSE))

    def _check_limits(self, now: float) -> None:
        if now >= self._wall:
            self._stop(ProcessEnding.WALL)
        elif now >= self._last_byte + self._bounds.idle_secs:
            self._stop(ProcessEnding.IDLE)

    def _stop(self, ending: ProcessEnding) -> None:
        self._ending = ending
        self._send_request(reaper.END)

    def _send_request(self, request: bytes) -> None:
        self._orders.add(request)
        self._selector.modify(self._control, selectors.EVENT_READ | selectors.EVENT_WRITE, self._handle_control)
        self._reaper.send_signal(signal.SIGCONT)  # the agent may have stopped it
        self._start_cleanup()

    def _start_cleanup(self) -> None:
        """Start the deadline for cleaning up. Remaining output is read, unless the time limit was reached."""
        if self._give_up is None:
            self._give_up = time.monotonic() + reaper.GRACE + _CLEANUP_SECS
            if self._ending is not ProcessEnding.WALL:
                self._read_until = max(self._wall, self._give_up)

    def _handle_control(self, control: int) -> None:
        if self._orders.push():
            self._selector.modify(control, selectors.EVENT_READ, self._handle_control)
        try:
            data = os.read(control, 4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._is_followed = bool(data)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._handle_report(line.decode())

    def _handle_report(self, line: str) -> None:
        kind, _, value = line.partition(" ")
        match kind:
            case "started":
                self.pid = int(value)
            case "failed":
                self.failure = value
            case "exited":
                self._exit_code, self._exited = int(value), time.monotonic()
                self._start_cleanup()
            case "gone":
                self._is_gone, self._is_followed = True, False

    def _feed(self, stdin: int) -> None:
        if self._prompt.push():
            self._selector.unregister(stdin)
            self._stdin.close()

    def _read_output(self, handle: int) -> bool:
        """Read a chunk. Return True if there may be more."""
        try:
            chunk = os.read(handle, CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(handle)
            self._finish(handle)
            return False
        allowed = max(0, self._bounds.output_bytes - self._size)
        self._size += len(chunk)
        if not self._is_muted and not self._lines[handle].add(chunk[:allowed], self._read_until):
            self._is_muted = True
            if self._ending is ProcessEnding.EXITED:
                self._ending = ProcessEnding.WALL  # the output is incomplete, so this is not a normal exit
        self._last_byte = time.monotonic()  # after handling it, so a slow listener does not make the agent look idle
        if len(chunk) > allowed and self._ending is ProcessEnding.EXITED:
            self._stop(ProcessEnding.OUTPUT)
        return len(chunk) <= allowed and not self._is_muted

    def _finish(self, handle: int) -> None:
        lines = self._lines.pop(handle, None)
        if lines and not self._is_muted:
            lines.finish()

    def _kill_remaining(self) -> bool:
        """Kill what is left without the reaper. Return False on failure; the reaper, if alive, keeps trying."""
        until = time.monotonic() + _KILL_SECS
        while remaining := self._remaining():
            if time.monotonic() > until:
                self._reaper.send_signal(signal.SIGCONT)
                return False
            reaper.kill(remaining)
            time.sleep(0.01)
        return True

    def _remaining(self) -> list[reaper.ProcessRow]:
        rows = reaper.family(reaper.processes(), self._reaper.pid, self.pid or -1, self._variable)
        return [row for row in rows if not row.is_zombie]


def _start_reaper(control: int, lock: int | None) -> subprocess.Popen[bytes]:
    handles = [control] if lock is None else [control, lock]
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, *map(str, handles)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            pass_fds=handles,
            start_new_session=True,
        )
    except OSError as error:
        raise CannotStart(f"{sys.executable} cannot be started: {error.strerror}") from error


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """Return the pipes, enlarged where the system allows it, so that a busy agent blocks less."""
    assert process.stdin and process.stdout and process.stderr
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        for pipe in (process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, CHUNK)
    return process.stdin, process.stdout, process.stderr

"""Run a program and let nothing of it outlive the call. The only place that starts agents.

One loop in the caller's thread feeds the program, hears it line by line, and watches its clocks. The program itself
runs under a small process of ours (`reaper.py`), which ends whatever is left of it even if agentd is killed. Should the
agent kill or stop that one, we do its work: a variable that all its processes inherit shows us which they are.
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

_PATIENCE = 10.0  # seconds beyond the grace for everything to be gone; KILL takes milliseconds
_LONGEST_PAUSE = 3600.0
_KILLING = 5.0  # seconds for a family to die of KILL
_VARIABLE = "AGENTD_CALL"  # of a random value, inherited by all that the agent starts


class ProcessEnding(StrEnum):
    """How a run came to its end: by itself, or by the bound it reached."""

    EXITED = "exited"
    WALL = "wall"
    IDLE = "idle"
    OUTPUT = "output"


@dataclass(frozen=True, kw_only=True)
class ProcessLimits:
    wall_secs: float
    idle_secs: float  # without a byte of output
    output_bytes: int  # of both streams together
    line_bytes: int = 8 * 1024 * 1024  # what is kept of one line


@dataclass(frozen=True, kw_only=True)
class ProcessOutcome:
    """`exit_code` is negative for a signal, None if nobody knows.

    `is_gone` False: something of it could not be ended, such as another user's process. The reaper keeps trying, and
    keeps the lock.
    """

    ending: ProcessEnding
    exit_code: int | None
    duration_ms: int
    is_gone: bool = True


class CannotStart(Exception):
    """The program could not be executed, and why; `is_missing`: there is no such program."""

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
    hear: LineListener,
    lock: int | None = None,
    mark: Path | None = None,
) -> ProcessOutcome:
    """Until the program and everything it has started are gone. An error of `hear` or Ctrl-C ends them first.

    `hear` gets each line without its end, and how many bytes of it were left out. The reaper holds `lock`, and makes
    the file `mark`, when all is over.
    """
    call = os.urandom(16).hex()
    order = _order(argv, {**env, _VARIABLE: call}, cwd, mark)
    run = _ProcessRun(order.packed(), f"{_VARIABLE}={call}".encode(), stdin, bounds, hear, lock)
    try:
        run.follow()
    except BaseException:
        run.drop()
        raise
    finally:
        run.close()
    if run.pid is None:
        raise _cannot_start(order, run.failure)
    return run.outcome()


def find_program(name: str, path: str, cwd: Path | None = None) -> str | None:
    """Where a program is: a name with a slash seen from `cwd`, any other in the absolute folders of `path`.

    A relative folder in it could be one that a repository has planted, so it does not count.
    """
    if "/" in name:
        places = [os.path.join(cwd or "", name)]
    else:
        places = [os.path.join(folder, name) for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


def _order(argv: Sequence[str], env: Mapping[str, str], cwd: Path, mark: Path | None) -> reaper.ReaperOrder:
    name = argv[0]
    folder = os.path.abspath(cwd)
    program = os.path.join(folder, name) if "/" in name else find_program(name, env.get("PATH", ""))
    if program is None:
        raise CannotStart(f"{name} is not in a folder of PATH", is_missing=True)
    order = reaper.ReaperOrder(
        os.fsencode(program),
        os.fsencode(folder),
        os.fsencode(os.path.abspath(mark)) if mark else b"",
        [os.fsencode(word) for word in argv],
        {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
    )
    if any(b"\0" in word for word in (*order.argv, *order.env, *order.env.values(), order.cwd, order.mark)):
        raise CannotStart(f"{name} cannot be started: an argument or a variable holds a NUL byte")
    return order


def _cannot_start(order: reaper.ReaperOrder, failure: str) -> CannotStart:
    """From the reaper's words: what it tried, and the number of the error."""
    program = os.fsdecode(order.program)
    what, _, number = failure.partition(" ")
    if not number.isdigit():
        return CannotStart(f"{program} was not started: the process that watches over it ended at once")
    why = os.strerror(int(number))
    if what == "cwd":
        return CannotStart(f"{program} cannot be started in {os.fsdecode(order.cwd)}: {why}")
    if int(number) != errno.ENOENT:
        return CannotStart(f"{program} cannot be started: {why}")
    if os.path.exists(program):
        return CannotStart(f"{program} cannot be started: the interpreter that its first line names is not there")
    return CannotStart(f"{program} cannot be started: {why}", is_missing=True)


class _ProcessRun:
    """One run, and all that is open for it."""

    def __init__(
        self, order: bytes, variable: bytes, stdin: bytes, bounds: ProcessLimits, hear: LineListener, lock: int | None
    ) -> None:
        self._variable = variable
        self._bounds = bounds
        self._started = self._last_byte = time.monotonic()
        self._wall = self._deaf_from = self._started + bounds.wall_secs
        self._give_up: float | None = None  # None: the agent is at work
        self._exited: float | None = None
        self._exit_code: int | None = None
        self._ending = ProcessEnding.EXITED
        self._size = 0
        self._words = b""
        self._is_deaf = self._is_gone = False
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
                stdout.fileno(): LineSplitter("out", bounds.line_bytes, hear),
                stderr.fileno(): LineSplitter("err", bounds.line_bytes, hear),
            }
            for handle in (self._control, self._stdin.fileno(), *self._lines):
                os.set_blocking(handle, False)
            self._selector.register(self._control, selectors.EVENT_READ | selectors.EVENT_WRITE, self._talk)
            self._selector.register(self._stdin, selectors.EVENT_WRITE, self._feed)
            for handle in self._lines:
                self._selector.register(handle, selectors.EVENT_READ, self._listen)
            self._opened = opened.pop_all()

    def follow(self) -> None:
        """Until the reaper says that all are gone. If it dies or takes too long, we do its work ourselves."""
        while self._is_followed:
            is_late = self._give_up is not None and time.monotonic() >= self._give_up
            for key, _ in self._selector.select(self._pause()):
                key.data(key.fd)
            if self._give_up is None:
                self._look_at_clocks(time.monotonic())
            if is_late:
                break
        if not self._is_gone:
            self._is_gone = self._end_family()
        if self._is_gone or not self._is_followed:
            self._reaper.kill()  # it has nothing left to do, and stopped it would hold the lock for ever
            self._reaper.wait()
        for handle in list(self._lines):
            while self._listen(handle):
                pass
            self._finish(handle)

    def drop(self) -> None:
        """End everything, unheard. Ctrl-C meanwhile cuts the grace short."""
        self._is_deaf = True
        word = reaper.END
        while True:
            try:
                self._ask(word)
                return self.follow()
            except KeyboardInterrupt:
                word = reaper.NOW

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
        return max(0.0, min(until - time.monotonic(), _LONGEST_PAUSE))

    def _look_at_clocks(self, now: float) -> None:
        if now >= self._wall:
            self._stop(ProcessEnding.WALL)
        elif now >= self._last_byte + self._bounds.idle_secs:
            self._stop(ProcessEnding.IDLE)

    def _stop(self, ending: ProcessEnding) -> None:
        self._ending = ending
        self._ask(reaper.END)

    def _ask(self, word: bytes) -> None:
        self._orders.add(word)
        self._selector.modify(self._control, selectors.EVENT_READ | selectors.EVENT_WRITE, self._talk)
        self._reaper.send_signal(signal.SIGCONT)  # the agent may have stopped it
        self._is_over()

    def _is_over(self) -> None:
        """No clock runs any more but the one for clearing up. Last words are heard, unless its time was up."""
        if self._give_up is None:
            self._give_up = time.monotonic() + reaper.GRACE + _PATIENCE
            if self._ending is not ProcessEnding.WALL:
                self._deaf_from = max(self._wall, self._give_up)

    def _talk(self, control: int) -> None:
        if self._orders.push():
            self._selector.modify(control, selectors.EVENT_READ, self._talk)
        try:
            words = os.read(control, 4096)
        except BlockingIOError:
            return
        except OSError:
            words = b""
        self._is_followed = bool(words)
        *lines, self._words = (self._words + words).split(b"\n")
        for line in lines:
            self._heed(line.decode())

    def _heed(self, line: str) -> None:
        what, _, value = line.partition(" ")
        match what:
            case "started":
                self.pid = int(value)
            case "failed":
                self.failure = value
            case "exited":
                self._exit_code, self._exited = int(value), time.monotonic()
                self._is_over()
            case "gone":
                self._is_gone, self._is_followed = True, False

    def _feed(self, stdin: int) -> None:
        if self._prompt.push():
            self._selector.unregister(stdin)
            self._stdin.close()

    def _listen(self, handle: int) -> bool:
        """True: there may be more to hear."""
        try:
            chunk = os.read(handle, CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(handle)
            self._finish(handle)
            return False
        room = max(0, self._bounds.output_bytes - self._size)
        self._size += len(chunk)
        if not self._is_deaf and not self._lines[handle].add(chunk[:room], self._deaf_from):
            self._is_deaf = True
            if self._ending is ProcessEnding.EXITED:
                self._ending = ProcessEnding.WALL  # what was heard is not all, so it must not pass for that
        self._last_byte = time.monotonic()  # after it was heard: slow ears are no idle agent
        if len(chunk) > room and self._ending is ProcessEnding.EXITED:
            self._stop(ProcessEnding.OUTPUT)
        return len(chunk) <= room and not self._is_deaf

    def _finish(self, handle: int) -> None:
        lines = self._lines.pop(handle, None)
        if lines and not self._is_deaf:
            lines.finish()

    def _end_family(self) -> bool:
        """Without the reaper's help. False: something is left, and the reaper, if it lives, goes on with it."""
        until = time.monotonic() + _KILLING
        while left := self._left():
            if time.monotonic() > until:
                self._reaper.send_signal(signal.SIGCONT)
                return False
            reaper.kill(left)
            time.sleep(0.01)
        return True

    def _left(self) -> list[reaper.ProcessRow]:
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
    """Wider ones where the system allows it: a busy agent waits less for us."""
    assert process.stdin and process.stdout and process.stderr
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        for pipe in (process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, CHUNK)
    return process.stdin, process.stdout, process.stderr

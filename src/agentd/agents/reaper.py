"""A small program that runs one agent and ends everything the agent started.

agentd starts it (`process.py`) in its own session and sends the order over a socket. All processes the agent starts
become its descendants, daemons included. It ends them when the agent exits, when agentd asks it to, and when agentd
dies. It holds the run lock until then. It starts for every call, so it imports little.

agentd sends the order, then END, then possibly NOW. The reaper answers in lines: `started <pid>`, then `exited <code>`,
or `failed <step> <errno>` (also after `started`, if the program cannot be executed); finally `gone`.
"""

# ruff: noqa: SIM105  (importing contextlib takes as long as everything else here)

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing would add a third to the startup time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import NoReturn

    Prctl = Callable[[int, int], object]

END = b"."  # end the agent and everything it started
NOW = b"!"  # without a grace period
GRACE = 1.0  # seconds between TERM and KILL
_CHECK_SECS = 0.1  # between checks during the grace period
_KILL_SECS = 0.01  # between rounds of KILL; longer when they have no effect
_MAX_KILL_SECS = 1.0
_ADOPTS = sys.platform == "linux"  # orphans become our children, so when no child is left, nothing is
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class ReaperOrder:
    """What to run. `mark` is a file to create when all processes have ended, or empty."""

    def __init__(
        self, program: bytes, cwd: bytes, mark: bytes, argv: Sequence[bytes], env: Mapping[bytes, bytes]
    ) -> None:
        self.program = program
        self.cwd = cwd
        self.mark = mark
        self.argv = argv
        self.env = env

    def packed(self) -> bytes:
        """Serialize the order. No part may contain a NUL byte."""
        env = [name + b"=" + value for name, value in self.env.items()]
        data = b"\0".join((self.program, self.cwd, self.mark, b"%d" % len(self.argv), *self.argv, *env))
        return len(data).to_bytes(8) + data


class ProcessRow:
    """One row of the process table; session 0 means unknown."""

    __slots__ = ("group", "is_zombie", "parent", "pid", "session")

    def __init__(self, pid: int, parent: int, group: int, session: int, is_zombie: bool) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.is_zombie = is_zombie


def main(control: int, lock: int | None) -> None:
    for handle in (control, lock):
        if handle is not None:
            os.set_inheritable(handle, False)  # the agent must not hold the lock
    order = _receive(control)
    if order is None:
        return
    prctl = _prctl()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    watch = _Watch(control)
    agent = _start(order, watch, prctl)
    if agent is not None:
        watch.follow(agent)
        _end(watch)
    if order.mark:
        _touch(order.mark)
    watch.report("gone")


def _receive(control: int) -> ReaperOrder | None:
    """Read the order. Return None if agentd ended before sending it."""
    head = _read(control, 8)
    data = _read(control, int.from_bytes(head)) if head else None
    if data is None:
        return None
    program, cwd, mark, count, *rest = data.split(b"\0")
    pairs = [entry.partition(b"=") for entry in rest[int(count) :]]
    return ReaperOrder(program, cwd, mark, rest[: int(count)], {name: value for name, _, value in pairs})


def _read(handle: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = os.read(handle, size - len(data))
        if not part:
            return None
        data += part
    return bytes(data)


def _prctl() -> Prctl:
    """Return Linux's prctl, to adopt orphans and to die with the parent; elsewhere, a function that does nothing."""
    if sys.platform != "linux":
        return lambda option, value: None
    import ctypes  # deferred: only Linux needs it

    libc = ctypes.CDLL(None)
    return lambda option, value: libc.prctl(option, value, 0, 0, 0)


class _Watch:
    """Wait for requests from agentd, exiting children, and signals."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # do not inherit signals blocked by agentd
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: None)
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self.agent = 0
        self.has_exited = self.is_asked = self.is_urgent = False

    def report(self, line: str) -> None:
        try:
            os.write(self._control, line.encode() + b"\n")
        except OSError:
            pass  # agentd has died

    def follow(self, agent: int) -> None:
        """Wait until the agent has exited or agentd asks to end it."""
        self.agent = agent
        while self.reap() and not self.has_exited and not self.is_asked:
            self.wait(None)

    def wait(self, seconds: float | None) -> bool:
        """Wait for an event. Return False on timeout."""
        ready = self._poll.poll(None if seconds is None else max(1, seconds * 1000))
        for handle, _ in ready:
            self._handle_request() if handle == self._control else self._handle_signals()
        return bool(ready)

    def _handle_request(self) -> None:
        try:
            request = os.read(self._control, 64)
        except OSError:
            request = b""
        if not request:
            self._poll.unregister(self._control)
        self.is_asked = True
        self.is_urgent |= NOW in request

    def _handle_signals(self) -> None:
        for number in os.read(self._woken, 4096):
            if number != signal.SIGCHLD:
                self.is_urgent |= self.is_asked  # a second signal skips the grace period
                self.is_asked = True

    def reap(self) -> bool:
        """Collect the status of exited children. Return False if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.agent and not self.has_exited:
                self.has_exited = True
                self.report(f"exited {os.waitstatus_to_exitcode(status)}")

    def is_any_left(self) -> bool:
        if self.reap():
            return True
        return not _ADOPTS and any(not row.is_zombie for row in self.remaining())

    def remaining(self) -> list[ProcessRow]:
        return family(processes(), os.getpid(), self.agent)


def _start(order: ReaperOrder, watch: _Watch, prctl: Prctl) -> int | None:
    """Start the agent and return its process id. On failure, report it to agentd and return None."""
    failures, failure_pipe = os.pipe()
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        watch.report(f"failed fork {error.errno}")
        return None
    if pid == 0:
        _exec_agent(order, watch, failure_pipe, parent, prctl)
    os.close(failure_pipe)
    with open(failures, "rb") as file:
        failure = file.read().decode()
    if not failure:
        return pid
    os.waitpid(pid, 0)
    watch.report(f"failed {failure}")
    return None


def _exec_agent(order: ReaperOrder, watch: _Watch, failure_pipe: int, parent: int, prctl: Prctl) -> NoReturn:
    """In the child process: become the agent, inheriting only the three standard streams.

    The child reports its own start, so agentd knows about it before the agent can do anything.
    """
    step = "exec"
    try:
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in signal.valid_signals():
            _reset_signal(number)
        if os.getppid() == parent:  # otherwise the reaper was killed before PDEATHSIG was set
            step = "cwd"
            os.chdir(order.cwd)
            step = "exec"
            watch.report(f"started {os.getpid()}")
            os.execve(order.program, list(order.argv), order.env)  # noqa: S606
    except OSError as error:
        os.write(failure_pipe, f"{step} {error.errno}".encode())
    except ValueError:
        os.write(failure_pipe, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _reset_signal(number: int) -> None:
    try:
        signal.signal(number, signal.SIG_DFL)
    except OSError:
        pass  # KILL and STOP cannot be changed


def _end(watch: _Watch) -> None:
    """End the remaining processes. Return when none is left."""
    asked: set[int] = set()
    until = time.monotonic() + GRACE
    while watch.is_any_left() and not watch.is_urgent and time.monotonic() < until:
        # First signal all of them; later only new orphans, as other new processes may be part of a clean shutdown.
        new = [
            row for row in watch.remaining() if row.pid not in asked and (not asked or row.parent in (1, os.getpid()))
        ]
        send((signal.SIGTERM, signal.SIGCONT), new)
        asked.update(row.pid for row in new)
        watch.wait(_CHECK_SECS)
    pause = _KILL_SECS
    while watch.is_any_left():
        kill(watch.remaining())
        pause = _KILL_SECS if watch.wait(pause) else min(2 * pause, _MAX_KILL_SECS)


def send(signals: Iterable[int], rows: Iterable[ProcessRow]) -> None:
    for row in rows:
        for number in signals:
            _signal(os.kill, row.pid, number)


def kill(rows: Sequence[ProcessRow]) -> None:
    """Kill by group first, so no member escapes by forking."""
    for group in {row.group for row in rows} - {0, 1, os.getpgrp()}:
        _signal(os.killpg, group, signal.SIGKILL)
    send((signal.SIGKILL,), rows)


def _signal(send_signal: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        send_signal(target, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has already ended, or belongs to another user


def family(rows: Iterable[ProcessRow], root: int, leader: int, variable: bytes = b"") -> list[ProcessRow]:
    """Return all processes that belong to an agent, except `root` itself.

    They descend from `root`, are in the group or session of `leader`, or were started with `variable`; their
    descendants belong to the agent too.
    """
    children: dict[int, list[ProcessRow]] = {}
    members = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
        if leader in (row.group, row.session) or (variable and _has_variable(row.pid, variable)):
            members[row.pid] = row
    pending = [root, *members]
    while pending:
        for row in children.get(pending.pop(), ()):
            if row.pid not in members:
                members[row.pid] = row
                pending.append(row.pid)
    members.pop(root, None)
    return list(members.values())


def _has_variable(pid: int, variable: bytes) -> bool:
    """Return whether a process was started with a variable; False if unknown (no /proc, zombies, other users)."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return variable in file.readall().split(b"\0")
    except OSError:
        return False


def processes() -> list[ProcessRow]:
    return _from_proc() if os.path.exists("/proc/self/stat") else from_ps()


def _from_proc() -> list[ProcessRow]:
    rows = (_row(name) for name in os.listdir("/proc") if name.isdigit())
    return [row for row in rows if row is not None]


def _row(pid: str) -> ProcessRow | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read(4096)
    except OSError:
        return None
    # The program name may contain anything, so parse after its closing parenthesis.
    state, parent, group, session = text.rpartition(b")")[2].split(maxsplit=4)[:4]
    return ProcessRow(int(pid), int(parent), int(group), int(session), state == b"Z")


def from_ps() -> list[ProcessRow]:
    import subprocess  # deferred: only needed where there is no /proc

    command = ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as ps:
        rows = [line.split() for line in ps.communicate()[0].splitlines()]
    parsed = [ProcessRow(int(row[0]), int(row[1]), int(row[2]), 0, row[3].startswith(b"Z")) for row in rows]
    return [row for row in parsed if row.pid != ps.pid]


def _touch(mark: bytes) -> None:
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        os.utime(mark)
    except OSError:
        pass  # its folder was deleted


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
    os._exit(0)  # releases the lock at once

"""A small program that runs one agent, and sees to it that nothing of the agent outlives the call.

agentd starts it (`process.py`) in a session of its own and tells it over a socket what to run. Everything the agent
starts comes under it, daemons included, and it ends all of that when the agent exits, when agentd asks for it, and
when agentd is gone. It holds the run lock until then. It starts for every call, so it imports little.

agentd sends the order, then END, then perhaps NOW. It answers in lines: `failed <what> <errno>`, or `started <pid>`
and `exited <code>`; and at last `gone`.
"""

# ruff: noqa: SIM105  (contextlib costs as much as everything else here)

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing alone would add a third to the time it takes to start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import NoReturn

    Prctl = Callable[[int, int], object]

END = b"."  # end the agent and all that is left of it
NOW = b"!"  # without more grace
GRACE = 1.0  # seconds between TERM and KILL
_STEP = 0.1  # seconds between two looks while grace lasts
_AGAIN = 0.01  # seconds between two rounds of KILL; more when they change nothing
_SELDOM = 1.0
_ADOPTS = sys.platform == "linux"  # orphans come to us, so no child left means nothing left
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class ReaperOrder:
    """What to run. `mark` is a file to make when everything is gone; empty: none."""

    def __init__(
        self, program: bytes, cwd: bytes, mark: bytes, argv: Sequence[bytes], env: Mapping[bytes, bytes]
    ) -> None:
        self.program = program
        self.cwd = cwd
        self.mark = mark
        self.argv = argv
        self.env = env

    def packed(self) -> bytes:
        """Nothing in it may hold a NUL byte."""
        env = [name + b"=" + value for name, value in self.env.items()]
        data = b"\0".join((self.program, self.cwd, self.mark, b"%d" % len(self.argv), *self.argv, *env))
        return len(data).to_bytes(8) + data


class ProcessRow:
    """One row of the system's table of processes; a session of 0 is not known."""

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
            os.set_inheritable(handle, False)  # the lock is ours to hold, not the agent's
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
    watch.tell("gone")


def _receive(control: int) -> ReaperOrder | None:
    """None if agentd is gone before it has said what to do."""
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
    """Linux's way to adopt orphans, and to die with a parent. Elsewhere there is none."""
    if sys.platform != "linux":
        return lambda option, value: None
    import ctypes  # late: only Linux needs it

    libc = ctypes.CDLL(None)
    return lambda option, value: libc.prctl(option, value, 0, 0, 0)


class _Watch:
    """What happens: words of agentd, ends of children, signals to us."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whatever agentd blocks, neither we nor the agent do
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: None)
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self.agent = 0
        self.has_exited = self.is_asked = self.is_urgent = False

    def tell(self, line: str) -> None:
        try:
            os.write(self._control, line.encode() + b"\n")
        except OSError:
            pass  # nobody listens any more

    def follow(self, agent: int) -> None:
        """Until the agent has exited, or somebody wants its end."""
        self.agent = agent
        self.tell(f"started {agent}")
        while self.reap() and not self.has_exited and not self.is_asked:
            self.wait(None)

    def wait(self, seconds: float | None) -> bool:
        """False: nothing happened for that long."""
        ready = self._poll.poll(None if seconds is None else max(1, seconds * 1000))
        for handle, _ in ready:
            self._heed_agentd() if handle == self._control else self._heed_signals()
        return bool(ready)

    def _heed_agentd(self) -> None:
        try:
            words = os.read(self._control, 64)
        except OSError:
            words = b""
        if not words:
            self._poll.unregister(self._control)
        self.is_asked = True
        self.is_urgent |= NOW in words

    def _heed_signals(self) -> None:
        for number in os.read(self._woken, 4096):
            if number != signal.SIGCHLD:
                self.is_urgent |= self.is_asked  # the second one
                self.is_asked = True

    def reap(self) -> bool:
        """Take the status of every child that has ended. False: none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.agent and not self.has_exited:
                self.has_exited = True
                self.tell(f"exited {os.waitstatus_to_exitcode(status)}")

    def is_left(self) -> bool:
        if self.reap():
            return True
        return not _ADOPTS and any(not row.is_zombie for row in self.left())

    def left(self) -> list[ProcessRow]:
        return family(processes(), os.getpid(), self.agent)


def _start(order: ReaperOrder, watch: _Watch, prctl: Prctl) -> int | None:
    """The agent's process id; None if it could not be started, and agentd has been told why."""
    report, told = os.pipe()
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        watch.tell(f"failed fork {error.errno}")
        return None
    if pid == 0:
        _become(order, told, parent, prctl)
    os.close(told)
    with open(report, "rb") as file:
        failure = file.read().decode()
    if not failure:
        return pid
    os.waitpid(pid, 0)
    watch.tell(f"failed {failure}")
    return None


def _become(order: ReaperOrder, told: int, parent: int, prctl: Prctl) -> NoReturn:
    """In the new process: become the agent, with nothing of ours but the three streams."""
    what = "exec"
    try:
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in signal.valid_signals():
            _to_default(number)
        if os.getppid() == parent:  # else it was killed before it could take us along
            what = "cwd"
            os.chdir(order.cwd)
            what = "exec"
            os.execve(order.program, list(order.argv), order.env)  # noqa: S606
    except OSError as error:
        os.write(told, f"{what} {error.errno}".encode())
    except ValueError:
        os.write(told, f"{what} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _to_default(number: int) -> None:
    try:
        signal.signal(number, signal.SIG_DFL)
    except OSError:
        pass  # KILL and STOP have no other


def _end(watch: _Watch) -> None:
    """End what is left, and return when nothing is."""
    asked: set[int] = set()
    until = time.monotonic() + GRACE
    while watch.is_left() and not watch.is_urgent and time.monotonic() < until:
        # once for all; later only orphans, since what has a parent may be helping it to end well
        new = [row for row in watch.left() if row.pid not in asked and (not asked or row.parent in (1, os.getpid()))]
        send((signal.SIGTERM, signal.SIGCONT), new)
        asked.update(row.pid for row in new)
        watch.wait(_STEP)
    pause = _AGAIN
    while watch.is_left():
        kill(watch.left())
        pause = _AGAIN if watch.wait(pause) else min(2 * pause, _SELDOM)


def send(signals: Iterable[int], rows: Iterable[ProcessRow]) -> None:
    for row in rows:
        for number in signals:
            _signal(os.kill, row.pid, number)


def kill(rows: Sequence[ProcessRow]) -> None:
    """By group first: no member of a group escapes by forking meanwhile."""
    for group in {row.group for row in rows} - {0, 1, os.getpgrp()}:
        _signal(os.killpg, group, signal.SIGKILL)
    send((signal.SIGKILL,), rows)


def _signal(how: Callable[[int, int], None], whom: int, number: int) -> None:
    try:
        how(whom, number)
    except (ProcessLookupError, PermissionError):
        pass  # it is gone, or somebody else's


def family(rows: Iterable[ProcessRow], root: int, leader: int, variable: bytes = b"") -> list[ProcessRow]:
    """What descends from `root`, is in the group or session of `leader`, or was started with `variable`, and all that
    descends from those; not `root` itself."""
    children: dict[int, list[ProcessRow]] = {}
    found = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row)
        if leader in (row.group, row.session) or (variable and _has(row.pid, variable)):
            found[row.pid] = row
    trail = [root, *found]
    while trail:
        for row in children.get(trail.pop(), ()):
            if row.pid not in found:
                found[row.pid] = row
                trail.append(row.pid)
    found.pop(root, None)
    return list(found.values())


def _has(pid: int, variable: bytes) -> bool:
    """Among those it was started with. Without /proc nobody knows, nor of a zombie or another user's process."""
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
    # the name of the program may hold anything, so count from its end
    state, parent, group, session = text.rpartition(b")")[2].split(maxsplit=4)[:4]
    return ProcessRow(int(pid), int(parent), int(group), int(session), state == b"Z")


def from_ps() -> list[ProcessRow]:
    import subprocess  # late: only where there is no /proc

    command = ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as ps:
        rows = [line.split() for line in ps.communicate()[0].splitlines()]
    found = [ProcessRow(int(row[0]), int(row[1]), int(row[2]), 0, row[3].startswith(b"Z")) for row in rows]
    return [row for row in found if row.pid != ps.pid]


def _touch(mark: bytes) -> None:
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        os.utime(mark)
    except OSError:
        pass  # its folder is gone, so nobody will look


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
    os._exit(0)  # the lock is free at once

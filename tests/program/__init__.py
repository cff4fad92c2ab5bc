"""Starts agentd as a process of its own: `Program` is a Popen whose agentd comes from the fork server."""

import atexit
import fcntl
import functools
import inspect
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from program.server import HEADER

PATIENCE = 300.0  # seconds to wait for what must come, before something is wrong
REAL_PYTHON = sys.executable
AGENTD = str(Path(sys.executable).parent / "agentd")
SERVER = Path(__file__).with_name("server.py")
CHILD = Path(__file__).with_name("child.py")
CLIENT = Path(__file__).with_name("client.py")
_EXECUTE_CHILD = tuple(inspect.signature(subprocess.Popen._execute_child).parameters)  # type: ignore[attr-defined]
_OWN_INTERPRETER = ("PYTHON", "LC_", "LANG")  # variables that an interpreter reads when it starts


def environment(home: Path) -> dict[str, str]:
    """Nothing of the caller's but the way to programs."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
    }


def server() -> "ForkServer":
    return _server_in(os.readlink("/proc/thread-self/ns/net"))


@functools.cache
def _server_in(network: str) -> "ForkServer":
    """What it starts lives in the network that it was started in."""
    return ForkServer()


class ForkServer:
    """It ends with the test worker that started it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="agentd-fork-"))
        self.path = str(self.folder / "socket")
        self._process = subprocess.Popen(
            [REAL_PYTHON, "-P", str(SERVER), self.path],
            env={**os.environ, "HOME": str(self.folder)},  # not that of the test that happens to be the first
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == b"ready\n", "the fork server did not start"
        self.python = str(self._write_python())
        self._pid = os.getpid()
        atexit.register(self.close)

    def close(self) -> None:
        if os.getpid() == self._pid:
            self._process.communicate()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _write_python(self) -> Path:
        """What agentd takes for its interpreter: the real one, but MCP servers come from the fork server."""
        program = self.folder / "python"
        real = f'exec "{REAL_PYTHON}"'
        served = f'{real} -I -S "{CLIENT}" "{self.path}" "{program}" "$@"'
        child = f'{real} -P "{CHILD}" "{program}" "$@"'
        program.write_text(
            f'#!/bin/sh\ncase "$*" in\n"-P -m agentd mcp"*) shift 3; {served};;\n'
            f'"-P -m agentd "*) shift 3; {child};;\nesac\n{real} "$@"\n'
        )
        (self.folder / "agentd").write_text(f'#!/bin/sh\nexec "{AGENTD}" "$@"\n')
        for path in (program, self.folder / "agentd"):
            path.chmod(0o755)
        return program

    def start(self, request: dict[str, Any], handles: list[int]) -> tuple[int, socket.socket]:
        """The process id, and a socket that tells its status when it has ended."""
        client = socket.socket(socket.AF_UNIX)
        client.connect(self.path)
        data = json.dumps({**request, "python": self.python}).encode()
        socket.send_fds(client, [len(data).to_bytes(HEADER, "big") + data], handles)
        return _number(client), client


def _number(client: socket.socket) -> int:
    """The next line; the lines of a quick program come together, so not a byte more than that."""
    line = b""
    while not line.endswith(b"\n"):
        part = client.recv(1)
        assert part, "the fork server has gone"
        line += part
    return int(line)


@dataclass(frozen=True)
class CrashPoint:
    """A program is killed with -9 at its number-th write below a folder, just before or just after it."""

    moment: str  # "before" or "after"
    number: int
    below: str


class Program(subprocess.Popen[Any]):
    """A Popen; where the program is agentd, it is forked instead of executed.

    An environment that changes how an interpreter starts is given to a real one.
    """

    _status: socket.socket | None = None

    def __init__(
        self, args: Sequence[str], *, crash: CrashPoint | None = None, has_terminal: bool = False, **options: Any
    ) -> None:
        self._crash = crash
        if has_terminal and [*args][:1] != [AGENTD]:
            options["preexec_fn"] = _take_terminal
        super().__init__(args, **options)

    def _execute_child(self, *given: Any) -> None:
        """What Popen calls when all pipes are open, with everything it was told."""
        told = dict(zip(_EXECUTE_CHILD, (self, *given), strict=True))
        env = dict(os.environ if told["env"] is None else told["env"])
        argv = [] if isinstance(told["args"], str) else [os.fspath(word) for word in told["args"]]
        if told["shell"] or told["pass_fds"] or argv[:1] != [AGENTD] or not _is_usual(env):
            super()._execute_child(*given)  # type: ignore[misc]
            return
        request = {
            "argv": argv[1:],
            "cwd": os.path.abspath(told["cwd"] or os.getcwd()),
            "env": {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()},
            "new_session": told["start_new_session"],
            "process_group": told["process_group"],
            "crash": self._crash and asdict(self._crash),
        }
        streams = [told[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        try:
            handles = [number if stream == -1 else stream for number, stream in enumerate(streams)]
            self.pid, self._status = server().start(request, handles)
            self._child_created = True
        finally:
            ends = [told[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._status is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc, no-any-return]
        if self._status.fileno() == -1:
            return self.pid, 0  # it was waited for before; else one failed test would fail all that follow
        self._status.setblocking(not wait_flags & os.WNOHANG)
        try:
            status = _number(self._status)
        except BlockingIOError:
            return 0, 0
        self._status.close()
        return self.pid, status

    def _internal_poll(self, _deadstate: int | None = None, **keywords: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(_deadstate=_deadstate, **keywords)  # type: ignore[misc, no-any-return]
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid == self.pid:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def _take_terminal() -> None:
    """In the new process: the terminal on stdin becomes its own."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _is_usual(env: dict[str, str]) -> bool:
    odd = [name for name in env if name.startswith(_OWN_INTERPRETER)]
    return all(name == "LANG" and env[name] in ("C.UTF-8", "en_US.UTF-8") for name in odd)

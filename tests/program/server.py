"""Starts agentd by forking a process that has already imported it, so that no test pays for the imports again.

Everything else about a process started here is real: its id, streams, working directory, environment, process group,
terminal, signals and exit status. Started once for each test worker by `program`, with the path of its socket.
"""

import array
import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import random
import selectors
import signal
import socket
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

HEADER = 8  # bytes: the length of a request
_PACKAGES = ("agentd.cli", "agentd.mcp", "agentd.web", "agentd.engine")
_LIBRARIES = ("genai_prices", "questionary", "rich.live", "rich.table", "uvicorn", "httpx2", "watchfiles")


def main(path: str) -> None:
    _preload()
    server = _Server(path)
    while server.is_wanted:
        server.step()


def _preload() -> None:
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a child that collects garbage would copy every page it looks at


class _Server:
    def __init__(self, path: str) -> None:
        self.is_wanted = True
        self._running: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.setblocking(False)
        self._wakeup = (woken, wake)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests; the server ends with its worker
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(woken, selectors.EVENT_READ, self._reap)
        self._selector.register(0, selectors.EVENT_READ, self._end)
        os.write(1, b"ready\n")

    def step(self) -> None:
        for key, _ in self._selector.select():
            key.data()

    def _end(self) -> None:
        """The worker that started us is gone."""
        self.is_wanted = False

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        data, handles = _receive(client)
        request = json.loads(data) if data else None
        if request is None:
            client.close()
            return
        pid = os.fork()
        if pid == 0:
            _become(request, handles)
        for handle in handles:
            os.close(handle)
        self._running[pid] = client
        _tell(client, pid)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wakeup[0].recv(4096):
                pass
        while self._running:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            client = self._running.pop(pid)
            _tell(client, status)
            client.close()


def _tell(client: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):
        client.sendall(b"%d\n" % number)


def _receive(client: socket.socket) -> tuple[bytes, list[int]]:
    """A request and the streams that come with it; empty if the client has gone."""
    size = array.array("i").itemsize
    data, ancillary, _, _ = client.recvmsg(65536, socket.CMSG_SPACE(3 * size))
    handles = array.array("i")
    for _, _, part in ancillary:
        handles.frombytes(part[: len(part) - len(part) % size])
    while data and len(data) < HEADER + int.from_bytes(data[:HEADER], "big"):
        more = client.recv(65536)
        if not more:
            return b"", list(handles)
        data += more
    return data[HEADER:], list(handles)


# ---- in the child


def _become(request: dict[str, Any], handles: list[int]) -> NoReturn:
    code = 1
    try:
        _reset_signals()
        _take_streams(handles)
        _take_place(request)
        if request.get("crash"):
            _crash_at(**request["crash"])
        code = _run(request["argv"])
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _take_streams(handles: list[int]) -> None:
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
    os.closerange(3, 1 + max(int(name) for name in os.listdir("/proc/self/fd")))
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        raw: Any = io.FileIO(number, mode, closefd=False)
        buffer: Any = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
        errors = "backslashreplace" if number == 2 else "strict"
        line_buffering = number == 2 or os.isatty(number)
        stream = io.TextIOWrapper(buffer, "utf-8", errors, line_buffering=line_buffering)
        stream.mode = mode  # type: ignore[misc]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _take_place(request: dict[str, Any]) -> None:
    if request["new_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if request["process_group"] >= 0:
        os.setpgid(0, request["process_group"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    random.seed()
    tempfile.tempdir = None
    sys.executable = request["python"]


def _crash_at(moment: str, number: int, below: str) -> None:
    """Kill this process with -9 at its number-th write below a folder: before the file gets or loses its name there,
    or after."""
    seen = 0

    def mortal(change: Callable[..., None], named: int) -> Callable[..., None]:
        def changed(*given: Any, **more: Any) -> None:
            nonlocal seen
            counts = str(given[named]).startswith(below)
            seen += counts
            is_it = counts and seen == number
            if is_it and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                change(*given, **more)
            finally:  # also when there was nothing to remove, or the run would not be killed at all
                if is_it:
                    os.kill(os.getpid(), signal.SIGKILL)

        return changed

    os.replace = mortal(os.replace, 1)
    os.unlink = mortal(os.unlink, 0)


def _run(argv: list[str]) -> int:
    from agentd.cli.app import run

    sys.argv = ["agentd", *argv]
    try:
        return run(argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0


if __name__ == "__main__":
    main(sys.argv[1])

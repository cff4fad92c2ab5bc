"""The real program on a pseudo-terminal of a given width, with somebody typing."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from display import Display
from program import AGENTD, CrashPoint, Program
from support import PATIENCE, Box

UP, DOWN, ESCAPE, ENTER, INTERRUPT = "\x1b[A", "\x1b[B", "\x1b", "\r", "\x03"


@dataclass(frozen=True)
class Seen:
    code: int
    screen: str

    @property
    def lines(self) -> list[str]:
        return self.screen.splitlines()


def on_terminal(box: Box, *arguments: str, width: int = 100, typed: str = "", cwd: Path | None = None) -> Seen:
    """Run agentd with terminal as stdin, stdout and stderr; `typed` is sent when it has asked something."""
    handle, theirs = pty.openpty()
    _set_size(handle, width, 40)
    env = {**box.env, "TERM": "xterm-256color"}
    program = Program(
        [AGENTD, *arguments],
        cwd=cwd or box.root,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        has_terminal=True,
    )
    os.close(theirs)
    seen = b""
    left = typed.encode()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        ready, _, _ = select.select([handle], [], [], 1)
        if not ready:
            continue
        try:
            chunk = os.read(handle, 65536)
        except OSError:
            break  # the program has gone
        if not chunk:
            break
        seen += chunk
        if left and seen.rstrip().endswith((b"]:", b"]: ", b"?")):
            line, _, left = left.partition(b"\n")
            os.write(handle, line + b"\n")
    else:
        program.kill()
    code = program.wait()
    os.close(handle)
    return Seen(code, seen.decode().replace("\r\n", "\n"))


@dataclass
class Person:
    """Somebody before a terminal on which a program runs: sees what it draws, presses keys, drags the window."""

    program: Program
    handle: int
    display: Display
    raw: bytes = b""
    _code: int | None = field(default=None)

    def sees(self, what: str | Callable[[Display], bool]) -> None:
        """Look until it is there."""
        is_there = what if callable(what) else lambda display: what in display.text
        end = time.monotonic() + PATIENCE
        while not is_there(self.display):
            assert self._look() and time.monotonic() < end, f"not seen: {what}\n{self.display.text}"

    @property
    def pid(self) -> int:
        return self.program.pid

    def press(self, keys: str) -> None:
        os.write(self.handle, keys.encode())

    def resize(self, width: int, height: int = 24) -> None:
        self.display.resize(width, height)
        _set_size(self.handle, width, height)

    def waits(self) -> int:
        """Until the program has ended; its exit code."""
        while self._look():
            pass
        assert self._code is not None
        return self._code

    def _look(self) -> bool:
        """What has come since; False when the program has gone."""
        if self._code is not None:
            return False
        ready, _, _ = select.select([self.handle], [], [], PATIENCE)
        chunk = b""
        with contextlib.suppress(OSError):
            chunk = os.read(self.handle, 65536) if ready else b""
        if not chunk:
            self._ends(kill=not ready)
            return False
        self.raw += chunk
        self.display.feed(chunk.decode("utf-8", "replace"))
        for _ in range(self.display.asked):
            self.press(f"\x1b[{self.display.row - self.display.top + 1};{self.display.column + 1}R")
        self.display.asked = 0
        return True

    def _ends(self, kill: bool) -> None:
        if kill:
            self.program.kill()
        self._code = self.program.wait()
        os.close(self.handle)


def before_terminal(
    argv: Sequence[str], env: dict[str, str], width: int = 80, height: int = 24, crash: CrashPoint | None = None
) -> Person:
    """Start a program with a terminal as stdin, stdout and stderr."""
    handle, theirs = pty.openpty()
    _set_size(handle, width, height)
    env = {"TERM": "xterm-256color", **env}
    program = Program(
        argv,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        has_terminal=True,
        crash=crash,
    )
    os.close(theirs)
    return Person(program, handle, Display(width, height))


def _set_size(handle: int, width: int, height: int) -> None:
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

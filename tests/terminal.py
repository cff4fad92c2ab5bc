"""The real program on a pseudo-terminal: what it draws, and a person who types."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import combining, east_asian_width

from program import AGENTD, PATIENCE, CrashPoint, Program
from scenario import Scenario

QUESTION = "What next?"
UP, DOWN, ESCAPE, ENTER, INTERRUPT = "\x1b[A", "\x1b[B", "\x1b", "\r", "\x03"


_TOKEN = re.compile(
    r"\x1b\[([?]?)([\d;]*)([@-~])|\x1b[()][0-9A-Z]|\x1b[=>78]|\x1b\].*?(?:\x07|\x1b\\)|(\x1b)|(.)", re.DOTALL
)


@dataclass
class Row:
    cells: list[str] = field(default_factory=list)
    goes_on: bool = False  # the terminal broke the line by itself

    def put(self, column: int, char: str) -> None:
        self.cells += [" "] * (column - len(self.cells))
        self.cells[column : column + 1] = [char]

    @property
    def text(self) -> str:
        return "".join(self.cells).rstrip()


@dataclass
class Display:
    """Rows from the first ever written; the last `height` of them are on the screen."""

    width: int
    height: int
    rows: list[Row] = field(default_factory=lambda: [Row()])
    row: int = 0
    column: int = 0
    wraps: bool = True
    is_whole: bool = True  # no picture is half drawn
    is_bright: bool = False  # some colour, boldness or dimness was seen
    strange: list[str] = field(default_factory=list)  # what it does not understand
    asked: int = 0  # times the program wanted to know where the cursor is
    _left: str = ""

    @property
    def top(self) -> int:
        return max(len(self.rows) - self.height, 0)

    @property
    def screen(self) -> list[str]:
        return [row.text for row in self.rows[self.top :]]

    @property
    def lines(self) -> list[str]:
        """With all that scrolled away."""
        return [row.text for row in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def feed(self, text: str) -> None:
        text, self._left = self._left + text, ""
        cut = re.search(r"\x1b(\[[?\d;]*|\][^\x07\x1b]*)?$", text)
        if cut:
            text, self._left = text[: cut.start()], text[cut.start() :]
        for match in _TOKEN.finditer(text):
            private, numbers, final, lone, char = match.groups()
            if final:
                self._obey(private, numbers, final)
            elif lone:
                self.strange.append(repr(match[0]))
            elif char:
                self._type(char)

    def resize(self, width: int, height: int) -> None:
        """As most terminals do it: lines that the terminal broke are joined, then broken anew."""
        old, place = self.rows, (self.row, self.column)
        self.rows, self.width, self.height = [], width, height
        joined: list[str] = []
        for number, row in enumerate(old):
            offset = len(joined)
            joined += row.cells
            if number == place[0]:
                mark = offset + place[1]
                self.row, self.column = len(self.rows) + mark // width, mark % width
            if row.goes_on:
                continue
            pieces = [joined[start : start + width] for start in range(0, len(joined), width)] or [[]]
            self.rows += [Row(piece, number < len(pieces) - 1) for number, piece in enumerate(pieces)]
            joined = []

    def _type(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self._down()
        elif char == "\b":
            self.column = max(self.column - 1, 0)
        elif char < " " or "\x7f" <= char < "\xa0":
            if char != "\x07":
                self.strange.append(repr(char))
        elif combining(char):
            pass
        else:
            self._put(char, 2 if east_asian_width(char) in "WF" else 1)

    def _put(self, char: str, cells: int) -> None:
        if self.column + cells > self.width:
            if not self.wraps:
                self.column = self.width - cells
            else:
                self.rows[self.row].goes_on = True
                self._down()
                self.column = 0
        self.rows[self.row].put(self.column, char)
        if cells == 2:
            self.rows[self.row].put(self.column + 1, "")
        self.column += cells

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append(Row())

    def _obey(self, private: str, numbers: str, final: str) -> None:
        first = int(numbers.split(";")[0] or 0)
        count = max(first, 1)
        row = self.rows[self.row]
        match final:
            case "A":
                self.row = max(self.row - count, self.top)
            case "B":
                self.row = min(self.row + count, len(self.rows) - 1)
            case "C":
                self.column = min(self.column + count, self.width - 1)
            case "D":
                self.column = max(self.column - count, 0)
            case "K":
                del row.cells[0 if first == 2 else self.column :]
                row.goes_on = False
            case "J":
                del row.cells[self.column :], self.rows[self.row + 1 :]
                row.goes_on = False
            case "m":
                self.is_bright |= numbers not in ("", "0")
            case "n":
                self.asked += 1
            case "h" | "l" if private:
                self.wraps = final == "h" if first == 7 else self.wraps
                self.is_whole = final == "l" if first == 2026 else self.is_whole
            case _:
                self.strange.append(f"CSI {private}{numbers}{final}")


@dataclass(frozen=True)
class Seen:
    code: int
    screen: str

    @property
    def lines(self) -> list[str]:
        return self.screen.splitlines()


def run_on_terminal(box: Scenario, *arguments: str, width: int = 100, typed: str = "", cwd: Path | None = None) -> Seen:
    """Run agentd with terminal as stdin, stdout and stderr; `typed` is sent when it has asked something."""
    env = {**box.env, "TERM": "xterm-256color"}
    program, handle = _start([AGENTD, *arguments], env, width, 40, cwd or box.root)
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
            self._end(kill=not ready)
            assert ready, f"it neither draws anything nor ends:\n{self.display.text}"
            return False
        self.raw += chunk
        self.display.feed(chunk.decode("utf-8", "replace"))
        for _ in range(self.display.asked):
            self.press(f"\x1b[{self.display.row - self.display.top + 1};{self.display.column + 1}R")
        self.display.asked = 0
        return True

    def _end(self, kill: bool) -> None:
        if kill:
            self.program.kill()
        self._code = self.program.wait()
        os.close(self.handle)


def start_on_terminal(
    argv: Sequence[str],
    env: dict[str, str],
    width: int = 80,
    height: int = 24,
    cwd: Path | None = None,
    crash: CrashPoint | None = None,
) -> Person:
    program, handle = _start(argv, {"TERM": "xterm-256color", **env}, width, height, cwd, crash)
    return Person(program, handle, Display(width, height))


def _start(
    argv: Sequence[str],
    env: dict[str, str],
    width: int,
    height: int,
    cwd: Path | None = None,
    crash: CrashPoint | None = None,
) -> tuple[Program, int]:
    """A program with a terminal of that size as stdin, stdout and stderr, and our end of it."""
    handle, theirs = pty.openpty()
    _set_size(handle, width, height)
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    program = Program(argv, cwd=cwd, env=env, start_new_session=True, has_terminal=True, crash=crash, **streams)
    os.close(theirs)
    return program, handle


def _set_size(handle: int, width: int, height: int) -> None:
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def at_question(scenario: Scenario, *flags: str, **env: str) -> Person:
    """A person who plans at a terminal, and is asked what comes next."""
    argv = [AGENTD, "plan", scenario.change_id, *flags]
    person = start_on_terminal(argv, {**scenario.env, **env}, width=110, height=50)
    person.sees(QUESTION)
    person.sees("❯")
    return person

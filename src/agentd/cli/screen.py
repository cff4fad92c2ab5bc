"""A picture at the end of a terminal that is drawn over and over, with lines above it that stay."""

import contextlib
import os
import sys
import termios
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from agentd.cli import output

_WHOLE = ("\x1b[?2026h", "\x1b[?2026l")  # between these a terminal shows nothing half drawn
_CLIPPED = ("\x1b[?7l", "\x1b[?7h")  # between these no line breaks, whatever a letter's width is
_UP, _WIPE = "\r\x1b[{}A", "\r\x1b[J"


class Screen:
    """On stderr. One thread at a time."""

    def __init__(self) -> None:
        colours: Any = "auto" if output.colour() is None else None
        self._console = Console(file=sys.stderr, force_terminal=True, color_system=colours, highlight=False)
        self._widths: list[int] = []  # of the lines that are there now

    def draw(self, picture: Sequence[Text], above: Sequence[Text] = ()) -> None:
        """In the place of the last one, in a single write; what stands above it stays for good."""
        stays, clipped = self._painted(above), self._painted(picture)
        text = f"{self._back()}{stays}{_CLIPPED[0]}{clipped}{_CLIPPED[1]}"
        self._widths = [line.cell_len for line in picture]
        sys.stderr.write(f"{_WHOLE[0]}{text}{_WHOLE[1]}")
        sys.stderr.flush()

    def _painted(self, lines: Sequence[Text]) -> str:
        with self._console.capture() as captured:
            for line in lines:
                self._console.print(line, soft_wrap=True)
        return captured.get()

    def _back(self) -> str:
        """To where the last picture began, wiping it. A terminal that became narrower has broken its lines."""
        width = size().columns
        rows = sum(max(-(-wide // width), 1) for wide in self._widths)
        return (_UP.format(rows) if rows else "") + _WIPE


def size() -> os.terminal_size:
    """What the terminal has now; some know nothing of their size."""
    columns, lines = os.get_terminal_size(sys.stderr.fileno())
    return os.terminal_size((columns or 80, lines or 24))


@contextlib.contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Off under a picture: keys that an impatient person presses do not push it away."""
    before = _switch(is_on)
    try:
        yield
    finally:
        _switch(before)


def _switch(is_on: bool) -> bool:
    """How it was. Nothing from the background: the terminal is the shell's then, which would stop us for it."""
    handle = sys.stderr.fileno()
    try:
        settings = termios.tcgetattr(handle)
        was_on = bool(settings[3] & termios.ECHO)
        if was_on != is_on and os.tcgetpgrp(handle) == os.getpgrp():
            settings[3] ^= termios.ECHO
            termios.tcsetattr(handle, termios.TCSADRAIN, settings)
    except (OSError, termios.error):  # a terminal that is gone, or not ours
        return is_on
    return was_on

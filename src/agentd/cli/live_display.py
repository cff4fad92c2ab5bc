"""The view on a terminal: the list of steps, drawn anew a few times a second until the run has ended."""

import contextlib
import os
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from agentd.change import describe_event
from agentd.cli import live_frame, output, text_table
from agentd.cli.progress_view import LONGEST, JournalView, LineView, RunView, clean_words, is_detail_event
from agentd.domain import events
from agentd.engine import ProgressBoard, StepSource

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
        width = terminal_size().columns
        rows = sum(max(-(-wide // width), 1) for wide in self._widths)
        return (_UP.format(rows) if rows else "") + _WIPE


def terminal_size() -> os.terminal_size:
    """What the terminal has now; some know nothing of their size."""
    columns, lines = os.get_terminal_size(sys.stderr.fileno())
    return os.terminal_size((columns or 80, lines or 24))


@contextlib.contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Off under a picture: keys that an impatient person presses do not push it away."""
    before = _switch_echo(is_on)
    try:
        yield
    finally:
        _switch_echo(before)


def _switch_echo(is_on: bool) -> bool:
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


_TICK = 0.125  # seconds


class LiveDisplay(RunView):
    """A thread of its own draws, so that no agent's pace is the screen's."""

    def __init__(self, title: str, ahead: StepSource, is_verbose: bool = False) -> None:
        self._title = clean_words(title)
        self._board = ProgressBoard(ahead)
        self._began = time.monotonic()
        self._lock = threading.Lock()  # for what is known
        self._pen = threading.Lock()  # for the screen: a terminal that is held up holds up no event
        self._screen = Screen()
        self._above: list[Text] = []  # told, and not on the screen yet
        self._is_moving = False
        self._is_verbose = is_verbose

    def __call__(self, entry: events.JournalEntry) -> None:
        with self._lock:
            self._board.hear(entry.event, time.monotonic())
            if isinstance(entry.event, events.WarningIssued | events.NoticeIssued) or (
                self._is_verbose and is_detail_event(entry.event)
            ):
                self._above.append(_line(self._board.label_of(entry.event), entry.event))

    @contextlib.contextmanager
    def showing(self) -> Iterator["LiveDisplay"]:
        """Until the end, however it comes; what stays is the finished list."""
        over = threading.Event()
        ticking = threading.Thread(target=self._tick, args=(over,), name="live view", daemon=True)
        with echo(False):
            self._is_moving = True
            ticking.start()
            try:
                yield self
            finally:
                over.set()
                ticking.join()
                with self._pen:
                    self._draw(self._ended)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        with self._pen:
            self._is_moving = False
            self._draw(list)
        try:
            with echo(True):
                yield
        finally:
            self._is_moving = True

    def _tick(self, over: threading.Event) -> None:
        while not over.wait(_TICK):
            with self._pen:
                if self._is_moving:
                    self._draw(self._moving)

    def _draw(self, picture: Callable[[], list[Text]]) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone ends nothing
            with self._lock:
                lines, above, self._above = picture(), self._above, []
            self._screen.draw(lines, above)

    def _moving(self) -> list[Text]:
        return live_frame.running_frame(self._title, self._board, self._began, time.monotonic(), *terminal_size())

    def _ended(self) -> list[Text]:
        return live_frame.final_frame(self._title, self._board, self._began, time.monotonic(), terminal_size().columns)


def _line(label: str, event: events.Event) -> Text:
    words = text_table.shorten_end(
        ": ".join(part for part in (clean_words(label), clean_words(describe_event(event))) if part), LONGEST
    )
    return Text(words, "yellow" if isinstance(event, events.WarningIssued) else "dim")


__all__ = ["Mode", "RunView", "watch_run"]

Mode = Literal["live", "lines", "events", "quiet"]


def watch_run(title: str, ahead: StepSource, mode: Mode, is_verbose: bool = False) -> AbstractContextManager[RunView]:
    """A view of one run; `live` without a terminal to draw on is `lines`. Verbose: with every action of an agent."""
    if mode == "live" and _can_draw():
        pass  # late: rich is heavy

        return LiveDisplay(title, ahead, is_verbose).showing()
    if mode in ("live", "lines"):
        return nullcontext(LineView(ahead, is_verbose))
    return nullcontext(JournalView() if mode == "events" else RunView())


def _can_draw() -> bool:
    """On a terminal that can move its cursor, and is ours: in the background we would draw over a prompt."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:  # a terminal without jobs
        return True

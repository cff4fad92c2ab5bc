"""The live display on a terminal: the list of steps, redrawn several times a second until the run ends."""

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

_SYNC = ("\x1b[?2026h", "\x1b[?2026l")  # synchronized update
_NO_WRAP = ("\x1b[?7l", "\x1b[?7h")  # no line wrapping
_UP, _CLEAR = "\r\x1b[{}A", "\r\x1b[J"


class Screen:
    """Draws on stderr. Not thread-safe."""

    def __init__(self) -> None:
        colours: Any = "auto" if output.colour() is None else None
        self._console = Console(file=sys.stderr, force_terminal=True, color_system=colours, highlight=False)
        self._widths: list[int] = []  # of the lines on the screen

    def draw(self, frame: Sequence[Text], above: Sequence[Text] = ()) -> None:
        """Replace the previous frame in a single write; lines `above` it stay for good."""
        fixed, clipped = self._render(above), self._render(frame)
        body = f"{self._clear_frame()}{fixed}{_NO_WRAP[0]}{clipped}{_NO_WRAP[1]}"
        self._widths = [line.cell_len for line in frame]
        sys.stderr.write(f"{_SYNC[0]}{body}{_SYNC[1]}")
        sys.stderr.flush()

    def _render(self, lines: Sequence[Text]) -> str:
        with self._console.capture() as captured:
            for line in lines:
                self._console.print(line, soft_wrap=True)
        return captured.get()

    def _clear_frame(self) -> str:
        """Return the codes that clear the last frame, whose lines wrap if the terminal became narrower."""
        width = terminal_size().columns
        rows = sum(max(-(-line_width // width), 1) for line_width in self._widths)
        return (_UP.format(rows) if rows else "") + _CLEAR


def terminal_size() -> os.terminal_size:
    """Return the terminal's current size; some do not know theirs."""
    columns, lines = os.get_terminal_size(sys.stderr.fileno())
    return os.terminal_size((columns or 80, lines or 24))


@contextlib.contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Switch echo; off while a frame is shown, so that typed keys do not break it."""
    before = _switch_echo(is_on)
    try:
        yield
    finally:
        _switch_echo(before)


def _switch_echo(is_on: bool) -> bool:
    """Switch echo and return its former state. Does nothing in the background, where the shell would stop us."""
    handle = sys.stderr.fileno()
    try:
        settings = termios.tcgetattr(handle)
        was_on = bool(settings[3] & termios.ECHO)
        if was_on != is_on and os.tcgetpgrp(handle) == os.getpgrp():
            settings[3] ^= termios.ECHO
            termios.tcsetattr(handle, termios.TCSADRAIN, settings)
    except (OSError, termios.error):  # no terminal, or not ours
        return is_on
    return was_on


_TICK = 0.125  # seconds


class LiveDisplay(RunView):
    """A live view of a run, drawn by its own thread, independent of how fast events arrive."""

    def __init__(self, title: str, planned: StepSource, is_verbose: bool = False) -> None:
        self._title = clean_words(title)
        self._board = ProgressBoard(planned)
        self._began = time.monotonic()
        self._lock = threading.Lock()  # guards the progress data
        self._screen_lock = threading.Lock()  # guards the screen, so that a slow terminal does not delay events
        self._screen = Screen()
        self._above: list[Text] = []  # lines not on the screen yet
        self._is_animating = False
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
        """Draw until the block ends; leave the final frame on the screen."""
        stop = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(stop,), name="live view", daemon=True)
        with echo(False):
            self._is_animating = True
            ticker.start()
            try:
                yield self
            finally:
                stop.set()
                ticker.join()
                with self._screen_lock:
                    self._draw(self._final_frame)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        with self._screen_lock:
            self._is_animating = False
            self._draw(list)
        try:
            with echo(True):
                yield
        finally:
            self._is_animating = True

    def _tick(self, stop: threading.Event) -> None:
        while not stop.wait(_TICK):
            with self._screen_lock:
                if self._is_animating:
                    self._draw(self._running_frame)

    def _draw(self, make_frame: Callable[[], list[Text]]) -> None:
        with contextlib.suppress(OSError):  # losing the terminal must not end the run
            with self._lock:
                lines, above, self._above = make_frame(), self._above, []
            self._screen.draw(lines, above)

    def _running_frame(self) -> list[Text]:
        return live_frame.running_frame(self._title, self._board, self._began, time.monotonic(), *terminal_size())

    def _final_frame(self) -> list[Text]:
        return live_frame.final_frame(self._title, self._board, self._began, time.monotonic(), terminal_size().columns)


def _line(label: str, event: events.Event) -> Text:
    text = text_table.shorten_end(
        ": ".join(part for part in (clean_words(label), clean_words(describe_event(event))) if part), LONGEST
    )
    return Text(text, "yellow" if isinstance(event, events.WarningIssued) else "dim")


__all__ = ["Mode", "RunView", "watch_run"]

Mode = Literal["live", "lines", "events", "quiet"]


def watch_run(title: str, planned: StepSource, mode: Mode, is_verbose: bool = False) -> AbstractContextManager[RunView]:
    """Return a view of one run; `live` falls back to `lines` without a suitable terminal."""
    if mode == "live" and _can_draw():
        return LiveDisplay(title, planned, is_verbose).showing()
    if mode in ("live", "lines"):
        return nullcontext(LineView(planned, is_verbose))
    return nullcontext(JournalView() if mode == "events" else RunView())


def _can_draw() -> bool:
    """Whether stderr is a terminal with cursor control, and we are in the foreground."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:  # no job control
        return True

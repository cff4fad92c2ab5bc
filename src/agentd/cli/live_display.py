"""The live display on a terminal: the list of steps, redrawn several times a second until the run ends."""

import contextlib
import os
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from agentd.change import describe_event
from agentd.cli import output, text_table
from agentd.cli.progress_view import LONGEST, JournalView, LineView, RunView, clean_words, is_detail_event
from agentd.domain import events, format_usd, pluralize
from agentd.engine import ProgressBoard, ProgressCost, ProgressRow, StepAnswer, StepProgress, StepSource

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TURNS = 8  # spinner frames per second
_QUIET = 10  # seconds without output before this is shown
_RECENT = 2  # finished steps that stay visible when older ones are collapsed
_LOW = 8  # on a screen with fewer lines, only steps are shown
_DETAIL_WIDTH = 20  # minimum width of details beside a step; with less they go below it

_MARKS = {
    StepProgress.DONE: "✓",
    StepProgress.EARLIER: "✓",
    StepProgress.WAITING: "↻",
    StepProgress.FAILED: "✗",
    StepProgress.AHEAD: "·",
}
_COLOURS = {
    StepProgress.DONE: "green",
    StepProgress.RUNNING: "cyan",
    StepProgress.WAITING: "yellow",
    StepProgress.FAILED: "red",
}
_ANSWER_MARKS = {StepAnswer.NO: ("!", "yellow"), StepAnswer.FAILED: ("✗", "red")}  # for a finished step
_NORMAL_EXIT_CODES = (0, 1)  # the run ended normally, with yes or no
_DIMMED = (StepProgress.AHEAD, StepProgress.EARLIER)


def running_frame(title: str, board: ProgressBoard, began: float, at: float, width: int, height: int) -> list[Text]:
    """Return the frame of an active run, leaving the last screen line to the cursor."""
    rows = [_sanitize(row) for row in board.rows()]
    columns = _FrameColumns(rows, at, width)
    blocks = [columns.lines(row, at) for row in rows]
    footer = Text(_footer(board.spent, at - began, width), "dim")
    if height < _LOW:
        return [*_collapse(rows, blocks, max(height - 2, 1)), footer]
    return [_title(title, width), Text(), *_collapse(rows, blocks, height - 5), Text(), footer]


def final_frame(title: str, board: ProgressBoard, began: float, at: float, width: int) -> list[Text]:
    """Return the frame that stays: every step that started, and how many did not because of a failure."""
    rows = [_sanitize(row) for row in board.rows()]
    started = [row for row in rows if row.stand is not StepProgress.AHEAD]
    columns = _FrameColumns(started, at, width)
    lines = [line for row in started for line in columns.lines(row, at, is_over=True)]
    if (not_started := len(rows) - len(started)) and board.exit_code not in _NORMAL_EXIT_CODES:
        lines.append(_collapsed_line(f"{pluralize(not_started, 'step')} not started"))
    footer = Text(_footer(board.spent, at - began, width), "dim")
    return [_title(title, width), Text(), *lines, Text(), footer, Text()]


def _sanitize(row: ProgressRow) -> ProgressRow:
    """Remove control characters from agent text."""
    return replace(row, label=clean_words(row.label), agent=clean_words(row.agent), words=clean_words(row.words))


def _title(title: str, width: int) -> Text:
    return _truncate(Text(title, "bold"), width - 1)


class _FrameColumns:
    """Columns: mark, label, time, and details if they fit. The terminal's last column stays free."""

    def __init__(self, rows: Sequence[ProgressRow], at: float, width: int) -> None:
        self._width = width
        self._time = max([5, *(len(_format_duration(row.elapsed(at))) for row in rows)])
        most = max(width - self._time - 6, 8)
        self._label = min(max((Text(row.label).cell_len for row in rows), default=0), most)
        self._words = width - self._label - self._time - 8

    def lines(self, row: ProgressRow, at: float, is_over: bool = False) -> list[Text]:
        style = "dim" if row.stand in _DIMMED else ""
        label = _truncate(Text(row.label, "bold" if row.stand is StepProgress.RUNNING else style), self._label)
        label.pad_right(self._label - label.cell_len)
        time = _format_duration(row.elapsed(at)) if row.stand not in _DIMMED else ""
        head = Text.assemble("  ", _mark(row, at, is_over), " ", label, "  ", (time.rjust(self._time), "dim"))
        beside, below = _details(row, at, is_over)
        if beside and self._words >= min(_DETAIL_WIDTH, len(beside)):
            head.append(f"  {beside}", "dim")
            beside = ""
        head.rstrip()
        return [_truncate(head, self._width - 1), *(self._under(row, detail) for detail in (beside, below) if detail)]

    def _under(self, row: ProgressRow, detail: str) -> Text:
        style = _COLOURS[row.stand] if row.stand in (StepProgress.WAITING, StepProgress.FAILED) else "dim"
        return _truncate(Text(f"      {detail}", style), self._width - 1)


def _mark(row: ProgressRow, at: float, is_over: bool) -> tuple[str, str]:
    if row.stand is StepProgress.RUNNING:
        return ("■", "yellow") if is_over else (_SPINNER[int(at * _TURNS) % len(_SPINNER)], "cyan")
    if row.stand is StepProgress.DONE and row.answer in _ANSWER_MARKS:
        return _ANSWER_MARKS[row.answer]
    return (_MARKS[row.stand], _COLOURS.get(row.stand, "dim"))


def _details(row: ProgressRow, at: float, is_over: bool) -> tuple[str, str]:
    """Return the details beside a step, and those below it."""
    attempt = f"attempt {row.attempt}" if row.attempt > 1 else ""
    if row.stand is StepProgress.RUNNING and is_over:
        return "interrupted", ""
    if row.stand is StepProgress.RUNNING:
        quiet = f"quiet for {_format_duration(at - row.heard)}" if row.agent and at - row.heard >= _QUIET else ""
        return _join(attempt, row.agent), _join(quiet, row.words)
    if row.stand is StepProgress.WAITING:
        wait = "" if is_over else f"retrying in {max(row.again - at, 0):.0f} s"
        return _join(attempt, wait), row.words
    if row.stand is StepProgress.FAILED:
        return attempt, row.words
    return _join(row.words, f"{row.attempt} attempts" if row.attempt > 1 else ""), ""


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _collapse(rows: Sequence[ProgressRow], blocks: Sequence[list[Text]], height: int) -> list[Text]:
    """Show the steps around the active one; collapse the others into counts."""
    focus = max((index for index, row in enumerate(rows) if row.stand is not StepProgress.AHEAD), default=0)
    start, end = 0, len(blocks)

    def needed() -> int:
        return sum(map(len, blocks[start:end])) + (start > 0) + (end < len(blocks))

    while needed() > height and start < focus - _RECENT:
        start += 1
    while needed() > height and end > focus + 1:
        end -= 1
    while needed() > height and start < focus:
        start += 1
    above = [_collapsed_line(f"{pluralize(start, 'step')} done")] if start else []
    below = [_collapsed_line(f"{len(blocks) - end} more")] if end < len(blocks) else []
    lines = [line for block in blocks[start:end] for line in block]
    shown = [*above, *lines, *below]
    return shown if len(shown) <= height else lines[:height]


def _collapsed_line(text: str) -> Text:
    return Text(f"  … {text}", "dim")


def _footer(spent: ProgressCost, elapsed: float, width: int) -> str:
    """Return tokens, cost and time, as much as fits; the time always."""
    time, money = _format_duration(elapsed), _money(spent)
    full = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
    short = f"{_compact(spent.tokens_in)} in, {_compact(spent.tokens_out)} out"
    choices = [(full, money, time), (short, money, time), (money, time), (money.partition(",")[0], time)]
    if not (spent.tokens_in or spent.tokens_out):
        choices = choices[2:]  # no agent reported tokens
    lines = ["  " + " · ".join(parts) for parts in choices] if spent.calls else []
    return next((line for line in lines if len(line) < width), f"  {time}")


def _money(spent: ProgressCost) -> str:
    parts = [format_usd(spent.cost) if spent.cost or not spent.without_price else "cost unknown"]
    if spent.total - spent.cost > 0.000001:
        parts.append(f"{format_usd(spent.total)} in all")
    if spent.without_price and spent.cost:
        parts.append(f"{pluralize(spent.without_price, 'call')} without a known price")
    return ", ".join(parts)


def _compact(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _format_duration(seconds: float) -> str:
    """Format like a clock, with a stable width: `0:38`, `1:02:05`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _truncate(text: Text, width: int) -> Text:
    text.truncate(max(width, 1), overflow="ellipsis")
    return text


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
    """Return the terminal's current size; 80x24 if it does not report one."""
    columns, lines = os.get_terminal_size(sys.stderr.fileno())
    return os.terminal_size((columns or 80, lines or 24))


@contextlib.contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Switch echo; off while a frame is shown, so typed keys do not break it."""
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
        self._screen_lock = threading.Lock()  # guards the screen, so a slow terminal does not delay events
        self._screen = Screen()
        self._above: list[Text] = []  # lines not on the screen yet
        self._is_animating = False
        self._is_verbose = is_verbose

    def __call__(self, entry: events.JournalEntry) -> None:
        with self._lock:
            self._board.add(entry.event, time.monotonic())
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
        return running_frame(self._title, self._board, self._began, time.monotonic(), *terminal_size())

    def _final_frame(self) -> list[Text]:
        return final_frame(self._title, self._board, self._began, time.monotonic(), terminal_size().columns)


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
    """Return whether stderr is a terminal with cursor control, and we are in the foreground."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:  # no job control
        return True

"""The view on a terminal: the list of steps, drawn anew a few times a second until the run has ended."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from rich.text import Text

from agentd.change.event_text import describe_event
from agentd.cli import frame, screen, table
from agentd.cli.view import LONGEST, View, clean, is_detail
from agentd.domain import events
from agentd.engine.workflows.progress import ProgressBoard, StepSource

_TICK = 0.125  # seconds


class Drawing(View):
    """A thread of its own draws, so that no agent's pace is the screen's."""

    def __init__(self, title: str, ahead: StepSource, is_verbose: bool = False) -> None:
        self._title = clean(title)
        self._board = ProgressBoard(ahead)
        self._began = time.monotonic()
        self._lock = threading.Lock()  # for what is known
        self._pen = threading.Lock()  # for the screen: a terminal that is held up holds up no event
        self._screen = screen.Screen()
        self._above: list[Text] = []  # told, and not on the screen yet
        self._is_moving = False
        self._is_verbose = is_verbose

    def __call__(self, entry: events.JournalEntry) -> None:
        with self._lock:
            self._board.hear(entry.event, time.monotonic())
            if isinstance(entry.event, events.WarningIssued | events.NoticeIssued) or (
                self._is_verbose and is_detail(entry.event)
            ):
                self._above.append(_line(self._board.label_of(entry.event), entry.event))

    @contextlib.contextmanager
    def showing(self) -> Iterator["Drawing"]:
        """Until the end, however it comes; what stays is the finished list."""
        over = threading.Event()
        ticking = threading.Thread(target=self._tick, args=(over,), name="live view", daemon=True)
        with screen.echo(False):
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
            with screen.echo(True):
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
        return frame.moving(self._title, self._board, self._began, time.monotonic(), *screen.size())

    def _ended(self) -> list[Text]:
        return frame.ended(self._title, self._board, self._began, time.monotonic(), screen.size().columns)


def _line(label: str, event: events.Event) -> Text:
    words = table.shorten_end(": ".join(part for part in (clean(label), clean(describe_event(event))) if part), LONGEST)
    return Text(words, "yellow" if isinstance(event, events.WarningIssued) else "dim")

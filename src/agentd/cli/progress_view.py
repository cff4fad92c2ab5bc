"""Views of a run without a screen: silent, JSON lines or plain lines."""

import contextlib
import os
import sys
import threading
import time
from contextlib import AbstractContextManager
from datetime import datetime

from agentd.change import describe_event, is_in_progress
from agentd.cli import output, text_table
from agentd.domain import StepStatus, events
from agentd.engine import ProgressBoard, StepSource

LONGEST = 500  # maximum width of a printed line
_MAX_CHARS = 2000  # an agent's line can be a megabyte
_PROGRESS = (events.RunStarted, events.StepStarted, events.CheckFinished, events.FindingReported, events.Transition)
_DETAILS = (events.AgentActivity, events.UsageRecorded, events.DecisionRequested)
_PRINTED = (*_PROGRESS, events.DecisionMade, events.NoticeIssued, events.WarningIssued, events.ErrorOccurred)


class RunView:
    """Receives each journal entry, from any thread. The base class shows nothing."""

    def __call__(self, entry: events.JournalEntry) -> None:
        pass

    def pause(self) -> AbstractContextManager[None]:
        """Free the screen for a question."""
        return contextlib.nullcontext()


class JournalView(RunView):
    """Prints the journal's lines to stdout."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, entry: events.JournalEntry) -> None:
        with self._lock:
            try:
                sys.stdout.write(f"{entry.line()}\n")
                sys.stdout.flush()
            except OSError:
                output.quiet()  # closed pipe or full disk: keep the run going


class LineView(RunView):
    """Prints a plain line to stderr for each notable event."""

    def __init__(self, planned: StepSource, is_verbose: bool = False) -> None:
        self._lock = threading.Lock()
        self._board = ProgressBoard(planned)
        self._is_verbose = is_verbose

    def __call__(self, entry: events.JournalEntry) -> None:
        with self._lock:
            self._board.add(entry.event, time.monotonic())
            if _is_printed(entry.event) or (self._is_verbose and is_detail_event(entry.event)):
                parts = (
                    _clock(entry.at),
                    clean_words(self._board.label_of(entry.event)),
                    clean_words(describe_event(entry.event)),
                )
                _print_line(text_table.shorten_end("  ".join(part for part in parts if part), LONGEST))


def clean_words(text: str) -> str:
    """Return agent text as one sanitised line of limited length."""
    return text_table.clean_line(text[:_MAX_CHARS])


def is_detail_event(event: events.Event) -> bool:
    """Return whether the event is shown only with --verbose."""
    return isinstance(event, _DETAILS) and not is_in_progress(event)


def _is_printed(event: events.Event) -> bool:
    if isinstance(event, events.StepFinished):
        return event.status != StepStatus.FAILED  # the failure itself was just printed
    return isinstance(event, _PRINTED)


def _print_line(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:  # as above; otherwise Python would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _clock(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
    except ValueError:
        return ""

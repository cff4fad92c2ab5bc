"""Views of a run that need no screen: nothing, the journal's own lines, plain lines."""

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

LONGEST = 500  # columns of a line that stays
_SAID = 2000  # characters; an agent's line can be a megabyte, and nobody reads it here
_WHAT_COMES = (events.RunStarted, events.StepStarted, events.CheckFinished, events.FindingReported, events.Transition)
_DETAILS = (events.AgentActivity, events.UsageRecorded, events.DecisionRequested)
_TOLD = (*_WHAT_COMES, events.DecisionMade, events.NoticeIssued, events.WarningIssued, events.ErrorOccurred)


class RunView:
    """Is called with each entry of the journal, by any thread. This one shows nothing."""

    def __call__(self, entry: events.JournalEntry) -> None:
        pass

    def pause(self) -> AbstractContextManager[None]:
        """The screen is free for a question."""
        return contextlib.nullcontext()


class JournalView(RunView):
    """The journal's lines on stdout."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, entry: events.JournalEntry) -> None:
        with self._lock:
            try:
                sys.stdout.write(f"{entry.line()}\n")
                sys.stdout.flush()
            except OSError:
                output.quiet()  # nobody reads on, or the disk is full: the run is worth more


class LineView(RunView):
    """A plain line on stderr for each event worth telling."""

    def __init__(self, ahead: StepSource, is_verbose: bool = False) -> None:
        self._lock = threading.Lock()
        self._board = ProgressBoard(ahead)
        self._is_verbose = is_verbose

    def __call__(self, entry: events.JournalEntry) -> None:
        with self._lock:
            self._board.hear(entry.event, time.monotonic())
            if _is_told(entry.event) or (self._is_verbose and is_detail_event(entry.event)):
                parts = (
                    _clock(entry.at),
                    clean_words(self._board.label_of(entry.event)),
                    clean_words(describe_event(entry.event)),
                )
                _tell(text_table.shorten_end("  ".join(part for part in parts if part), LONGEST))


def clean_words(text: str) -> str:
    """What somebody said as one harmless line, of a length that a person would read."""
    return text_table.clean_line(text[:_SAID])


def is_detail_event(event: events.Event) -> bool:
    """What only somebody who wants to know all of it is told."""
    return isinstance(event, _DETAILS) and not is_in_progress(event)


def _is_told(event: events.Event) -> bool:
    if isinstance(event, events.StepFinished):
        return event.status != StepStatus.FAILED  # the failure itself has just been told
    return isinstance(event, _TOLD)


def _tell(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:  # as above; without this Python would try again at exit, and fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _clock(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
    except ValueError:
        return ""

"""The journal of a change: one event per line, in local state. Losing it loses history, but no work."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from agentd.domain import clock, events, format_usd


def is_in_progress(event: events.Event) -> bool:
    """Return whether this is the start of an agent action, whose end is reported by another event."""
    return isinstance(event, events.AgentActivity) and event.kind != "text" and event.ok is None


def describe_event(event: events.Event) -> str:
    match event:
        case events.RunStarted(command=command):
            return command
        case events.RunFinished(exit_code=code, message=message):
            return f"ended with exit code {code}{f': {message}' if message else ''}"
        case events.StepStarted():
            return _describe_step_start(event)
        case events.StepFinished(status=status, duration_ms=took, message=message):
            return f"{status} after {format_seconds(took)}{f': {message}' if message else ''}"
        case events.AgentActivity(kind=kind, text=text, ok=ok):
            return text if kind == "text" else f"{_MARKS[ok]} {text}"
        case events.UsageRecorded():
            return _describe_usage(event)
        case events.CheckFinished(name=name, status=status, duration_ms=took):
            return f"check {name} {status.replace('-', ' ')} after {format_seconds(took)}"
        case events.FindingReported(id=id_, severity=severity, title=title, where=where, state=state):
            place = f" ({where})" if where else ""
            return f"{' '.join(word for word in (id_, severity) if word)}, {state}: {title}{place}"
        case events.Transition(from_=origin, to=to, by=by, why=why):
            return f"{origin} → {to} by {by}{f': {why}' if why else ''}"
        case events.DecisionRequested(question=question, options=options):
            return f"asked: {question} ({', '.join(options)})"
        case events.DecisionMade(answer=answer, reason=reason, by=by):
            return f"{by} decided: {answer}{f' ({reason})' if reason else ''}"
        case events.NoticeIssued(message=message):
            return message
        case events.WarningIssued(message=message):
            return f"warning: {message}"
        case events.ErrorOccurred(message=message, retry_in_secs=wait):
            return f"failed: {message}{f'; retrying in {wait:g} s' if wait is not None else ''}"
    return event.type


_MARKS = {True: "✓", False: "✗", None: "…"}


def _describe_step_start(event: events.StepStarted) -> str:
    who = ", ".join(word for word in (event.agent, event.model) if word) or "agentd"
    attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
    round_ = f", round {event.round}" if event.round > 1 else ""
    return f"started: {who}{round_}{attempt}{', session resumed' if event.resumed else ''}"


def _describe_usage(event: events.UsageRecorded) -> str:
    cost = "cost unknown" if event.cost is None else format_usd(event.cost)
    if event.tokens_in is None or event.tokens_out is None:
        return f"no usage reported, {cost}"
    cached = f" ({event.tokens_cached:,} cached)" if event.tokens_cached else ""
    return f"{event.tokens_in:,} tokens in{cached}, {event.tokens_out:,} out, {cost}"


def format_seconds(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


_TAIL = 64 * 1024


class Journal:
    def __init__(self, path: Path, change_id: str, run: str | None) -> None:
        self._path = path
        self._change_id = change_id
        self._run = run

    def append(self, event: events.Event) -> events.JournalEntry:
        """Append an event. The file is locked, so `seq` increases by one across all writers.

        If the journal cannot be written, work continues and `seq` is 0.
        """
        try:
            return self._append(event)
        except OSError:
            return events.JournalEntry(seq=0, at=clock.now_ms(), change_id=self._change_id, run=self._run, event=event)

    def _append(self, event: events.Event) -> events.JournalEntry:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            seq, is_partial = _last_seq(file.fileno())
            entry = events.JournalEntry(
                seq=seq + 1, at=clock.now_ms(), change_id=self._change_id, run=self._run, event=event
            )
            file.write((b"\n" if is_partial else b"") + entry.line().encode() + b"\n")
        return entry

    def since(self, offset: int) -> tuple[list[events.JournalEntry], int]:
        """Return the entries after an offset in the file, and the offset after the last complete line."""
        try:
            with open(self._path, "rb") as file:
                file.seek(offset)
                whole, line_end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return [], offset
        lines = whole.decode("utf-8", "replace").split("\n") if line_end else []
        return [entry for line in lines if (entry := events.parse_entry(line))], offset + len(whole) + len(line_end)

    def backwards(self) -> Iterator[bytes]:
        """Yield complete lines, last one first, reading only as much of the file as needed."""
        try:
            file = open(self._path, "rb")  # noqa: SIM115 - closed by the `with` below
        except OSError:
            return
        with file:
            position = file.seek(0, os.SEEK_END)
            rest = b""
            is_whole = False  # text after the last line end is incomplete
            while position:
                size = min(_TAIL, position)
                position -= size
                first, *lines = (os.pread(file.fileno(), size, position) + rest).split(b"\n")
                for line in reversed(lines):
                    if is_whole and line:
                        yield line
                    is_whole = True
                rest = first
            if is_whole and rest:
                yield rest


def _last_seq(handle: int) -> tuple[int, bool]:
    """Return the number of the last complete entry, and whether the file ends in the middle of a line."""
    size = os.fstat(handle).st_size
    length = _TAIL
    while True:
        start = max(0, size - length)
        tail = os.pread(handle, size - start, start)
        for line in reversed(tail.split(b"\n")):
            if entry := events.parse_entry(line.decode("utf-8", "replace")):
                return entry.seq, not tail.endswith(b"\n")
        if start == 0:
            return 0, bool(tail) and not tail.endswith(b"\n")
        length *= 4

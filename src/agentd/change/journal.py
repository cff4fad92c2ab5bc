"""The journal of a change: one event a line, in the local room. Losing it loses reading matter, never work."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from agentd.domain import clock, events

_TAIL = 64 * 1024


class Journal:
    def __init__(self, path: Path, change_id: str, run: str | None) -> None:
        self._path = path
        self._change_id = change_id
        self._run = run

    def append(self, event: events.Event) -> events.JournalEntry:
        """Numbered under a lock on the file itself: `seq` goes up by one, whoever writes.

        A journal that cannot be written ends no work: then `seq` is 0.
        """
        try:
            return self._append(event)
        except OSError:
            return events.JournalEntry(seq=0, at=clock.now_ms(), change_id=self._change_id, run=self._run, event=event)

    def _append(self, event: events.Event) -> events.JournalEntry:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            seq, torn = _last(file.fileno())
            entry = events.JournalEntry(
                seq=seq + 1, at=clock.now_ms(), change_id=self._change_id, run=self._run, event=event
            )
            file.write((b"\n" if torn else b"") + entry.line().encode() + b"\n")
        return entry

    def since(self, offset: int) -> tuple[list[events.JournalEntry], int]:
        """The entries behind that place in the file, and the place behind the last whole line."""
        try:
            with open(self._path, "rb") as file:
                file.seek(offset)
                whole, line_end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return [], offset
        lines = whole.decode("utf-8", "replace").split("\n") if line_end else []
        return [entry for line in lines if (entry := events.parse_entry(line))], offset + len(whole) + len(line_end)

    def backwards(self) -> Iterator[bytes]:
        """Its whole lines, the last one first; no more of the file is read than is taken."""
        try:
            file = open(self._path, "rb")  # noqa: SIM115 - closed by the `with` below
        except OSError:
            return
        with file:
            place = file.seek(0, os.SEEK_END)
            rest = b""
            is_whole = False  # what is behind the last line end is being written, or torn
            while place:
                size = min(_TAIL, place)
                place -= size
                first, *lines = (os.pread(file.fileno(), size, place) + rest).split(b"\n")
                for line in reversed(lines):
                    if is_whole and line:
                        yield line
                    is_whole = True
                rest = first
            if is_whole and rest:
                yield rest


def _last(handle: int) -> tuple[int, bool]:
    """The last whole entry's number, and whether the file ends in the middle of a line."""
    size = os.fstat(handle).st_size
    reach = _TAIL
    while True:
        start = max(0, size - reach)
        tail = os.pread(handle, size - start, start)
        for line in reversed(tail.split(b"\n")):
            if entry := events.parse_entry(line.decode("utf-8", "replace")):
                return entry.seq, not tail.endswith(b"\n")
        if start == 0:
            return 0, bool(tail) and not tail.endswith(b"\n")
        reach *= 4

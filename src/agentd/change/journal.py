"""The journal of a change: one event a line, in the local room. Losing it loses reading matter, never work."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from agentd import clock, events

_TAIL = 64 * 1024


class Journal:
    def __init__(self, path: Path, change_id: str, run: str | None) -> None:
        self._path = path
        self._change_id = change_id
        self._run = run

    def append(self, event: events.Happened) -> events.Entry:
        """Numbered under a lock on the file itself: `seq` goes up by one, whoever writes."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            seq, torn = _last(file.fileno())
            entry = events.Entry(seq=seq + 1, at=clock.now_ms(), change_id=self._change_id, run=self._run, event=event)
            file.write((b"\n" if torn else b"") + entry.line().encode() + b"\n")
        return entry

    def read(self) -> Iterator[events.Entry]:
        """From the first on; a line torn by a crash is passed over."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    if entry := events.parse(line):
                        yield entry
        except FileNotFoundError:
            return


def _last(handle: int) -> tuple[int, bool]:
    """The last whole entry's number, and whether the file ends in the middle of a line."""
    size = os.fstat(handle).st_size
    reach = _TAIL
    while True:
        start = max(0, size - reach)
        tail = os.pread(handle, size - start, start)
        for line in reversed(tail.split(b"\n")):
            if entry := events.parse(line.decode("utf-8", "replace")):
                return entry.seq, not tail.endswith(b"\n")
        if start == 0:
            return 0, bool(tail) and not tail.endswith(b"\n")
        reach *= 4

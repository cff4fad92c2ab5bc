"""Bytes in and out of a process: lines of any length to be heard, and input that nobody may want to read."""

import os
import time
from collections.abc import Callable
from typing import Literal

Stream = Literal["out", "err"]
LineListener = Callable[[Stream, bytes, int], None]  # a line without its end, and how many bytes of it were left out

CHUNK = 1024 * 1024


class LineSplitter:
    """Bytes into lines, however long: beyond the limit a line's bytes are only counted."""

    def __init__(self, stream: Stream, limit: int, hear: LineListener) -> None:
        self._stream: Stream = stream
        self._limit = limit
        self._hear = hear
        self._head = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes, until: float) -> bool:
        """False: the clock showed `until` before every line was heard, and the rest is lost."""
        first, *others = chunk.split(b"\n")
        self._extend(first)
        if not others:
            return True
        stream, limit, hear, now = self._stream, self._limit, self._hear, time.monotonic
        if now() >= until:
            return False
        self._tell()
        last = others.pop()
        for line in others:
            if now() >= until:  # a look costs less than a tenth of what hearing does
                return False
            if len(line) <= limit:
                hear(stream, line, 0)
            else:
                hear(stream, line[:limit], len(line) - limit)
        self._extend(last)
        return True

    def finish(self) -> None:
        """The last line may have no end."""
        if self._head or self._left_out:
            self._tell()

    def _extend(self, part: bytes) -> None:
        room = self._limit - len(self._head)
        self._head += part[:room]
        self._left_out += max(0, len(part) - room)

    def _tell(self) -> None:
        line, left_out = bytes(self._head), self._left_out
        self._head, self._left_out = bytearray(), 0
        self._hear(self._stream, line, left_out)


class InputFeed:
    """Bytes on their way to a reader that takes them when it likes, or never."""

    def __init__(self, handle: int, data: bytes) -> None:
        self._handle = handle
        self._rest = memoryview(data)

    def add(self, data: bytes) -> None:
        self._rest = memoryview(bytes(self._rest) + data)

    def push(self) -> bool:
        """True: there is nothing more to do, because all is sent or nobody reads."""
        try:
            sent = os.write(self._handle, self._rest[:CHUNK]) if self._rest else 0
        except BlockingIOError:
            return False
        except OSError:
            sent = len(self._rest)
        self._rest = self._rest[sent:]
        return not self._rest

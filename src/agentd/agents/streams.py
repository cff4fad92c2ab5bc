"""Process input and output: lines of any length, and input that may never be read."""

import os
import time
from collections.abc import Callable
from typing import Literal

Stream = Literal["out", "err"]
LineListener = Callable[[Stream, bytes, int], None]  # a line without its newline, and how many bytes were cut off

CHUNK = 1024 * 1024


class LineSplitter:
    """Split bytes into lines. Bytes of a line beyond the limit are only counted."""

    def __init__(self, stream: Stream, limit: int, on_line: LineListener) -> None:
        self._stream: Stream = stream
        self._limit = limit
        self._on_line = on_line
        self._head = bytearray()
        self._cut_off = 0

    def add(self, chunk: bytes, until: float) -> bool:
        """Handle the complete lines. Return False if `until` passed first; the rest is discarded."""
        first, *others = chunk.split(b"\n")
        self._extend(first)
        if not others:
            return True
        stream, limit, on_line, now = self._stream, self._limit, self._on_line, time.monotonic
        if now() >= until:
            return False
        self._emit()
        last = others.pop()
        for line in others:
            if now() >= until:
                return False
            if len(line) <= limit:
                on_line(stream, line, 0)
            else:
                on_line(stream, line[:limit], len(line) - limit)
        self._extend(last)
        return True

    def finish(self) -> None:
        """Emit the last line if it has no newline."""
        if self._head or self._cut_off:
            self._emit()

    def _extend(self, part: bytes) -> None:
        free = self._limit - len(self._head)
        self._head += part[:free]
        self._cut_off += max(0, len(part) - free)

    def _emit(self) -> None:
        line, cut_off = bytes(self._head), self._cut_off
        self._head, self._cut_off = bytearray(), 0
        self._on_line(self._stream, line, cut_off)


class InputFeed:
    """Buffered bytes for a reader that may read them late or never."""

    def __init__(self, handle: int, data: bytes) -> None:
        self._handle = handle
        self._rest = memoryview(data)

    def add(self, data: bytes) -> None:
        self._rest = memoryview(bytes(self._rest) + data)

    def push(self) -> bool:
        """Write as much as possible. Return True when everything is sent or the reader is gone."""
        try:
            sent = os.write(self._handle, self._rest[:CHUNK]) if self._rest else 0
        except BlockingIOError:
            return False
        except OSError:
            sent = len(self._rest)
        self._rest = self._rest[sent:]
        return not self._rest

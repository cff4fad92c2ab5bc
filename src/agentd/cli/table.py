"""Aligned columns that know how wide text is, and fit themselves into a terminal."""

import re
from collections.abc import Sequence
from unicodedata import combining, east_asian_width

# What a terminal obeys, and what makes text read in another order than it stands.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def columns(text: str) -> int:
    """Cells on a terminal: colour takes none, a Chinese character two."""
    plain = _ANSI.sub("", text) if "\x1b" in text else text
    if plain.isascii():
        return len(plain)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in plain)


def shorten(text: str, width: int) -> str:
    """Running text as one line of at most that width."""
    return shorten_end(clean(text), width)


def clean(text: str) -> str:
    """One line without anything that a terminal would obey."""
    return _CONTROL.sub("�", " ".join(text.split()))


def harmless(line: str) -> str:
    """The line as it is, without anything that a terminal would obey."""
    return _CONTROL.sub("�", line.expandtabs())


def shorten_end(text: str, width: int) -> str:
    """The line cut at the end with an ellipsis, its spaces kept."""
    if columns(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += columns(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def align(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows as lines, each column as wide as its widest cell, nothing behind the last."""
    padded = [_pad(column) for column in zip(*rows, strict=True)]
    return [gap.join(cells).rstrip() for cells in zip(*padded, strict=True)]


def bar(part: float, whole: float, room: int) -> str:
    """As long as its part of the room, to half a column; what is there at all is seen."""
    halves = max(round(2 * room * part / whole), 1) if part > 0 else 0
    return "━" * (halves // 2) + "╸" * (halves % 2)


def total(rows: Sequence[Sequence[str]], gap: int = 2) -> int:
    """How wide these rows would be."""
    room = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return sum(room) + gap * (len(room) - 1)


def _pad(column: Sequence[str]) -> list[str]:
    joined = "".join(column)
    if joined.isascii() and "\x1b" not in joined:  # thousands of rows are mostly like that
        room = max(map(len, column))
        return [cell.ljust(room) for cell in column]
    room = max(map(columns, column))
    return [cell + " " * (room - columns(cell)) for cell in column]

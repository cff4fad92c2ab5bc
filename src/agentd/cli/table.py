"""Aligned columns that know how wide text is, and fit themselves into a terminal."""

import re
from collections.abc import Iterable, Sequence
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


def wrapped(text: str, width: int, hang: str = "") -> list[str]:
    """Running text in lines of at most that width, all but the first indented; a path stays whole, on its own line."""
    return filled(text.split(), width, hang)


def filled(pieces: Iterable[str], width: int, hang: str = "") -> list[str]:
    """The same with pieces that stay together."""
    lines: list[str] = []
    line = ""
    for piece in pieces:
        for part in _parts(piece, max(width - len(hang), 1)):
            if line and columns(f"{line} {part}") > width:
                lines.append(line)
                line = hang + part.lstrip(" ")
            else:
                line = f"{line} {part}" if line else part
    return [*lines, line] if line else lines


def listed(facts: Sequence[str], width: int) -> list[str]:
    """Facts with commas between them, each in one piece."""
    return filled([*(f"{fact}," for fact in facts[:-1]), *facts[-1:]], width)


def _parts(word: str, room: int) -> list[str]:
    """A script without spaces is cut where the line ends; a word of letters is not."""
    if columns(word) <= room or columns(word) == len(word):
        return [word]
    parts, used = [""], 0
    for char in word:
        used += columns(char)
        if used > room:
            parts.append("")
            used = columns(char)
        parts[-1] += char
    return parts


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

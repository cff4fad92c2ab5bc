"""Aligned columns that know how wide text is, and fit themselves into a terminal."""

import re
from collections.abc import Iterable, Sequence
from unicodedata import combining, east_asian_width

# What a terminal obeys, and what makes text read in another order than it stands.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def display_width(text: str) -> int:
    """Cells on a terminal: colour takes none, a Chinese character two."""
    plain = _ANSI.sub("", text) if "\x1b" in text else text
    if plain.isascii():
        return len(plain)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in plain)


def shorten_line(text: str, width: int) -> str:
    """Running text as one line of at most that width."""
    return shorten_end(clean_line(text), width)


def clean_line(text: str) -> str:
    """One line without anything that a terminal would obey."""
    return _CONTROL.sub("�", " ".join(text.split()))


def strip_control(line: str) -> str:
    """The line as it is, without anything that a terminal would obey."""
    return _CONTROL.sub("�", line.expandtabs())


def shorten_end(text: str, width: int) -> str:
    """The line cut at the end with an ellipsis, its spaces kept."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += display_width(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def wrap_text(text: str, width: int, hang: str = "") -> list[str]:
    """Running text in lines of at most that width, all but the first indented; a path stays whole, on its own line."""
    return fill_pieces(text.split(), width, hang)


def fill_pieces(pieces: Iterable[str], width: int, hang: str = "") -> list[str]:
    """The same with pieces that stay together."""
    lines: list[str] = []
    line = ""
    for piece in pieces:
        for part in _parts(piece, max(width - len(hang), 1)):
            if line and display_width(f"{line} {part}") > width:
                lines.append(line)
                line = hang + part.lstrip(" ")
            else:
                line = f"{line} {part}" if line else part
    return [*lines, line] if line else lines


def join_facts(facts: Sequence[str], width: int) -> list[str]:
    """Facts with commas between them, each in one piece."""
    return fill_pieces([*(f"{fact}," for fact in facts[:-1]), *facts[-1:]], width)


def _parts(word: str, room: int) -> list[str]:
    """A script without spaces is cut where the line ends; a word of letters is not."""
    if display_width(word) <= room or display_width(word) == len(word):
        return [word]
    parts, used = [""], 0
    for char in word:
        used += display_width(char)
        if used > room:
            parts.append("")
            used = display_width(char)
        parts[-1] += char
    return parts


def align_rows(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows as lines, each column as wide as its widest cell, nothing behind the last."""
    padded = [_pad(column) for column in zip(*rows, strict=True)]
    return [gap.join(cells).rstrip() for cells in zip(*padded, strict=True)]


def render_bar(part: float, whole: float, room: int) -> str:
    """As long as its part of the room, to half a column; what is there at all is seen."""
    halves = max(round(2 * room * part / whole), 1) if part > 0 else 0
    return "━" * (halves // 2) + "╸" * (halves % 2)


def rows_width(rows: Sequence[Sequence[str]], gap: int = 2) -> int:
    """How wide these rows would be."""
    room = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return sum(room) + gap * (len(room) - 1)


def _pad(column: Sequence[str]) -> list[str]:
    joined = "".join(column)
    if joined.isascii() and "\x1b" not in joined:  # thousands of rows are mostly like that
        room = max(map(len, column))
        return [cell.ljust(room) for cell in column]
    room = max(map(display_width, column))
    return [cell + " " * (room - display_width(cell)) for cell in column]

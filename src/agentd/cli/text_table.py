"""Text layout for terminals: display width, wrapping and aligned columns.

Does not use rich: its tables would nearly double what `agentd list` imports, and so its start time.
"""

import re
from collections.abc import Iterable, Sequence
from unicodedata import combining, east_asian_width

# Control characters and bidirectional overrides.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def display_width(text: str) -> int:
    """Return the number of terminal cells: none for colour codes, two for wide characters."""
    plain = _ANSI.sub("", text) if "\x1b" in text else text
    if plain.isascii():
        return len(plain)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in plain)


def shorten_line(text: str, width: int) -> str:
    """Collapse whitespace and shorten to one line of at most this width."""
    return shorten_end(clean_line(text), width)


def clean_line(text: str) -> str:
    """Collapse whitespace and replace control characters."""
    return _CONTROL.sub("�", " ".join(text.split()))


def strip_control(line: str) -> str:
    """Replace control characters, keeping spaces."""
    return _CONTROL.sub("�", line.expandtabs())


def shorten_end(text: str, width: int) -> str:
    """Cut the end with an ellipsis, keeping spaces."""
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
    """Wrap text to the width, indenting all lines but the first; paths are never split."""
    return fill_pieces(text.split(), width, hang)


def fill_pieces(pieces: Iterable[str], width: int, hang: str = "") -> list[str]:
    """Fill lines with pieces that must not be split."""
    lines: list[str] = []
    line = ""
    for piece in pieces:
        for part in _split_wide(piece, max(width - len(hang), 1)):
            if line and display_width(f"{line} {part}") > width:
                lines.append(line)
                line = hang + part.lstrip(" ")
            else:
                line = f"{line} {part}" if line else part
    return [*lines, line] if line else lines


def join_facts(facts: Sequence[str], width: int) -> list[str]:
    """Join facts with commas, never splitting one across lines."""
    return fill_pieces([*(f"{fact}," for fact in facts[:-1]), *facts[-1:]], width)


def _split_wide(word: str, width: int) -> list[str]:
    """Split text in a script without spaces where the line ends; keep other words whole."""
    if display_width(word) <= width or display_width(word) == len(word):
        return [word]
    parts, used = [""], 0
    for char in word:
        used += display_width(char)
        if used > width:
            parts.append("")
            used = display_width(char)
        parts[-1] += char
    return parts


def align_rows(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Return rows as lines with aligned columns, without trailing spaces."""
    padded = [_pad(column) for column in zip(*rows, strict=True)]
    return [gap.join(cells).rstrip() for cells in zip(*padded, strict=True)]


def render_bar(part: float, whole: float, width: int) -> str:
    """Return a bar of the given share, to half a column; at least half a column if the part is not zero."""
    halves = max(round(2 * width * part / whole), 1) if part > 0 else 0
    return "━" * (halves // 2) + "╸" * (halves % 2)


def rows_width(rows: Sequence[Sequence[str]], gap: int = 2) -> int:
    """Return the width of these rows when aligned."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + gap * (len(widths) - 1)


def _pad(column: Sequence[str]) -> list[str]:
    joined = "".join(column)
    if joined.isascii() and "\x1b" not in joined:  # fast path for long listings
        width = max(map(len, column))
        return [cell.ljust(width) for cell in column]
    width = max(map(display_width, column))
    return [cell + " " * (width - display_width(cell)) for cell in column]

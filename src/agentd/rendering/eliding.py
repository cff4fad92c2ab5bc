"""A comparison made short: what changed, with a few lines around it."""

from collections.abc import Iterable, Iterator

from agentd.rendering import words
from agentd.rendering.words import Kind, Piece

_AROUND = 3  # lines that stay beside a change


def html(pieces: Iterable[Piece]) -> str:
    """As `words.html`; long parts that are the same are only counted."""
    pieces = list(pieces)
    return "".join(_part(piece, number == 0, number == len(pieces) - 1) for number, piece in enumerate(pieces))


def _part(piece: Piece, is_first: bool, is_last: bool) -> str:
    lines = piece.text.split("\n")
    if piece.kind is not Kind.SAME or len(lines) <= 2 * _AROUND + 2:
        return words.html([piece])
    head = lines[:0] if is_first else lines[: _AROUND + 1]
    tail = lines[:0] if is_last else lines[-_AROUND - 1 :]
    left = len(lines) - len(head) - len(tail)
    return "".join(_shown(head, f'<span class="elided">{left} lines as before</span>', tail))


def _shown(head: list[str], between: str, tail: list[str]) -> Iterator[str]:
    if head:
        yield words.html([Piece(Kind.SAME, "\n".join(head) + "\n")])
    yield between
    if tail:
        yield words.html([Piece(Kind.SAME, "\n".join(tail))])

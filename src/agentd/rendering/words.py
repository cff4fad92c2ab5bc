"""What changed between two texts: line by line, and word by word where lines changed. White space is not a word."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from agentd.rendering import matching, shown

_WORD = re.compile(r"(\w+|[^\w\s])")


class Kind(StrEnum):
    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    SPACING = "spacing"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the new text, or of the old one if it was removed; `before` is the blank that spacing replaced."""

    kind: Kind
    text: str
    before: str = ""


def diff(old: str, new: str) -> list[Piece]:
    """All pieces but the removed ones are the new text, all but the added ones the old."""
    before, after = _units(old), _units(new)
    return _joined(_calmed(_pieces(before, after, _pairs(before, after))))


def html(pieces: Iterable[Piece]) -> str:
    """To stand where white space is kept. A change of white space alone is there to be found, not to be seen."""
    return "".join(_marked(piece) for piece in pieces)


def _marked(piece: Piece) -> str:
    text = shown.markup(shown.readable(piece.text))
    if piece.kind is Kind.ADDED:
        return f"<ins>{text}</ins>"
    if piece.kind is Kind.REMOVED:
        return f"<del>{text}</del>"
    return f'<span class="spacing">{text}</span>' if piece.kind is Kind.SPACING else text


# ---- which words are the same


class _Units(NamedTuple):
    """Words, and the white space before each; one gap more for what is at the end."""

    gaps: list[str]
    words: list[str]

    def text(self, start: int, end: int) -> str:
        return "".join(chain.from_iterable(zip(self.gaps[start:end], self.words[start:end], strict=True)))

    def line(self, start: int, end: int) -> str:
        """As it is compared."""
        return " ".join(self.words[start:end])


def _units(text: str) -> _Units:
    parts = _WORD.split(text)
    return _Units(parts[::2], parts[1::2])


def _pairs(old: _Units, new: _Units) -> Iterator[tuple[int, int]]:
    """Places of equal words. What is equal at the ends comes first, so that white space alone never moves a word."""
    shorter = min(len(old.words), len(new.words))
    start = next((place for place in range(shorter) if old.words[place] != new.words[place]), shorter)
    left = shorter - start
    end = next((place for place in range(left) if old.words[-1 - place] != new.words[-1 - place]), left)
    yield from ((place, place) for place in range(start))
    yield from _by_line(old, new, start, end)
    yield from ((len(old.words) - place, len(new.words) - place) for place in range(end, 0, -1))


def _by_line(old: _Units, new: _Units, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Equal lines as they are, and between them word by word."""
    stop, stop_new = len(old.words) - end, len(new.words) - end
    lines, new_lines = _lines(old, start, stop), _lines(new, start, stop_new)
    same = matching.pairs([old.line(*line) for line in lines], [new.line(*line) for line in new_lines])
    place = place_new = start
    for (first, last), (first_new, last_new) in (
        *((lines[one], new_lines[other]) for one, other in same),
        ((stop, stop), (stop_new, stop_new)),
    ):
        for one, other in matching.pairs(old.words[place:first], new.words[place_new:first_new]):
            yield place + one, place_new + other
        yield from zip(range(first, last), range(first_new, last_new), strict=True)
        place, place_new = last, last_new


def _lines(units: _Units, start: int, end: int) -> list[tuple[int, int]]:
    """Where the lines begin and end, in words."""
    breaks = [place for place in range(start + 1, end) if "\n" in units.gaps[place]]
    return list(pairwise([start, *breaks, end])) if start < end else []


# ---- pieces


def _pieces(old: _Units, new: _Units, pairs: Iterable[tuple[int, int]]) -> Iterator[Piece]:
    place = place_new = 0
    for first, other in (*pairs, (len(old.words), len(new.words))):
        if place < first or place_new < other:
            yield from _replaced(old.text(place, first), new.text(place_new, other))
        if old.gaps[first] == new.gaps[other]:
            yield Piece(Kind.SAME, old.gaps[first])
        else:
            yield Piece(Kind.SPACING, new.gaps[other], old.gaps[first])
        yield from (Piece(Kind.SAME, word) for word in old.words[first : first + 1])
        place, place_new = first + 1, other + 1


def _replaced(old: str, new: str) -> Iterator[Piece]:
    if old:
        yield Piece(Kind.REMOVED, old)
    if new:
        yield Piece(Kind.ADDED, new)


def _calmed(pieces: Iterable[Piece]) -> list[Piece]:
    """A few equal words between larger changes are chance; the whole reads better as one change. Not so a line."""
    runs = list(_runs(pieces))
    calm: list[Piece] = []
    for number, (is_change, run) in enumerate(runs):
        is_between = 0 < number < len(runs) - 1 and not is_change
        if is_between and _is_chance(run, min(_size(runs[number - 1][1]), _size(runs[number + 1][1]))):
            calm += _replaced("".join(_before(one) for one in run), "".join(one.text for one in run))
        else:
            calm += run
    return calm


def _is_chance(same: Iterable[Piece], size: int) -> bool:
    text = "".join(piece.text for piece in same)
    return text.count("\n") < 2 and len(text.strip()) <= size


def _before(piece: Piece) -> str:
    return piece.before if piece.kind is Kind.SPACING else piece.text


def _runs(pieces: Iterable[Piece]) -> Iterator[tuple[bool, list[Piece]]]:
    """Changes and what is equal, in turn; spacing counts as equal."""
    run: list[Piece] = []
    was_change = False
    for piece in pieces:
        is_change = piece.kind in (Kind.ADDED, Kind.REMOVED)
        if run and is_change != was_change:
            yield was_change, run
            run = []
        was_change = is_change
        run.append(piece)
    if run:
        yield was_change, run


def _size(change: Iterable[Piece]) -> int:
    """Of the larger side."""
    sizes = {Kind.ADDED: 0, Kind.REMOVED: 0}
    for piece in change:
        sizes[piece.kind] += len(piece.text)
    return max(sizes.values())


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Neighbours of one kind as one piece; in a change what was removed comes first."""
    done: list[Piece] = []
    for is_change, run in _runs(piece for piece in pieces if piece.text or piece.before):
        if is_change:
            old = "".join(piece.text for piece in run if piece.kind is Kind.REMOVED)
            done += _replaced(old, "".join(piece.text for piece in run if piece.kind is Kind.ADDED))
            continue
        for kind, group in groupby(run, lambda piece: piece.kind):
            some = list(group)
            done += [Piece(kind, "".join(piece.text for piece in some))] if kind is Kind.SAME else some
    return done

"""What changed between two texts: line by line, and word by word within changed lines. White space is not a word."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from agentd.web.markup import svg

_CELLS = 10_000  # of the table for one gap
_FEW = 50  # cells; below this, looking for anchors costs more
_DEPTH = 12  # nested levels of anchors


class _MatchGap(NamedTuple):
    """A part of both lists that is not compared yet."""

    old: int
    old_end: int
    new: int
    new_end: int
    depth: int


def match_pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return index pairs of equal items, increasing on both sides."""
    found: list[tuple[int, int]] = []
    open_gaps = [_MatchGap(0, len(old), 0, len(new), 0)]
    while open_gaps:
        gap = _trimmed(old, new, open_gaps.pop(), found)
        if gap.old == gap.old_end or gap.new == gap.new_end:
            continue
        cells = (gap.old_end - gap.old) * (gap.new_end - gap.new)
        anchors = _anchors(old, new, gap) if cells > _FEW and gap.depth < _DEPTH else []
        if anchors:
            found += anchors
            open_gaps += _between(gap, anchors)
        elif cells <= _CELLS:
            found += _longest(old, new, gap)
    return sorted(found)


def _trimmed(old: Sequence[str], new: Sequence[str], gap: _MatchGap, found: list[tuple[int, int]]) -> _MatchGap:
    """Return the gap without equal items at its ends, which are added to `found`."""
    first, end, other, other_end, depth = gap
    while first < end and other < other_end and old[first] == new[other]:
        found.append((first, other))
        first, other = first + 1, other + 1
    while first < end and other < other_end and old[end - 1] == new[other_end - 1]:
        end, other_end = end - 1, other_end - 1
        found.append((end, other_end))
    return _MatchGap(first, end, other, other_end, depth)


def _anchors(old: Sequence[str], new: Sequence[str], gap: _MatchGap) -> list[tuple[int, int]]:
    """Return items that occur exactly once on both sides: the longest selection in the same order."""
    counts = Counter(old[gap.old : gap.old_end])
    counts_new = Counter(new[gap.new : gap.new_end])
    where = {new[place]: place for place in range(gap.new, gap.new_end) if counts_new[new[place]] == 1}
    both = [
        (place, where[old[place]])
        for place in range(gap.old, gap.old_end)
        if counts[old[place]] == 1 and old[place] in where
    ]
    return _rising(both)


def _rising(both: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence that also increases on the second side."""
    tails: list[int] = []  # the smallest end of a run of each length
    ends: list[int] = []  # the index of the pair at that end
    before: list[int] = []
    for number, (_, place) in enumerate(both):
        length = bisect_left(tails, place)
        tails[length : length + 1] = [place]
        ends[length : length + 1] = [number]
        before.append(ends[length - 1] if length else -1)
    run = []
    number = ends[-1] if ends else -1
    while number >= 0:
        run.append(both[number])
        number = before[number]
    return run[::-1]


def _between(gap: _MatchGap, anchors: list[tuple[int, int]]) -> Iterator[_MatchGap]:
    first, other = gap.old, gap.new
    for place, place_new in (*anchors, (gap.old_end, gap.new_end)):
        yield _MatchGap(first, place, other, place_new, gap.depth + 1)
        first, other = place + 1, place_new + 1


def _longest(old: Sequence[str], new: Sequence[str], gap: _MatchGap) -> Iterator[tuple[int, int]]:
    """Yield the longest common subsequence of a small gap, by dynamic programming from its end."""
    rows, columns = gap.old_end - gap.old, gap.new_end - gap.new
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        here, below, word = table[row], table[row + 1], old[gap.old + row]
        for column in range(columns - 1, -1, -1):
            if word == new[gap.new + column]:
                here[column] = below[column + 1] + 1
            else:
                here[column] = max(below[column], here[column + 1])
    row = column = 0
    while row < rows and column < columns:
        if old[gap.old + row] == new[gap.new + column]:
            yield gap.old + row, gap.new + column
            row, column = row + 1, column + 1
        elif table[row + 1][column] >= table[row][column + 1]:
            row += 1
        else:
            column += 1


_WORD = re.compile(r"(\w+|[^\w\s])")


class DiffPieceKind(StrEnum):
    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    SPACING = "spacing"


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A part of the new text, or of the old one if removed; `before` is the white space that spacing replaced."""

    kind: DiffPieceKind
    text: str
    before: str = ""


def diff_words(old: str, new: str) -> list[DiffPiece]:
    """Return pieces: all except the removed ones form the new text, all except the added ones the old text."""
    before, after = _units(old), _units(new)
    return _joined(_calmed(_pieces(before, after, _pairs(before, after))))


def diff_html(pieces: Iterable[DiffPiece]) -> str:
    """Render for an element that keeps white space. A change of white space alone is marked but not highlighted."""
    return "".join(_marked(piece) for piece in pieces)


def _marked(piece: DiffPiece) -> str:
    text = svg.visible_html(svg.readable_text(piece.text))
    if piece.kind is DiffPieceKind.ADDED:
        return f"<ins>{text}</ins>"
    if piece.kind is DiffPieceKind.REMOVED:
        return f"<del>{text}</del>"
    return f'<span class="spacing">{text}</span>' if piece.kind is DiffPieceKind.SPACING else text


# ---- matching words


class _WordUnits(NamedTuple):
    """Words and the white space before each, plus the white space at the end."""

    gaps: list[str]
    words: list[str]

    def text(self, start: int, end: int) -> str:
        return "".join(chain.from_iterable(zip(self.gaps[start:end], self.words[start:end], strict=True)))

    def line(self, start: int, end: int) -> str:
        """Return the line as it is compared."""
        return " ".join(self.words[start:end])


def _units(text: str) -> _WordUnits:
    parts = _WORD.split(text)
    return _WordUnits(parts[::2], parts[1::2])


def _pairs(old: _WordUnits, new: _WordUnits) -> Iterator[tuple[int, int]]:
    """Yield index pairs of equal words. Common ends come first, so a change of white space alone never moves a word."""
    shorter = min(len(old.words), len(new.words))
    start = next((place for place in range(shorter) if old.words[place] != new.words[place]), shorter)
    left = shorter - start
    end = next((place for place in range(left) if old.words[-1 - place] != new.words[-1 - place]), left)
    yield from ((place, place) for place in range(start))
    yield from _by_line(old, new, start, end)
    yield from ((len(old.words) - place, len(new.words) - place) for place in range(end, 0, -1))


def _by_line(old: _WordUnits, new: _WordUnits, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Match equal lines, and the words between them."""
    stop, stop_new = len(old.words) - end, len(new.words) - end
    lines, new_lines = _lines(old, start, stop), _lines(new, start, stop_new)
    same = match_pairs([old.line(*line) for line in lines], [new.line(*line) for line in new_lines])
    place = place_new = start
    for (first, last), (first_new, last_new) in (
        *((lines[one], new_lines[other]) for one, other in same),
        ((stop, stop), (stop_new, stop_new)),
    ):
        for one, other in match_pairs(old.words[place:first], new.words[place_new:first_new]):
            yield place + one, place_new + other
        yield from zip(range(first, last), range(first_new, last_new), strict=True)
        place, place_new = last, last_new


def _lines(units: _WordUnits, start: int, end: int) -> list[tuple[int, int]]:
    """Return where the lines start and end, as word indexes."""
    breaks = [place for place in range(start + 1, end) if "\n" in units.gaps[place]]
    return list(pairwise([start, *breaks, end])) if start < end else []


# ---- pieces


def _pieces(old: _WordUnits, new: _WordUnits, pairs: Iterable[tuple[int, int]]) -> Iterator[DiffPiece]:
    place = place_new = 0
    for first, other in (*pairs, (len(old.words), len(new.words))):
        if place < first or place_new < other:
            yield from _replaced(old.text(place, first), new.text(place_new, other))
        if old.gaps[first] == new.gaps[other]:
            yield DiffPiece(DiffPieceKind.SAME, old.gaps[first])
        else:
            yield DiffPiece(DiffPieceKind.SPACING, new.gaps[other], old.gaps[first])
        yield from (DiffPiece(DiffPieceKind.SAME, word) for word in old.words[first : first + 1])
        place, place_new = first + 1, other + 1


def _replaced(old: str, new: str) -> Iterator[DiffPiece]:
    if old:
        yield DiffPiece(DiffPieceKind.REMOVED, old)
    if new:
        yield DiffPiece(DiffPieceKind.ADDED, new)


def _calmed(pieces: Iterable[DiffPiece]) -> list[DiffPiece]:
    """Merge a few equal words between larger changes into one change, as they match by chance; keep whole lines."""
    runs = list(_runs(pieces))
    calm: list[DiffPiece] = []
    for number, (is_change, run) in enumerate(runs):
        is_between = 0 < number < len(runs) - 1 and not is_change
        if is_between and _is_chance(run, min(_size(runs[number - 1][1]), _size(runs[number + 1][1]))):
            calm += _replaced("".join(_before(one) for one in run), "".join(one.text for one in run))
        else:
            calm += run
    return calm


def _is_chance(same: Iterable[DiffPiece], size: int) -> bool:
    text = "".join(piece.text for piece in same)
    return text.count("\n") < 2 and len(text.strip()) <= size


def _before(piece: DiffPiece) -> str:
    return piece.before if piece.kind is DiffPieceKind.SPACING else piece.text


def _runs(pieces: Iterable[DiffPiece]) -> Iterator[tuple[bool, list[DiffPiece]]]:
    """Yield changed and equal pieces in alternating runs; spacing counts as equal."""
    run: list[DiffPiece] = []
    was_change = False
    for piece in pieces:
        is_change = piece.kind in (DiffPieceKind.ADDED, DiffPieceKind.REMOVED)
        if run and is_change != was_change:
            yield was_change, run
            run = []
        was_change = is_change
        run.append(piece)
    if run:
        yield was_change, run


def _size(change: Iterable[DiffPiece]) -> int:
    """Return the size of the larger side."""
    sizes = {DiffPieceKind.ADDED: 0, DiffPieceKind.REMOVED: 0}
    for piece in change:
        sizes[piece.kind] += len(piece.text)
    return max(sizes.values())


def _joined(pieces: Iterable[DiffPiece]) -> list[DiffPiece]:
    """Merge neighbours of the same kind; within a change, removed text comes first."""
    done: list[DiffPiece] = []
    for is_change, run in _runs(piece for piece in pieces if piece.text or piece.before):
        if is_change:
            old = "".join(piece.text for piece in run if piece.kind is DiffPieceKind.REMOVED)
            done += _replaced(old, "".join(piece.text for piece in run if piece.kind is DiffPieceKind.ADDED))
            continue
        for kind, group in groupby(run, lambda piece: piece.kind):
            some = list(group)
            done += [DiffPiece(kind, "".join(piece.text for piece in some))] if kind is DiffPieceKind.SAME else some
    return done


_AROUND = 3  # context lines kept next to a change


def elided_html(pieces: Iterable[DiffPiece]) -> str:
    """Render like `diff_html`, but only count lines in long unchanged parts."""
    pieces = list(pieces)
    return "".join(_elided_part(piece, number == 0, number == len(pieces) - 1) for number, piece in enumerate(pieces))


def _elided_part(piece: DiffPiece, is_first: bool, is_last: bool) -> str:
    lines = piece.text.split("\n")
    if piece.kind is not DiffPieceKind.SAME or len(lines) <= 2 * _AROUND + 2:
        return diff_html([piece])
    head = lines[:0] if is_first else lines[: _AROUND + 1]
    tail = lines[:0] if is_last else lines[-_AROUND - 1 :]
    left = len(lines) - len(head) - len(tail)
    return "".join(_elided_text(head, f'<span class="elided">{left} lines as before</span>', tail))


def _elided_text(head: list[str], between: str, tail: list[str]) -> Iterator[str]:
    if head:
        yield diff_html([DiffPiece(DiffPieceKind.SAME, "\n".join(head) + "\n")])
    yield between
    if tail:
        yield diff_html([DiffPiece(DiffPieceKind.SAME, "\n".join(tail))])

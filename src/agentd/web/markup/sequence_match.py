"""What two lists have in common, in order: anchors that stand once on both sides, and small gaps compared in full.

Bounded for any input: a gap without anchors that is too large to compare counts as replaced.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_CELLS = 10_000  # of the table for one gap
_FEW = 50  # so small that looking for anchors costs more
_DEPTH = 12  # anchors within gaps between anchors


class _MatchGap(NamedTuple):
    """A part of both lists that is still to be compared."""

    old: int
    old_end: int
    new: int
    new_end: int
    depth: int


def match_pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of equal things, rising on both sides."""
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
    """The gap without what is equal at its ends."""
    first, end, other, other_end, depth = gap
    while first < end and other < other_end and old[first] == new[other]:
        found.append((first, other))
        first, other = first + 1, other + 1
    while first < end and other < other_end and old[end - 1] == new[other_end - 1]:
        end, other_end = end - 1, other_end - 1
        found.append((end, other_end))
    return _MatchGap(first, end, other, other_end, depth)


def _anchors(old: Sequence[str], new: Sequence[str], gap: _MatchGap) -> list[tuple[int, int]]:
    """What stands exactly once on both sides; of these the most that are in the same order."""
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
    """The longest run that rises on the second side too."""
    tails: list[int] = []  # the smallest end of a run of each length
    ends: list[int] = []  # and which pair that is
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
    """The longest common part of a small gap, by the usual table, filled from its end."""
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

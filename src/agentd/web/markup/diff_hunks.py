"""The diff of one file as numbered lines, and the words that changed within a line (pure)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

from agentd.web.markup import svg, word_diff

LINES = 1500  # shown per file
_LENGTH = 1000  # characters shown per line
_COMPARED = 300  # characters; words of longer lines are not compared
_PAIRS = 40  # lines per change; longer changes are not compared
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?([^\n]*)")


class DiffLineKind(StrEnum):
    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    ASIDE = "aside"  # a message from git, such as "No newline at end of file"


_KINDS = {b" ": DiffLineKind.SAME, b"+": DiffLineKind.ADDED, b"-": DiffLineKind.REMOVED, b"\\": DiffLineKind.ASIDE}


@dataclass(frozen=True, slots=True)
class DiffLinePart:
    text: str
    is_changed: bool


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`parts` repeat the text if only some words of the line changed."""

    kind: DiffLineKind
    old: int | None
    new: int | None
    text: str
    parts: tuple[DiffLinePart, ...] = ()


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """`heading`: the enclosing function, as git reports it."""

    heading: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class DiffHunks:
    hunks: tuple[DiffHunk, ...]
    added: int
    removed: int
    left_out: int
    """Lines behind the last one that is shown."""


def read_hunks(piece: bytes, most: int = LINES) -> DiffHunks:
    """Read the first lines of a diff; count all of them."""
    hunks: list[DiffHunk] = []
    counts = dict.fromkeys(DiffLineKind, 0)
    left_out = 0
    for heading, lines in _hunks(piece):
        for line in lines:
            counts[line.kind] += 1
        some = lines[:most]
        most -= len(some)
        left_out += len(lines) - len(some)
        if some:
            hunks.append(DiffHunk(heading, tuple(_emphasised(some))))
    return DiffHunks(tuple(hunks), counts[DiffLineKind.ADDED], counts[DiffLineKind.REMOVED], left_out)


def _hunks(piece: bytes) -> Iterator[tuple[str, list[DiffLine]]]:
    """Split by the line counts in the hunk headers; what follows may be the header of another piece of the file."""
    rows = iter(piece.split(b"\n"))
    row = next(rows, None)
    while row is not None:
        head = _HUNK.fullmatch(row)
        row = next(rows, None)
        if head is None:
            continue
        old, new = int(head[1]), int(head[3])
        ends = old + int(head[2] or 1), new + int(head[4] or 1)
        lines: list[DiffLine] = []
        while row is not None and ((old, new) != ends or row.startswith(b"\\")):
            kind = _KINDS.get(row[:1], DiffLineKind.ASIDE)
            lines.append(_line(kind, old, new, row[1:]))
            old += kind in (DiffLineKind.SAME, DiffLineKind.REMOVED)
            new += kind in (DiffLineKind.SAME, DiffLineKind.ADDED)
            row = next(rows, None)
        yield _text(head[5]), lines


def _line(kind: DiffLineKind, old: int, new: int, raw: bytes) -> DiffLine:
    has_old, has_new = (
        kind in (DiffLineKind.SAME, DiffLineKind.REMOVED),
        kind in (DiffLineKind.SAME, DiffLineKind.ADDED),
    )
    return DiffLine(kind, old if has_old else None, new if has_new else None, _text(raw))


def _text(raw: bytes) -> str:
    """Write invisible characters out, so no line reads differently from how it runs."""
    text = raw[: 4 * _LENGTH].removesuffix(b"\r").decode("utf-8", "replace")
    return svg.visible_plain(text[:_LENGTH]) + ("…" if len(text) > _LENGTH else "")


# ---- within a line


def _emphasised(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Compare removed lines with the added lines that replace them, pairwise, if both are equally many."""
    groups = [(kind, list(some)) for kind, some in groupby(lines, lambda line: line.kind)]
    after: list[DiffLine] = []
    for number, (kind, some) in enumerate(groups):
        following = groups[number + 1] if number + 1 < len(groups) else (DiffLineKind.ASIDE, [])
        is_pair = (kind, following[0]) == (DiffLineKind.REMOVED, DiffLineKind.ADDED) and len(some) == len(
            following[1]
        ) <= _PAIRS
        if after:
            yield from after
            after = []
        elif is_pair:
            pairs = [_compared(*pair) for pair in zip(some, following[1], strict=True)]
            yield from (old for old, _ in pairs)
            after = [new for _, new in pairs]
        else:
            yield from some


def _compared(old: DiffLine, new: DiffLine) -> tuple[DiffLine, DiffLine]:
    if max(len(old.text), len(new.text)) > _COMPARED:
        return old, new
    pieces = word_diff.diff_words(old.text, new.text)
    if not any(one.kind is word_diff.DiffPieceKind.SAME and one.text.strip() for one in pieces):
        return old, new
    before = [
        DiffLinePart(one.before or one.text, one.kind is not word_diff.DiffPieceKind.SAME)
        for one in pieces
        if _is_old(one)
    ]
    after = [
        DiffLinePart(one.text, one.kind is not word_diff.DiffPieceKind.SAME)
        for one in pieces
        if one.kind is not word_diff.DiffPieceKind.REMOVED
    ]
    return replace(old, parts=_there(before)), replace(new, parts=_there(after))


def _is_old(one: word_diff.DiffPiece) -> bool:
    return one.kind is not word_diff.DiffPieceKind.ADDED and (
        one.kind is not word_diff.DiffPieceKind.SPACING or bool(one.before)
    )


def _there(parts: Sequence[DiffLinePart]) -> tuple[DiffLinePart, ...]:
    return tuple(part for part in parts if part.text)

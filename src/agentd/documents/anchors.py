"""Attach a comment to a passage of a document, and find the passage again after edits.

Text is compared without whitespace and Markdown markup, so a selection in a browser is found in the source.
"""

import difflib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import takewhile

from agentd.documents import text as base
from agentd.documents.text import InvalidDocument

AROUND = 40  # characters of context kept before and after a quote
_MIN_CONTEXT = 8  # context characters that must match when the quote is ambiguous
_MIN_CONTEXT_SHARE = 0.5  # share of the context that must match under a different heading
_DISTINCTIVE = 20  # characters; a quote this long is distinctive on its own
_SHORT = 6  # words; for a shorter quote the neighbouring words must match too
_MIN_SHARE, _MIN_SHARE_SHORT = 0.6, 0.5  # share of the quote's words that must remain
_MAX_COMPARED = 400  # words whose order is compared
_MAX_OVERLAP = 64  # characters; overlapping matches are only searched for shorter quotes

_START = r"(?:\A|\n)[ \t]*+"
_MARKS = re.compile(
    rf"{_START}(?:`{{3,}}+[^`\n]*+|~{{3,}}+[^\n]*+|[-=:|_* \t]{{3,}}+)(?=[\r\n]|\Z)"  # fence, rule, table separator
    rf"|{_START}(?:>[ \t]*+|(?:[-*+]|\d{{1,9}}[.)]|\#{{1,6}})[ \t]++)*+"
    r"|\]\([^()\n]*+\)"  # link target
    r"|(?:[^\S\n]|[*_`~\\|\[\]])++"
)
_CJK = "\u3040-\u30ff\u3400-\u9fff"  # written without spaces: each character is a word
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


class MatchKind(StrEnum):
    """How a passage was found: unchanged in place, unchanged but moved, or reworded."""

    EXACT = "exact"
    MOVED = "moved"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Anchor:
    """`heading`: the enclosing headings, outermost first. Lines and columns count from 1."""

    document: str
    quote: str
    before: str = ""
    after: str = ""
    heading: tuple[str, ...] = ()
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class AnchorMatch:
    """A passage: characters from `start` up to `end` (exclusive), and its first and last line."""

    start: int
    end: int
    line: int
    last_line: int
    kind: MatchKind


@dataclass(frozen=True, slots=True)
class _Candidate:
    start: int
    end: int
    around: int  # matching context characters
    share: float  # of all context characters
    is_under: bool  # under the same headings
    distance: int


def make_anchor(document: str, text: str, start: int, end: int) -> Anchor:
    """Return the anchor of the text from `start` up to `end` (exclusive)."""
    if not 0 <= start < end <= len(text):
        raise ValueError(f"{start} to {end} is out of range for a text of {len(text)} characters")
    page = _index_text(text)
    line = page.line_of(start)
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    column = start - page.line_starts[line - 1] + 1
    return Anchor(document, text[start:end], before, after, page.path_of(line), line, column)


def anchor_selection(
    document: str, text: str, quote: str, before: str = "", after: str = "", line: int = 1
) -> Anchor | None:
    """Return the anchor of a reader's selection, or None if the text does not contain it."""
    page = _index_text(text)
    quote = quote.strip()
    hits = _find_candidates(page, Anchor(document, quote, before, after, page.path_of(line), line)) if quote else []
    best = max(hits, key=lambda hit: (hit.around, hit.is_under, -hit.distance), default=None)
    return make_anchor(document, text, best.start, best.end) if best else None


def find_anchor(anchor: Anchor, text: str) -> AnchorMatch | None:
    """Return the anchor's current position, or None if its text is gone."""
    page = _index_text(text)
    start = page.offset(anchor.line, anchor.column)
    end = start + len(anchor.quote)
    if anchor.quote and _is_unchanged(anchor, text, start, end):
        return page.make_match(start, end, MatchKind.EXACT)
    hits = _find_candidates(page, anchor) if anchor.quote else []
    best = max(hits, key=lambda hit: (hit.around, hit.is_under, -hit.distance), default=None)
    if best and _is_trusted(best, len(hits), len(_normalize(anchor.quote).key)):
        return page.make_match(
            best.start, best.end, MatchKind.EXACT if best.is_under or best.share == 1 else MatchKind.MOVED
        )
    return _find_reworded(page, anchor)


def _is_unchanged(anchor: Anchor, text: str, start: int, end: int) -> bool:
    return (
        text[start:end] == anchor.quote
        and text[max(0, start - AROUND) : start] == anchor.before
        and text[end : end + AROUND] == anchor.after
    )


def _is_trusted(hit: _Candidate, hits: int, length: int) -> bool:
    """Return whether to trust a match. The words of a deleted quote may appear elsewhere, so require more evidence."""
    if hit.around >= _MIN_CONTEXT and (hit.is_under or hit.share >= _MIN_CONTEXT_SHARE):
        return True
    evidence = hit.is_under + (hits == 1) + (length >= _DISTINCTIVE)
    return evidence >= 2


# ---- exact matches


def _find_candidates(page: "_AnchoredText", anchor: Anchor) -> list[_Candidate]:
    """Return every occurrence of the quote, in linear time."""
    before, after = _normalize(anchor.before).key, _inner_key(anchor.after)
    whole = len(before) + len(after)
    expected = page.offset(anchor.line, anchor.column)
    titles = _fold_titles(anchor.heading)
    hits = []
    for start, end in sorted({*_find_normalized(page, anchor.quote), *_find_all(page.text, anchor.quote)}):
        around = page.count_matching(start, end, before, after)
        is_under = _fold_titles(page.path_of(page.line_of(start))) == titles
        hits.append(_Candidate(start, end, around, around / whole if whole else 0.0, is_under, abs(start - expected)))
    return hits


def _find_all(text: str, quote: str) -> Iterator[tuple[int, int]]:
    step = 1 if len(quote) <= _MAX_OVERLAP else len(quote)
    at = text.find(quote)
    while at >= 0:
        yield at, at + len(quote)
        at = text.find(quote, at + step)


def _find_normalized(page: "_AnchoredText", quote: str) -> Iterator[tuple[int, int]]:
    """Yield matches, with the quote's markup at its edges if the text has it. The quote may begin mid-line."""
    for key in {_normalize(quote).key, _inner_key(quote)} - {""}:
        lead = quote.find(key[0])
        for first, end in _find_all(page.normalized.key, key):
            start, stop = page.normalized.source(first), page.normalized.source(end - 1) + 1
            is_raw = page.text.startswith(quote, max(0, start - lead))
            yield (max(0, start - lead), max(0, start - lead) + len(quote)) if is_raw else (start, stop)


@lru_cache(maxsize=1024)
def _fold_titles(titles: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(" ".join(title.casefold().split()) for title in titles)


# ---- reworded text


def _find_reworded(page: "_AnchoredText", anchor: Anchor) -> AnchorMatch | None:
    """Return the nearest text under the same heading that has most of the words in the same order."""
    wanted = [match[0].casefold() for match in _WORD.finditer(anchor.quote)]
    words = page.words_under(_fold_titles(anchor.heading))
    if not wanted or not words:
        return None
    size = min(len(wanted), len(words))
    expected = page.offset(anchor.line, anchor.column)
    common, _, first = max(_windows(words, Counter(wanted), size, expected))
    window = words[first : first + size]
    is_short = len(wanted) < _SHORT
    if common / len(wanted) < (_MIN_SHARE_SHORT if is_short else _MIN_SHARE):
        return None
    kept = set(wanted)
    inside = [number for number, (_, _, word) in enumerate(window) if word in kept]
    start, end = window[inside[0]][0], window[inside[-1]][1]
    if is_short:
        start, end = window[0][0], window[-1][1]
        around = _neighbour_words(page.text[max(0, start - AROUND) : start], page.text[end : end + AROUND])
        if around != _neighbour_words(anchor.before, anchor.after):
            return None
    elif not _is_in_order(wanted, [word for _, _, word in window]):
        return None
    return page.make_match(start, end, MatchKind.CHANGED)


def _windows(
    words: list[tuple[int, int, str]], wanted: Counter[str], size: int, expected: int
) -> Iterator[tuple[int, int, int]]:
    """For every run of `size` words, yield the number of wanted words, its closeness, and its first index."""
    left = wanted.copy()
    common = 0
    for number, (_, _, word) in enumerate(words):
        common += left[word] > 0
        left[word] -= 1
        first = number - size + 1
        if first > 0:
            gone = words[first - 1][2]
            left[gone] += 1
            common -= left[gone] > 0
        if first >= 0:
            yield common, -abs(words[first][0] - expected), first


def _neighbour_words(before: str, after: str) -> tuple[str, str]:
    """Return the last word before and the first word after; "" if there is none."""
    last = [match[0].casefold() for match in _WORD.finditer(before)][-1:]
    first = _WORD.search(after)
    return "".join(last), first[0].casefold() if first else ""


def _is_in_order(wanted: list[str], window: list[str]) -> bool:
    matcher = difflib.SequenceMatcher(None, wanted[:_MAX_COMPARED], window[:_MAX_COMPARED], autojunk=False)
    return matcher.ratio() >= _MIN_SHARE_SHORT


# ---- normalized text


@dataclass(frozen=True, slots=True)
class _NormalizedText:
    """Text without markup, as pieces: where each starts in `key` (`starts`) and in the original (`sources`)."""

    key: str
    starts: tuple[int, ...]
    sources: tuple[int, ...]

    def source(self, at: int) -> int:
        piece = bisect_right(self.starts, at) - 1
        return self.sources[piece] + at - self.starts[piece]

    def position(self, source: int) -> int:
        """Return the position in `key` that corresponds to an offset in the original."""
        piece = bisect_right(self.sources, source) - 1
        if piece < 0:
            return 0
        end = self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.key)
        return min(self.starts[piece] + source - self.sources[piece], end)


def _normalize(text: str) -> _NormalizedText:
    pieces, starts, sources = [], [], []
    done = length = 0
    for start, end in (*(match.span() for match in _MARKS.finditer(text)), (len(text), len(text))):
        if start > done:
            pieces.append(text[done:start])
            starts.append(length)
            sources.append(done)
            length += start - done
        done = max(done, end)
    return _NormalizedText("".join(pieces), tuple(starts), tuple(sources))


def _inner_key(text: str) -> str:
    """Normalize a text that begins mid-line, where a leading number is not a list marker."""
    return _normalize(f".{text}").key[1:]


@dataclass(frozen=True, slots=True)
class _AnchoredText:
    text: str
    normalized: _NormalizedText
    line_starts: tuple[int, ...]
    heading_lines: tuple[int, ...]
    paths: tuple[tuple[str, ...], ...]
    """For each heading, the path of titles down to and including it."""

    def line_of(self, offset: int) -> int:
        return bisect_right(self.line_starts, offset)

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a position that may be past the end."""
        if line > len(self.line_starts):
            return len(self.text)
        return min(len(self.text), self.line_starts[max(line, 1) - 1] + max(column, 1) - 1)

    def path_of(self, line: int) -> tuple[str, ...]:
        number = bisect_right(self.heading_lines, line) - 1
        return self.paths[number] if number >= 0 else ()

    def make_match(self, start: int, end: int, kind: MatchKind) -> AnchorMatch:
        return AnchorMatch(start, end, self.line_of(start), self.line_of(max(start, end - 1)), kind)

    def count_matching(self, start: int, end: int, before: str, after: str) -> int:
        """Count the context characters that match around a passage."""
        first, last = self.normalized.position(start), self.normalized.position(end)
        key = self.normalized.key
        backwards = zip(reversed(key[max(0, first - len(before)) : first]), reversed(before), strict=False)
        forwards = zip(key[last : last + len(after)], after, strict=False)
        return sum(len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) for pairs in (backwards, forwards))

    def words_under(self, titles: tuple[str, ...]) -> list[tuple[int, int, str]]:
        """Return (start, end, word) under these headings, or under the closest ancestor heading that still exists."""
        bounds = (1, *self.heading_lines)
        paths = ((), *self.paths)
        for depth in range(len(titles), -1, -1):
            words = []
            for number, path in enumerate(paths):
                is_own = len(path) == depth or depth < len(titles)
                if is_own and _fold_titles(path)[:depth] == titles[:depth]:
                    start = self.offset(bounds[number], 1)
                    end = self.offset(bounds[number + 1], 1) if number + 1 < len(bounds) else len(self.text)
                    matches = _WORD.finditer(self.text, start, end)
                    words += [(match.start(), match.end(), match[0].casefold()) for match in matches]
            if words:
                return words
        return []


@lru_cache(maxsize=16)
def _index_text(text: str) -> _AnchoredText:
    """Index a text. Cached, because a page looks up many anchors in the same text."""
    starts = [0]
    while (at := text.find("\n", starts[-1])) >= 0:
        starts.append(at + 1)
    try:
        headings = base.parse_document(text, "the document").headings
    except InvalidDocument:
        headings = ()
    above: list[tuple[int, str]] = []
    paths = []
    for heading in headings:
        while above and above[-1][0] >= heading.level:
            above.pop()
        above.append((heading.level, heading.title))
        paths.append(tuple(title for _, title in above))
    lines = tuple(heading.line for heading in headings)
    return _AnchoredText(text, _normalize(text), tuple(starts), lines, tuple(paths))

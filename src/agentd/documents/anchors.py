"""Where a remark stands in a document, and where that is after the document was edited.

Texts are compared without blanks and Markdown marks, so that what a browser has selected is found in the source.
"""

import difflib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from agentd.documents import text as base
from agentd.documents.text import InvalidDocument

AROUND = 40  # characters kept before and after a quote
_NEAR = 8  # letters of these that must agree where the quote alone says too little
_HALF = 0.5  # of these, under another heading
_LONG = 20  # letters of a quote that says enough by itself
_FEW = 6  # words; fewer are like any others, so those beside them must be the same
_ALIKE, _FEW_ALIKE = 0.6, 0.5  # part of the words that must still be there
_COMPARED = 400  # words, of which the order is compared
_SELF = 64  # characters; a longer quote is not looked for inside itself

_START = r"(?:\A|\n)[ \t]*+"
_MARKS = re.compile(
    rf"{_START}(?:`{{3,}}+[^`\n]*+|~{{3,}}+[^\n]*+|[-=:|_* \t]{{3,}}+)(?=[\r\n]|\Z)"  # a fence, a rule, a table's line
    rf"|{_START}(?:>[ \t]*+|(?:[-*+]|\d{{1,9}}[.)]|\#{{1,6}})[ \t]++)*+"
    r"|\]\([^()\n]*+\)"  # where a link leads
    r"|(?:[^\S\n]|[*_`~\\|\[\]])++"
)
_CJK = "\u3040-\u30ff\u3400-\u9fff"  # written without blanks: each sign is a word
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


class MatchKind(StrEnum):
    """The same words at their place, the same words elsewhere, or other words in their stead."""

    EXACT = "exact"
    MOVED = "moved"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Anchor:
    """`heading`: the titles above it, outermost first. Lines and columns count from 1."""

    document: str
    quote: str
    before: str = ""
    after: str = ""
    heading: tuple[str, ...] = ()
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class AnchorMatch:
    """Characters from `start` to before `end`; the lines of the first and the last of them."""

    start: int
    end: int
    line: int
    last_line: int
    sure: MatchKind


@dataclass(frozen=True, slots=True)
class _Candidate:
    start: int
    end: int
    around: int  # letters of the context that agree
    part: float  # of all of them
    is_under: bool  # it stands under the same headings
    distance: int


def make_anchor(document: str, text: str, start: int, end: int) -> Anchor:
    """The anchor of what stands from `start` to before `end`."""
    if not 0 <= start < end <= len(text):
        raise ValueError(f"{start} to {end} is no part of a text of {len(text)} characters")
    page = _page(text)
    line = page.line_of(start)
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    column = start - page.line_starts[line - 1] + 1
    return Anchor(document, text[start:end], before, after, page.path_of(line), line, column)


def anchor_selection(
    document: str, text: str, quote: str, before: str = "", after: str = "", line: int = 1
) -> Anchor | None:
    """The anchor of what a reader has selected; None if the text does not have it."""
    page = _page(text)
    quote = quote.strip()
    hits = _hits(page, Anchor(document, quote, before, after, page.path_of(line), line)) if quote else []
    best = max(hits, key=lambda hit: (hit.around, hit.is_under, -hit.distance), default=None)
    return make_anchor(document, text, best.start, best.end) if best else None


def find_anchor(anchor: Anchor, text: str) -> AnchorMatch | None:
    """Where it is now; None: its text is gone."""
    page = _page(text)
    start = page.offset(anchor.line, anchor.column)
    end = start + len(anchor.quote)
    if anchor.quote and _is_as_it_was(anchor, text, start, end):
        return page.place(start, end, MatchKind.EXACT)
    hits = _hits(page, anchor) if anchor.quote else []
    best = max(hits, key=lambda hit: (hit.around, hit.is_under, -hit.distance), default=None)
    if best and _is_believed(best, len(hits), len(_squeezed(anchor.quote).key)):
        return page.place(best.start, best.end, MatchKind.EXACT if best.is_under or best.part == 1 else MatchKind.MOVED)
    return _similar(page, anchor)


def _is_as_it_was(anchor: Anchor, text: str, start: int, end: int) -> bool:
    return (
        text[start:end] == anchor.quote
        and text[max(0, start - AROUND) : start] == anchor.before
        and text[end : end + AROUND] == anchor.after
    )


def _is_believed(hit: _Candidate, hits: int, letters: int) -> bool:
    """The words of a quote that was deleted may stand elsewhere too: something more must speak for a place."""
    if hit.around >= _NEAR and (hit.is_under or hit.part >= _HALF):
        return True
    speaks = hit.is_under + (hits == 1) + (letters >= _LONG)
    return speaks >= 2


# ---- the same words


def _hits(page: "_AnchoredText", anchor: Anchor) -> list[_Candidate]:
    """Every place that has the words, in time in proportion to the text."""
    before, after = _squeezed(anchor.before).key, _inner_key(anchor.after)
    whole = len(before) + len(after)
    expected = page.offset(anchor.line, anchor.column)
    titles = _folded(anchor.heading)
    hits = []
    for start, end in sorted({*_squeezed_spans(page, anchor.quote), *_spans(page.text, anchor.quote)}):
        around = page.agreeing(start, end, before, after)
        is_under = _folded(page.path_of(page.line_of(start))) == titles
        hits.append(_Candidate(start, end, around, around / whole if whole else 0.0, is_under, abs(start - expected)))
    return hits


def _spans(text: str, quote: str) -> Iterator[tuple[int, int]]:
    step = 1 if len(quote) <= _SELF else len(quote)
    at = text.find(quote)
    while at >= 0:
        yield at, at + len(quote)
        at = text.find(quote, at + step)


def _squeezed_spans(page: "_AnchoredText", quote: str) -> Iterator[tuple[int, int]]:
    """Marks at the edges of the quote count where the text has them; its first line may begin in mid-line."""
    for key in {_squeezed(quote).key, _inner_key(quote)} - {""}:
        lead = quote.find(key[0])
        for first, end in _spans(page.squeezed.key, key):
            start, stop = page.squeezed.source(first), page.squeezed.source(end - 1) + 1
            is_raw = page.text.startswith(quote, max(0, start - lead))
            yield (max(0, start - lead), max(0, start - lead) + len(quote)) if is_raw else (start, stop)


@lru_cache(maxsize=1024)
def _folded(titles: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(" ".join(title.casefold().split()) for title in titles)


# ---- other words in their stead


def _similar(page: "_AnchoredText", anchor: Anchor) -> AnchorMatch | None:
    """The nearest text under the same heading that has most of the words, in their order."""
    wanted = [match[0].casefold() for match in _WORD.finditer(anchor.quote)]
    found = page.words_under(_folded(anchor.heading))
    if not wanted or not found:
        return None
    size = min(len(wanted), len(found))
    expected = page.offset(anchor.line, anchor.column)
    common, _, first = max(_windows(found, Counter(wanted), size, expected))
    window = found[first : first + size]
    is_few = len(wanted) < _FEW
    if common / len(wanted) < (_FEW_ALIKE if is_few else _ALIKE):
        return None
    kept = set(wanted)
    inside = [number for number, (_, _, word) in enumerate(window) if word in kept]
    start, end = window[inside[0]][0], window[inside[-1]][1]
    if is_few:
        start, end = window[0][0], window[-1][1]
        around = _beside(page.text[max(0, start - AROUND) : start], page.text[end : end + AROUND])
        if around != _beside(anchor.before, anchor.after):
            return None
    elif not _is_in_order(wanted, [word for _, _, word in window]):
        return None
    return page.place(start, end, MatchKind.CHANGED)


def _windows(
    found: list[tuple[int, int, str]], wanted: Counter[str], size: int, expected: int
) -> Iterator[tuple[int, int, int]]:
    """Of every run of so many words: how many are wanted, how near it is, where it begins."""
    left = wanted.copy()
    common = 0
    for number, (_, _, word) in enumerate(found):
        common += left[word] > 0
        left[word] -= 1
        first = number - size + 1
        if first > 0:
            gone = found[first - 1][2]
            left[gone] += 1
            common -= left[gone] > 0
        if first >= 0:
            yield common, -abs(found[first][0] - expected), first


def _beside(before: str, after: str) -> tuple[str, str]:
    """The last word before and the first one after; "" where there is none."""
    last = [match[0].casefold() for match in _WORD.finditer(before)][-1:]
    first = _WORD.search(after)
    return "".join(last), first[0].casefold() if first else ""


def _is_in_order(wanted: list[str], window: list[str]) -> bool:
    matcher = difflib.SequenceMatcher(None, wanted[:_COMPARED], window[:_COMPARED], autojunk=False)
    return matcher.ratio() >= _FEW_ALIKE


# ---- a text made ready


@dataclass(frozen=True, slots=True)
class _NormalizedText:
    """What is left of a text, piece by piece: where each begins in it, and where in the text."""

    key: str
    starts: tuple[int, ...]
    sources: tuple[int, ...]

    def source(self, at: int) -> int:
        piece = bisect_right(self.starts, at) - 1
        return self.sources[piece] + at - self.starts[piece]

    def position(self, source: int) -> int:
        """How many letters are left of the text before that place."""
        piece = bisect_right(self.sources, source) - 1
        if piece < 0:
            return 0
        end = self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.key)
        return min(self.starts[piece] + source - self.sources[piece], end)


def _squeezed(text: str) -> _NormalizedText:
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
    """Of a text that begins in mid-line, where a number is a number and no list mark."""
    return _squeezed(f".{text}").key[1:]


@dataclass(frozen=True, slots=True)
class _AnchoredText:
    text: str
    squeezed: _NormalizedText
    line_starts: tuple[int, ...]
    heading_lines: tuple[int, ...]
    paths: tuple[tuple[str, ...], ...]
    """The titles above what follows each of these headings, its own among them."""

    def line_of(self, offset: int) -> int:
        return bisect_right(self.line_starts, offset)

    def offset(self, line: int, column: int) -> int:
        """Of a place that may be behind the end."""
        if line > len(self.line_starts):
            return len(self.text)
        return min(len(self.text), self.line_starts[max(line, 1) - 1] + max(column, 1) - 1)

    def path_of(self, line: int) -> tuple[str, ...]:
        number = bisect_right(self.heading_lines, line) - 1
        return self.paths[number] if number >= 0 else ()

    def place(self, start: int, end: int, sure: MatchKind) -> AnchorMatch:
        return AnchorMatch(start, end, self.line_of(start), self.line_of(max(start, end - 1)), sure)

    def agreeing(self, start: int, end: int, before: str, after: str) -> int:
        """How many letters around a place are those."""
        first, last = self.squeezed.position(start), self.squeezed.position(end)
        key = self.squeezed.key
        return _common(key[max(0, first - len(before)) : first][::-1], before[::-1]) + _common(
            key[last : last + len(after)], after
        )

    def words_under(self, titles: tuple[str, ...]) -> list[tuple[int, int, str]]:
        """Start, end and word, under these headings; where they are gone, under those above them that are left."""
        bounds = (1, *self.heading_lines)
        paths = ((), *self.paths)
        for depth in range(len(titles), -1, -1):
            found = []
            for number, path in enumerate(paths):
                is_own = len(path) == depth or depth < len(titles)
                if is_own and _folded(path)[:depth] == titles[:depth]:
                    start = self.offset(bounds[number], 1)
                    end = self.offset(bounds[number + 1], 1) if number + 1 < len(bounds) else len(self.text)
                    words = _WORD.finditer(self.text, start, end)
                    found += [(match.start(), match.end(), match[0].casefold()) for match in words]
            if found:
                return found
        return []


@lru_cache(maxsize=16)
def _page(text: str) -> _AnchoredText:
    """Kept for a while: a page looks for many anchors in the same text."""
    starts = [0]
    while (at := text.find("\n", starts[-1])) >= 0:
        starts.append(at + 1)
    try:
        headings = base.parse_document(text, "the document").headings
    except InvalidDocument:
        headings = ()  # what is no text has none
    above: list[tuple[int, str]] = []
    paths = []
    for heading in headings:
        while above and above[-1][0] >= heading.level:
            above.pop()
        above.append((heading.level, heading.title))
        paths.append(tuple(title for _, title in above))
    lines = tuple(heading.line for heading in headings)
    return _AnchoredText(text, _squeezed(text), tuple(starts), lines, tuple(paths))


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    if one == other:
        return len(one)
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))

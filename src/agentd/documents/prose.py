"""Between prose and data: labelled lines, list items, and text made safe to stand in a document."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from agentd.documents.text import Document, LineKind, LineScanner, Span, trim_lines

_BULLET = re.compile(r"([ \t]*+)([-*+]|\d{1,9}[.)])(?:[ \t]++|$)")
_LABEL = re.compile(
    r"([ \t]*+)((?:[-*+]|\d{1,9}[.)])[ \t]++)?[*_]{0,3}"
    r"([A-Za-z][A-Za-z /-]{0,40}?)[*_]{0,3}[ \t]*+:[*_]{0,3}(?:[ \t]++(.*)|$)"
)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_REVIEW = re.compile(r"<(?=review\s)")
_CLOSING = re.compile(r"(?<!\S)(#+)$")
_FENCE = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
_NONE = re.compile(
    r"[\s*_`]*+(?:(?:none|n/a|nothing)[*_`]*+(?:\s*+\(|[.:]?\s++(?!(?:and|&)\s)\S)|no\s++(?:[\w-]++\s++)?specs?(?!\S*\w))",
    re.IGNORECASE,
)
_NOTHING = frozenset({"", "-", "none", "n/a", "na", "null", "nothing", "[]"})


@dataclass(frozen=True, slots=True)
class ListItem:
    """A list item, or a paragraph beside the list: its first line, all of its text, its lines."""

    text: str
    full: str
    span: Span
    bulleted: bool

    @property
    def below(self) -> Span:
        """The lines after the first, where nested items stand."""
        return Span(self.span.start + 1, self.span.end)


@dataclass(frozen=True, slots=True)
class LabelledField:
    """`- **Label**: value`, bold or plain, bulleted or not; the label in lower case."""

    label: str
    value: str
    full: str
    span: Span

    @property
    def below(self) -> Span:
        return Span(self.span.start + 1, self.span.end)


@dataclass(slots=True)
class _OpenItem:
    """An item or field whose last line is not known yet."""

    line: int
    first: str
    indent: int
    bulleted: bool
    label: str = ""
    below: list[tuple[int, str]] = field(default_factory=list)

    def span(self) -> Span:
        while self.below and not self.below[-1][1].strip():
            self.below.pop()
        return Span(self.line, self.below[-1][0] if self.below else self.line)

    def full(self) -> str:
        """All of its text, with the indentation of a list item taken off."""
        indent = " " * (self.indent + 2 * self.bulleted)
        return trim_lines([self.first, *(_dedent(content, indent) for _, content in self.below)])


def _dedent(content: str, indent: str) -> str:
    return content.removeprefix(indent) if content.startswith(indent) else content.lstrip(" ")


def _lines(document: Document, span: Span) -> Iterator[tuple[int, str, bool]]:
    """Number, content, and whether it is code; comments are left out."""
    for line in range(span.start, span.end + 1):
        mark = document.mark(line)
        if mark is not LineKind.COMMENT:
            yield line, document.content(line), mark is not LineKind.TEXT


def read_fields(document: Document, span: Span, labels: Collection[str]) -> tuple[LabelledField, ...]:
    """The fields with these labels (lower case), each with the lines that belong to it."""
    found: list[_OpenItem] = []
    margin = -1
    inside = False
    for line, content, code in _lines(document, span):
        match = None if code or ":" not in content else _LABEL.match(content)
        if match is None and not inside:
            continue
        indent = len(content) - len(content.lstrip())
        if match and match[3].strip().casefold() in labels and (margin < 0 or indent <= margin + 1):
            margin = indent if margin < 0 else margin
            label = match[3].strip().casefold()
            found.append(_OpenItem(line, (match[4] or "").strip(), indent, match[2] is not None, label))
            inside = True
        elif inside and not _ends(found[-1], content, indent, code):
            found[-1].below.append((line, content))
        elif content.strip():
            inside = False
    spans = [(one, one.span()) for one in found]
    return tuple(LabelledField(one.label, one.first, one.full(), lines) for one, lines in spans)


def _ends(one: _OpenItem, content: str, indent: int, code: bool) -> bool:
    """A bullet beside a bulleted field is another item; below an unbulleted one it is its list."""
    return not code and one.bulleted and indent <= one.indent and _BULLET.match(content) is not None


def read_items(document: Document, span: Span) -> tuple[ListItem, ...]:
    """The items of the outermost list, and the paragraphs beside it; nested lines stay with their item."""
    found: list[_OpenItem] = []
    margin = -1
    blank = True
    for line, content, code in _lines(document, span):
        indent = len(content) - len(content.lstrip())
        bullet = None if code else _BULLET.match(content)
        if bullet and (margin < 0 or indent <= margin + 1):
            margin = indent if margin < 0 else margin
            found.append(_OpenItem(line, content[bullet.end() :].strip(), indent, bulleted=True))
        elif content.strip() and (not found or (blank and not code and _is_beside(found[-1], indent))):
            found.append(_OpenItem(line, content.strip(), indent, bulleted=False))
        elif found:
            found[-1].below.append((line, content))
        blank = not content.strip()
    spans = [(one, one.span()) for one in found]
    return tuple(ListItem(one.first, one.full(), lines, one.bulleted) for one, lines in spans)


def _is_beside(one: _OpenItem, indent: int) -> bool:
    """After a blank line only what is indented still belongs to a list item."""
    return not (one.bulleted and indent > one.indent)


def is_empty_phrase(text: str) -> bool:
    """Empty, none, n/a: words for nothing."""
    return text.strip(" \t*_`().").casefold() in _NOTHING


def means_none(text: str) -> bool:
    """Nothing, with or without a reason: `None (no spec changes)`, `No specs required for this change`."""
    return is_empty_phrase(text) or _NONE.match(text) is not None


# ---- writing


def one_line(text: str) -> str:
    """Text for a place where a line break would end it."""
    return " ".join(text.split())


def heading_text(text: str) -> str:
    """Text for a heading; number signs at its end would be taken for the heading's own."""
    return _CLOSING.sub(r"\\\1", one_line(text))


def embed_text(text: str, level: int = 6) -> str:
    """Text to stand in a section of this level: it ends nothing around it and leaves nothing open.

    A heading of this level or above is written `\\#`, a review tag `&lt;review`; an open fence is closed.
    """
    scanner = LineScanner()
    written: list[str] = []
    for content in text.replace("\r\n", "\n").split("\n"):
        plain = scanner.feed(content) is LineKind.TEXT
        written.append(_tame(content, level) if plain else content)
    return trim_lines([*written, scanner.closing])


def _tame(content: str, level: int) -> str:
    heading = _HEADING.match(content)
    if heading and len(heading[1]) <= level:
        at = heading.start(1)
        return content[:at] + "\\" + content[at:]
    return "&lt;" + content[1:] if _REVIEW.match(content) else content


def render_item(text: str, label: str = "") -> str:
    """A list item, its further lines indented below it."""
    start = f"- {label}: " if label else "- "
    return embed_text(start + text.replace("\r\n", "\n").strip().replace("\n", "\n  "))


def fence_code(text: str, info: str) -> str:
    """Text as fenced code, with a fence that nothing inside closes."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text}\n{fence}"


def unfence_code(text: str) -> str:
    """The text inside when it is one fenced block, otherwise the text."""
    contents = trim_lines(text.replace("\r\n", "\n").split("\n")).split("\n")
    scanner = LineScanner()
    is_open = [scanner.feed(content) is LineKind.FENCE and bool(scanner.closing) for content in contents]
    if len(contents) > 1 and all(is_open[:-1]) and not scanner.closing:
        return "\n".join(contents[1:-1])
    return "\n".join(contents)

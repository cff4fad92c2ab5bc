"""Labelled fields, list items, and escaping of text embedded in a document."""

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
    """A list item, or a paragraph outside the list: its first line, full text and lines."""

    text: str
    full: str
    span: Span
    bulleted: bool

    @property
    def below(self) -> Span:
        """Return the lines after the first, which hold nested items."""
        return Span(self.span.start + 1, self.span.end)


@dataclass(frozen=True, slots=True)
class LabelledField:
    """A field `- **Label**: value`, bold or plain, with or without a bullet. The label is in lower case."""

    label: str
    value: str
    full: str
    span: Span

    @property
    def below(self) -> Span:
        return Span(self.span.start + 1, self.span.end)


@dataclass(slots=True)
class _OpenItem:
    """An item or field that is still being parsed."""

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
        """Return the full text without the indentation of a list item."""
        indent = " " * (self.indent + 2 * self.bulleted)
        return trim_lines([self.first, *(_dedent(content, indent) for _, content in self.below)])


def _dedent(content: str, indent: str) -> str:
    return content.removeprefix(indent) if content.startswith(indent) else content.lstrip(" ")


def _lines(document: Document, span: Span) -> Iterator[tuple[int, str, bool]]:
    """Yield number, content, and whether the line is code. Skip comments."""
    for line in range(span.start, span.end + 1):
        kind = document.kind(line)
        if kind is not LineKind.COMMENT:
            yield line, document.content(line), kind is not LineKind.TEXT


def read_fields(document: Document, span: Span, labels: Collection[str]) -> tuple[LabelledField, ...]:
    """Return the fields with these labels (lower case), each with its lines."""
    items: list[_OpenItem] = []
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
            items.append(_OpenItem(line, (match[4] or "").strip(), indent, match[2] is not None, label))
            inside = True
        elif inside and not _ends_item(items[-1], content, indent, code):
            items[-1].below.append((line, content))
        elif content.strip():
            inside = False
    spans = [(item, item.span()) for item in items]
    return tuple(LabelledField(item.label, item.first, item.full(), lines) for item, lines in spans)


def _ends_item(item: _OpenItem, content: str, indent: int, code: bool) -> bool:
    """Return whether a line ends the item. A bullet ends a bulleted field but belongs to an unbulleted one."""
    return not code and item.bulleted and indent <= item.indent and _BULLET.match(content) is not None


def read_items(document: Document, span: Span) -> tuple[ListItem, ...]:
    """Return the items of the outermost list and the paragraphs around it. Nested lines stay with their item."""
    items: list[_OpenItem] = []
    margin = -1
    blank = True
    for line, content, code in _lines(document, span):
        indent = len(content) - len(content.lstrip())
        bullet = None if code else _BULLET.match(content)
        if bullet and (margin < 0 or indent <= margin + 1):
            margin = indent if margin < 0 else margin
            items.append(_OpenItem(line, content[bullet.end() :].strip(), indent, bulleted=True))
        elif content.strip() and (not items or (blank and not code and _starts_paragraph(items[-1], indent))):
            items.append(_OpenItem(line, content.strip(), indent, bulleted=False))
        elif items:
            items[-1].below.append((line, content))
        blank = not content.strip()
    spans = [(item, item.span()) for item in items]
    return tuple(ListItem(item.first, item.full(), lines, item.bulleted) for item, lines in spans)


def _starts_paragraph(item: _OpenItem, indent: int) -> bool:
    """Return whether text after a blank line starts a paragraph; only indented text still belongs to a list item."""
    return not (item.bulleted and indent > item.indent)


def is_empty_phrase(text: str) -> bool:
    """Return whether the text is empty or a phrase such as none or n/a."""
    return text.strip(" \t*_`().").casefold() in _NOTHING


def means_none(text: str) -> bool:
    """Return whether the text means none, with or without a reason: `None (no spec changes)`, `No specs required`."""
    return is_empty_phrase(text) or _NONE.match(text) is not None


# ---- writing


def one_line(text: str) -> str:
    """Collapse all whitespace, including line breaks, to single spaces."""
    return " ".join(text.split())


def heading_text(text: str) -> str:
    """Make text safe as a heading by escaping trailing number signs."""
    return _CLOSING.sub(r"\\\1", one_line(text))


def embed_text(text: str, level: int = 6) -> str:
    """Make text safe to embed in a section of this level.

    Headings of this level or above are escaped as `\\#`, review tags as `&lt;review`; an open fence is closed.
    """
    scanner = LineScanner()
    written: list[str] = []
    for content in text.replace("\r\n", "\n").split("\n"):
        plain = scanner.feed(content) is LineKind.TEXT
        written.append(_escape_line(content, level) if plain else content)
    return trim_lines([*written, scanner.closing])


def _escape_line(content: str, level: int) -> str:
    heading = _HEADING.match(content)
    if heading and len(heading[1]) <= level:
        at = heading.start(1)
        return content[:at] + "\\" + content[at:]
    return "&lt;" + content[1:] if _REVIEW.match(content) else content


def render_item(text: str, label: str = "") -> str:
    """Render a list item with continuation lines indented."""
    start = f"- {label}: " if label else "- "
    return embed_text(start + text.replace("\r\n", "\n").strip().replace("\n", "\n  "))


def fence_code(text: str, info: str) -> str:
    """Wrap text in a fence longer than any fence inside it."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text}\n{fence}"


def unfence_code(text: str) -> str:
    """Return the content if the text is a single fenced block, otherwise the text."""
    contents = trim_lines(text.replace("\r\n", "\n").split("\n")).split("\n")
    scanner = LineScanner()
    is_open = [scanner.feed(content) is LineKind.FENCE and bool(scanner.closing) for content in contents]
    if len(contents) > 1 and all(is_open[:-1]) and not scanner.closing:
        return "\n".join(contents[1:-1])
    return "\n".join(contents)

"""Parse the structure of a Markdown document in one pass, and edit it without touching other bytes.

Lines count from 1 and keep their endings; only a line feed ends a line. Spans include both ends.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from agentd.domain import FormatInvalid

BOM = "\ufeff"
_BLANKS = " \t"
_DIGITS = frozenset("0123456789")
_STRUCTURAL = "#`~<"
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})*+[.)]?[*_]{0,3}[ \t]++[*_]{0,3}")
_YAML = re.compile(r"[ \t#]|-(?:[ \t]|$)|([A-Za-z_][\w-]*+:)(?:[ \t]|$)")


class InvalidDocument(FormatInvalid):
    """A document that cannot be parsed, with its file and line."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


class LineKind(IntEnum):
    """What a line is part of. Headings, lists and fields are only parsed from TEXT."""

    TEXT = 0
    FRONTMATTER = 1
    FENCE = 2
    COMMENT = 3


_KINDS = tuple(LineKind)


@dataclass(frozen=True, slots=True)
class Span:
    """Lines from start to end, inclusive. An empty span ends before it starts."""

    start: int
    end: int

    def __contains__(self, line: int) -> bool:
        return self.start <= line <= self.end

    def __len__(self) -> int:
        return max(0, self.end - self.start + 1)


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    title: str
    line: int

    @property
    def key(self) -> str:
        """Return the normalized title: both `**Why:**` and `2. Why` give `why`."""
        key = self.title.strip(" \t*_:")
        return (_NUMBER.sub("", key, count=1) if key[:1] in _DIGITS else key).casefold()


@dataclass(frozen=True, slots=True)
class Fence:
    """A code block including its fence lines. An unclosed one runs to the end."""

    span: Span
    info: str
    closed: bool

    @property
    def inner(self) -> Span:
        return Span(self.span.start + 1, self.span.end - self.closed)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and everything up to the next heading of the same or a higher level; `own` ends at any heading."""

    heading: Heading
    span: Span
    own: Span

    @property
    def inner(self) -> Span:
        return Span(self.span.start + 1, self.span.end)


class LineScanner:
    """Classify lines one by one, keeping track of open fences and comments."""

    def __init__(self) -> None:
        self._fence = ""
        self._comment = False
        self.info = ""

    def feed(self, content: str) -> LineKind:
        if self._comment:
            self._comment = "-->" not in content
            return LineKind.COMMENT
        body = content.lstrip(" ")
        indented = len(content) - len(body) > 3
        if self._fence:
            if not indented and _closes(body, self._fence):
                self._fence = ""
            return LineKind.FENCE
        if indented or body[:1] not in ("`", "~", "<"):
            return LineKind.TEXT
        if body.startswith("<!--"):
            self._comment = "-->" not in body[4:]
            return LineKind.COMMENT
        return self._open_fence(body)

    def _open_fence(self, body: str) -> LineKind:
        mark = body[0]
        if mark == "<" or not body.startswith(mark * 3):
            return LineKind.TEXT
        info = body.lstrip(mark)
        if mark == "`" and "`" in info:
            return LineKind.TEXT
        self._fence = body[: len(body) - len(info)]
        self.info = info.strip()
        return LineKind.FENCE

    @property
    def closing(self) -> str:
        """Return the line that would close the open fence or comment; empty if none is open."""
        return "-->" if self._comment else self._fence


def _closes(body: str, fence: str) -> bool:
    rest = body.lstrip(fence[0])
    return len(body) - len(rest) >= len(fence) and not rest.strip(_BLANKS)


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    text: str
    lines: tuple[str, ...] = field(repr=False)
    contents: tuple[str, ...] = field(repr=False)
    kinds: bytes = field(repr=False)
    frontmatter: Span | None
    headings: tuple[Heading, ...] = field(repr=False)
    fences: tuple[Fence, ...] = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)
    titles: Mapping[tuple[int, str], Section] = field(repr=False)
    """The first section of each level and normalized title (`Heading.key`)."""
    closing: str
    """The line that would close a fence or comment left open at the end; empty if none is open."""

    @property
    def span(self) -> Span:
        return Span(1, len(self.lines))

    @property
    def newline(self) -> str:
        """Return the line ending of the document, taken from the first line."""
        return "\r\n" if self.lines and self.lines[0].endswith(("\r\n", "\r")) else "\n"

    def content(self, line: int) -> str:
        """Return a line without its ending (and, for the first line, without the byte order mark)."""
        return self.contents[line - 1]

    def kind(self, line: int) -> LineKind:
        return _KINDS[self.kinds[line - 1]]

    def plain_lines(self, span: Span) -> Iterator[tuple[int, str]]:
        """Yield the number and content of lines that are neither code nor comments."""
        for line in range(span.start, span.end + 1):
            if not self.kinds[line - 1]:  # LineKind.TEXT
                yield line, self.contents[line - 1]

    def text_at(self, span: Span) -> str:
        """Return the text of a span, byte for byte."""
        return "".join(self.lines[span.start - 1 : span.end])

    def trimmed_text(self, span: Span) -> str:
        """Return the text of a span with line feeds only and without surrounding blank lines."""
        return trim_lines(list(self.contents[span.start - 1 : max(span.end, span.start - 1)]))

    def section(self, title: str, level: int = 2) -> Section | None:
        """Return the first section with this title, ignoring case."""
        return self.titles.get((level, title.casefold()))

    def find(self, predicate: Callable[[Heading], bool]) -> Section | None:
        return next((section for section in self.sections if predicate(section.heading)), None)

    def native(self, text: str) -> str:
        """Convert line feeds to the document's line endings."""
        return text if self.newline == "\n" else text.replace("\n", self.newline)

    def replace(self, span: Span, text: str) -> str:
        return self.replace_all([(span, text)])

    def replace_all(self, edits: Iterable[tuple[Span, str]]) -> str:
        """Return the text with these spans replaced. They must not overlap; an empty span inserts."""
        pieces: list[str] = []
        done = 0
        for span, text in sorted(edits, key=lambda edit: (edit[0].start, edit[0].end)):
            if span.start - 1 < done:
                raise ValueError(f"edits overlap at line {span.start}")
            pieces.extend(self.lines[done : span.start - 1])
            pieces.append(text)
            done = span.end
        pieces.extend(self.lines[done:])
        return "".join(pieces)

    def insert(self, line: int, text: str) -> str:
        """Return the text with `text` inserted before a line. One past the last line appends."""
        if line > len(self.lines) and self.text and not self.text.endswith("\n"):
            text = self.newline + text
        return self.replace(Span(line, line - 1), text)


def decode_text(data: bytes, name: str) -> str:
    """Decode the content of a file, keeping its byte order mark."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidDocument(name, line, "this is not UTF-8 text") from None


def parse_document(text: str, name: str) -> Document:
    _reject_binary(text, name)
    contents = _contents(text)
    frontmatter = _frontmatter(contents)
    skip = frontmatter.end if frontmatter else 0
    kinds, headings, fences, closing = _structure(contents, skip, may_comment="<!--" in text)
    sections = _sections(headings, len(contents))
    return Document(
        name=name,
        text=text,
        lines=split_lines(text),
        contents=contents,
        kinds=kinds,
        frontmatter=frontmatter,
        headings=headings,
        fences=fences,
        sections=sections,
        titles={(section.heading.level, section.heading.key): section for section in reversed(sections)},
        closing=closing,
    )


def _structure(
    contents: tuple[str, ...], skip: int, may_comment: bool
) -> tuple[bytes, tuple[Heading, ...], tuple[Fence, ...], str]:
    """Find line kinds, headings and fences. Only lines that could start or end one are scanned."""
    candidates = [
        number
        for number, content in enumerate(contents)
        if (content and (content[0] in _STRUCTURAL or (content[0] == " " and content.lstrip(" ")[:1] in _STRUCTURAL)))
        or (may_comment and "-->" in content)
    ]
    kinds = bytearray(len(contents))
    kinds[:skip] = bytes([LineKind.FRONTMATTER]) * skip
    headings: list[Heading] = []
    fences: list[Fence] = []
    scanner = LineScanner()
    done = skip
    start = 0
    for number in candidates:
        if number < skip:
            continue
        if scanner.closing:  # the lines in between belong to the open block
            kinds[done:number] = bytes([LineKind.FENCE if start else LineKind.COMMENT]) * (number - done)
        kind = scanner.feed(contents[number])
        kinds[number] = kind
        done = number + 1
        if kind is LineKind.TEXT:
            if heading := _heading(contents[number], number + 1):
                headings.append(heading)
        elif kind is LineKind.FENCE:
            start = start or number + 1
            if not scanner.closing:
                fences.append(Fence(Span(start, number + 1), scanner.info, closed=True))
                start = 0
    if scanner.closing:
        kinds[done:] = bytes([LineKind.FENCE if start else LineKind.COMMENT]) * (len(contents) - done)
    if start:
        fences.append(Fence(Span(start, len(contents)), scanner.info, closed=False))
    return bytes(kinds), tuple(headings), tuple(fences), scanner.closing


def _contents(text: str) -> tuple[str, ...]:
    """Split into lines without their endings and without the byte order mark."""
    contents = text.removeprefix(BOM).split("\n")
    if not contents[-1] and (len(contents) > 1 or not text):
        contents.pop()
    if "\r" in text:
        ended = len(contents) if text.endswith("\n") else len(contents) - 1
        contents[:ended] = [content.removesuffix("\r") for content in contents[:ended]]
    return tuple(contents)


def split_lines(text: str) -> tuple[str, ...]:
    """Split into lines with their endings. `splitlines` would also split at form feeds and Unicode breaks."""
    if not text:
        return ()
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return (*lines, last) if last else tuple(lines)


def strip_newline(line: str) -> str:
    """Return a line without its ending."""
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def trim_lines(contents: list[str]) -> str:
    """Join lines with line feeds, without trailing whitespace and surrounding blank lines."""
    if len(contents) == 1:
        return contents[0].rstrip()
    first, last = 0, len(contents)
    while first < last and not contents[first].strip():
        first += 1
    while last > first and not contents[last - 1].strip():
        last -= 1
    return "\n".join([content.rstrip() for content in contents[first:last]])


def _reject_binary(text: str, name: str) -> None:
    at = text.find("\0")
    if at >= 0:
        raise InvalidDocument(name, text.count("\n", 0, at) + 1, "contains a NUL character; not a text file")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InvalidDocument(name, line, "contains a lone surrogate; this is not UTF-8 text") from None


def _frontmatter(contents: tuple[str, ...]) -> Span | None:
    """Return the span from a `---` on the first line to the next `---`; an unclosed one is a horizontal rule.

    After leading blank lines, `---` could be a horizontal rule too, so every line must look like YAML.
    """
    start = next((number for number, content in enumerate(contents, 1) if content.strip()), 0)
    if not start or contents[start - 1].rstrip() != "---":
        return None
    sure = start == 1
    for number, content in enumerate(contents[start:], start + 1):
        # An unindented tag is not YAML: the body has begun, and a `---` inside a review block closes nothing.
        if content.startswith("<") and not content.startswith("<<"):
            return None
        if content.startswith(("---", "...")) and content.rstrip() in ("---", "..."):
            return Span(start, number) if sure else None
        if start > 1 and content:
            like = _YAML.match(content)
            if like is None:
                return None
            sure = sure or like[1] is not None
    return None


def _heading(content: str, line: int) -> Heading | None:
    body = content.lstrip(" ")
    if not body.startswith("#") or len(content) - len(body) > 3:
        return None
    title = body.lstrip("#")
    level = len(body) - len(title)
    if level > 6 or (title and title[0] not in _BLANKS):
        return None
    return Heading(level, _strip_closing(title.strip()), line)


def _strip_closing(title: str) -> str:
    """Strip closing number signs from a heading, unless they are escaped with a backslash."""
    if not title.endswith("#"):
        return title
    before = title.rstrip("#")
    if not before or before[-1] in _BLANKS:
        return before.rstrip()
    if before == "\\" or before[-2:] in (" \\", "\t\\"):
        return before[:-1] + title[len(before) :]
    return title


def _sections(headings: tuple[Heading, ...], last: int) -> tuple[Section, ...]:
    """Build sections backwards, so the end of each level is known."""
    sections: list[Section] = []
    ends = [last] * 7
    own_end = last
    for heading in reversed(headings):
        span = Span(heading.line, ends[heading.level])
        sections.append(Section(heading, span, Span(heading.line + 1, own_end)))
        own_end = heading.line - 1
        for level in range(heading.level, 7):
            ends[level] = own_end
    return tuple(reversed(sections))

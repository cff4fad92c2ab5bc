"""The review blocks at the end of proposal.md. They are outside its hash and not part of the plan."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentd.documents import text as base
from agentd.documents.prose import one_line
from agentd.documents.text import Document, LineKind, LineScanner, Span, trim_lines

PROPOSAL_FILE = "proposal.md"

_OPEN = re.compile(r"""<review(?:\s++[\w-]++="[^"]*+"|\s++[\w-]++='[^']*+')++\s*+>""")
_ATTRIBUTE = re.compile(r"""\s([\w-]++)=(?:"([^"]*+)"|'([^']*+)')""")
_CLOSE = "</review>"
# What would open or close a block, and what would read as an escaped one.
_ESCAPE = re.compile(r"(<|&(?:amp;)*+lt;)(?=/review|review\s)")
_UNESCAPE = re.compile(r"&((?:amp;)*+lt;)(?=/review|review\s)")


@dataclass(frozen=True, slots=True)
class ReviewBlock:
    status: str
    iteration: int
    reviewer: str
    text: str
    span: Span = field(default=Span(0, 0), compare=False)

    @property
    def line(self) -> int:
        return self.span.start


def proposal_body(text: str, name: str = PROPOSAL_FILE) -> str:
    """The text before the first block, with exactly one newline at its end: what a hash covers.

    A fence left open is closed here as `append` closes it, so that a new block does not change the hash. What somebody
    wrote behind a block counts as if it stood before.
    """
    return split_blocks(gather_blocks(text, name), name)[0]


def text_before_blocks(text: str, name: str = PROPOSAL_FILE) -> str:
    """The text before the first block, byte for byte."""
    document = base.parse_document(text, name)
    first = _first(document)
    return document.cut(Span(1, first - 1)) if first else text


def find_blocks(text: str, name: str = PROPOSAL_FILE) -> tuple[ReviewBlock, ...]:
    """All blocks, as they stand."""
    return split_blocks(text, name)[1]


def split_blocks(text: str, name: str = PROPOSAL_FILE) -> tuple[str, tuple[ReviewBlock, ...]]:
    """Body and blocks."""
    document = base.parse_document(text, name)
    found, closing = _scan(document)
    body = document.cut(Span(1, found[0].line - 1)) if found else _completed(document, closing)
    return body.rstrip("\r\n") + document.newline, found


def latest_block(blocks: Iterable[ReviewBlock]) -> ReviewBlock | None:
    """The block that counts: of the highest iteration, the last of equals."""
    return max(reversed(tuple(blocks)), key=lambda block: block.iteration, default=None)


def append_block(text: str, block: ReviewBlock, name: str = PROPOSAL_FILE) -> str:
    """The document with one more block at its end."""
    document = base.parse_document(text, name)
    before = _completed(document, _scan(document)[1])
    if before and not before.endswith(("\n\n", "\n\r\n")):
        before += document.newline
    return before + document.native(render_block(block))


def gather_blocks(text: str, name: str = PROPOSAL_FILE) -> str:
    """What somebody wrote behind or between the blocks stands before them, where it is part of the document."""
    document = base.parse_document(text, name)
    found, _ = _scan(document)
    if not found:
        return text
    inside = {line for block in found for line in range(block.span.start, block.span.end + 1)}
    stray = [line for line in range(found[0].line, len(document.lines) + 1) if line not in inside]
    strayed = trim_lines([document.content(line) for line in stray])
    if not strayed:
        return text
    body = document.cut(Span(1, found[0].line - 1)).rstrip("\r\n")
    blocks = [document.cut(block.span).rstrip("\r\n") for block in found]
    return f"{document.newline}{document.newline}".join([body, document.native(strayed), *blocks]) + document.newline


def render_block(block: ReviewBlock) -> str:
    text = _ESCAPE.sub(lambda match: _escaped(match[1]), block.text)
    contents = text.replace("\r\n", "\n").split("\n")
    scanner = LineScanner()
    for content in contents:
        scanner.feed(content)
    text = trim_lines([*contents, scanner.closing])
    status, reviewer = (one_line(word).replace('"', "&quot;") for word in (block.status, block.reviewer))
    opening = f'<review status="{status}" iteration="{block.iteration}" reviewer="{reviewer}">'
    return "\n".join([opening, "", *([text, ""] if text else []), _CLOSE, ""])


def _completed(document: Document, closing: str) -> str:
    """The text with its last line ended and nothing left open."""
    text = document.text
    if text and not text.endswith("\n"):
        text += document.newline
    return text + closing + document.newline if closing else text


def _escaped(mark: str) -> str:
    return "&lt;" if mark == "<" else f"&amp;{mark[1:]}"


def _unescaped(match: re.Match[str]) -> str:
    return "<" if match[1] == "lt;" else f"&{match[1].removeprefix('amp;')}"


def _first(document: Document) -> int | None:
    return next(
        (line for line, content in document.plain(document.span) if _OPEN.match(content)),
        None,
    )


def _scan(document: Document) -> tuple[tuple[ReviewBlock, ...], str]:
    """The blocks, and the line that would close what is open after them."""
    first = _first(document)
    if first is None:
        return (), document.closing
    reader = _BlockReader()
    for line in range(first, len(document.lines) + 1):
        reader.feed(line, document.content(line))
    return tuple(reader.finish(len(document.lines))), reader.outside.closing


class _BlockReader:
    """Inside a block only its closing tag counts: a judge's text may leave a fence open."""

    def __init__(self) -> None:
        self.outside = LineScanner()
        self._blocks: list[ReviewBlock] = []
        self._start = 0
        self._attributes: dict[str, str] = {}
        self._text: list[str] = []

    def feed(self, line: int, content: str) -> None:
        if not self._start and self.outside.feed(content) is not LineKind.TEXT:
            return
        opening = _OPEN.match(content)
        if opening:
            self._finish_open(line - 1)
            self._start = line
            self._attributes = {m[1]: m[2] or m[3] or "" for m in _ATTRIBUTE.finditer(opening[0])}
            content = content[opening.end() :]
        if self._start:
            self._inside(line, content)

    def _inside(self, line: int, content: str) -> None:
        words = content.strip()
        if words.startswith(_CLOSE):
            self._finish_open(line)
        elif words.endswith(_CLOSE) and "<review>" not in words:
            self._text.append(words.removesuffix(_CLOSE))
            self._finish_open(line)
        else:
            self._text.append(content)

    def _finish_open(self, end: int) -> None:
        if not self._start:
            return
        words = {name: value.replace("&quot;", '"') for name, value in self._attributes.items()}
        number = words.get("iteration", "")
        self._blocks.append(
            ReviewBlock(
                status=words.get("status", ""),
                iteration=int(number) if re.fullmatch("[0-9]{1,9}", number) else 0,
                reviewer=words.get("reviewer", ""),
                text=_UNESCAPE.sub(_unescaped, trim_lines(self._text)),
                span=Span(self._start, end),
            )
        )
        self._start = 0
        self._text = []

    def finish(self, last: int) -> Iterator[ReviewBlock]:
        """A block that was never closed runs to the next one or to the end."""
        self._finish_open(last)
        yield from self._blocks

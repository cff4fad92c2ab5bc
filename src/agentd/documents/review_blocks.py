"""The review blocks at the end of proposal.md. They are not part of the plan and are excluded from its hash."""

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
# Tags that would open or close a block, and text that looks like an escaped tag.
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
    """Return the text to hash: everything outside the blocks, ending in exactly one newline.

    An open fence is closed as in `append_block`, so a new block does not change the hash. Text written after a block
    counts as if it came before it.
    """
    return split_blocks(gather_blocks(text, name), name)[0]


def text_before_blocks(text: str, name: str = PROPOSAL_FILE) -> str:
    """Return the text before the first block, byte for byte."""
    document = base.parse_document(text, name)
    first = _first_block_line(document)
    return document.text_at(Span(1, first - 1)) if first else text


def find_blocks(text: str, name: str = PROPOSAL_FILE) -> tuple[ReviewBlock, ...]:
    """Return all blocks in document order."""
    return split_blocks(text, name)[1]


def split_blocks(text: str, name: str = PROPOSAL_FILE) -> tuple[str, tuple[ReviewBlock, ...]]:
    """Split the text into body and blocks."""
    document = base.parse_document(text, name)
    blocks, closing = _scan(document)
    body = document.text_at(Span(1, blocks[0].line - 1)) if blocks else _close_text(document, closing)
    return body.rstrip("\r\n") + document.newline, blocks


def latest_block(blocks: Iterable[ReviewBlock]) -> ReviewBlock | None:
    """Return the block with the highest iteration; on a tie, the last one."""
    return max(reversed(tuple(blocks)), key=lambda block: block.iteration, default=None)


def append_block(text: str, block: ReviewBlock, name: str = PROPOSAL_FILE) -> str:
    """Append a block to the document."""
    document = base.parse_document(text, name)
    before = _close_text(document, _scan(document)[1])
    if before and not before.endswith(("\n\n", "\n\r\n")):
        before += document.newline
    return before + document.native(render_block(block))


def gather_blocks(text: str, name: str = PROPOSAL_FILE) -> str:
    """Move text written after or between the blocks in front of them, to make it part of the document."""
    document = base.parse_document(text, name)
    blocks, _ = _scan(document)
    if not blocks:
        return text
    inside = {line for block in blocks for line in range(block.span.start, block.span.end + 1)}
    stray_lines = [line for line in range(blocks[0].line, len(document.lines) + 1) if line not in inside]
    stray_text = trim_lines([document.content(line) for line in stray_lines])
    if not stray_text:
        return text
    body = document.text_at(Span(1, blocks[0].line - 1)).rstrip("\r\n")
    texts = [document.text_at(block.span).rstrip("\r\n") for block in blocks]
    return f"{document.newline}{document.newline}".join([body, document.native(stray_text), *texts]) + document.newline


def render_block(block: ReviewBlock) -> str:
    text = _ESCAPE.sub(lambda match: _escape_tag(match[1]), block.text)
    contents = text.replace("\r\n", "\n").split("\n")
    scanner = LineScanner()
    for content in contents:
        scanner.feed(content)
    text = trim_lines([*contents, scanner.closing])
    status, reviewer = (one_line(value).replace('"', "&quot;") for value in (block.status, block.reviewer))
    opening = f'<review status="{status}" iteration="{block.iteration}" reviewer="{reviewer}">'
    return "\n".join([opening, "", *([text, ""] if text else []), _CLOSE, ""])


def _close_text(document: Document, closing: str) -> str:
    """Return the text with a final newline and no open fence or comment."""
    text = document.text
    if text and not text.endswith("\n"):
        text += document.newline
    return text + closing + document.newline if closing else text


def _escape_tag(mark: str) -> str:
    return "&lt;" if mark == "<" else f"&amp;{mark[1:]}"


def _unescape_tag(match: re.Match[str]) -> str:
    return "<" if match[1] == "lt;" else f"&{match[1].removeprefix('amp;')}"


def _first_block_line(document: Document) -> int | None:
    return next(
        (line for line, content in document.plain_lines(document.span) if _OPEN.match(content)),
        None,
    )


def _scan(document: Document) -> tuple[tuple[ReviewBlock, ...], str]:
    """Return the blocks, and the line that would close a fence or comment left open after them."""
    first = _first_block_line(document)
    if first is None:
        return (), document.closing
    reader = _BlockReader()
    for line in range(first, len(document.lines) + 1):
        reader.feed(line, document.content(line))
    return tuple(reader.finish(len(document.lines))), reader.outside.closing


class _BlockReader:
    """Parse blocks line by line. Inside a block only the closing tag counts, as the text may leave a fence open."""

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
            self._feed_inside(line, content)

    def _feed_inside(self, line: int, content: str) -> None:
        stripped = content.strip()
        if stripped.startswith(_CLOSE):
            self._finish_open(line)
        elif stripped.endswith(_CLOSE) and "<review>" not in stripped:
            self._text.append(stripped.removesuffix(_CLOSE))
            self._finish_open(line)
        else:
            self._text.append(content)

    def _finish_open(self, end: int) -> None:
        if not self._start:
            return
        attributes = {name: value.replace("&quot;", '"') for name, value in self._attributes.items()}
        number = attributes.get("iteration", "")
        self._blocks.append(
            ReviewBlock(
                status=attributes.get("status", ""),
                iteration=int(number) if re.fullmatch("[0-9]{1,9}", number) else 0,
                reviewer=attributes.get("reviewer", ""),
                text=_UNESCAPE.sub(_unescape_tag, trim_lines(self._text)),
                span=Span(self._start, end),
            )
        )
        self._start = 0
        self._text = []

    def finish(self, last: int) -> Iterator[ReviewBlock]:
        """Yield all blocks. An unclosed one runs to the next block or to the end."""
        self._finish_open(last)
        yield from self._blocks

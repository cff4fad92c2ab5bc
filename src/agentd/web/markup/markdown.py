"""A document of a change as a safe page: HTML with source lines, and its contents."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import nh3

from agentd.documents import (
    PROPOSAL_FILE,
    Document,
    FrontmatterEntry,
    InvalidDocument,
    ReviewBlock,
    Span,
    find_blocks,
    parse_document,
    read_frontmatter,
)
from agentd.web.markup import links, markdown_parser, svg
from agentd.web.markup.markdown_parser import MarkdownPiece, PageHeading

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = ("p", "blockquote", "ul", "ol", "li", "pre", "hr", "figure", "section", "header", *_HEADINGS)
_TABLES = ("table", "thead", "tbody", "tr", "th", "td")
_INLINE = ("a", "br", "code", "em", "input", "s", "span", "strong")
_TAGS = frozenset((*_BLOCKS, *_TABLES, *_INLINE))
_ANY = frozenset({"class", "data-line", "data-end"})
_MORE = {
    "a": {"href", "title", "data-document"},
    "span": {"title"},
    "ol": {"start"},
    "th": {"scope"},
    "input": {"checked", "aria-label"},
    **{heading: {"id"} for heading in _HEADINGS},
}
_BOX = {"type": "checkbox", "disabled": ""}
_CLASSES = frozenset(
    {
        *("frontmatter", "review", "review-approved", "review-needs-revision", "review-rejected"),
        *("diagram", "mermaid-source", "source", "raw", "as-written", "unseen", "task"),
        *("outside", "document", "elsewhere", "image"),
        *("align-left", "align-center", "align-right"),
    }
)
_LANGUAGE = re.compile(r"language-[a-z0-9_+#.-]{1,30}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_DROPPED = re.compile(r"[\x00-\x20\x7f]")  # browsers drop these from an address; the rest may lead elsewhere
_ID = re.compile(rf"r[0-9]{{1,6}}|{links.PREFIX}[\w-]+")


def sanitize_html(html: str) -> str:
    return _cleaner().clean(html)


@cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=set(_TAGS),
        attributes={tag: set(_ANY | _MORE.get(tag, set())) for tag in _TAGS},
        clean_content_tags={"script", "style"},
        attribute_filter=_kept,
        set_tag_attribute_values={"input": _BOX},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """Return the value if it is allowed, else None."""
    if attribute == "class":
        return value if all(_is_class(word) for word in value.split()) else None
    if attribute in ("data-line", "data-end", "start"):
        return value if _NUMBER.fullmatch(value) else None
    if attribute == "id":
        return value if _ID.fullmatch(value) else None
    if attribute == "href":
        return value if links.is_link(value) and not _DROPPED.search(value) else None
    return value


def _is_class(word: str) -> bool:
    return word in _CLASSES or bool(_LANGUAGE.fullmatch(word))


_STATES = ("approved", "needs-revision", "rejected")


@dataclass(frozen=True, slots=True)
class RenderedDocument:
    """`html` is safe to insert as is; `title` and the titles in `contents` are text and must be escaped."""

    title: str
    html: str
    contents: tuple[PageHeading, ...]


def render_markdown(text: str, name: str, is_shared: bool = False) -> RenderedDocument:
    """Render a document. `name` is its short name, such as `specs/auth-flow.md`; `is_shared`: others share the page."""
    document = parse_document(svg.readable_text(text), name)
    reviews = find_blocks(document.text, name) if name == PROPOSAL_FILE else ()
    spans = [*([document.frontmatter] if document.frontmatter else []), *(block.span for block in reviews)]
    piece = MarkdownPiece(
        name, is_shared=is_shared, ids=links.HeadingIds(links.shared_prefix(name) if is_shared else "")
    )
    parts = [_front(document), markdown_parser.markdown_html(_without(document, spans), piece)]
    parts += [_review(block, document, replace(piece, ids=None)) for block in reviews]
    title = next((one.title for one in piece.headings if one.level == 1), svg.visible_plain(name))
    return RenderedDocument(title, sanitize_html("".join(parts)), tuple(piece.headings))


def _without(document: Document, spans: Sequence[Span]) -> str:
    """Blank these lines, so all others keep their numbers."""
    lines = list(document.contents)
    for span in spans:
        lines[span.start - 1 : span.end] = [""] * len(span)
    return "\n".join(lines)


# ---- frontmatter


def _front(document: Document) -> str:
    span = document.frontmatter
    if span is None:
        return ""
    try:
        entries = read_frontmatter(document).entries
    except InvalidDocument:  # show it as plain text
        entries = ()
    if not entries:
        return f'<pre class="frontmatter"{_lines(span)}>{svg.visible_html(document.trimmed_text(span))}</pre>\n'
    rows = "".join(_row(document, entry) for entry in entries)
    return f'<table class="frontmatter"{_lines(span)}><tbody>{rows}</tbody></table>\n'


def _row(document: Document, entry: FrontmatterEntry) -> str:
    """Render an entry with its value as written."""
    first = document.content(entry.span.start)[entry.colon + 1 :].strip()
    below = document.trimmed_text(Span(entry.span.start + 1, entry.span.end)) if len(entry.span) > 1 else ""
    value = svg.visible_html(first) + (f"<pre>{svg.visible_html(below)}</pre>" if below else "")
    return f'<tr{_lines(entry.span)}><th scope="row">{svg.visible_html(entry.key)}</th><td>{value}</td></tr>'


# ---- review blocks


def _review(block: ReviewBlock, document: Document, piece: MarkdownPiece) -> str:
    """Render a review block. Its headings get no ids: `### R1` in a review is not the requirement."""
    state = block.status.strip().lower().replace("_", "-")
    kind = f"review review-{state}" if state in _STATES else "review"
    who = f" by {svg.visible_html(block.reviewer)}" if block.reviewer else ""
    head = f"<header><p>Round {block.iteration}: {svg.visible_html(block.status)}{who}</p></header>"
    body = markdown_parser.markdown_html(block.text, replace(piece, before=_lines_before(block, document)))
    return f'<section class="{kind}"{_lines(block.span)}>{head}{body}</section>\n'


def _lines_before(block: ReviewBlock, document: Document) -> int:
    """Return how many lines of the document precede the block's text, which starts at its first words."""
    behind = range(block.line + 1, block.span.end + 1)
    first = next((line for line in behind if document.content(line).strip()), block.line)
    is_beside_tag = bool(document.content(block.line).partition(">")[2].strip())
    return (block.line if is_beside_tag else first) - 1


def _lines(span: Span) -> str:
    return f' data-line="{span.start}" data-end="{span.end}"'

"""Markdown to HTML: every block carries its source lines, raw HTML becomes text, and no line is left out."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from agentd.web.markup import links, svg
from agentd.web.markup.links import LinkTarget

_LANGUAGE = re.compile(r"[a-z0-9_+#.-]{1,30}")
_BOXES = {"x": ("done", " checked"), " ": ("not done", "")}
_WAIVED = ("waived", "")


class SafeRenderer(RendererHTML):
    """Renders tokens by the method named after their type; other tokens become their tag with its attributes."""

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return svg.visible_html(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return svg.visible_html(tokens[idx].content)

    def html_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _pre("raw", tokens[idx])

    def source(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _pre("source", tokens[idx])

    def as_written(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f'<span class="as-written">{svg.visible_html(tokens[idx].content)}</span>'

    def code_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<code>{svg.visible_html(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _code(tokens[idx])

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _code(tokens[idx])

    def task_box(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        label, checked = _BOXES.get(tokens[idx].content, _WAIVED)
        return f'<input type="checkbox" disabled aria-label="{label}"{checked}> '


def _code(token: Token) -> str:
    word = (token.info.split() or [""])[0].lower()
    text = svg.visible_html(token.content)
    if word == "mermaid":
        return f'<figure class="diagram"{_lines(token)}><pre class="mermaid-source">{text}</pre></figure>\n'
    language = f' class="language-{word}"' if _LANGUAGE.fullmatch(word) else ""
    return f"<pre{_lines(token)}><code{language}>{text}</code></pre>\n"


def _pre(kind: str, token: Token) -> str:
    return f'<pre class="{kind}"{_lines(token)}>{svg.visible_html(token.content)}</pre>\n'


def _lines(token: Token) -> str:
    return f' data-line="{token.attrGet("data-line")}" data-end="{token.attrGet("data-end")}"'


_BOX = re.compile(r"\[([ xX~-])\]\s")


def inline_text(inline: Token) -> str:
    """Return the text of a heading or an image without its markup."""
    parts = []
    for child in inline.children or []:
        if child.type == "image":
            parts.append(inline_text(child))
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif child.type in ("text", "code_inline", "html_inline"):
            parts.append(child.content)
    return "".join(parts)


def align_cell(cell: Token) -> None:
    """Align by class, as the page allows no inline styles."""
    style = str(cell.attrs.pop("style", ""))
    if style:
        cell.attrSet("class", f"align-{style.removeprefix('text-align:')}")


def mark_task_box(tokens: list[Token], number: int) -> None:
    """Turn `[ ]` at the start of a list item into a disabled checkbox."""
    if number < 2 or tokens[number - 2].type != "list_item_open" or tokens[number - 1].type != "paragraph_open":
        return
    children = tokens[number].children or []
    match = _BOX.match(children[0].content) if children and children[0].type == "text" else None
    if match:
        children[0].content = children[0].content[match.end() :]
        children.insert(0, Token("task_box", "", 0, content=match[1].lower()))
        tokens[number - 2].attrSet("class", "task")


def safe_links(children: list[Token], where: Callable[[str], LinkTarget]) -> list[Token]:
    """Keep links to documents, mark external links, turn images into links; a link to nowhere only names its target."""
    done: list[Token] = []
    tag = ""
    for child in children:
        if child.type == "link_open":
            tag = _open(child, str(child.attrs.get("href", "")), where)
            done.append(child)
        elif child.type == "link_close":
            child.tag, tag = tag, ""
            done.append(child)
        elif child.type == "image":
            done += _image(child, where, is_in_link=bool(tag))
        else:
            done.append(child)
    return done


def _open(token: Token, url: str, where: Callable[[str], LinkTarget], *also: str) -> str:
    """Turn the token into a link, or a span if it leads nowhere; return the tag."""
    found = where(url)
    kinds = [*also]
    title = svg.visible_plain(str(token.attrs.get("title", "")))
    token.tag = "a" if found.href else "span"
    token.attrs = {"href": found.href} if found.href else {}
    if title or not found.href:
        token.attrs["title"] = title if found.href else " ".join([svg.visible_plain(url), title]).strip()
    if found.document:
        token.attrs["data-document"] = found.document
        kinds.append("document")
    elif found.is_outside:
        kinds.append("outside")
    elif not found.href:
        kinds.append("elsewhere")
    if kinds:
        token.attrs["class"] = " ".join(kinds)
    return token.tag


def _image(image: Token, where: Callable[[str], LinkTarget], is_in_link: bool) -> list[Token]:
    """Replace an image by a link, as images are never loaded; inside a link, by its text."""
    url = str(image.attrs.get("src", ""))
    text = Token("text", "", 0, content=inline_text(image) or url)
    if is_in_link:
        return [text]
    opening = Token("link_open", "a", 1, attrs={"title": image.attrs.get("title", "")})
    tag = _open(opening, url, where, "image")
    return [opening, text, Token("link_close", tag, -1)]


# A paragraph beyond these limits is shown as written: parsing its brackets would take quadratic time.
_LONGEST = 10_000
_BRACKETS = 100
_LEAVES = frozenset({"paragraph_open", "heading_open", "fence", "code_block", "html_block", "hr", "table_open"})
# Markers that open a quote or a list item, with nothing after them.
_ONLY_MARKS = re.compile(r"(?:[>\s*+-]|[0-9]{1,9}[.)](?=\s|$))*+$")


@dataclass(frozen=True, slots=True)
class PageHeading:
    """A heading; `requirement` is `R1` for `### R1: Title`."""

    level: int
    title: str
    id: str
    line: int
    requirement: str | None = None


@dataclass(slots=True)
class MarkdownPiece:
    """A part of a document: its name, the number of lines before it, and the ids of its headings, if they get any."""

    name: str
    before: int = 0
    is_shared: bool = False
    """Other documents stand in the same page."""
    ids: links.HeadingIds | None = None
    headings: list[PageHeading] = field(default_factory=list)


def markdown_html(text: str, piece: MarkdownPiece) -> str:
    """Render to HTML that is not sanitized yet; collect the headings in `piece`."""
    parser = _parser()
    tokens = parser.parse(text)
    lines = text.split("\n")
    tokens = list(_with_unshown(tokens, lines))
    ends = _last_words(lines)
    for number, token in enumerate(tokens):
        if token.map and token.nesting >= 0 and token.type != "inline":
            token.attrSet("data-line", str(piece.before + token.map[0] + 1))
            token.attrSet("data-end", str(piece.before + max(ends[token.map[1]], token.map[0] + 1)))
        if token.type == "heading_open" and token.level == 0 and piece.ids:
            piece.headings.append(_heading(token, tokens[number + 1], piece))
        elif token.type in ("th_open", "td_open"):
            align_cell(token)
        elif token.type == "inline":
            mark_task_box(tokens, number)
            token.children = safe_links(
                token.children or [], partial(links.link_target, name=piece.name, is_shared=piece.is_shared)
            )
    return str(parser.renderer.render(tokens, parser.options, {}))


def _heading(token: Token, inline: Token, piece: MarkdownPiece) -> PageHeading:
    assert token.map and piece.ids
    title = inline_text(inline) if inline.type == "inline" else inline.content
    given = piece.ids.give(title)
    token.attrSet("id", given)
    line = piece.before + token.map[0] + 1
    return PageHeading(int(token.tag[1]), svg.visible_plain(title), given, line, links.requirement_of(title))


def _last_words(lines: Sequence[str]) -> list[int]:
    """Return, for each number of lines, the number without trailing blank lines."""
    ends = [0]
    for number, line in enumerate(lines, 1):
        ends.append(number if line.strip() else ends[-1])
    return ends


# ---- lines that Markdown leaves out


def _with_unshown(tokens: list[Token], lines: Sequence[str]) -> Iterator[Token]:
    """Insert lines the parser drops (link definitions, deep nesting, extra cells) as written, after their block."""
    left = list(_unshown(tokens, lines))
    starts = [token.map[0] for token in left if token.map]
    done = 0
    for token in tokens:
        if token.level == 0 and token.nesting >= 0 and token.map:
            until = bisect_left(starts, token.map[0])
            yield from left[done:until]
            done = max(done, until)
        yield token
    yield from left[done:]


def _unshown(tokens: list[Token], lines: Sequence[str]) -> Iterator[Token]:
    covered = _covered(tokens, lines)
    start: int | None = None
    for number in range(len(lines) + 1):
        is_left = number < len(lines) and not covered[number] and not _ONLY_MARKS.match(lines[number])
        if is_left and start is None:
            start = number
        elif not is_left and start is not None:
            yield Token("source", "", 0, content="\n".join(lines[start:number]), map=[start, number], block=True)
            start = None


def _covered(tokens: list[Token], lines: Sequence[str]) -> bytearray:
    """Return for each line whether it is shown in full; a row with more cells than its table has columns is not."""
    covered = bytearray(len(lines))
    columns = 0
    for token in tokens:
        if token.type == "th_open":
            columns += 1
        if not token.map:
            continue
        first, end = token.map
        if token.type in _LEAVES:
            covered[first:end] = b"\1" * (min(end, len(lines)) - first)
            columns = 0
            covered[first] = len(token.info.split()) < 2  # only the first word after a fence is shown
        elif token.type == "tr_open" and columns and len(escapedSplit(lines[first].strip().strip("|"))) > columns:
            covered[first] = 0
    return covered


# ---- the parser


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", renderer_cls=SafeRenderer).enable(["table", "strikethrough"])
    # Only allowed schemes become links; everything else stays text.
    parser.validateLink = links.is_link  # type: ignore[method-assign]
    parser.core.ruler.at("inline", _inline)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table unless earlier ones had too many cells: padding short rows can turn a small text into millions."""
    spent = state.env.get("cells", 0)
    if spent > len(state.src):
        return False
    before = len(state.tokens)
    is_table = table(state, start, end, silent)
    state.env["cells"] = spent + len(state.tokens) - before
    return is_table


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type != "inline":
            continue
        try:
            if len(token.content) > _LONGEST or token.content.count("[") > _BRACKETS:
                raise RecursionError
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        except RecursionError:
            token.type = "as_written"

"""Tokens of Markdown made ready to be shown: links that lead somewhere safe, images as links, boxes, alignment."""

import re
from collections.abc import Callable

from markdown_it.token import Token

from agentd.web.markup import visible_text
from agentd.web.markup.links import LinkTarget

_BOX = re.compile(r"\[([ xX~-])\]\s")


def inline_text(inline: Token) -> str:
    """The text of a heading or an image, without its marks."""
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
    """By class: the page allows no style in its text."""
    style = str(cell.attrs.pop("style", ""))
    if style:
        cell.attrSet("class", f"align-{style.removeprefix('text-align:')}")


def mark_task_box(tokens: list[Token], number: int) -> None:
    """`[ ]` at the start of a list item as a box that nobody can tick here."""
    if number < 2 or tokens[number - 2].type != "list_item_open" or tokens[number - 1].type != "paragraph_open":
        return
    children = tokens[number].children or []
    match = _BOX.match(children[0].content) if children and children[0].type == "text" else None
    if match:
        children[0].content = children[0].content[match.end() :]
        children.insert(0, Token("task_box", "", 0, content=match[1].lower()))
        tokens[number - 2].attrSet("class", "task")


def safe_links(children: list[Token], where: Callable[[str], LinkTarget]) -> list[Token]:
    """Links to documents stay, links outside are marked, images are links; what leads nowhere is only named."""
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
    """The tag that the link is shown with."""
    found = where(url)
    kinds = [*also]
    title = visible_text.visible_plain(str(token.attrs.get("title", "")))
    token.tag = "a" if found.href else "span"
    token.attrs = {"href": found.href} if found.href else {}
    if title or not found.href:
        token.attrs["title"] = title if found.href else " ".join([visible_text.visible_plain(url), title]).strip()
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
    """Never loaded. Inside a link its words are the link's."""
    url = str(image.attrs.get("src", ""))
    text = Token("text", "", 0, content=inline_text(image) or url)
    if is_in_link:
        return [text]
    opening = Token("link_open", "a", 1, attrs={"title": image.attrs.get("title", "")})
    tag = _open(opening, url, where, "image")
    return [opening, text, Token("link_close", tag, -1)]

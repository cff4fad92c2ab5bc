"""The allow-list for documents: whatever went wrong before, only these tags, attributes and addresses leave here."""

import re
from functools import cache

import nh3

from agentd.web.markup import links

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
_DROPPED = re.compile(r"[\x00-\x20\x7f]")  # of an address, by browsers: what is left may lead elsewhere
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
    """The value if it may stay."""
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

"""Where a link leads, and the ids of headings. No id from a document can collide with an id of the page."""

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

PREFIX = "at-"  # with a hyphen, an id is not a name that a script would look up
_LONGEST = 80
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*+:")
_OUTSIDE = re.compile(r"https?://[^/?#\\@]++(?:[/?#]|$)|mailto:[^?]", re.IGNORECASE)
_NO_WORD = re.compile(r"[^\w\- ]")
_REQUIREMENT = re.compile(r"(R[0-9]{1,6})(?::|\s+[-–—]\s|$)")
_REQUIREMENT_ANCHOR = re.compile(r"(r[0-9]{1,6})(?:-.*)?", re.DOTALL)
_DOCUMENTS = (".md", ".yaml")


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """`href` is empty if there is nothing a page could open."""

    href: str = ""
    document: str = ""
    """A document of the change, by its short name."""
    is_outside: bool = False


def is_link(url: str) -> bool:
    """Return whether the URL may become a link; anything else stays text."""
    if _SCHEME.match(url):
        return bool(_OUTSIDE.match(url))
    return not url.startswith(("//", "/\\", "\\"))


def shared_prefix(name: str) -> str:
    """Return the prefix of a document's ids on a page that holds several documents."""
    return f"{PREFIX}{slug(name.removesuffix('.md').replace('/', '-'))}-"


def link_target(url: str, name: str, is_shared: bool = False) -> LinkTarget:
    """Resolve a link in document `name`; links between documents stay relative, or on the page if it is shared."""
    if _SCHEME.match(url):
        return LinkTarget(url, is_outside=True) if _OUTSIDE.match(url) else LinkTarget()
    path, _, fragment = url.partition("#")
    part = quote(anchor_of(unquote(fragment))) if fragment else ""
    anchor = f"#{part}" if part else ""
    if not path:
        return LinkTarget(f"#{quote(shared_prefix(name))}{part}" if is_shared else anchor or "#")
    folder = posixpath.dirname(name)
    target = _inside(posixpath.join(folder, unquote(path)))
    if target is None:
        return LinkTarget()
    if is_shared:
        return LinkTarget(f"#{quote(shared_prefix(target))}{part}", target)
    return LinkTarget(quote(posixpath.relpath(target, folder or ".")) + anchor, target)


def _inside(path: str) -> str | None:
    """Return the path relative to the change's folder if it names a document there, else None."""
    path = posixpath.normpath(path)
    if path.startswith(("/", "../")) or not path.endswith(_DOCUMENTS):
        return None
    return path if path.isprintable() and not set(path) & set("\\:?") else None


def requirement_of(title: str) -> str | None:
    """Return `R1` for `R1: Title`, else None."""
    match = _REQUIREMENT.match(title)
    return match[1] if match else None


def slug(title: str) -> str:
    """Return the anchor that common Git hosts generate, so links written for them also work here."""
    return _NO_WORD.sub("", title.strip().lower()).replace(" ", "-")[:_LONGEST] or "section"


def anchor_of(fragment: str) -> str:
    match = _REQUIREMENT_ANCHOR.fullmatch(fragment.lower())
    return match[1] if match else PREFIX + slug(fragment.removeprefix(PREFIX))


class HeadingIds:
    """Gives each heading of a document a unique id; equal titles are numbered in order."""

    def __init__(self, before: str = "") -> None:
        self._before = before
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def give(self, title: str) -> str:
        requirement = requirement_of(title)
        if requirement and requirement.lower() not in self._given:
            return self._keep(requirement.lower())
        wanted = PREFIX + slug(title)
        number = self._next.get(wanted, 0)
        free = wanted
        while free in self._given:
            number += 1
            free = f"{wanted}-{number}"
        self._next[wanted] = number
        return self._keep(free)

    def _keep(self, given: str) -> str:
        self._given.add(given)
        return self._before + given

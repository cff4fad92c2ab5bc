"""What a delta takes away or renames, and how a requirement is named in one line."""

import re
from dataclasses import dataclass, field

from agentd.documents import scenario
from agentd.documents.prose import ListItem, means_none, read_fields, read_items
from agentd.documents.text import Document, Span

REQUIREMENT_PATTERN = re.compile(r"^###\s+((?:[A-Z]+-)?R\d+)(?::|\s+-)\s+(\S.*)$")
"""Heading of a requirement: its id, its title. `[validation] requirement_pattern` replaces it."""

_LEVELS = ("###", "##", "####")
_ARROW = re.compile(r"\s*+(?:→|->|=>)\s*+")
_LONGEST = 1000  # characters of an entry under Removed or Renamed; a longer one is no title

Unread = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class RequirementName:
    """A requirement by id and title, as in `R4: Error format`."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class RemovedItem:
    """A requirement by its id, or a scenario by its title; then the id is empty."""

    id: str
    title: str = ""
    reason: str = ""
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class RenamedRequirement:
    old: RequirementName
    new: RequirementName
    span: Span = field(default=Span(0, 0), compare=False)


def named_requirement(text: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> RequirementName | None:
    """The requirement that an entry names: `R4: Error format`, **R4**: Error format, or R4 alone."""
    words = text.strip()
    if words.startswith(("**", "`")):
        words = words.replace("**", "", 2).replace("`", "", 2)
    if not words or len(words) > _LONGEST:
        return None
    bare = words.rstrip(": -")
    for level in _LEVELS:
        match = pattern.match(f"{level} {words}")
        if match:
            return requirement_from_match(match)
        alone = pattern.match(f"{level} {bare}: x")
        if alone and requirement_from_match(alone).id == bare:
            return RequirementName(bare, "")
    return None


def requirement_from_match(match: re.Match[str]) -> RequirementName:
    """A pattern of the project's own may have no group for the title."""
    title = match[2] if match.re.groups > 1 else ""
    return RequirementName((match[1] if match.re.groups else match[0]) or "", (title or "").strip())


def _entries(document: Document, title: str) -> tuple[ListItem, ...]:
    section = document.section(title) or document.section(f"{title} Requirements")
    return read_items(document, section.inner) if section else ()


def read_removed(document: Document, pattern: re.Pattern[str]) -> tuple[tuple[RemovedItem, ...], Unread]:
    good: list[RemovedItem] = []
    bad: list[tuple[str, int]] = []
    for entry in _entries(document, "Removed"):
        title = scenario.scenario_name(entry.text) if len(entry.text) <= _LONGEST else None
        name = RequirementName("", title) if title else named_requirement(entry.text, pattern)
        if name and entry.bulleted:
            reason = next((one.full for one in read_fields(document, entry.below, {"reason"})), "")
            good.append(RemovedItem(name.id, name.title, reason, entry.span))
        elif not means_none(entry.text):
            bad.append((entry.text[:60], entry.span.start))
    return tuple(good), tuple(bad)


def read_renamed(document: Document, pattern: re.Pattern[str]) -> tuple[tuple[RenamedRequirement, ...], Unread]:
    good: list[RenamedRequirement] = []
    bad: list[tuple[str, int]] = []
    for entry in _entries(document, "Renamed"):
        pair = _pair(entry.text, pattern) if entry.bulleted and len(entry.text) <= _LONGEST else None
        if pair:
            good.append(RenamedRequirement(*pair, entry.span))
        elif not means_none(entry.text):
            bad.append((entry.text[:60], entry.span.start))
    return tuple(good), tuple(bad)


def _pair(text: str, pattern: re.Pattern[str]) -> tuple[RequirementName, RequirementName] | None:
    """Split at the first arrow that has a requirement on both sides: a title may hold arrows too."""
    for arrow in _ARROW.finditer(text):
        old, new = named_requirement(text[: arrow.start()], pattern), named_requirement(text[arrow.end() :], pattern)
        if old and new:
            return old, new
    return None

"""A spec: requirements and their scenarios, as a full spec or as a delta that contains only what changes.

The spans of requirements and scenarios run from their heading to the line before the next one, blank lines
included, so that a merge can cut and join them byte for byte. Scenarios may be nested in a requirement.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from agentd.documents import frontmatter, spec_parts
from agentd.documents import text as base
from agentd.documents.frontmatter import Frontmatter
from agentd.documents.prose import embed_text, fence_code, heading_text, one_line, read_fields
from agentd.documents.spec_parts import (
    REQUIREMENT_PATTERN,
    RemovedItem,
    RenamedRequirement,
    RequirementName,
    Scenario,
    named_requirement,
    requirement_from_match,
)
from agentd.documents.text import Document, Heading, LineKind, Section, Span, trim_lines

__all__ = [
    "REQUIREMENT_PATTERN",
    "Priority",
    "RemovedItem",
    "RenamedRequirement",
    "Requirement",
    "RequirementName",
    "Scenario",
    "Spec",
    "named_requirement",
    "parse_spec",
    "read_spec",
]

_TITLE = re.compile(r"spec(?:ification)?\s*+:\s*+", re.IGNORECASE)
_LIKE_REQUIREMENT = re.compile(r"((?:[A-Z]+-)?R\d+)(?!\w)")
_NON_REQUIREMENT_AREAS = ("overview", "removed", "renamed")
_CRITERIA = "acceptance criteria"


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Requirement:
    id: str
    title: str
    text: str
    priority: Priority | None = None
    span: Span = field(default=Span(0, 0), compare=False)
    own: tuple[Span, ...] = field(default=(), compare=False)
    """Its span without the scenarios nested in it."""

    @property
    def line(self) -> int:
        return self.span.start


@dataclass(frozen=True, slots=True)
class Spec:
    id: str
    title: str
    overview: str
    requirements: tuple[Requirement, ...]
    scenarios: tuple[Scenario, ...]
    removed: tuple[RemovedItem, ...] = ()
    renamed: tuple[RenamedRequirement, ...] = ()
    flow: str = ""
    """The Mermaid text of the flow diagram, without its fence."""
    version: int | None = 1
    base_version: int | None = None
    archived: str = ""
    change: str = ""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The lines of frontmatter keys and sections: `base_version`, `overview`, `acceptance_criteria`."""
    strays: tuple[Heading, ...] = field(default=(), compare=False)
    """Headings that look like requirements, or are among them, but cannot be parsed as one."""
    unread: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """Entries under Removed and Renamed that could not be parsed, with their lines."""

    @property
    def is_delta(self) -> bool:
        return self.base_version is not None

    def requirement(self, id_: str) -> Requirement | None:
        return next((requirement for requirement in self.requirements if requirement.id == id_), None)


def parse_spec(text: str, name: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> Spec:
    document = base.parse_document(text, name)
    return read_spec(document, frontmatter.read_frontmatter(document), pattern)


def read_spec(document: Document, front: Frontmatter, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> Spec:
    keys = ("id", "title", "version", "base_version", "archived", "change")
    lines = {key: front.line(key) for key in keys if key in front}
    for section in document.sections:
        if section.heading.level == 2:
            lines.setdefault(section.heading.key.replace(" ", "_"), section.heading.line)
    parts = _read_units(document, pattern, {front.string("id"), document.name.rpartition("/")[2].removesuffix(".md")})
    removed, unread_removed = spec_parts.read_removed(document, pattern)
    renamed, unread_renamed = spec_parts.read_renamed(document, pattern)
    overview = document.section("Overview")
    return Spec(
        id=front.string("id"),
        title=front.string("title") or _title(document, lines),
        overview=document.trimmed_text(overview.inner) if overview else "",
        requirements=tuple(parts.requirements),
        scenarios=tuple(parts.scenarios),
        removed=removed,
        renamed=renamed,
        flow=_flow(document),
        version=front.number("version"),
        base_version=front.number("base_version"),
        archived=front.string("archived"),
        change=front.string("change"),
        lines=lines,
        strays=tuple(parts.strays),
        unread=unread_removed + unread_renamed,
    )


def _title(document: Document, lines: dict[str, int]) -> str:
    for heading in document.headings:
        if heading.level == 1:
            lines["title"] = heading.line
            return _TITLE.sub("", heading.title, count=1)
    return ""


def _flow(document: Document) -> str:
    """Return the first Mermaid diagram under Flow."""
    section = document.section("Flow")
    for fence in document.fences if section else ():
        if section and fence.span.start in section.span and fence.info.startswith("mermaid"):
            return document.trimmed_text(fence.inner)
    return ""


@dataclass
class _SpecParts:
    requirements: list[Requirement] = field(default_factory=list)
    scenarios: list[Scenario] = field(default_factory=list)
    strays: list[Heading] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _SpecHeading:
    """A heading that starts a requirement, a scenario, or a group of scenarios of one requirement."""

    section: Section
    kind: str
    name: RequirementName
    parent: str = ""


def _read_units(document: Document, pattern: re.Pattern[str], own_ids: set[str]) -> _SpecParts:
    parts = _SpecParts()
    units = _classify(document, pattern, parts.strays)
    spans = _spans(units)
    for unit, span in zip(units, spans, strict=True):
        if unit.kind == "scenario":
            parts.scenarios.append(spec_parts.parse_scenario(document, unit.section, span, unit.parent, own_ids))
    inside = [scenario.span for scenario in parts.scenarios][::-1]
    for unit, span in zip(units, spans, strict=True):
        if unit.kind == "requirement":
            nested: list[Span] = []
            while inside and inside[-1].start <= span.end:
                nested.append(inside.pop())
            own = _subtract(span, [inner for inner in nested if inner.start in span])
            parts.requirements.append(_requirement(document, unit.name, span, own))
    return parts


def _classify(document: Document, pattern: re.Pattern[str], strays: list[Heading]) -> list[_SpecHeading]:
    units: list[_SpecHeading] = []
    area = ""
    parent: _SpecHeading | None = None
    for section in document.sections:
        heading = section.heading
        match = pattern.match(f"{'#' * heading.level} {heading.title}")
        name = spec_parts.scenario_name(heading.title)
        like = _LIKE_REQUIREMENT.match(heading.title)
        if heading.level <= 2 and not match and name is None:
            area = heading.key
        if area in _NON_REQUIREMENT_AREAS:
            parent = None
        elif name is not None:
            units.append(_SpecHeading(section, "scenario", RequirementName("", name), parent.name.id if parent else ""))
        elif area == _CRITERIA and (match or like):
            group = requirement_from_match(match) if match else RequirementName(like[1] if like else "", "")
            parent = _SpecHeading(section, "group", group)
        elif match:
            parent = _SpecHeading(section, "requirement", requirement_from_match(match))
            units.append(parent)
        else:
            if parent and heading.level <= parent.section.heading.level:
                parent = None
            if like or (area == "requirements" and heading.level == 3):
                strays.append(heading)
    return units


def _spans(units: list[_SpecHeading]) -> list[Span]:
    """Return each unit's span: to the end of its section, or before the next unit (scenario) or requirement."""
    spans: list[Span] = []
    next_unit = next_requirement = max((unit.section.span.end for unit in units), default=0) + 1
    for unit in reversed(units):
        start, end = unit.section.span.start, unit.section.span.end
        limit = next_unit if unit.kind == "scenario" else next_requirement
        spans.append(Span(start, min(end, limit - 1)))
        next_unit = start
        if unit.kind == "requirement":
            next_requirement = start
    return spans[::-1]


def _subtract(whole: Span, nested: list[Span]) -> tuple[Span, ...]:
    pieces: list[Span] = []
    start = whole.start
    for span in nested:
        pieces.append(Span(start, span.start - 1))
        start = span.end + 1
    pieces.append(Span(start, whole.end))
    return tuple(piece for piece in pieces if len(piece))


def _requirement(document: Document, name: RequirementName, whole: Span, own: tuple[Span, ...]) -> Requirement:
    lines = [line for span in own for line in range(span.start, span.end + 1)][1:]
    priority = None
    first = next((line for line in lines if document.content(line).strip()), None)
    if first and document.kind(first) is LineKind.TEXT:
        for labelled in read_fields(document, Span(first, first), {"priority"}):
            word = labelled.value.strip("*_` ").casefold()
            priority = Priority(word) if word in tuple(Priority) else None
    if priority:
        lines = [line for line in lines if line != first]
    return Requirement(
        name.id, name.title, trim_lines([document.content(line) for line in lines]), priority, whole, own
    )


def render_spec(spec: Spec) -> str:
    return frontmatter.render_frontmatter(_spec_front(spec)) + "\n" + _spec_body(spec)


def revise_spec(old_text: str, spec: Spec, name: str) -> str:
    """Replace the spec, keeping its version, dates and other frontmatter."""
    obsolete = "version" if spec.is_delta else "base_version"
    document = base.parse_document(frontmatter.remove_frontmatter_key(old_text, obsolete, name), name)
    head = frontmatter.revise_frontmatter(document, _spec_front(spec), keep=("version", "archived", "change"))
    return head + document.native("\n" + _spec_body(spec))


def fill_removed_titles(delta: Spec, main: Spec) -> Spec:
    """Fill in the titles of removed requirements from the main spec."""
    titles = {one.id: one.title for one in main.requirements}
    removed = tuple(
        replace(one, title=titles[one.id]) if not one.title and one.id in titles else one for one in delta.removed
    )
    return replace(delta, removed=removed)


def _spec_front(spec: Spec) -> Mapping[str, Any]:
    front: dict[str, Any] = {"id": spec.id, "type": "spec", "title": one_line(spec.title)}
    if spec.is_delta:
        front["base_version"] = spec.base_version
    else:
        front["version"] = spec.version or 1
    if spec.archived:
        front["archived"] = spec.archived
    if spec.change:
        front["change"] = spec.change
    return front


def _spec_body(spec: Spec) -> str:
    """Render the body. Required headings are written even if a delta has nothing under them."""
    parts = [f"# Spec: {heading_text(spec.title)}", "## Overview", embed_text(spec.overview, 2), "## Requirements"]
    parts += [_requirement_text(one) for one in spec.requirements]
    if spec.removed:
        parts += ["## Removed", "\n".join(_removed_text(one) for one in spec.removed)]
    if spec.renamed:
        parts += ["## Renamed", "\n".join(_renamed_text(one) for one in spec.renamed)]
    if spec.flow:
        parts += ["## Flow", fence_code(spec.flow, "mermaid")]
    parts += ["## Acceptance Criteria", *(spec_parts.render_scenario(one) for one in spec.scenarios)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _requirement_text(one: Requirement) -> str:
    parts = [f"### {heading_text(_name(one))}"]
    if one.priority:
        parts.append(f"**Priority**: {one.priority}")
    parts.append(embed_text(one.text))  # a deeper heading could be parsed as a scenario or another requirement
    return "\n\n".join(part for part in parts if part)


def _removed_text(one: RemovedItem) -> str:
    name = _name(one) if one.id else f"Scenario: {one_line(one.title)}"
    if not one.reason:
        return f"- {name}"
    first, *rest = one.reason.replace("\r\n", "\n").strip().split("\n")
    # At this indentation, nothing starts a fence or a section.
    return base.trim_lines([f"- {name}", f"  - **Reason**: {first}", *(f"    {line}" for line in rest)])


def _renamed_text(one: RenamedRequirement) -> str:
    return f"- {_name(one.old)} → {_name(one.new)}"


def _name(one: Requirement | RemovedItem | RequirementName) -> str:
    return f"{one.id}: {one_line(one.title)}" if one.title else one.id

"""proposal.md: what a change does, why, and what it affects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentd.documents import affected_specs, frontmatter, review_blocks
from agentd.documents import text as base
from agentd.documents.affected_specs import AffectedSpec
from agentd.documents.frontmatter import Frontmatter
from agentd.documents.order import DependencyOrder, dependency_order
from agentd.documents.prose import (
    LabelledField,
    embed_text,
    is_empty_phrase,
    one_line,
    read_fields,
    read_items,
    render_item,
)
from agentd.documents.review_blocks import PROPOSAL_FILE, ReviewBlock
from agentd.documents.text import Document, Section, Span
from agentd.domain import yaml12

_LABELS = {
    "scope": "scope",
    "affected specs": "affected_specs",
    "affected spec": "affected_specs",
    "affected files": "affected_files",
    "affected code": "affected_code",
    "breaking changes": "breaking_changes",
    "breaking change": "breaking_changes",
    "breaking": "breaking_changes",
}
_TITLE = re.compile(r"(?:change|proposal)\s*+:\s*+", re.IGNORECASE)
# `patch/minor/major` is an unfilled template.
_SCOPE = re.compile(r"[\s*_`]*+(patch|minor|major)\b(?!\s*[|/])")
_NUMBER = re.compile(r"[\s*_~≈]*+([0-9]{1,9})\b(?![./])")
_CODE = re.compile(r"`([^`]++)`")


class Scope(StrEnum):
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True, slots=True)
class Impact:
    """Fields are None if the document does not state them."""

    scope: Scope | None = None
    affected_specs: tuple[AffectedSpec, ...] = ()
    affected_files: int | None = None
    affected_code: tuple[str, ...] = ()
    breaking_changes: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    id: str
    summary: str
    why: str
    what_changes: tuple[str, ...]
    impact: Impact
    created: str = ""
    version: int | None = 1
    reviews: tuple[ReviewBlock, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The line of each field and section, by the names used here."""
    unread: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """Entries under affected specs that are not spec ids, with their lines."""


def spec_order(impact: Impact, known: tuple[str, ...] = ()) -> DependencyOrder:
    """Return the order in which to write the affected specs; `known` are the existing specs."""
    return dependency_order({spec.id: spec.depends for spec in impact.affected_specs}, known)


# ---- reading


def parse_proposal(text: str, name: str = PROPOSAL_FILE) -> Proposal:
    body, reviews = review_blocks.split_blocks(text, name)
    document = base.parse_document(body, name)
    return read_proposal(document, frontmatter.read_frontmatter(document), reviews)


def read_proposal(document: Document, front: Frontmatter, reviews: tuple[ReviewBlock, ...] = ()) -> Proposal:
    """Parse the body of a proposal, without its review blocks."""
    lines = {key: front.line(key) for key in ("id", "created", "version") if key in front}
    named = affected_specs.read_affected_specs(document, front)
    if named.line:
        lines["affected_specs"] = named.line
    fields = _impact_fields(document, lines)
    sections = {key: _section(document, key, lines) for key in ("Summary", "Why", "What Changes")}
    return Proposal(
        id=front.string("id") or _title(document, lines),
        summary=_section_text(document, sections["Summary"]),
        why=_section_text(document, sections["Why"]),
        what_changes=_section_items(document, sections["What Changes"]),
        impact=Impact(
            scope=_scope(fields.get("scope")),
            affected_specs=named.specs,
            affected_files=_file_count(document, fields.get("affected_files")),
            affected_code=_paths(document, fields.get("affected_code")),
            breaking_changes=_breaking_changes(fields.get("breaking_changes")),
        ),
        created=front.string("created"),
        version=front.number("version"),
        reviews=reviews,
        lines=lines,
        unread=named.unread,
    )


def _title(document: Document, lines: dict[str, int]) -> str:
    """Return the id in `# Change: add-oauth`, for a document without frontmatter."""
    for heading in document.headings:
        match = _TITLE.match(heading.title)
        if heading.level == 1 and match:
            lines.setdefault("id", heading.line)
            return heading.title[match.end() :].strip("` ")
    return ""


def _section(document: Document, title: str, lines: dict[str, int]) -> Section | None:
    section = document.section(title)
    if section:
        lines[title.lower().replace(" ", "_")] = section.heading.line
    return section


def _section_text(document: Document, section: Section | None) -> str:
    return document.trimmed_text(section.inner) if section else ""


def _section_items(document: Document, section: Section | None) -> tuple[str, ...]:
    items = read_items(document, section.inner) if section else ()
    return tuple(item.full for item in items if not is_empty_phrase(item.full))


def _impact_fields(document: Document, lines: dict[str, int]) -> dict[str, LabelledField]:
    section = _section(document, "Impact", lines)
    fields: dict[str, LabelledField] = {}
    for labelled in read_fields(document, section.inner, _LABELS) if section else ():
        key = _LABELS[labelled.label]
        fields.setdefault(key, labelled)
        lines.setdefault(key, labelled.span.start)
    return fields


def _scope(labelled: LabelledField | None) -> Scope | None:
    match = _SCOPE.match(labelled.value.casefold()) if labelled else None
    return Scope(match[1]) if match else None


def _file_count(document: Document, labelled: LabelledField | None) -> int | None:
    """Return the number at the start of the line, or the number of files it names."""
    match = _NUMBER.match(labelled.value) if labelled else None
    if match:
        return int(match[1])
    return len(_paths(document, labelled)) if labelled and labelled.full else None


def _paths(document: Document, labelled: LabelledField | None) -> tuple[str, ...]:
    """Read code spans or comma-separated names, inline or in a nested list."""
    if labelled is None:
        return ()
    texts = [labelled.value] if labelled.value else [item.text for item in read_items(document, labelled.below)]
    paths = [path for text in texts for path in _CODE.findall(text) or text.split(",")]
    return tuple(path.strip(" []\"'`") for path in paths if not is_empty_phrase(path))


def _breaking_changes(labelled: LabelledField | None) -> str | None:
    return None if labelled is None or is_empty_phrase(labelled.full) else labelled.full


# ---- writing


def render_proposal(proposal: Proposal) -> str:
    text = frontmatter.render_frontmatter(_front(proposal)) + "\n" + _body(proposal)
    for review in proposal.reviews:
        text = review_blocks.append_block(text, review)
    return text


def revise_proposal(old_text: str, proposal: Proposal, name: str = PROPOSAL_FILE) -> str:
    """Replace the proposal; keep review blocks, dates and other frontmatter."""
    document = base.parse_document(old_text, name)
    head = frontmatter.revise_frontmatter(document, _front(proposal), keep=("version", "created"))
    text = head + document.native("\n" + _body(proposal))
    blocks = review_blocks.find_blocks(old_text, name)
    if not blocks:
        return text
    return text + document.newline + document.text_at(Span(blocks[0].line, len(document.lines)))


def _front(proposal: Proposal) -> dict[str, Any]:
    front: dict[str, Any] = {"id": proposal.id, "type": "proposal", "version": proposal.version or 1}
    if proposal.created:
        front["created"] = proposal.created
    front["affected_specs"] = [
        {"id": spec.id, "depends": yaml12.FlowList(spec.depends)} for spec in proposal.impact.affected_specs
    ]
    return front


def _body(proposal: Proposal) -> str:
    changes = "\n".join(render_item(change) for change in proposal.what_changes)
    parts = [
        f"# Change: {one_line(proposal.id)}",
        "## Summary",
        embed_text(proposal.summary, 2),
        "## Why",
        embed_text(proposal.why, 2),
        "## What Changes",
        changes,
        "## Impact",
        "\n".join(_impact_lines(proposal.impact)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _impact_lines(impact: Impact) -> list[str]:
    specs = ", ".join(f"`{spec.id}`" for spec in impact.affected_specs)
    lines = [f"- Scope: {impact.scope}"] if impact.scope else []
    lines.append(f"- Affected specs: {specs or 'none'}")
    if impact.affected_files is not None:
        lines.append(f"- Affected files: {impact.affected_files}")
    if impact.affected_code:
        lines.append("- Affected code: " + ", ".join(f"`{one_line(path)}`" for path in impact.affected_code))
    lines.append(render_item(impact.breaking_changes or "none", "Breaking changes"))
    return lines

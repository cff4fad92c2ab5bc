"""Specs as text: rendered from data, or written over an older version."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentd.documents import frontmatter, scenario
from agentd.documents import text as base
from agentd.documents.delta import RemovedItem, RenamedRequirement, RequirementName
from agentd.documents.prose import embed_text, fence_code, heading_text, one_line
from agentd.documents.spec import Requirement, Spec


def render_spec(spec: Spec) -> str:
    return frontmatter.render_frontmatter(_front(spec)) + "\n" + _body(spec)


def revise_spec(old_text: str, spec: Spec, name: str) -> str:
    """The new spec in place of the old one; its version, dates and other frontmatter stay."""
    obsolete = "version" if spec.is_delta else "base_version"
    document = base.parse_document(frontmatter.remove_frontmatter_key(old_text, obsolete, name), name)
    head = frontmatter.revise_frontmatter(document, _front(spec), keep=("version", "archived", "change"))
    return head + document.native("\n" + _body(spec))


def fill_removed_titles(delta: Spec, main: Spec) -> Spec:
    """The delta with the titles of removed requirements filled in from the main spec."""
    titles = {one.id: one.title for one in main.requirements}
    removed = tuple(
        replace(one, title=titles[one.id]) if not one.title and one.id in titles else one for one in delta.removed
    )
    return replace(delta, removed=removed)


def _front(spec: Spec) -> Mapping[str, Any]:
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


def _body(spec: Spec) -> str:
    """Headings that every spec must have stand even when a delta has nothing to put under them."""
    parts = [f"# Spec: {heading_text(spec.title)}", "## Overview", embed_text(spec.overview, 2), "## Requirements"]
    parts += [_requirement(one) for one in spec.requirements]
    if spec.removed:
        parts += ["## Removed", "\n".join(_removed(one) for one in spec.removed)]
    if spec.renamed:
        parts += ["## Renamed", "\n".join(_renamed(one) for one in spec.renamed)]
    if spec.flow:
        parts += ["## Flow", fence_code(spec.flow, "mermaid")]
    parts += ["## Acceptance Criteria", *(scenario.render_scenario(one) for one in spec.scenarios)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _requirement(one: Requirement) -> str:
    parts = [f"### {heading_text(_name(one))}"]
    if one.priority:
        parts.append(f"**Priority**: {one.priority}")
    parts.append(embed_text(one.text))  # a deeper heading could name a scenario or another requirement
    return "\n\n".join(part for part in parts if part)


def _removed(one: RemovedItem) -> str:
    name = _name(one) if one.id else f"Scenario: {one_line(one.title)}"
    if not one.reason:
        return f"- {name}"
    first, *rest = one.reason.replace("\r\n", "\n").strip().split("\n")
    # So far to the right nothing opens a fence or a section.
    return base.trim_lines([f"- {name}", f"  - **Reason**: {first}", *(f"    {line}" for line in rest)])


def _renamed(one: RenamedRequirement) -> str:
    return f"- {_name(one.old)} → {_name(one.new)}"


def _name(one: Requirement | RemovedItem | RequirementName) -> str:
    return f"{one.id}: {one_line(one.title)}" if one.title else one.id

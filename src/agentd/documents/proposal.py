"""proposal.md: what a change does, why, and what it affects."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentd.documents import frontmatter, review_blocks
from agentd.documents import text as base
from agentd.documents.frontmatter import Frontmatter
from agentd.documents.order import DependencyOrder, dependency_order
from agentd.documents.prose import (
    LabelledField,
    embed_text,
    is_empty_phrase,
    means_none,
    one_line,
    read_fields,
    read_items,
    render_item,
)
from agentd.documents.review_blocks import PROPOSAL_FILE, ReviewBlock
from agentd.documents.text import Document, Section, Span
from agentd.domain import CHANGE_ID, yaml12

LABEL = "affected specs"
MAX_LENGTH = 1000  # characters; anything longer is not a list of names

_LINK = re.compile(r"\[([^\][]*+)\]\([^()]*+\)")
_ASIDE = re.compile(r"\(([^()]*+)\)")
_DEPENDS = re.compile(r"depends(?:[ _]on)?[ :]*+", re.IGNORECASE)
_SPLIT = re.compile(r"\([^()]*+\)|[,;]|\s(?:and|&)\s")
_REASON = re.compile(r":\s|\s[-–—]\s")
_CODE = re.compile(r"`([^`]++)`")


@dataclass(frozen=True, slots=True)
class AffectedSpec:
    id: str
    depends: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class AffectedSpecs:
    """The specs, the line of the list, and entries that are not spec ids, with their lines."""

    specs: tuple[AffectedSpec, ...] = ()
    line: int = 0
    unread: tuple[tuple[str, int], ...] = ()


def read_affected_specs(document: Document, front: Frontmatter) -> AffectedSpecs:
    """Read the list from the frontmatter, otherwise from a section, otherwise from a labelled line."""
    if "affected_specs" in front:
        return _collect(_from_frontmatter(document, front), front.line("affected_specs"))
    section = document.find(lambda heading: heading.level > 1 and heading.key == LABEL)
    if section:
        return _collect(_from_lines(document, section.inner), section.heading.line)
    fields = read_fields(document, document.span, {LABEL, "affected spec"})
    if fields:
        return _collect(_from_field(document, fields[0]), fields[0].span.start)
    return AffectedSpecs()


def _collect(specs: Iterable[AffectedSpec], line: int) -> AffectedSpecs:
    """Keep the first mention of each spec; put invalid ids into `unread`."""
    valid: dict[str, AffectedSpec] = {}
    invalid: list[tuple[str, int]] = []
    for spec in specs:
        if CHANGE_ID.fullmatch(spec.id):
            valid.setdefault(spec.id, spec)
        else:
            invalid.append((spec.id[:60], spec.line))
    return AffectedSpecs(tuple(valid.values()), line, tuple(invalid))


def _from_frontmatter(document: Document, front: Frontmatter) -> list[AffectedSpec]:
    value = front.values["affected_specs"]
    line = front.line("affected_specs")
    if value is None:
        return []
    if isinstance(value, str):
        return _parse_names(value, line)
    if not isinstance(value, list):
        raise front.error("affected_specs", "must be a list of specs")
    lines = _item_lines(document, front, len(value))
    return [spec for entry, at in zip(value, lines, strict=True) for spec in _parse_entry(entry, at, front)]


def _item_lines(document: Document, front: Frontmatter, count: int) -> list[int]:
    """Return the line of each list item; the key's line for all, unless each item has a line of its own."""
    span = next((entry.span for entry in front.entries if entry.key == "affected_specs"), Span(0, -1))
    dashes = [
        (len(content) - len(content.lstrip()), line)
        for line in range(span.start + 1, span.end + 1)
        if (content := document.content(line)).lstrip().startswith(("- ", "-\t"))
    ]
    margin = min(dashes, default=(0, 0))[0]
    lines = [line for indent, line in dashes if indent == margin]
    return lines if len(lines) == count else [front.line("affected_specs")] * count


def _parse_entry(entry: Any, line: int, front: Frontmatter) -> list[AffectedSpec]:
    if isinstance(entry, str):
        return _parse_names(entry, line)
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str | int):
        raise front.error("affected_specs", "must contain spec names, or entries with `id` and `depends`")
    depends = entry.get("depends", entry.get("depends_on"))
    if depends is None or isinstance(depends, str):
        depends = _split_names(depends or "")
    if not isinstance(depends, list) or not all(isinstance(name, str | int) for name in depends):
        raise front.error("affected_specs", f"entry {entry['id']}: 'depends' must be a list of names")
    return [AffectedSpec(_spec_id(str(entry["id"])), tuple(_spec_id(str(name)) for name in depends), line)]


def _from_field(document: Document, labelled: LabelledField) -> list[AffectedSpec]:
    if not labelled.value:
        return _from_lines(document, labelled.below)
    # The list may be wrapped; a blank line or a bullet ends it.
    parts = [labelled.value]
    for line, content in document.plain_lines(labelled.below):
        if line != labelled.span.start + len(parts) or content.lstrip()[:1] in ("", "-", "*", "+"):
            break
        parts.append(content)
    return _parse_names(" ".join(parts), labelled.span.start)


def _from_lines(document: Document, span: Span) -> list[AffectedSpec]:
    """Read specs from list items; in prose, only from code spans or a bare list of names."""
    specs: list[AffectedSpec] = []
    for item in read_items(document, span):
        line = item.span.start
        if item.bulleted:
            specs += _parse_item(item.text, line)
        else:
            text = one_line(item.full)
            named = _parse_names(text, line)
            if not all(CHANGE_ID.fullmatch(spec.id) for spec in named):
                ids = (_spec_id(code) for code in _CODE.findall(text))
                named = [AffectedSpec(id_, (), line) for id_ in ids if CHANGE_ID.fullmatch(id_)]
            specs += named
    return specs


def _parse_item(text: str, line: int) -> list[AffectedSpec]:
    """Parse one list item, usually one spec: `a`, **a**: why, specs/a.md (NEW), a - why."""
    if means_none(text):
        return []
    plain = _ASIDE.sub("", _LINK.sub(r"\1", text))
    code = _CODE.search(plain)
    if not _REASON.search(plain) and (code is None or not _CODE.sub("", plain).strip(" ,;[]")):
        several = _parse_names(text, line)
        if len(several) > 1 and all(CHANGE_ID.fullmatch(spec.id) for spec in several):
            return several
    return [AffectedSpec(_spec_id(code[1] if code else plain), _parse_depends(text), line)]


def _parse_names(text: str, line: int) -> list[AffectedSpec]:
    """Parse a list on one line: `a`, `b` or ["a", "b"] or a, b."""
    if means_none(text):
        return []
    if len(text) > MAX_LENGTH:
        return [AffectedSpec(text, (), line)]
    return [AffectedSpec(_spec_id(part), _parse_depends(part), line) for part in _split_names(_LINK.sub(r"\1", text))]


def _split_names(text: str) -> list[str]:
    """Split at commas, except inside parentheses, where they separate dependencies."""
    parts: list[str] = []
    start = 0
    for match in _SPLIT.finditer(text):
        if not match[0].startswith("("):
            parts.append(text[start : match.start()])
            start = match.end()
    return [part for part in (*parts, text[start:]) if not is_empty_phrase(part.strip("[]"))]


def _parse_depends(text: str) -> tuple[str, ...]:
    """Return the dependencies given in parentheses: (depends on `a`, `b`)."""
    for aside in _ASIDE.findall(_LINK.sub(r"\1", text[:MAX_LENGTH])):
        match = _DEPENDS.match(aside)
        if match:
            return tuple(_spec_id(name) for name in _split_names(aside[match.end() :]))
    return ()


def _spec_id(text: str) -> str:
    """Extract the id: both `specs/a.md (NEW)` and `a - why` give `a`."""
    name = _REASON.split(_ASIDE.sub("", _LINK.sub(r"\1", text)), maxsplit=1)[0]
    word = name.strip(" \t\"'`*[].:")
    return word.rsplit("/", 1)[-1].removesuffix(".md").strip("\"'`*")


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


class Scope(StrEnum):
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact of a change. Fields are None if the document does not state them."""

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
    """Return the order in which to write the affected specs. `known` are the existing specs."""
    return dependency_order({spec.id: spec.depends for spec in impact.affected_specs}, known)


# ---- reading


def parse_proposal(text: str, name: str = PROPOSAL_FILE) -> Proposal:
    body, reviews = review_blocks.split_blocks(text, name)
    document = base.parse_document(body, name)
    return read_proposal(document, frontmatter.read_frontmatter(document), reviews)


def read_proposal(document: Document, front: Frontmatter, reviews: tuple[ReviewBlock, ...] = ()) -> Proposal:
    """Parse the body of a proposal, without its review blocks."""
    lines = {key: front.line(key) for key in ("id", "created", "version") if key in front}
    named = read_affected_specs(document, front)
    if named.line:
        lines["affected_specs"] = named.line
    sections = {title: document.section(title) for title in ("Summary", "Why", "What Changes", "Impact")}
    lines |= {title.lower().replace(" ", "_"): one.heading.line for title, one in sections.items() if one}
    fields: dict[str, LabelledField] = {}
    impact = sections["Impact"]
    for labelled in read_fields(document, impact.inner, _LABELS) if impact else ():
        fields.setdefault(_LABELS[labelled.label], labelled)
    for key, labelled in fields.items():
        lines.setdefault(key, labelled.span.start)
    changes = sections["What Changes"]
    items = read_items(document, changes.inner) if changes else ()
    scope = _SCOPE.match(fields["scope"].value.casefold()) if "scope" in fields else None
    breaking = fields.get("breaking_changes")
    return Proposal(
        id=front.string("id") or _title(document, lines),
        summary=_section_text(document, sections["Summary"]),
        why=_section_text(document, sections["Why"]),
        what_changes=tuple(item.full for item in items if not is_empty_phrase(item.full)),
        impact=Impact(
            scope=Scope(scope[1]) if scope else None,
            affected_specs=named.specs,
            affected_files=_file_count(document, fields.get("affected_files")),
            affected_code=_paths(document, fields.get("affected_code")),
            breaking_changes=breaking.full if breaking and not is_empty_phrase(breaking.full) else None,
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


def _section_text(document: Document, section: Section | None) -> str:
    return document.trimmed_text(section.inner) if section else ""


def _file_count(document: Document, labelled: LabelledField | None) -> int | None:
    """Return the number at the start of the line, or the number of files it names."""
    if labelled is None or not labelled.full:
        return None
    match = _NUMBER.match(labelled.value)
    return int(match[1]) if match else len(_paths(document, labelled))


def _paths(document: Document, labelled: LabelledField | None) -> tuple[str, ...]:
    """Read code spans or comma-separated names, inline or in a nested list."""
    if labelled is None:
        return ()
    texts = [labelled.value] if labelled.value else [item.text for item in read_items(document, labelled.below)]
    paths = [path for text in texts for path in _CODE.findall(text) or text.split(",")]
    return tuple(path.strip(" []\"'`") for path in paths if not is_empty_phrase(path))


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

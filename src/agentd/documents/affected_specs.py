"""Read the affected specs of a proposal from frontmatter, a section or a labelled line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agentd.documents.frontmatter import Frontmatter
from agentd.documents.prose import LabelledField, is_empty_phrase, means_none, one_line, read_fields, read_items
from agentd.documents.text import Document, Span
from agentd.domain import CHANGE_ID

LABEL = "affected specs"
MAX_LENGTH = 1000  # characters; a longer entry is not a list of names

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
    """The specs, the line of the list, and entries that are not spec ids with their lines."""

    specs: tuple[AffectedSpec, ...] = ()
    line: int = 0
    unread: tuple[tuple[str, int], ...] = ()


def read_affected_specs(document: Document, front: Frontmatter) -> AffectedSpecs:
    """Read the list from the frontmatter key; else from a section; else from a labelled line."""
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
    """Return the line of each list item, or the key's line for all unless each item has its own line."""
    span = next((entry.span for entry in front.entries if entry.key == "affected_specs"), None)
    dashes = (
        [
            (len(content) - len(content.lstrip()), line)
            for line in range(span.start + 1, span.end + 1)
            if (content := document.content(line)).lstrip().startswith(("- ", "-\t"))
        ]
        if span
        else []
    )
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

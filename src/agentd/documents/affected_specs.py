"""The specs that a proposal names, in every form that people and agents write them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agentd.documents.frontmatter import Frontmatter
from agentd.documents.prose import LabelledField, is_empty_phrase, means_none, one_line, read_fields, read_items
from agentd.documents.text import Document, Span
from agentd.domain import CHANGE_ID

LABEL = "affected specs"
LONGEST = 1000  # characters of one entry; a longer one is no list of names

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
    """The specs, where the list stands, and what stood in it that is no spec id, with its line."""

    specs: tuple[AffectedSpec, ...] = ()
    line: int = 0
    unread: tuple[tuple[str, int], ...] = ()


def read_affected_specs(document: Document, front: Frontmatter) -> AffectedSpecs:
    """Frontmatter wins when it has the key; then a section; then a labelled line."""
    if "affected_specs" in front:
        return _collect(_from_frontmatter(document, front), front.line("affected_specs"))
    section = document.find(lambda heading: heading.level > 1 and heading.key == LABEL)
    if section:
        return _collect(_from_lines(document, section.inner), section.heading.line)
    found = read_fields(document, document.span, {LABEL, "affected spec"})
    if found:
        return _collect(_from_field(document, found[0]), found[0].span.start)
    return AffectedSpecs()


def _collect(specs: Iterable[AffectedSpec], line: int) -> AffectedSpecs:
    """Each once, the first mention counts; an id that cannot name a spec is kept apart."""
    good: dict[str, AffectedSpec] = {}
    bad: list[tuple[str, int]] = []
    for spec in specs:
        if CHANGE_ID.fullmatch(spec.id):
            good.setdefault(spec.id, spec)
        else:
            bad.append((spec.id[:60], spec.line))
    return AffectedSpecs(tuple(good.values()), line, tuple(bad))


def _from_frontmatter(document: Document, front: Frontmatter) -> list[AffectedSpec]:
    value = front.values["affected_specs"]
    line = front.line("affected_specs")
    if value is None:
        return []
    if isinstance(value, str):
        return _names(value, line)
    if not isinstance(value, list):
        raise front.bad("affected_specs", "must be a list of specs")
    lines = _item_lines(document, front, len(value))
    return [spec for entry, at in zip(value, lines, strict=True) for spec in _entry(entry, at, front)]


def _item_lines(document: Document, front: Frontmatter, count: int) -> list[int]:
    """Where each item of the list stands; all on the key's line when it is not one item a line."""
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


def _entry(entry: Any, line: int, front: Frontmatter) -> list[AffectedSpec]:
    if isinstance(entry, str):
        return _names(entry, line)
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str | int):
        raise front.bad("affected_specs", "must hold names, or an id with what it depends on")
    depends = entry.get("depends", entry.get("depends_on"))
    if depends is None or isinstance(depends, str):
        depends = _parts(depends or "")
    if not isinstance(depends, list) or not all(isinstance(one, str | int) for one in depends):
        raise front.bad("affected_specs", f"has a 'depends' that is no list of names, at {entry['id']}")
    return [AffectedSpec(_id(str(entry["id"])), tuple(_id(str(one)) for one in depends), line)]


def _from_field(document: Document, found: LabelledField) -> list[AffectedSpec]:
    if not found.value:
        return _from_lines(document, found.below)
    # The list may be wrapped; a blank line or a bullet ends it.
    words = [found.value]
    for line, content in document.plain(found.below):
        if line != found.span.start + len(words) or content.lstrip()[:1] in ("", "-", "*", "+"):
            break
        words.append(content)
    return _names(" ".join(words), found.span.start)


def _from_lines(document: Document, span: Span) -> list[AffectedSpec]:
    """List items name specs; a sentence beside the list only in code spans or as a bare list of names."""
    specs: list[AffectedSpec] = []
    for item in read_items(document, span):
        line = item.span.start
        if item.bulleted:
            specs += _named_by_item(item.text, line)
        else:
            text = one_line(item.full)
            named = _names(text, line)
            sentence = not all(CHANGE_ID.fullmatch(spec.id) for spec in named)
            specs += _in_code(text, line) if sentence else named
    return specs


def _in_code(text: str, line: int) -> list[AffectedSpec]:
    ids = (_id(code) for code in _CODE.findall(text))
    return [AffectedSpec(one, (), line) for one in ids if CHANGE_ID.fullmatch(one)]


def _named_by_item(text: str, line: int) -> list[AffectedSpec]:
    """One item is one spec, described after it or not: `a`, **a**: why, specs/a.md (NEW), a - why."""
    if means_none(text):
        return []
    plain = _ASIDE.sub("", _LINK.sub(r"\1", text))
    code = _CODE.search(plain)
    if not _REASON.search(plain) and (code is None or not _CODE.sub("", plain).strip(" ,;[]")):
        several = _names(text, line)
        if len(several) > 1 and all(CHANGE_ID.fullmatch(spec.id) for spec in several):
            return several
    return [AffectedSpec(_id(code[1] if code else plain), _depends(text), line)]


def _names(text: str, line: int) -> list[AffectedSpec]:
    """A list on one line: `a`, `b` or ["a", "b"] or a, b."""
    if means_none(text):
        return []
    if len(text) > LONGEST:
        return [AffectedSpec(text, (), line)]
    return [AffectedSpec(_id(part), _depends(part), line) for part in _parts(_LINK.sub(r"\1", text))]


def _parts(text: str) -> list[str]:
    """What stands between commas; those in an aside separate dependencies, not specs."""
    parts: list[str] = []
    start = 0
    for match in _SPLIT.finditer(text):
        if not match[0].startswith("("):
            parts.append(text[start : match.start()])
            start = match.end()
    return [part for part in (*parts, text[start:]) if not is_empty_phrase(part.strip("[]"))]


def _depends(text: str) -> tuple[str, ...]:
    """What an aside says: (depends on `a`, `b`)."""
    for aside in _ASIDE.findall(_LINK.sub(r"\1", text[:LONGEST])):
        match = _DEPENDS.match(aside)
        if match:
            return tuple(_id(name) for name in _parts(aside[match.end() :]))
    return ()


def _id(text: str) -> str:
    """`specs/a.md (NEW)` is a, and so is `a - why`."""
    name = _REASON.split(_ASIDE.sub("", _LINK.sub(r"\1", text)), maxsplit=1)[0]
    word = name.strip(" \t\"'`*[].:")
    return word.rsplit("/", 1)[-1].removesuffix(".md").strip("\"'`*")

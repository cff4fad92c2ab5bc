"""Frontmatter: the YAML between `---` lines at the top. Parsed as data, edited as text, one key at a time."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentd.documents import text as base
from agentd.documents.text import BOM, Document, InvalidDocument, Span
from agentd.domain import yaml12

_COLON = re.compile(r":(?=[ \t]|$)")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^']|'')*+'")
_COMMENT = re.compile(r"[ \t]#")


class InvalidFrontmatter(InvalidDocument):
    """The frontmatter is not a YAML mapping, or a value has the wrong type."""


@dataclass(frozen=True, slots=True)
class FrontmatterEntry:
    """A top-level key, the lines of its value, and the column of its colon."""

    key: str
    span: Span
    colon: int


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """Parsed frontmatter. If there is none, `values` is empty and `span` is None."""

    name: str
    span: Span | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    entries: tuple[FrontmatterEntry, ...] = ()

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def line(self, key: str) -> int:
        """Return the line of a key, or 1 if unknown."""
        return next((entry.span.start for entry in self.entries if entry.key == key), 1)

    def error(self, key: str, problem: str) -> InvalidFrontmatter:
        return InvalidFrontmatter(self.name, self.line(key), f"'{key}' {problem}")

    def string(self, key: str) -> str:
        """Return a string or number as text; empty if the key is missing."""
        value = self.values.get(key)
        if value is None:
            return ""
        if isinstance(value, str | int | float):
            return str(value)
        raise self.error(key, "must be a string")

    def number(self, key: str) -> int | None:
        value = self.values.get(key)
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.error(key, "must be a whole number")


def read_frontmatter(document: Document) -> Frontmatter:
    span = document.frontmatter
    if span is None:
        _reject_unclosed(document)
        return Frontmatter(document.name)
    lines = range(span.start + 1, span.end)
    values = _load("\n".join(document.content(line) for line in lines), document.name, span)
    return Frontmatter(document.name, span, values, _entries(document, span, values))


def render_frontmatter(values: Mapping[str, Any]) -> str:
    return f"---\n{yaml12.dump(dict(values))}---\n"


def revise_frontmatter(document: Document, values: Mapping[str, Any], keep: Collection[str] = ()) -> str:
    """Return the frontmatter of a document with new values. Keys in `keep` are only added if missing."""
    front = read_frontmatter(document)
    if front.span is None:
        mark = BOM if document.text.startswith(BOM) else ""
        return mark + document.native(render_frontmatter(values))
    wanted = {key: value for key, value in values.items() if key not in front or key not in keep}
    head = document.text_at(Span(1, front.span.end))
    return set_frontmatter_keys(head if head.endswith("\n") else head + document.newline, wanted, document.name)


def set_frontmatter_keys(text: str, values: Mapping[str, Any], name: str) -> str:
    """Set these keys in place. Append missing ones at the end, in this order."""
    for key, value in values.items():
        text = _set_key(text, key, value, name)
    return text


def remove_frontmatter_key(text: str, key: str, name: str) -> str:
    document = base.parse_document(text, name)
    front = read_frontmatter(document)
    if key not in front:
        return text
    entry = _get_entry(front, key)
    expected = {other: value for other, value in front.values.items() if other != key}
    return _verify_edit(document.replace(entry.span, ""), expected, front)


def _set_key(text: str, key: str, value: Any, name: str) -> str:
    document = base.parse_document(text, name)
    front = read_frontmatter(document)
    if key in front and _is_same(front.values[key], value):
        return text
    written = document.native(yaml12.dump({key: value}))
    if front.span is None:
        return _add_frontmatter(document, written)
    if key not in front:
        edited = document.insert(front.span.end, written)
    else:
        entry = _get_entry(front, key)
        edited = document.replace(entry.span, _edit_in_place(document, entry, value) or written)
    return _verify_edit(edited, {**front.values, key: value}, front)


def _is_same(old: Any, new: Any) -> bool:
    """Compare values without treating True as 1."""
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _get_entry(front: Frontmatter, key: str) -> FrontmatterEntry:
    for entry in front.entries:
        if entry.key == key:
            return entry
    raise front.error(key, "cannot be edited automatically; write one key per line")


def _verify_edit(edited: str, expected: Mapping[str, Any], before: Frontmatter) -> str:
    """Return the edited text after checking that it changed only the expected values."""
    if read_frontmatter(base.parse_document(edited, before.name)).values != expected:
        raise InvalidFrontmatter(
            before.name, 1, "this frontmatter cannot be edited automatically; write one key per line"
        )
    return edited


def _add_frontmatter(document: Document, written: str) -> str:
    rest = document.text.removeprefix(BOM)
    mark = document.text[: len(document.text) - len(rest)]
    rule = document.native("---\n")
    gap = "" if not rest or rest.startswith(("\n", "\r\n")) else document.newline
    return f"{mark}{rule}{written}{rule}{gap}{rest}"


def _edit_in_place(document: Document, entry: FrontmatterEntry, value: Any) -> str | None:
    """Return the entry's line with a new value, keeping its comment and quotes; None if it is not a single scalar."""
    written = yaml12.dump({"k": value})
    if len(entry.span) > 1 or written.count("\n") > 1 or not written.startswith("k: "):
        return None
    line = document.lines[entry.span.start - 1]
    content = base.strip_newline(line)
    start = entry.colon + 1
    rest = content[start:]
    token = _first_scalar(rest.strip())
    if token is None:
        return None
    gap = rest[: len(rest) - len(rest.lstrip())] if token else " "
    after = rest.strip()[len(token) :]
    if after and not token:
        after = " " + after
    new = _quote_like(token, value) or written[3:].rstrip("\n")
    return content[:start] + gap + new + after + line[len(content) :]


def _first_scalar(rest: str) -> str | None:
    """Return the scalar that a value starts with, or None for a list, a mapping or a block."""
    if rest[:1] in ("[", "{", "|", ">", "&", "*", "!"):
        return None
    if rest[:1] in ("'", '"'):
        match = _QUOTED.match(rest)
        return match[0] if match else None
    comment = _COMMENT.search(" " + rest)
    return rest[: comment.start()].rstrip() if comment else rest


def _quote_like(old: str, value: Any) -> str | None:
    if not isinstance(value, str) or not value.isprintable():
        return None
    if old.startswith('"'):
        return json.dumps(value, ensure_ascii=False)
    return "'" + value.replace("'", "''") + "'" if old.startswith("'") else None


def _load(yaml: str, name: str, span: Span) -> dict[str, Any]:
    try:
        data = yaml12.load(yaml)
    except yaml12.InvalidYaml as error:
        raise InvalidFrontmatter(name, min(span.start + error.line, span.end), error.message) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InvalidFrontmatter(name, span.start, "frontmatter must be a mapping of keys to values")
    return {str(key): value for key, value in data.items()}


def _reject_unclosed(document: Document) -> None:
    """Raise if a `---` on line 1 is followed by a key but never closed. By itself it is a horizontal rule."""
    if len(document.lines) < 2 or document.content(1).rstrip() != "---":
        return
    if _key(document.content(2)):
        raise InvalidFrontmatter(document.name, 1, "the frontmatter has no closing ---")


def _entries(document: Document, span: Span, values: Mapping[str, Any]) -> tuple[FrontmatterEntry, ...]:
    """Return the keys with their lines, or nothing if the lines do not match the parsed keys."""
    keys: list[tuple[str, int, int]] = []
    last = span.start
    ends: list[int] = []
    for line in range(span.start + 1, span.end):
        content = document.content(line)
        key = _key(content)
        if key:
            ends.append(last)
            keys.append((key[0], line, key[1]))
        # An unindented comment or blank line belongs to no key, so it is kept when a key is replaced.
        if content.strip() and not content.startswith("#"):
            last = line
    ends.append(last)
    if [key for key, _, _ in keys] != list(values):
        return ()
    pairs = zip(keys, ends[1:], strict=True)
    return tuple(FrontmatterEntry(key, Span(line, end), colon) for (key, line, colon), end in pairs)


def _key(content: str) -> tuple[str, int] | None:
    """Return the unindented key on this line and the column of its colon."""
    if not content or content[0] in " \t#-?[]{},&*!|>%@`":
        return None
    if content[0] in "'\"":
        match = _QUOTED.match(content)
        colon = _COLON.search(content, match.end()) if match else None
        return (match[0][1:-1], colon.start()) if match and colon else None
    colon = _COLON.search(content)
    return (content[: colon.start()].rstrip(), colon.start()) if colon else None

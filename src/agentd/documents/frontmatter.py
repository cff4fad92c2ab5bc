"""Frontmatter: the YAML between `---` lines at the top. Read as data, edited as text, one key at a time."""

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
    """Frontmatter that is not a mapping in YAML, or holds a value of the wrong kind."""


@dataclass(frozen=True, slots=True)
class FrontmatterEntry:
    """One top-level key with the lines of its value, and where on its line the colon stands."""

    key: str
    span: Span
    colon: int


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """What was read; without frontmatter `values` is empty and `span` is None."""

    name: str
    span: Span | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    entries: tuple[FrontmatterEntry, ...] = ()

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def line(self, key: str) -> int:
        """Where a key stands; the first line when that cannot be told."""
        return next((entry.span.start for entry in self.entries if entry.key == key), 1)

    def bad(self, key: str, problem: str) -> InvalidFrontmatter:
        return InvalidFrontmatter(self.name, self.line(key), f"'{key}' {problem}")

    def string(self, key: str) -> str:
        """A word or number as text; empty when the key is missing."""
        value = self.values.get(key)
        if value is None:
            return ""
        if isinstance(value, str | int | float):
            return str(value)
        raise self.bad(key, "must be a word")

    def number(self, key: str) -> int | None:
        value = self.values.get(key)
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.bad(key, "must be a whole number")


def read_frontmatter(document: Document) -> Frontmatter:
    span = document.frontmatter
    if span is None:
        _refuse_unclosed(document)
        return Frontmatter(document.name)
    values = _load("\n".join(_contents(document, span)), document.name, span)
    return Frontmatter(document.name, span, values, _entries(document, span, values))


def render_frontmatter(values: Mapping[str, Any]) -> str:
    return f"---\n{yaml12.dump(dict(values))}---\n"


def revise_frontmatter(document: Document, values: Mapping[str, Any], keep: Collection[str] = ()) -> str:
    """The frontmatter of a document with new values; keys to keep change only when they are missing."""
    found = read_frontmatter(document)
    if found.span is None:
        mark = BOM if document.text.startswith(BOM) else ""
        return mark + document.native(render_frontmatter(values))
    wanted = {key: value for key, value in values.items() if key not in found or key not in keep}
    head = document.cut(Span(1, found.span.end))
    return set_frontmatter_keys(head if head.endswith("\n") else head + document.newline, wanted, document.name)


def set_frontmatter_keys(text: str, values: Mapping[str, Any], name: str) -> str:
    """The document with these keys set, in place where they stand, else added at the end in this order."""
    for key, value in values.items():
        text = _set_key(text, key, value, name)
    return text


def remove_frontmatter_key(text: str, key: str, name: str) -> str:
    document = base.parse_document(text, name)
    found = read_frontmatter(document)
    if key not in found:
        return text
    entry = _entry(found, key)
    expected = {other: value for other, value in found.values.items() if other != key}
    return _checked(document.replace(entry.span, ""), expected, found)


def _set_key(text: str, key: str, value: Any, name: str) -> str:
    document = base.parse_document(text, name)
    found = read_frontmatter(document)
    if key in found and _same(found.values[key], value):
        return text
    written = document.native(yaml12.dump({key: value}))
    if found.span is None:
        return _added_on_top(document, written)
    if key not in found:
        edited = document.insert(found.span.end, written)
    else:
        entry = _entry(found, key)
        edited = document.replace(entry.span, _in_place(document, entry, value) or written)
    return _checked(edited, {**found.values, key: value}, found)


def _same(old: Any, new: Any) -> bool:
    """Equal, and not only because Python takes true for 1."""
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _entry(found: Frontmatter, key: str) -> FrontmatterEntry:
    for entry in found.entries:
        if entry.key == key:
            return entry
    raise found.bad(key, "cannot be edited here; write one key per line")


def _checked(edited: str, expected: Mapping[str, Any], before: Frontmatter) -> str:
    """The edit, once it is known to have changed what it should and nothing else."""
    if read_frontmatter(base.parse_document(edited, before.name)).values != expected:
        raise InvalidFrontmatter(before.name, 1, "this frontmatter cannot be edited; write one key per line")
    return edited


def _added_on_top(document: Document, written: str) -> str:
    rest = document.text.removeprefix(BOM)
    mark = document.text[: len(document.text) - len(rest)]
    rule = document.native("---\n")
    gap = "" if not rest or rest.startswith(("\n", "\r\n")) else document.newline
    return f"{mark}{rule}{written}{rule}{gap}{rest}"


def _in_place(document: Document, entry: FrontmatterEntry, value: Any) -> str | None:
    """The entry's line with a new word, its comment and quotes kept; None when it is not so simple."""
    written = yaml12.dump({"k": value})
    if len(entry.span) > 1 or written.count("\n") > 1 or not written.startswith("k: "):
        return None
    line = document.lines[entry.span.start - 1]
    content = base.strip_newline(line)
    start = entry.colon + 1
    rest = content[start:]
    token = _token(rest.strip())
    if token is None:
        return None
    gap = rest[: len(rest) - len(rest.lstrip())] if token else " "
    after = rest.strip()[len(token) :]
    if after and not token:
        after = " " + after
    new = _quoted_like(token, value) or written[3:].rstrip("\n")
    return content[:start] + gap + new + after + line[len(content) :]


def _token(rest: str) -> str | None:
    """The scalar that a value starts with; None for a list, a mapping or a block."""
    if rest[:1] in ("[", "{", "|", ">", "&", "*", "!"):
        return None
    if rest[:1] in ("'", '"'):
        match = _QUOTED.match(rest)
        return match[0] if match else None
    comment = _COMMENT.search(" " + rest)
    return rest[: comment.start()].rstrip() if comment else rest


def _quoted_like(old: str, value: Any) -> str | None:
    if not isinstance(value, str) or not value.isprintable():
        return None
    if old.startswith('"'):
        return json.dumps(value, ensure_ascii=False)
    return "'" + value.replace("'", "''") + "'" if old.startswith("'") else None


def _contents(document: Document, span: Span) -> list[str]:
    return [document.content(line) for line in range(span.start + 1, span.end)]


def _load(yaml: str, name: str, span: Span) -> dict[str, Any]:
    try:
        data = yaml12.load(yaml)
    except yaml12.InvalidYaml as error:
        raise InvalidFrontmatter(name, min(span.start + error.line, span.end), error.message) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InvalidFrontmatter(name, span.start, "frontmatter must be keys with values")
    return {str(key): value for key, value in data.items()}


def _refuse_unclosed(document: Document) -> None:
    """A first `---` with a key below it was meant as frontmatter; alone it is a rule across the page."""
    if len(document.lines) < 2 or document.content(1).rstrip() != "---":
        return
    if _key(document.content(2)):
        raise InvalidFrontmatter(document.name, 1, "the frontmatter has no closing ---")


def _entries(document: Document, span: Span, values: Mapping[str, Any]) -> tuple[FrontmatterEntry, ...]:
    """The keys with their lines; none when the lines do not show the keys that were read."""
    found: list[tuple[str, int, int]] = []
    last = span.start
    ends: list[int] = []
    for line in range(span.start + 1, span.end):
        content = document.content(line)
        key = _key(content)
        if key:
            ends.append(last)
            found.append((key[0], line, key[1]))
        # A comment or blank line at the margin belongs to no key, so it stays when one is replaced.
        if content.strip() and not content.startswith("#"):
            last = line
    ends.append(last)
    if [key for key, _, _ in found] != list(values):
        return ()
    pairs = zip(found, ends[1:], strict=True)
    return tuple(FrontmatterEntry(key, Span(line, end), colon) for (key, line, colon), end in pairs)


def _key(content: str) -> tuple[str, int] | None:
    """The key that starts at the margin, and where its colon stands."""
    if not content or content[0] in " \t#-?[]{},&*!|>%@`":
        return None
    if content[0] in "'\"":
        match = _QUOTED.match(content)
        colon = _COLON.search(content, match.end()) if match else None
        return (match[0][1:-1], colon.start()) if match and colon else None
    colon = _COLON.search(content)
    return (content[: colon.start()].rstrip(), colon.start()) if colon else None

"""Convert OpenSpec specs and proposals to ours and back: only headings and frontmatter change, other bytes stay."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentd.documents import (
    BOM,
    Document,
    InvalidDocument,
    LineKind,
    Span,
    embed_text,
    one_line,
    parse_document,
    read_frontmatter,
    remove_frontmatter_key,
    render_frontmatter,
    scenario_name,
    set_frontmatter_keys,
    split_lines,
)
from agentd.documents import REQUIREMENT_PATTERN as OURS
from agentd.domain import yaml12
from agentd.merge import read_units
from agentd.migrate.import_model import ImportNote

CAPABILITY = "openspec"
"""The key in our frontmatter that has the capability's path, where our id is another word."""

_REQUIREMENT = re.compile(r"###[ \t]*Requirement:[ \t]*(\S.*)", re.IGNORECASE)
_CLOSING = re.compile(r"[ \t]+#+[ \t]*$")
_DELTA = re.compile(r"(?:added|modified|removed|renamed) requirements")
_OUR_KEYS = ("id", "type", "title", "version")


@dataclass(frozen=True, slots=True)
class NumberedSpec:
    """A spec with ids: `ids` by requirement name, `scenarios` by id."""

    id: str
    title: str
    text: str
    overview: str
    ids: Mapping[str, str]
    scenarios: Mapping[str, tuple[str, ...]]
    notes: tuple[ImportNote, ...]
    highest: int
    """The number of the last id that was given."""

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.scenarios), sum(map(len, self.scenarios.values()))


def requirement_name(content: str) -> str | None:
    """Return the name in `### Requirement: Name`, as OpenSpec compares it, or None for any other line."""
    match = _REQUIREMENT.match(content)
    return _CLOSING.sub("", match[1]).strip() if match else None


def requirement_headings(document: Document, span: Span) -> list[tuple[int, str]]:
    """Return line and name of each requirement, ignoring code and comments."""
    return [(line, name) for line, content in document.plain_lines(span) if (name := requirement_name(content))]


def number_requirements(text: str, source: str, id_: str, capability: str) -> NumberedSpec:
    """Number requirements R1, R2, … in order. Raise InvalidDocument for text that is not a document."""
    document = parse_document(text, source)
    found = requirement_headings(document, document.span)
    heads = {line: f"### R{number}: {name}" for number, (line, name) in enumerate(found, 1)}
    purpose = document.section("Purpose")
    if purpose and not document.section("Overview"):
        heads[purpose.heading.line] = "## Overview"
    edited = replace_lines(document, heads)
    title = next((one.title for one in document.headings if one.level == 1), "") or id_
    front = {"id": id_, "type": "spec", "title": title, "version": 1}
    whole = add_frontmatter(edited, front | ({CAPABILITY: capability} if capability != id_ else {}), source)
    ids: dict[str, str] = {}
    for number, (_, name) in enumerate(found, 1):
        ids.setdefault(name, f"R{number}")
    notes = _odd(document, source, found)
    scenarios, unread = _read_back(whole, len(split_lines(whole)) - len(document.lines), source)
    overview = document.trimmed_text(purpose.inner) if purpose else ""
    return NumberedSpec(id_, title, whole, overview, ids, scenarios, (*notes, *unread), len(found))


def replace_lines(document: Document, instead: Mapping[int, str]) -> str:
    """Replace these lines, keeping line endings and the byte order mark."""
    edits = []
    for line, words in instead.items():
        old = document.lines[line - 1]
        mark = BOM if line == 1 and old.startswith(BOM) else ""
        edits.append((Span(line, line), mark + words + old[len(old.rstrip("\r\n")) :]))
    return document.replace_all(edits)


def add_frontmatter(text: str, values: Mapping[str, object], name: str) -> str:
    """Set these frontmatter keys, creating the frontmatter if there is none."""
    document = parse_document(text, name)
    if read_frontmatter(document).span:
        return set_frontmatter_keys(text, values, name)
    mark = BOM if text.startswith(BOM) else ""
    return mark + document.native(render_frontmatter(values) + "\n") + text.removeprefix(BOM)


def strip_frontmatter(text: str, keys: tuple[str, ...], name: str) -> str:
    """Remove these keys; if none is left, remove the frontmatter and the blank line below it."""
    for key in keys:
        text = remove_frontmatter_key(text, key, name)
    document = parse_document(text, name)
    span = document.frontmatter
    if span is None or read_frontmatter(document).values:
        return text
    gap = span.end < len(document.lines) and not document.content(span.end + 1).strip()
    rest = document.text_at(Span(span.end + 1 + gap, len(document.lines)))
    return (BOM if text.startswith(BOM) else "") + rest


# ---- notes


def _odd(document: Document, source: str, found: list[tuple[int, str]]) -> list[ImportNote]:
    section = document.section("Requirements")
    notes = []
    if document.section("Purpose") is None:
        notes.append(ImportNote(source, 0, "has no `## Purpose`, so the spec has no Overview"))
    elif other := document.section("Overview"):
        notes.append(ImportNote(source, other.heading.line, "has both `## Overview` and `## Purpose`; both are kept"))
    if section is None:
        notes.append(ImportNote(source, 0, "has no `## Requirements`"))
    first: dict[str, int] = {}
    for line, name in found:
        if first.setdefault(name, line) != line:
            words = f"the requirement '{name}' occurs twice, first on line {first[name]}; each gets its own id"
            notes.append(ImportNote(source, line, words))
        if section and line not in section.span:
            notes.append(ImportNote(source, line, f"'{name}' is outside `## Requirements`; it is a requirement here"))
    if front := read_frontmatter(document).values:
        notes += [ImportNote(source, 1, f"`{key}` in the frontmatter is replaced") for key in _OUR_KEYS if key in front]
    return notes + _odd_lines(document, source)


def _odd_lines(document: Document, source: str) -> list[ImportNote]:
    notes = []
    for heading in document.headings:
        if heading.level == 2 and _DELTA.fullmatch(heading.key):
            notes.append(
                ImportNote(source, heading.line, f"`## {heading.title}` is a section of a change, not of a spec")
            )
        if heading.level == 4 and scenario_name(heading.title) is None:
            words = f"`#### {heading.title}` is not called a scenario; it stays as text of its requirement"
            notes.append(ImportNote(source, heading.line, words))
    for line, content in enumerate(document.contents, 1):
        if document.kind(line) is LineKind.COMMENT and requirement_name(content):
            notes.append(ImportNote(source, line, "a requirement in a comment is not read"))
    return notes


def _read_back(text: str, offset: int, source: str) -> tuple[dict[str, tuple[str, ...]], list[ImportNote]]:
    """Return the scenarios of each requirement as we parse them; add a note for a text that cannot be merged."""
    try:
        sheet = read_units(text, source, OURS)
    except InvalidDocument as error:
        ids = [match[1] for line in text.split("\n") if (match := OURS.match(line.rstrip("\r")))]
        return dict.fromkeys(ids, ()), [ImportNote(source, max(1, error.line - offset), error.problem)]
    found: dict[str, list[str]] = {id_: [] for id_ in sheet.requirements}
    notes = []
    for one in sheet.scenarios.values():
        if one.requirement in found:
            found[one.requirement].append(one.title)
        if one.field is not None or one.requirement not in found:
            words = f"the scenario '{one.title}' is read as one of {one.requirement or 'the whole spec'}"
            notes.append(ImportNote(source, max(1, (one.field or one.span.start) - offset), words))
    return {id_: tuple(titles) for id_, titles in found.items()}, notes


_REVIEW = re.compile(r"^<(?=/?review\b)", re.MULTILINE)
_TITLE = re.compile(r"(?:change|proposal)\s*:\s*", re.IGNORECASE)
_NO_TITLE = frozenset({"", "change", "proposal", "change proposal"})
_CAPABILITY = re.compile(
    r"[ \t]*[-*+][ \t]+\*{0,2}`?([\w./-]+)`?\*{0,2}[ \t]*(?::|[–—-](?=[ \t]))\*{0,2}[ \t]*([^<\s].*)"
)
_MORE = re.compile(r"[ \t]+(?![-*+][ \t])\S")


@dataclass(frozen=True, slots=True)
class ConvertedProposal:
    """`is_whole`: it contains every byte of the original."""

    text: str
    is_whole: bool
    notes: tuple[ImportNote, ...]


def convert_proposal(text: str, source: str, id_: str, created: str, specs: list[str]) -> ConvertedProposal:
    """Add our frontmatter, and escape tags that would be parsed as a verdict."""
    notes = []
    for match in _REVIEW.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        notes.append(ImportNote(source, line, "a review tag is written as plain text: only agentd writes verdicts"))
    affected = [{"id": one, "depends": yaml12.FlowList()} for one in specs]
    front = {"id": id_, "type": "proposal", "version": 1, "created": created, "affected_specs": affected}
    whole = add_frontmatter(_REVIEW.sub("&lt;", text), front, source)
    is_whole = whole.endswith(text.removeprefix(BOM))
    document = parse_document(whole, source)
    if document.section("Summary") is None:
        if words := proposal_title(document) or _reason(document):
            whole = _with_summary(document, words)
        else:
            notes.append(ImportNote(source, 0, "has neither a title nor a Why to take a Summary from"))
    return ConvertedProposal(whole, is_whole, tuple(notes))


def proposal_description(text: str | None, id_: str) -> str:
    """Return the proposal's title, else its reason, else its id."""
    try:
        document = parse_document(text or "", "proposal.md")
    except InvalidDocument:
        return id_
    return one_line(proposal_title(document) or _reason(document) or id_)[:300]


def proposal_capabilities(text: str | None) -> dict[str, str]:
    """Return what `## Capabilities` says about each; unfilled template entries are left out."""
    try:
        document = parse_document(text or "", "proposal.md")
    except InvalidDocument:
        return {}
    section = document.section("Capabilities")
    found: dict[str, str] = {}
    last = ""
    for _, content in document.plain_lines(section.inner) if section else ():
        if match := _CAPABILITY.match(content):
            last = match[1]
            found[last] = match[2]
        elif last and _MORE.match(content):
            found[last] += f" {content.strip()}"
        else:
            last = ""
    return {name: embed_text(one_line(words), 2) for name, words in found.items()}


def proposal_title(document: Document) -> str:
    titles = (_TITLE.sub("", one.title, count=1) for one in document.headings if one.level == 1)
    return next((one for one in titles if one.casefold() not in _NO_TITLE), "")


def _reason(document: Document) -> str:
    """Return the first paragraph of its Why."""
    why = document.section("Why")
    lines: list[str] = []
    for _, content in document.plain_lines(why.inner) if why else ():
        if content.strip() and not content.lstrip().startswith("#"):
            lines.append(content.rstrip())
        elif lines:
            break
    return "\n".join(lines).strip()


def _with_summary(document: Document, words: str) -> str:
    """Insert a summary below the title, before the first section."""
    part = document.native(f"## Summary\n\n{embed_text(words, 2)}\n\n")
    first = next((one.line for one in document.headings if one.level == 2), 0)
    if first:
        return document.replace_all([(Span(first, first), part + document.lines[first - 1])])
    return "".join(document.lines).rstrip() + document.native("\n\n") + part.rstrip() + document.newline

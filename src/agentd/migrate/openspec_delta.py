"""Convert what an OpenSpec change does to one capability to a delta, or to a complete new spec."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentd.documents import Document, InvalidDocument, Section, Span, parse_document, render_frontmatter, scenario_name
from agentd.merge import touched_units
from agentd.migrate.import_model import ImportNote
from agentd.migrate.openspec_spec import CAPABILITY, NumberedSpec, requirement_headings, requirement_name

INSIDE = "The scenarios stand with their requirements."

_ARROW = re.compile("→|->|=>")
_KINDS = {f"{kind} requirements": kind for kind in ("added", "modified", "removed", "renamed")}
_BULLET = re.compile(r"[ \t]*[-*+][ \t]*`?(###[ \t]*Requirement:.*?)`?[ \t]*$")
_PAIR = re.compile(r"[ \t]*[-*+]?[ \t]*(FROM|TO):[ \t]*`?(###[ \t]*Requirement:.*?)`?[ \t]*$")


@dataclass(slots=True)
class RequirementIds:
    """The ids of one capability by requirement name, shared by all changes: the same name gets the same id."""

    known: dict[str, str] = field(default_factory=dict)
    highest: int = 0

    def of(self, name: str) -> str:
        if name not in self.known:
            self.known[name] = self.fresh()
        return self.known[name]

    def fresh(self) -> str:
        self.highest += 1
        return f"R{self.highest}"


@dataclass(frozen=True, slots=True)
class _DeltaBlock:
    kind: str
    name: str
    line: int
    body: Span


@dataclass(slots=True)
class _DeltaText:
    """The lines written so far, each with its line in the original, 0 for our own; and notes."""

    source: str
    document: Document
    lines: list[str] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    notes: list[ImportNote] = field(default_factory=list)

    def say(self, *lines: str, origin: int = 0) -> None:
        self.lines += [line + self.document.newline for line in lines]
        self.origins += [origin] * len(lines)

    def copy(self, span: Span) -> None:
        """Copy lines of the original, without trailing blank ones."""
        lines = list(range(span.start, span.end + 1))
        while lines and not self.document.content(lines[-1]).strip():
            lines.pop()
        for line in lines:
            content = self.document.lines[line - 1]
            self.lines.append(content if content.endswith("\n") else content + self.document.newline)
            self.origins.append(line)
        self.say("")

    def note(self, line: int, message: str) -> None:
        self.notes.append(ImportNote(self.source, line, message))


def convert_delta(
    text: str,
    source: str,
    capability: str,
    id_: str,
    main: NumberedSpec | None,
    ids: RequirementIds,
    overview: str = "",
) -> tuple[str, list[ImportNote]]:
    """Return the spec of the change and notes. `overview` is for a new spec without a Purpose."""
    page = _DeltaText(source, parse_document(text, source))
    document = page.document
    sections = [(_KINDS.get(one.heading.key, ""), one) for one in document.sections if one.heading.level == 2]
    blocks = [block for kind, one in sections if kind for block in _blocks(document, kind, one)]
    pairs = [pair for kind, one in sections if kind == "renamed" for pair in _pairs(page, one)]
    _note_unmapped(page, sections, main, overview)
    here = _names(page, pairs, blocks, main, ids)
    _head(page, id_, capability, main, overview)
    _requirements(page, blocks, here)
    _taken_away(page, blocks, pairs, main)
    if any(block.kind != "removed" for block in blocks):
        page.say("## Acceptance Criteria", "", INSIDE)
    whole = "".join(page.lines)
    _note_left_out(page, blocks, here, main)
    _note_unread(page, whole, id_, main)
    return whole, page.notes


def _blocks(document: Document, kind: str, section: Section) -> Iterator[_DeltaBlock]:
    found = requirement_headings(document, section.inner)
    if kind == "removed":
        bullets = [
            (line, match[1]) for line, words in document.plain_lines(section.inner) if (match := _BULLET.match(words))
        ]
        found = sorted(found + [(line, name) for line, words in bullets if (name := requirement_name(words))])
    ends = [*(line - 1 for line, _ in found[1:]), section.span.end]
    for (line, name), end in zip(found, ends, strict=False):  # without requirements there is one end too many
        if kind != "renamed":
            yield _DeltaBlock(kind, name, line, Span(line + 1, end))


def _pairs(page: _DeltaText, section: Section) -> Iterator[tuple[int, str, str]]:
    """Yield each FROM followed by its TO; add a note for half a pair."""
    pending: tuple[int, str] | None = None
    for line, content in page.document.plain_lines(section.inner):
        match = _PAIR.match(content)
        name = requirement_name(match[2]) if match else None
        if match is None or name is None:
            continue
        if match[1] == "FROM":
            if pending:
                page.note(pending[0], f"RENAMED from '{pending[1]}' has no TO; not mapped")
            pending = (line, name)
        elif pending:
            yield pending[0], pending[1], name
            pending = None
        else:
            page.note(line, f"RENAMED to '{name}' has no FROM; not mapped")
    if pending:
        page.note(pending[0], f"RENAMED from '{pending[1]}' has no TO; not mapped")


def _names(
    page: _DeltaText,
    pairs: list[tuple[int, str, str]],
    blocks: list[_DeltaBlock],
    main: NumberedSpec | None,
    ids: RequirementIds,
) -> dict[int, str]:
    """Return the id of each written block by its line. MODIFIED uses the new name of a renamed requirement."""
    known = main.ids if main else {}
    renamed = {new: known[old] for _, old, new in pairs if old in known}
    left = {old for _, old, _ in pairs}
    found: dict[int, str] = {}
    for block in blocks:
        if block.kind == "modified" and block.name not in known and block.name not in renamed:
            page.note(block.line, f"MODIFIED '{block.name}' is not in the main spec; written as a new requirement")
        if block.kind == "added" and block.name in known and block.name not in left:
            page.note(block.line, f"ADDED '{block.name}' is in the main spec already; written as a change of it")
        if block.kind == "removed":
            continue
        if block.kind == "modified" and block.name in renamed:
            found[block.line] = renamed[block.name]
        else:
            found[block.line] = ids.fresh() if block.name in left else ids.of(block.name)
    return found


# ---- writing


def _head(page: _DeltaText, id_: str, capability: str, main: NumberedSpec | None, overview: str) -> None:
    title = main.title if main else f"{capability} Specification"
    front: dict[str, object] = {"id": id_, "type": "spec", "title": title}
    front |= {"base_version": 1} if main else {"version": 1}
    front |= {CAPABILITY: capability} if capability != id_ else {}
    page.say(*render_frontmatter(front).splitlines(), "", f"# {title}", "")
    purpose = page.document.section("Purpose")
    if main and main.overview:
        page.say("## Overview", "", *main.overview.split("\n"), "")
    elif main is None and purpose:
        page.say("## Overview", origin=purpose.heading.line)
        page.copy(purpose.inner)
    elif main is None and overview:
        page.say("## Overview", "", overview, "")


def _requirements(page: _DeltaText, blocks: Iterable[_DeltaBlock], here: dict[int, str]) -> None:
    written = [block for block in blocks if block.kind != "removed"]
    if written:
        page.say("## Requirements", "")
    for block in written:
        page.say(f"### {here[block.line]}: {block.name}", origin=block.line)
        page.copy(block.body)


def _taken_away(
    page: _DeltaText, blocks: Iterable[_DeltaBlock], pairs: list[tuple[int, str, str]], main: NumberedSpec | None
) -> None:
    known = main.ids if main else {}
    removed = [block for block in blocks if block.kind == "removed"]
    for line, name in [(one.line, one.name) for one in removed] + [(line, old) for line, old, _ in pairs]:
        if name not in known:
            page.note(line, f"'{name}' is not in the main spec, so it is neither removed nor renamed")
    if any(block.name in known for block in removed):
        page.say("## Removed", "")
        for block in removed:
            if block.name in known:
                page.say(f"- {known[block.name]}: {block.name}", origin=block.line)
                words = page.document.trimmed_text(block.body)
                page.say(*(f"  {line}" if line else "" for line in words.split("\n") if words), origin=block.line)
        page.say("")
    if any(old in known for _, old, _ in pairs):
        page.say("## Renamed", "")
        for line, old, new in pairs:
            if old in known:
                # An arrow in the old name would be mistaken for the separator; the id alone is enough.
                named = known[old] if _ARROW.search(old) else f"{known[old]}: {old}"
                page.say(f"- {named} → {known[old]}: {new}", origin=line)
        page.say("")


# ---- notes


def _note_unmapped(
    page: _DeltaText, sections: list[tuple[str, Section]], main: NumberedSpec | None, overview: str
) -> None:
    document = page.document
    first = document.headings[0].line if document.headings else len(document.lines) + 1
    if document.trimmed_text(Span(1, first - 1)):
        page.note(1, "the text above the first heading is not mapped")
    for kind, section in sections:
        key = section.heading.key
        if not kind and not (key == "purpose" and main is None):
            page.note(section.heading.line, f"`## {section.heading.title}` is not mapped")
    inside = [section.span for kind, section in sections if kind]
    for line, name in requirement_headings(document, document.span):
        if not any(line in span for span in inside):
            page.note(line, f"'{name}' is in no section of a change; not mapped")
    if not inside:
        page.note(0, "has no ADDED, MODIFIED, REMOVED or RENAMED section")
    elif main is None and not document.section("Purpose") and not overview:
        page.note(0, "is a new spec without `## Purpose` or a line in the proposal's Capabilities: it has no Overview")


def _note_left_out(
    page: _DeltaText, blocks: list[_DeltaBlock], here: dict[int, str], main: NumberedSpec | None
) -> None:
    """Note scenarios that MODIFIED does not repeat. They stay, as nothing removes them explicitly."""
    for block in blocks:
        if block.kind == "modified" and main:
            written = {scenario_name(one.title) for one in page.document.headings if one.line in block.body}
            for title in main.scenarios.get(here[block.line], ()):
                if title not in written:
                    words = f"MODIFIED '{block.name}' leaves out the scenario '{title}', which stays"
                    page.note(block.line, f"{words}; write `- Scenario: {title}` under `## Removed` if it is to go")


def _note_unread(page: _DeltaText, whole: str, id_: str, main: NumberedSpec | None) -> None:
    try:
        touched_units(whole, main.text if main else None, id_)
    except InvalidDocument as error:
        if error.file.startswith("specs/"):
            at = page.origins[min(error.line, len(page.origins)) - 1]
            page.note(at, f"{error.problem} (line {error.line} of our specs/{id_}.md)")

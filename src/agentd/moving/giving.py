"""The project's specs as an OpenSpec tree. Our texts with its headings, scenarios below their requirements."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from agentd.documents import frontmatter
from agentd.documents.text import Section, Span
from agentd.merge import units
from agentd.merge.line_editor import LineEditor
from agentd.merge.units import ACCEPTANCE_CRITERIA, RequirementUnit, ScenarioUnit, SpecUnits
from agentd.moving.found import Note
from agentd.moving.openspec_delta import INSIDE
from agentd.moving.openspec_spec import CAPABILITY, without_front

_OURS = ("id", "type", "title", "version", "base_version", "archived", "change", CAPABILITY)
_SCENARIO = re.compile(r"####[ \t]+Scenario:")


@dataclass(frozen=True, slots=True)
class Given:
    capability: str
    text: str
    notes: tuple[Note, ...]


def give(text: str, id_: str, pattern: re.Pattern[str]) -> Given:
    """One spec; what can be read in two ways raises BadDocument."""
    source = f"agentd/specs/{id_}.md"
    sheet = units.read_units(text, source, pattern)
    draft = LineEditor(sheet)
    for requirement in sheet.requirements.values():
        draft.replace(Span(requirement.line, requirement.line), [f"### Requirement: {requirement.title}"])
    for scenario in sheet.scenarios.values():
        _place(sheet, draft, scenario)
    _sections(sheet, draft)
    capability = _capability(str(frontmatter.read_frontmatter(sheet.document).values.get(CAPABILITY) or ""), id_)
    return Given(capability, without_front(draft.text(), _OURS, source), tuple(_notes(sheet, source)))


def apart(found: Iterable[tuple[str, Given]]) -> tuple[dict[str, str], list[Note]]:
    """The texts by capability; a second one of the same name goes by its own id."""
    texts: dict[str, str] = {}
    notes: list[Note] = []
    for id_, one in found:
        name = one.capability
        if name in texts:
            notes.append(Note(f"agentd/specs/{id_}.md", 0, f"the capability '{name}' is there already; given as {id_}"))
            name = id_
        texts[name] = one.text
        notes += one.notes
    return texts, notes


def _place(sheet: SpecUnits, draft: LineEditor, one: ScenarioUnit) -> None:
    """A scenario of a requirement stands below it, and needs no line that names it."""
    document = sheet.document
    content = document.content(one.span.start)
    heading = content if _SCENARIO.match(content) else f"#### Scenario: {one.title}"
    owner = sheet.requirements.get(one.requirement)
    if one.is_inside and _holds(owner, one):
        draft.replace(Span(one.span.start, one.span.start), [heading])
        if one.field is not None:
            draft.cut(Span(one.field, one.field))
    elif owner:
        lines = [document.content(line) for line in range(one.span.start + 1, sheet.last_line(one.span) + 1)]
        if one.field is not None:
            del lines[one.field - one.span.start - 1]
        draft.cut(one.span)
        draft.put(sheet.last_line(Span(owner.line, owner.end)), [heading, *_from_first(lines)])


def _holds(owner: RequirementUnit | None, one: ScenarioUnit) -> bool:
    return owner is not None and owner.line < one.span.start <= owner.end


def _from_first(lines: list[str]) -> list[str]:
    """Without blank lines at the top."""
    return lines[next((number for number, line in enumerate(lines) if line.strip()), len(lines)) :]


def _sections(sheet: SpecUnits, draft: LineEditor) -> None:
    document = sheet.document
    overview, criteria = document.section("Overview"), document.section(ACCEPTANCE_CRITERIA)
    if overview and not document.section("Purpose"):
        draft.replace(Span(overview.heading.line, overview.heading.line), ["## Purpose"])
    if criteria and _is_empty(sheet, criteria):
        draft.cut(criteria.span)


def _is_empty(sheet: SpecUnits, section: Section) -> bool:
    """All scenarios have gone to their requirements, and nothing else stood there."""
    left = set(range(section.heading.line + 1, section.span.end + 1))
    for one in sheet.scenarios.values():
        if one.requirement in sheet.requirements:
            left -= set(range(one.span.start, one.span.end + 1))
    for id_, group in sheet.groups:
        left -= {group.heading.line} if id_ in sheet.requirements else set()
    words = " ".join(sheet.document.content(line).strip() for line in sorted(left)).strip()
    return words in ("", INSIDE)


def _capability(wanted: str, id_: str) -> str:
    """The path that an import kept, if it leads nowhere else."""
    parts = PurePosixPath(wanted).parts
    is_safe = wanted and not any(part.startswith((".", "/")) or "\\" in part or "\0" in part for part in parts)
    return "/".join(parts) if is_safe else id_


def _notes(sheet: SpecUnits, source: str) -> Iterable[Note]:
    first: Mapping[str, int] = {}
    for one in sheet.requirements.values():
        if one.title in first:
            words = f"'{one.title}' is also the title on line {first[one.title]}; OpenSpec knows requirements by name"
            yield Note(source, one.line, words)
        first = {one.title: one.line} | dict(first)
    for scenario in sheet.scenarios.values():
        if scenario.requirement not in sheet.requirements:
            words = f"the scenario '{scenario.title}' is of no requirement, so OpenSpec will not see it; its text stays"
            yield Note(source, scenario.span.start, words)
        elif len(scenario.refs) > 1:
            words = f"the scenario '{scenario.title}' is of {', '.join(scenario.refs)}; it is given to the first"
            yield Note(source, scenario.span.start, words)

"""The project's specs as an OpenSpec tree. Our texts with its headings, scenarios below their requirements."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentd.documents import Section, Span, read_frontmatter
from agentd.domain import Refusal
from agentd.merge import ACCEPTANCE_CRITERIA, LineEditor, RequirementUnit, ScenarioUnit, SpecUnits, read_units
from agentd.migrate.import_model import ImportNote
from agentd.migrate.openspec_delta import INSIDE
from agentd.migrate.openspec_spec import CAPABILITY, strip_frontmatter
from agentd.storage import files

_OURS = ("id", "type", "title", "version", "base_version", "archived", "change", CAPABILITY)
_SCENARIO = re.compile(r"####[ \t]+Scenario:")


@dataclass(frozen=True, slots=True)
class ExportedSpec:
    capability: str
    text: str
    notes: tuple[ImportNote, ...]


def export_spec(text: str, id_: str, pattern: re.Pattern[str]) -> ExportedSpec:
    """One spec; what can be read in two ways raises BadDocument."""
    source = f"agentd/specs/{id_}.md"
    sheet = read_units(text, source, pattern)
    draft = LineEditor(sheet)
    for requirement in sheet.requirements.values():
        draft.replace(Span(requirement.line, requirement.line), [f"### Requirement: {requirement.title}"])
    for scenario in sheet.scenarios.values():
        _scenario_place(sheet, draft, scenario)
    _sections(sheet, draft)
    capability = _capability(str(read_frontmatter(sheet.document).values.get(CAPABILITY) or ""), id_)
    return ExportedSpec(capability, strip_frontmatter(draft.text(), _OURS, source), tuple(_notes(sheet, source)))


def distinct_capabilities(found: Iterable[tuple[str, ExportedSpec]]) -> tuple[dict[str, str], list[ImportNote]]:
    """The texts by capability; a second one of the same name goes by its own id."""
    texts: dict[str, str] = {}
    notes: list[ImportNote] = []
    for id_, one in found:
        name = one.capability
        if name in texts:
            notes.append(
                ImportNote(f"agentd/specs/{id_}.md", 0, f"the capability '{name}' is there already; given as {id_}")
            )
            name = id_
        texts[name] = one.text
        notes += one.notes
    return texts, notes


def _scenario_place(sheet: SpecUnits, draft: LineEditor, one: ScenarioUnit) -> None:
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


def _notes(sheet: SpecUnits, source: str) -> Iterable[ImportNote]:
    first: Mapping[str, int] = {}
    for one in sheet.requirements.values():
        if one.title in first:
            words = f"'{one.title}' is also the title on line {first[one.title]}; OpenSpec knows requirements by name"
            yield ImportNote(source, one.line, words)
        first = {one.title: one.line} | dict(first)
    for scenario in sheet.scenarios.values():
        if scenario.requirement not in sheet.requirements:
            words = f"the scenario '{scenario.title}' is of no requirement, so OpenSpec will not see it; its text stays"
            yield ImportNote(source, scenario.span.start, words)
        elif len(scenario.refs) > 1:
            words = f"the scenario '{scenario.title}' is of {', '.join(scenario.refs)}; it is given to the first"
            yield ImportNote(source, scenario.span.start, words)


EXPORT_FOLDER = "openspec/specs"


def write_export(texts: Mapping[str, str], into: Path) -> None:
    """The texts as a new tree below a folder, which appears whole or not at all."""
    target = into / EXPORT_FOLDER
    if os.path.lexists(target):
        raise Refusal(f"{target} is there already; nothing was written", "name another folder with --into")
    temporary = into / f".{target.name}.{os.getpid()}.tmp"
    try:
        for name, text in texts.items():
            files.write(temporary.joinpath(*name.split("/"), "spec.md"), text.encode())
        files.move(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)

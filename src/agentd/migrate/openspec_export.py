"""Export the project's specs as an OpenSpec tree: with its headings, and scenarios below their requirements."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path, PurePosixPath

from agentd.documents import Section, Span, read_frontmatter
from agentd.domain import Refusal
from agentd.merge import ACCEPTANCE_CRITERIA, LineEditor, ScenarioUnit, SpecUnits, read_units
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
    """Convert one spec; raise InvalidDocument if the text is ambiguous."""
    source = f"agentd/specs/{id_}.md"
    parsed = read_units(text, source, pattern)
    editor = LineEditor(parsed)
    for requirement in parsed.requirements.values():
        editor.replace(Span(requirement.line, requirement.line), [f"### Requirement: {requirement.title}"])
    for scenario in parsed.scenarios.values():
        _scenario_place(parsed, editor, scenario)
    overview, criteria = parsed.document.section("Overview"), parsed.document.section(ACCEPTANCE_CRITERIA)
    if overview and not parsed.document.section("Purpose"):
        editor.replace(Span(overview.heading.line, overview.heading.line), ["## Purpose"])
    if criteria and _is_empty(parsed, criteria):
        editor.cut(criteria.span)
    # Use the path that an import stored, unless it is unsafe.
    wanted = str(read_frontmatter(parsed.document).values.get(CAPABILITY) or "")
    parts = PurePosixPath(wanted).parts
    is_safe = wanted and not any(part.startswith((".", "/")) or "\\" in part or "\0" in part for part in parts)
    capability = "/".join(parts) if is_safe else id_
    return ExportedSpec(capability, strip_frontmatter(editor.text(), _OURS, source), tuple(_notes(parsed, source)))


def distinct_capabilities(found: Iterable[tuple[str, ExportedSpec]]) -> tuple[dict[str, str], list[ImportNote]]:
    """Return the texts by capability; a second one of the same name is exported under its id."""
    texts: dict[str, str] = {}
    notes: list[ImportNote] = []
    for id_, one in found:
        name = one.capability
        if name in texts:
            notes.append(
                ImportNote(f"agentd/specs/{id_}.md", 0, f"the capability '{name}' already exists; exported as {id_}")
            )
            name = id_
        texts[name] = one.text
        notes += one.notes
    return texts, notes


def _scenario_place(parsed: SpecUnits, editor: LineEditor, one: ScenarioUnit) -> None:
    """Move a scenario below its requirement, without the line that names it."""
    document = parsed.document
    content = document.content(one.span.start)
    heading = content if _SCENARIO.match(content) else f"#### Scenario: {one.title}"
    owner = parsed.requirements.get(one.requirement)
    if one.is_inside and owner and owner.line < one.span.start <= owner.end:
        editor.replace(Span(one.span.start, one.span.start), [heading])
        if one.field is not None:
            editor.cut(Span(one.field, one.field))
    elif owner:
        lines = [document.content(line) for line in range(one.span.start + 1, parsed.last_line(one.span) + 1)]
        if one.field is not None:
            del lines[one.field - one.span.start - 1]
        editor.cut(one.span)
        body = dropwhile(lambda line: not line.strip(), lines)
        editor.put(parsed.last_line(Span(owner.line, owner.end)), [heading, *body])


def _is_empty(parsed: SpecUnits, section: Section) -> bool:
    """Return whether nothing is left once all scenarios are moved to their requirements."""
    left = set(range(section.heading.line + 1, section.span.end + 1))
    for one in parsed.scenarios.values():
        if one.requirement in parsed.requirements:
            left -= set(range(one.span.start, one.span.end + 1))
    for id_, group in parsed.groups:
        left -= {group.heading.line} if id_ in parsed.requirements else set()
    words = " ".join(parsed.document.content(line).strip() for line in sorted(left)).strip()
    return words in ("", INSIDE)


def _notes(parsed: SpecUnits, source: str) -> Iterable[ImportNote]:
    first: dict[str, int] = {}
    for one in parsed.requirements.values():
        if first.setdefault(one.title, one.line) != one.line:
            words = f"'{one.title}' is also the title on line {first[one.title]}; OpenSpec knows requirements by name"
            yield ImportNote(source, one.line, words)
    for scenario in parsed.scenarios.values():
        if scenario.requirement not in parsed.requirements:
            words = f"the scenario '{scenario.title}' belongs to no requirement; OpenSpec will not see it"
            yield ImportNote(source, scenario.span.start, words)
        elif len(scenario.refs) > 1:
            words = f"the scenario '{scenario.title}' belongs to {', '.join(scenario.refs)}; exported with the first"
            yield ImportNote(source, scenario.span.start, words)


EXPORT_FOLDER = "openspec/specs"


def write_export(texts: Mapping[str, str], into: Path) -> None:
    """Write the texts as a new tree below a folder, all or nothing."""
    target = into / EXPORT_FOLDER
    if os.path.lexists(target):
        raise Refusal(f"{target} already exists; nothing was written", "name another folder with --into")
    temporary = into / f".{target.name}.{os.getpid()}.tmp"
    try:
        for name, text in texts.items():
            files.write(temporary.joinpath(*name.split("/"), "spec.md"), text.encode())
        files.move(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)

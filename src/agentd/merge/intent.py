"""What a change's spec says in so many words: entries, removals, renames. What contradicts itself is refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from agentd.documents import InvalidDocument, RemovedItem, RenamedRequirement, Span, is_empty_phrase, read_fields
from agentd.merge.units import SpecUnits


@dataclass(frozen=True, slots=True)
class ScenarioRemoval:
    """A scenario to be removed: by its title, and by its requirement where the entry names that too."""

    entry: RemovedItem
    requirement: str | None = None
    field: int | None = None
    """The line that names it."""


@dataclass(frozen=True, slots=True)
class MergeIntent:
    """Entries are named as they are called afterwards: what is renamed from R4 to R7 is written as R7."""

    sheet: SpecUnits
    removed: Mapping[str, RemovedItem]
    renamed: Mapping[str, RenamedRequirement]
    names: Mapping[str, str]
    """The new id for each old one."""
    drops: tuple[ScenarioRemoval, ...]


def read_intent(sheet: SpecUnits) -> MergeIntent:
    spec = sheet.spec
    for text, line in spec.unread:
        raise _bad(sheet, line, f"'{text}' names no requirement and no scenario")
    removed: dict[str, RemovedItem] = {}
    drops: list[ScenarioRemoval] = []
    for one in spec.removed:
        if one.id in removed:
            raise _bad(sheet, one.span.start, f"{one.id} is removed twice")
        if one.id in sheet.requirements:
            raise _bad(sheet, one.span.start, f"{one.id} is removed and written as well; keep one of the two")
        if one.id:
            removed[one.id] = one
        else:
            drops.append(_drop(sheet, one))
    renamed = _renamed(sheet, removed)
    return MergeIntent(sheet, removed, renamed, {old: one.new.id for old, one in renamed.items()}, tuple(drops))


def refuse_lost_headings(sheet: SpecUnits) -> None:
    """Headings among the requirements of a delta that no merge would carry over."""
    for heading in sheet.spec.strays:
        raise _bad(sheet, heading.line, f"'{heading.title[:60]}' is no requirement, and would be lost")


def _drop(sheet: SpecUnits, entry: RemovedItem) -> ScenarioRemoval:
    """R2 in a line `- **Requirement**: R2` below the entry; empty for `none`, a scenario of the whole spec."""
    below = Span(entry.span.start + 1, entry.span.end)
    for found in read_fields(sheet.document, below, {"requirement"}):
        return ScenarioRemoval(
            entry, "" if is_empty_phrase(found.value) else found.value.strip("`*_ "), found.span.start
        )
    return ScenarioRemoval(entry)


def _renamed(sheet: SpecUnits, removed: Mapping[str, RemovedItem]) -> dict[str, RenamedRequirement]:
    found: dict[str, RenamedRequirement] = {}
    taken: set[str] = set()
    for one in sheet.spec.renamed:
        old, new, line = one.old.id, one.new.id, one.span.start
        if old in found or new in taken:
            raise _bad(sheet, line, f"{old} → {new}: one of the two is renamed twice")
        if one.old == one.new:
            raise _bad(sheet, line, f"{old} keeps its name; write it with its new heading under Requirements")
        if old in removed or new in removed:
            raise _bad(sheet, line, f"{old} → {new}: one of the two is removed as well")
        if old != new and old in sheet.requirements:
            raise _bad(sheet, line, f"{old} is renamed to {new} and written as well; write it as {new}")
        found[old] = one
        taken.add(new)
    return found


def _bad(sheet: SpecUnits, line: int, problem: str) -> InvalidDocument:
    return InvalidDocument(sheet.document.name, line, problem)

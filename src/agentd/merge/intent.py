"""What a change's spec says in so many words: entries, removals, renames. What contradicts itself is refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from agentd.documents.delta import Removed, Renamed
from agentd.documents.prose import fields, is_nothing
from agentd.documents.text import BadDocument, Span
from agentd.merge.units import Sheet


@dataclass(frozen=True, slots=True)
class Drop:
    """A scenario to be removed: by its title, and by its requirement where the entry names that too."""

    entry: Removed
    requirement: str | None = None
    field: int | None = None
    """The line that names it."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Entries are named as they are called afterwards: what is renamed from R4 to R7 is written as R7."""

    sheet: Sheet
    removed: Mapping[str, Removed]
    renamed: Mapping[str, Renamed]
    names: Mapping[str, str]
    """The new id for each old one."""
    drops: tuple[Drop, ...]


def read(sheet: Sheet) -> Intent:
    spec = sheet.spec
    for text, line in spec.unread:
        raise _bad(sheet, line, f"'{text}' names no requirement and no scenario")
    removed: dict[str, Removed] = {}
    drops: list[Drop] = []
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
    return Intent(sheet, removed, renamed, {old: one.new.id for old, one in renamed.items()}, tuple(drops))


def refuse_lost(sheet: Sheet) -> None:
    """Headings among the requirements of a delta that no merge would carry over."""
    for heading in sheet.spec.strays:
        raise _bad(sheet, heading.line, f"'{heading.title[:60]}' is no requirement, and would be lost")


def _drop(sheet: Sheet, entry: Removed) -> Drop:
    """R2 in a line `- **Requirement**: R2` below the entry; empty for `none`, a scenario of the whole spec."""
    below = Span(entry.span.start + 1, entry.span.end)
    for found in fields(sheet.document, below, {"requirement"}):
        return Drop(entry, "" if is_nothing(found.value) else found.value.strip("`*_ "), found.span.start)
    return Drop(entry)


def _renamed(sheet: Sheet, removed: Mapping[str, Removed]) -> dict[str, Renamed]:
    found: dict[str, Renamed] = {}
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


def _bad(sheet: Sheet, line: int, problem: str) -> BadDocument:
    return BadDocument(sheet.document.name, line, problem)

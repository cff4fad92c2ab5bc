"""The three-way decision for each unit: keep the main spec's version, take the change's, or neither (a conflict).

All three texts are aligned first: renamed requirements get their new id, and a scenario that names several requirements
no longer names those that either side removed. So such a scenario remains, with the other side's edits, as long as one
of its requirements remains; it is removed only if the change removes all of them. If others gave a requirement a new
id, the main spec does not show that: one requirement is gone, and another is new.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from agentd.documents import InvalidDocument, RemovedItem, RenamedRequirement, Span, is_empty_phrase, read_fields
from agentd.domain import join_words
from agentd.merge.units import Key, RequirementUnit, ScenarioUnit, SpecUnits


@dataclass(frozen=True, slots=True)
class ScenarioRemoval:
    """A scenario to remove, identified by its title and, if the entry names one, its requirement."""

    entry: RemovedItem
    requirement: str | None = None
    field: int | None = None
    """The line that names it."""


@dataclass(frozen=True, slots=True)
class MergeIntent:
    """What a change wants. Entries go by their new names: a requirement renamed from R4 to R7 is R7."""

    parsed: SpecUnits
    removed: Mapping[str, RemovedItem]
    renamed: Mapping[str, RenamedRequirement]
    names: Mapping[str, str]
    """The new id for each old one."""
    drops: tuple[ScenarioRemoval, ...]


def read_intent(parsed: SpecUnits) -> MergeIntent:
    spec = parsed.spec
    for text, line in spec.unread:
        raise _bad(parsed, line, f"'{text}' names no requirement and no scenario")
    removed: dict[str, RemovedItem] = {}
    drops: list[ScenarioRemoval] = []
    for one in spec.removed:
        if one.id in removed:
            raise _bad(parsed, one.span.start, f"{one.id} is removed twice")
        if one.id in parsed.requirements:
            raise _bad(parsed, one.span.start, f"{one.id} is removed and written as well; keep one of the two")
        if one.id:
            removed[one.id] = one
        else:
            drops.append(_drop(parsed, one))
    renamed = _renamed(parsed, removed)
    return MergeIntent(parsed, removed, renamed, {old: one.new.id for old, one in renamed.items()}, tuple(drops))


def refuse_lost_headings(parsed: SpecUnits) -> None:
    """Raise InvalidDocument for headings among a delta's requirements that a merge would lose."""
    for heading in parsed.spec.strays:
        raise _bad(parsed, heading.line, f"'{heading.title[:60]}' is not a requirement and would be lost")


def _drop(parsed: SpecUnits, entry: RemovedItem) -> ScenarioRemoval:
    """Read a removed scenario, with R2 from a line `- **Requirement**: R2` below it; `none` means the whole spec."""
    below = Span(entry.span.start + 1, entry.span.end)
    for found in read_fields(parsed.document, below, {"requirement"}):
        return ScenarioRemoval(
            entry, "" if is_empty_phrase(found.value) else found.value.strip("`*_ "), found.span.start
        )
    return ScenarioRemoval(entry)


def _renamed(parsed: SpecUnits, removed: Mapping[str, RemovedItem]) -> dict[str, RenamedRequirement]:
    found: dict[str, RenamedRequirement] = {}
    taken: set[str] = set()
    for one in parsed.spec.renamed:
        old, new, line = one.old.id, one.new.id, one.span.start
        if old in found or new in taken:
            raise _bad(parsed, line, f"{old} → {new}: one of the two is renamed twice")
        if one.old == one.new:
            raise _bad(parsed, line, f"{old} keeps its name; write it with its new heading under Requirements")
        if old in removed or new in removed:
            raise _bad(parsed, line, f"{old} → {new}: one of the two is removed as well")
        if old != new and old in parsed.requirements:
            raise _bad(parsed, line, f"{old} is renamed to {new} and written as well; write it as {new}")
        found[old] = one
        taken.add(new)
    return found


def _bad(parsed: SpecUnits, line: int, problem: str) -> InvalidDocument:
    return InvalidDocument(parsed.document.name, line, problem)


_T = TypeVar("_T")


class MergeSide(StrEnum):
    THEIRS = "theirs"
    YOURS = "yours"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class RequirementDecision:
    """One requirement on three sides, by its new id. `title` is the title the change wants."""

    id: str
    base: RequirementUnit | None
    theirs: RequirementUnit | None
    entry: RequirementUnit | None
    rename: RenamedRequirement | None
    title: str
    is_removed: bool
    heading: MergeSide
    text: MergeSide

    @property
    def is_open(self) -> bool:
        return MergeSide.NEITHER in (self.heading, self.text)


@dataclass(frozen=True, slots=True)
class ScenarioDecision:
    key: Key
    base: ScenarioUnit | None
    theirs: ScenarioUnit | None
    entry: ScenarioUnit | None
    is_removed: bool
    take: MergeSide


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The decision for every unit. `drops` are the removed scenarios, by the line of their entry."""

    main: SpecUnits
    base: SpecUnits
    intent: MergeIntent
    requirements: tuple[RequirementDecision, ...]
    scenarios: tuple[ScenarioDecision, ...]
    drops: Mapping[int, tuple[Key, ...]]
    gone_there: frozenset[str]


def plan_merge(main: SpecUnits, intent: MergeIntent, base: SpecUnits) -> MergePlan:
    _refuse_taken(intent, base)
    names = intent.names
    # If main has both ids, the new one belongs to another requirement, and nothing is renamed.
    names_there = {old: new for old, new in names.items() if old in base.requirements and new not in main.requirements}
    before = {names.get(id_, id_): one for id_, one in base.requirements.items()}
    now = {names_there.get(id_, id_): one for id_, one in main.requirements.items()}
    gone_there = frozenset(before.keys() - now.keys())
    gone = gone_there | intent.removed.keys()
    requirements = tuple(_requirements(main, intent, (before, now, intent.parsed.requirements)))
    sides = (_aligned(base, names, gone), _aligned(main, names_there, gone), _aligned(intent.parsed, names, gone))
    drops = _drops(intent, sides, frozenset(before), gone_there)
    scenarios = tuple(_scenarios(intent, sides, drops, gone_there))
    return MergePlan(main, base, intent, requirements, scenarios, drops, gone_there)


def choose_three_way(base: _T, theirs: _T, yours: _T) -> MergeSide:
    if yours in (base, theirs):
        return MergeSide.THEIRS
    return MergeSide.YOURS if theirs == base else MergeSide.NEITHER


# ---- requirements


def _refuse_taken(intent: MergeIntent, base: SpecUnits) -> None:
    for old, one in intent.renamed.items():
        if old != one.new.id and old in base.requirements and one.new.id in base.requirements:
            problem = f"{old} cannot become {one.new.id}: that id is taken; use a free one"
            raise InvalidDocument(intent.parsed.document.name, one.span.start, problem)


def _requirements(
    main: SpecUnits, intent: MergeIntent, sides: tuple[Mapping[str, RequirementUnit], ...]
) -> Iterator[RequirementDecision]:
    renames = {one.new.id: one for one in intent.renamed.values()}
    for id_ in dict.fromkeys(id_ for side in sides for id_ in side):
        base, theirs, entry = (side.get(id_) for side in sides)
        rename = renames.get(id_)
        if id_ in intent.removed:
            yield _removed(id_, base, theirs)
        elif rename and is_id_taken(rename, main):
            title = _title(intent, base, entry, rename)
            yield RequirementDecision(
                id_, base, theirs, entry, rename, title, False, MergeSide.NEITHER, MergeSide.THEIRS
            )
        elif (unknown := intent.renamed.get(id_)) and base is None and theirs and not is_id_taken(unknown, main):
            # The change renames a requirement that its base does not have.
            yield RequirementDecision(
                id_, None, theirs, None, unknown, unknown.new.title, False, MergeSide.NEITHER, MergeSide.THEIRS
            )
        else:
            yield _written(id_, base, theirs, entry, rename, _title(intent, base, entry, rename))


def is_id_taken(rename: RenamedRequirement, main: SpecUnits) -> bool:
    """Return whether others use the new id for another requirement."""
    old, new = rename.old.id, rename.new.id
    return old != new and old in main.requirements and new in main.requirements


def _removed(id_: str, base: RequirementUnit | None, theirs: RequirementUnit | None) -> RequirementDecision:
    take = MergeSide.THEIRS
    if theirs:
        is_same = base is not None and (base.name, base.words) == (theirs.name, theirs.words)
        take = MergeSide.YOURS if is_same else MergeSide.NEITHER
    return RequirementDecision(id_, base, theirs, None, None, "", True, take, take)


def _written(
    id_: str,
    base: RequirementUnit | None,
    theirs: RequirementUnit | None,
    entry: RequirementUnit | None,
    rename: RenamedRequirement | None,
    title: str,
) -> RequirementDecision:
    """Decide a requirement that the change does not remove. An entry without a body keeps the text."""
    words = entry.words if entry and (entry.words or base is None) else base.words if base else ""
    name = (id_, title)
    if base and theirs:
        heading = choose_three_way(base.name, theirs.name, name)
        text = choose_three_way(base.words, theirs.words, words)
    else:
        heading = text = choose_three_way(
            (base.name, base.words) if base else None,
            (theirs.name, theirs.words) if theirs else None,
            (name, words) if base or entry else None,
        )
    return RequirementDecision(id_, base, theirs, entry, rename, title, False, heading, text)


def _title(
    intent: MergeIntent, base: RequirementUnit | None, entry: RequirementUnit | None, rename: RenamedRequirement | None
) -> str:
    """Return the title that the change asks for; repeating the old title does not count."""
    old = base.title if base else ""
    wanted = {one for one in (rename.new.title if rename else "", entry.title if entry else "") if one and one != old}
    if len(wanted) > 1 and rename and entry:
        problem = f"{entry.id} has one title under Renamed and another here"
        raise InvalidDocument(intent.parsed.document.name, entry.line, problem)
    return wanted.pop() if wanted else old


# ---- scenarios


_Sides = tuple[Mapping[Key, ScenarioUnit], Mapping[Key, ScenarioUnit], Mapping[Key, ScenarioUnit]]


def _aligned(parsed: SpecUnits, names: Mapping[str, str], gone: Collection[str]) -> Mapping[Key, ScenarioUnit]:
    if not names and not gone:
        return parsed.scenarios
    found: dict[Key, ScenarioUnit] = {}
    for one in parsed.scenarios.values():
        refs = tuple(dict.fromkeys(names.get(ref, ref) for ref in one.refs))
        unit = replace(one, refs=tuple(ref for ref in refs if ref not in gone) or refs)
        if unit.key in found:
            problem = f"two scenarios '{one.title}' would be of {unit.requirement}; give one another title"
            raise InvalidDocument(parsed.document.name, one.span.start, problem)
        found[unit.key] = unit
    return found


def _drops(
    intent: MergeIntent, sides: _Sides, before: Collection[str], gone_there: frozenset[str]
) -> dict[int, tuple[Key, ...]]:
    """Return which scenarios each entry under Removed means: those in the base, otherwise those in the main spec.

    A scenario that was moved to another requirement in the main spec still exists.
    """
    base, main, _ = (_by_title(side) if intent.drops else {} for side in sides)
    names, entries = intent.names, sides[2]
    found: dict[int, tuple[Key, ...]] = {}
    for drop in intent.drops:
        title, line = drop.entry.title, drop.entry.span.start
        wanted = None if drop.requirement is None else names.get(drop.requirement, drop.requirement)
        meant, there = (
            [one.key for one in side.get(title, ()) if wanted is None or wanted in _owners(one, names)]
            for side in (base, main)
        )
        if len(meant) == 1 and meant[0] not in sides[1]:
            elsewhere = _elsewhere(sides[0][meant[0]], main.get(title, ()), before)
            lost = _named(sides[0][meant[0]], names) & gone_there - intent.removed.keys()
            meant = [key for key in elsewhere if lost and key not in entries][:1] or meant
        unwritten = tuple(key for key in meant or there if key not in entries)
        if (meant and not unwritten) or (wanted is not None and (wanted, title) in entries):
            raise InvalidDocument(intent.parsed.document.name, line, f"'{title}' is removed and written as well")
        if len(unwritten) > 1:
            owners = join_words([key[0] or "the whole spec" for key in unwritten])
            problem = f"'{title}' is a scenario of {owners}; write `- **Requirement**: …` below it to say which"
            raise InvalidDocument(intent.parsed.document.name, line, problem)
        found[line] = unwritten
    return found


def _elsewhere(one: ScenarioUnit, there: Iterable[ScenarioUnit], before: Collection[str]) -> list[Key]:
    """Return scenarios of the main spec with the same text, for a requirement that is not in the base."""
    return [
        other.key
        for other in there
        if other.words == one.words and any(":" not in ref and ref not in before for ref in other.refs)
    ]


def _owners(one: ScenarioUnit, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the scenario's requirement, as its text names it and as the merge does."""
    written = one.written[0] if one.written else ""
    return names.get(written, written), one.requirement


def _by_title(side: Mapping[Key, ScenarioUnit]) -> dict[str, list[ScenarioUnit]]:
    found: dict[str, list[ScenarioUnit]] = {}
    for one in side.values():
        found.setdefault(one.title, []).append(one)
    return found


def _scenarios(
    intent: MergeIntent, sides: _Sides, drops: Mapping[int, tuple[Key, ...]], gone_there: Collection[str]
) -> Iterator[ScenarioDecision]:
    dropped = {key for keys in drops.values() for key in keys}
    for key in dict.fromkeys(key for side in sides for key in side):
        base, theirs, entry = (side.get(key) for side in sides)
        if entry and _goes(entry, intent.removed):
            problem = f"the scenario '{key[1]}' is of {key[0]}, which is removed"
            raise InvalidDocument(intent.parsed.document.name, entry.span.start, problem)
        is_removed = key in dropped or any(one and _goes(one, intent.removed) for one in (base, theirs))
        yours = None if is_removed else entry or base
        take = choose_three_way(*(one.value if one else None for one in (base, theirs, yours)))
        is_unknown = is_removed and theirs and not base
        named = _named(entry, intent.names) - _named(base, intent.names) if entry else frozenset()
        if is_unknown or not named.isdisjoint(gone_there):
            take = MergeSide.NEITHER
        yield ScenarioDecision(key, base, theirs, entry, is_removed, take)


def _named(one: ScenarioUnit | None, names: Mapping[str, str]) -> frozenset[str]:
    return frozenset(names.get(ref, ref) for ref in one.written) if one else frozenset()


def _goes(one: ScenarioUnit, removed: Collection[str]) -> bool:
    return bool(one.refs) and all(ref in removed for ref in one.refs)

"""The results of a merge as data: what a change does to a spec, and where it conflicts with others' changes.

Names have one form: `auth-flow:R2` is a requirement, `auth-flow:R2/Signed-in user` a scenario of it,
`auth-flow:/Unknown path` a scenario of the whole spec, and `auth-flow` the spec. Renamed units keep their old id here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from agentd.merge import units
from agentd.merge.decision import MergePlan, MergeSide, RequirementDecision, ScenarioDecision, is_id_taken
from agentd.merge.units import RequirementUnit, ScenarioUnit, SpecUnits


class UnitKind(StrEnum):
    SPEC = "spec"
    HEADING = "heading"
    """The id and title of a requirement; its text is another matter."""
    REQUIREMENT = "requirement"
    SCENARIO = "scenario"


class TouchKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    REMOVED = "removed"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class SpecTouch:
    """One thing that a change does. A rename to a new id touches both ids."""

    kind: UnitKind
    name: str
    how: TouchKind


@dataclass(frozen=True, slots=True)
class SpecConflict:
    """A unit that both sides changed, with its three texts; a text is None where the unit does not exist."""

    kind: UnitKind
    name: str
    base: str | None
    theirs: str | None
    yours: str | None
    why: str


def list_touches(plan: MergePlan, spec: str) -> tuple[SpecTouch, ...]:
    found = [touch for one in plan.requirements for touch in _of_requirement(one, spec)]
    old = _old_ids(plan)
    for decision in plan.scenarios:
        if decision.take is MergeSide.YOURS:
            how = (
                TouchKind.REMOVED if decision.is_removed else TouchKind.MODIFIED if decision.theirs else TouchKind.ADDED
            )
            found.append(SpecTouch(UnitKind.SCENARIO, _scenario_name(spec, decision, old), how))
    return tuple(found)


def _of_requirement(decision: RequirementDecision, spec: str) -> Iterator[SpecTouch]:
    name = f"{spec}:{decision.base.id if decision.base else decision.id}"
    if decision.theirs is None or decision.is_removed:
        if decision.text is MergeSide.YOURS:
            yield SpecTouch(UnitKind.REQUIREMENT, name, TouchKind.REMOVED if decision.is_removed else TouchKind.ADDED)
        return
    if decision.heading is MergeSide.YOURS:
        for one in dict.fromkeys((name, f"{spec}:{decision.id}")):
            yield SpecTouch(UnitKind.REQUIREMENT, one, TouchKind.RENAMED)
    if decision.text is MergeSide.YOURS:
        yield SpecTouch(UnitKind.REQUIREMENT, name, TouchKind.MODIFIED)


def list_conflicts(plan: MergePlan, spec: str) -> tuple[SpecConflict, ...]:
    found = [conflict for one in plan.requirements if one.is_open for conflict in _clashes(plan, one, spec)]
    old = _old_ids(plan)
    for decision in plan.scenarios:
        if decision.take is MergeSide.NEITHER:
            base, theirs = _scenario_text(plan.base, decision.base), _scenario_text(plan.main, decision.theirs)
            yours = None if decision.is_removed else _scenario_text(plan.intent.parsed, decision.entry)
            name = _scenario_name(spec, decision, old)
            found.append(SpecConflict(UnitKind.SCENARIO, name, base, theirs, yours, _why(base, theirs, yours)))
    return tuple(found)


def _clashes(plan: MergePlan, decision: RequirementDecision, spec: str) -> Iterator[SpecConflict]:
    name = f"{spec}:{decision.base.id if decision.base else decision.id}"
    base, theirs = _text(plan.base, decision.base), _text(plan.main, decision.theirs)
    yours = "\n".join(wanted_lines(plan, decision)) or None
    if base and theirs and yours:
        if decision.heading is MergeSide.NEITHER:
            heads = [text.partition("\n")[0] for text in (base, theirs, yours)]
            is_lost = decision.rename and is_id_taken(decision.rename, plan.main)
            why = (
                f"renamed here to {decision.id}, which is taken in the main spec"
                if is_lost
                else "renamed on both sides"
            )
            yield SpecConflict(UnitKind.HEADING, name, heads[0], heads[1], heads[2], why)
        if decision.text is MergeSide.NEITHER:
            yield SpecConflict(UnitKind.REQUIREMENT, name, base, theirs, yours, _why(base, theirs, yours))
    else:
        yield SpecConflict(UnitKind.REQUIREMENT, name, base, theirs, yours, _why(base, theirs, yours))


def wanted_lines(plan: MergePlan, decision: RequirementDecision) -> list[str]:
    """Return a requirement as the change wants it: its entry, or the base's text under the new heading."""
    if decision.is_removed:
        return []
    parsed, one = (
        (plan.intent.parsed, decision.entry) if decision.entry and decision.entry.words else (plan.base, decision.base)
    )
    if one is None:
        parsed, one = plan.intent.parsed, decision.entry
    return (
        units.requirement_lines(
            parsed, one, units.requirement_heading(parsed, one, decision.id, decision.title), one.level
        )
        if one
        else []
    )


def _why(base: str | None, theirs: str | None, yours: str | None) -> str:
    if base is None:
        return "added on both sides, in other words" if theirs and yours else _one_sided(theirs)
    if theirs is None:
        return "changed here, removed in the main spec"
    return "changed on both sides" if yours else "removed here, changed in the main spec"


def _one_sided(theirs: str | None) -> str:
    if theirs:
        return "removed or renamed here, added in the main spec"
    return "added here, its requirement removed in the main spec"


def _text(parsed: SpecUnits, one: RequirementUnit | None) -> str | None:
    if one is None:
        return None
    return "\n".join(units.requirement_lines(parsed, one, parsed.document.content(one.line), one.level))


def _scenario_text(parsed: SpecUnits, one: ScenarioUnit | None) -> str | None:
    return parsed.document.trimmed_text(one.span) if one else None


def _old_ids(plan: MergePlan) -> dict[str, str]:
    return {new: old for old, new in plan.intent.names.items()}


def _scenario_name(spec: str, decision: ScenarioDecision, old: dict[str, str]) -> str:
    requirement, title = decision.key
    return f"{spec}:{old.get(requirement, requirement)}/{title}"

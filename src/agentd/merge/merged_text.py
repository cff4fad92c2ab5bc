"""The main spec with the change written into it: units in place, new ones where their like stand.

A new requirement comes after the last one. A new scenario comes after the last one of its requirement; the first
of a requirement stands inside it where the main spec writes them so, and else at the end of Acceptance Criteria.
"""

from dataclasses import replace

from agentd.documents import InvalidDocument, Span
from agentd.merge import units
from agentd.merge.decision import MergePlan, MergeSide, RequirementDecision, ScenarioDecision
from agentd.merge.line_editor import LineEditor
from agentd.merge.units import ACCEPTANCE_CRITERIA, Key, ScenarioUnit, SpecUnits


def write_merged(plan: MergePlan) -> str:
    """The new text; whoever reads it finds what was decided and nothing else."""
    draft = LineEditor(plan.main)
    _edit_requirements(plan, draft)
    _edit_scenarios(plan, draft)
    _edit_groups(plan, draft)
    inside, rest = _put_scenarios(plan, draft)
    _put_requirements(plan, draft, inside)
    _put_under_criteria(plan, draft, rest)
    text = draft.text()
    _check(plan, units.read_units(text, plan.main.document.name, plan.main.pattern))
    return text


# ---- in place


def _edit_requirements(plan: MergePlan, draft: LineEditor) -> None:
    for fate in plan.requirements:
        there = fate.theirs
        if there is None:
            continue
        if fate.is_removed:
            for span in there.own if fate.text is MergeSide.YOURS else ():
                draft.cut(span)
            continue
        if fate.heading is MergeSide.YOURS:
            draft.replace(Span(there.line, there.line), [_heading(plan, fate)])
        if fate.text is MergeSide.YOURS and fate.entry:
            body = units.requirement_body(plan.intent.sheet, fate.entry, there.level)
            draft.replace(Span(there.line + 1, there.own[0].end), body)
            for span in there.own[1:]:
                draft.cut(span)


def _heading(plan: MergePlan, fate: RequirementDecision) -> str:
    """The new heading: as the change writes it, or the one that stands there with the new name in it."""
    assert fate.theirs, "what is renamed is there"
    if fate.entry and fate.entry.title == fate.title:
        return units.heading_at_level(plan.intent.sheet.document.content(fate.entry.line), fate.theirs.level)
    return units.requirement_heading(plan.main, fate.theirs, fate.id, fate.title)


def _edit_scenarios(plan: MergePlan, draft: LineEditor) -> None:
    names = plan.intent.names
    for fate in plan.scenarios:
        there = fate.theirs
        if there is None:
            continue
        if fate.take is MergeSide.YOURS and fate.is_removed:
            draft.cut(there.span)
        elif fate.take is MergeSide.YOURS and fate.entry:
            lines = units.scenario_lines(plan.intent.sheet, fate.entry, there.level, names, there.field is None)
            draft.replace(Span(there.span.start + 1, there.span.end), lines[1:])
        elif there.field is not None:
            kept = _referred(plan, there)
            content = plan.main.document.content(there.field)
            line = units.reference_line(content, kept, names)
            if line != content:
                draft.replace(Span(there.field, there.field), [line])


def _referred(plan: MergePlan, there: ScenarioUnit) -> ScenarioUnit:
    """A scenario of the main spec as it will name its requirements: only what the change does counts."""
    names, removed = plan.intent.names, plan.intent.removed
    refs = tuple(dict.fromkeys(names.get(ref, ref) for ref in there.written))
    kept = tuple(ref for ref in refs if ref not in removed) or refs
    return replace(there, refs=kept)


def _edit_groups(plan: MergePlan, draft: LineEditor) -> None:
    """Headings under Acceptance Criteria that name a requirement follow it."""
    names = plan.intent.names
    for id_, section in plan.main.groups:
        line = section.heading.line
        if id_ in plan.intent.removed:
            draft.cut(Span(line, section.own.end))
        elif names.get(id_, id_) != id_:
            content = plan.main.document.content(line)
            draft.replace(Span(line, line), [content.replace(id_, names[id_], 1)])


# ---- new ones


def _new_requirements(plan: MergePlan) -> list[RequirementDecision]:
    fates = [one for one in plan.requirements if one.entry and one.theirs is None and one.text is MergeSide.YOURS]
    return sorted(fates, key=lambda one: one.entry.line if one.entry else 0)


def _new_scenarios(plan: MergePlan) -> list[ScenarioUnit]:
    """In the order of the change, those of one requirement together."""
    found = [one.entry for one in plan.scenarios if one.entry and one.theirs is None and one.take is MergeSide.YOURS]
    groups: dict[str, list[ScenarioUnit]] = {}
    for one in sorted(found, key=lambda one: one.span.start):
        groups.setdefault(one.requirement, []).append(one)
    return [one for group in groups.values() for one in group]


def _put_requirements(plan: MergePlan, draft: LineEditor, inside: dict[str, list[list[str]]]) -> None:
    sheet = plan.intent.sheet
    last = max(plan.main.requirements.values(), key=lambda one: one.line, default=None)
    blocks: list[list[str]] = []
    for fate in _new_requirements(plan):
        assert fate.entry, "what is new is written in the change"
        level = last.level if last else fate.entry.level
        lines = units.requirement_lines(sheet, fate.entry, sheet.document.content(fate.entry.line), level)
        for scenario in inside.get(fate.id, ()):
            lines += ["", *scenario]
        blocks.append(lines)
    if not blocks:
        return
    line = requirements_end(plan.main, draft)
    for lines in blocks:
        draft.put(line, lines)


def requirements_end(sheet: SpecUnits, draft: LineEditor) -> int:
    """Where one more requirement comes; Requirements is made below the overview if there is no place for it yet."""
    document = sheet.document
    last = max(sheet.requirements.values(), key=lambda one: one.line, default=None)
    if last:
        return sheet.last_line(Span(last.line, last.end))
    section = document.section("Requirements")
    if section:
        return sheet.last_line(section.span)
    overview, criteria = document.section("Overview"), document.section(ACCEPTANCE_CRITERIA)
    end = overview.span.end if overview else criteria.heading.line - 1 if criteria else len(document.lines)
    line = sheet.last_line(Span(1, end))
    draft.put(line, ["## Requirements"])
    return line


def _put_scenarios(plan: MergePlan, draft: LineEditor) -> tuple[dict[str, list[list[str]]], list[ScenarioUnit]]:
    """Puts them beside their like; gives back those of requirements that are new too, and those without a place."""
    main, sheet, names = plan.main, plan.intent.sheet, plan.intent.names
    siblings = _last_of_each(plan)
    level = _inside_level(plan.main)
    holders = {one.id: one.theirs for one in plan.requirements if one.theirs}
    fresh = {one.id for one in _new_requirements(plan)}
    inside: dict[str, list[list[str]]] = {}
    rest: list[ScenarioUnit] = []
    for one in _new_scenarios(plan):
        sibling, holder = siblings.get(one.requirement), holders.get(one.requirement)
        if sibling:
            lines = units.scenario_lines(sheet, one, sibling.level, names, sibling.field is None)
            draft.put(main.last_line(sibling.span), lines)
        elif level and holder:
            lines = units.scenario_lines(sheet, one, level, names, is_named_by_place=True)
            draft.put(main.last_line(Span(holder.line, holder.end)), lines)
        elif level and one.requirement in fresh:
            lines = units.scenario_lines(sheet, one, level, names, is_named_by_place=True)
            inside.setdefault(one.requirement, []).append(lines)
        else:
            rest.append(one)
    return inside, rest


def _last_of_each(plan: MergePlan) -> dict[str, ScenarioUnit]:
    found: dict[str, ScenarioUnit] = {}
    for fate in plan.scenarios:
        one = fate.theirs
        if one and (one.requirement not in found or found[one.requirement].span.start < one.span.start):
            found[one.requirement] = one
    return found


def _inside_level(main: SpecUnits) -> int:
    """How deep scenarios stand inside requirements; 0 where the main spec keeps them apart."""
    named = [one for one in main.scenarios.values() if one.refs]
    return named[0].level if named and all(one.is_inside for one in named) else 0


def _put_under_criteria(plan: MergePlan, draft: LineEditor, scenarios: list[ScenarioUnit]) -> None:
    if not scenarios:
        return
    main, sheet, names = plan.main, plan.intent.sheet, plan.intent.names
    section = main.document.section(ACCEPTANCE_CRITERIA)
    if section is None:
        end = main.last_line(main.document.span)
        top, level = end, 3
        draft.put(end, [f"## {ACCEPTANCE_CRITERIA}"])
    else:
        top, end = main.last_line(Span(section.heading.line, section.own.end)), main.last_line(section.span)
        there = [one.level for one in main.scenarios.values() if one.span.start in section.span]
        level = there[-1] if there and not main.groups else section.heading.level + 1
    for one in scenarios:
        # Below a heading that names a requirement, one of the whole spec would be taken for that one's.
        line = top if main.groups and not one.refs else end
        draft.put(line, units.scenario_lines(sheet, one, level, names, is_named_by_place=False))


# ---- what was written, read again


def _check(plan: MergePlan, result: SpecUnits) -> None:
    requirements, scenarios = _expected(plan)
    wrong = [id_ for id_, one in result.requirements.items() if requirements.pop(id_, None) != (one.title, one.words)]
    wrong += [f"Scenario: {key[1]}" for key, one in result.scenarios.items() if scenarios.pop(key, None) != one.value]
    wrong += [*requirements, *(f"Scenario: {title}" for _, title in scenarios)]
    if wrong:
        problem = f"'{wrong[0]}' would not read as it is meant after the merge; write it in a plainer form"
        raise InvalidDocument(plan.intent.sheet.document.name, 1, problem)


def _expected(plan: MergePlan) -> tuple[dict[str, tuple[str, str]], dict[Key, tuple[tuple[str, ...], str]]]:
    requirements: dict[str, tuple[str, str]] = {}
    for fate in plan.requirements:
        there, entry = fate.theirs, fate.entry
        if (fate.is_removed and fate.text is MergeSide.YOURS) or (there is None and fate.text is MergeSide.THEIRS):
            continue
        title = fate.title if fate.heading is MergeSide.YOURS or there is None else there.title
        words = (
            entry.words if entry and (fate.text is MergeSide.YOURS or there is None) else there.words if there else ""
        )
        requirements[fate.id] = (title, words)
    scenarios: dict[Key, tuple[tuple[str, ...], str]] = {}
    for one in plan.scenarios:
        found = _expected_scenario(plan, one)
        if found:
            scenarios[found.key] = found.value
    return requirements, scenarios


def _expected_scenario(plan: MergePlan, fate: ScenarioDecision) -> ScenarioUnit | None:
    if fate.take is MergeSide.YOURS:
        return None if fate.is_removed else fate.entry
    return _referred(plan, fate.theirs) if fate.theirs else None

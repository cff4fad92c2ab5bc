"""The change's spec brought onto the main spec as it is now, with marks where a person or the planner must decide.

What others did to a part of an entry that the change left alone is taken into the entry; all else keeps its bytes.
A conflict about a removal or a rename is marked at its line under Removed or Renamed: there an empty side says that
nothing is removed or renamed, and the texts stand in comments. A requirement that is renamed here and was removed
in the main spec is marked under Requirements instead, whole, because only so it can come back.
"""

from dataclasses import replace

from agentd.documents import Span
from agentd.merge import spec_changes, units
from agentd.merge.conflict_markers import as_comment, with_markers
from agentd.merge.decision import MergePlan, MergeSide, RequirementDecision, ScenarioDecision
from agentd.merge.line_editor import LineEditor
from agentd.merge.merged_text import requirements_end
from agentd.merge.units import Key, RequirementUnit, ScenarioUnit, SpecUnits

_Texts = tuple[list[str], list[str]]


def write_rebased(plan: MergePlan) -> str:
    draft = LineEditor(plan.intent.sheet)
    for fate in plan.requirements:
        if fate.is_removed:
            continue
        if fate.is_open:
            _mark_requirement(plan, draft, fate)
        elif fate.entry:
            _renew_requirement(plan, draft, fate.entry, fate)
    marked_ids = {fate.id for fate in plan.requirements if fate.is_open}
    for one in plan.scenarios:
        if one.entry:
            _renew_scenario(plan, draft, one.entry, one, one.entry.requirement not in marked_ids)
    _mark_removed(plan, draft)
    _renew_drops(plan, draft)
    return draft.text()


# ---- requirements


def _renew_requirement(plan: MergePlan, draft: LineEditor, entry: RequirementUnit, fate: RequirementDecision) -> None:
    there = fate.theirs
    if there is None and fate.text is MergeSide.THEIRS:
        for span in entry.own:
            draft.cut(span)
    if there is None:
        return
    if fate.heading is MergeSide.THEIRS and entry.name != there.name:
        heading = units.heading_at_level(plan.main.document.content(there.line), entry.level)
        draft.replace(Span(entry.line, entry.line), [heading])
    if fate.text is MergeSide.THEIRS and entry.words not in ("", there.words):
        draft.replace(Span(entry.line + 1, entry.own[0].end), units.requirement_body(plan.main, there, entry.level))
        for span in entry.own[1:]:
            draft.cut(span)


def _mark_requirement(plan: MergePlan, draft: LineEditor, fate: RequirementDecision) -> None:
    rename, entry = fate.rename, fate.entry
    if rename and fate.theirs is None:
        draft.cut(rename.span)
    elif rename and fate.heading is MergeSide.NEITHER:
        heads = (_head(plan.base, fate.base), _head(plan.main, fate.theirs))
        _mark_lines(draft, rename.span, _lines(plan.intent.sheet, rename.span), heads)
    if entry:
        draft.replace(entry.own[0], _three(plan, fate, entry.level))
        for span in entry.own[1:]:
            draft.cut(span)
    elif rename and fate.theirs is None and fate.base:
        draft.put(requirements_end(plan.intent.sheet, draft), _three(plan, fate, fate.base.level))


def _three(plan: MergePlan, fate: RequirementDecision, level: int) -> list[str]:
    """The requirement on three sides, under one heading where only its text is open."""
    name = None
    if fate.base and fate.theirs and fate.heading is not MergeSide.NEITHER:
        name = (fate.id, fate.title) if fate.heading is MergeSide.YOURS else fate.theirs.name
    yours = spec_changes.wanted_lines(plan, fate if name is None else replace(fate, title=name[1]))
    yours[0] = units.heading_at_level(yours[0], level)
    return with_markers(yours, *(_whole(sheet, one, level, name) for sheet, one in _others(plan, fate)))


def _others(plan: MergePlan, fate: RequirementDecision) -> tuple[tuple[SpecUnits, RequirementUnit | None], ...]:
    return (plan.base, fate.base), (plan.main, fate.theirs)


def _whole(sheet: SpecUnits, one: RequirementUnit | None, level: int, name: tuple[str, str] | None = None) -> list[str]:
    if one is None:
        return []
    return units.requirement_lines(sheet, one, units.requirement_heading(sheet, one, *(name or one.name)), level)


def _head(sheet: SpecUnits, one: RequirementUnit | None) -> list[str]:
    return [sheet.document.content(one.line)] if one else []


# ---- scenarios


def _renew_scenario(
    plan: MergePlan, draft: LineEditor, entry: ScenarioUnit, fate: ScenarioDecision, has_place: bool
) -> None:
    """`has_place` says whether the heading of its requirement stays above it, however marks are solved."""
    there, names = fate.theirs, plan.intent.names
    if fate.take is MergeSide.NEITHER:
        draft.replace(entry.span, _three_scenarios(plan, entry, fate))
    elif fate.take is MergeSide.THEIRS and there is None:
        draft.cut(entry.span)
    elif fate.take is MergeSide.THEIRS and there and there.value != entry.value:
        is_named_by_place = has_place and entry.field is None
        draft.replace(entry.span, units.scenario_lines(plan.main, there, entry.level, names, is_named_by_place))
    elif entry.field is None and not has_place:
        draft.replace(entry.span, _scenario(plan, plan.intent.sheet, entry, entry.level))
    elif entry.field is not None:
        left = tuple(ref for ref in entry.written if names.get(ref, ref) not in plan.gone_there)
        content = plan.intent.sheet.document.content(entry.field)
        line = units.reference_line(content, replace(entry, refs=left or entry.written), {})
        if line != content:
            draft.replace(Span(entry.field, entry.field), [line])


def _three_scenarios(plan: MergePlan, entry: ScenarioUnit, fate: ScenarioDecision) -> list[str]:
    sides = ((plan.intent.sheet, entry), (plan.base, fate.base), (plan.main, fate.theirs))
    return with_markers(*(_scenario(plan, sheet, one, entry.level) for sheet, one in sides))


def _scenario(plan: MergePlan, sheet: SpecUnits, one: ScenarioUnit | None, level: int) -> list[str]:
    return units.scenario_lines(sheet, one, level, plan.intent.names, is_named_by_place=False) if one else []


# ---- removals


def _mark_removed(plan: MergePlan, draft: LineEditor) -> None:
    """A removed requirement that others changed, or that others changed or gave a scenario."""
    texts: dict[str, _Texts] = {}
    for fate in plan.requirements:
        if fate.is_removed and fate.is_open:
            for lines, (sheet, one) in zip(texts.setdefault(fate.id, ([], [])), _others(plan, fate), strict=True):
                lines += _whole(sheet, one, 3)
    dropped = {key for keys in plan.drops.values() for key in keys}
    for scenario in plan.scenarios:
        if scenario.is_removed and scenario.take is MergeSide.NEITHER and scenario.key not in dropped:
            found = texts.setdefault(scenario.key[0], ([], []))
            for lines, more in zip(found, _scenario_texts(plan, scenario), strict=True):
                lines += more
    for id_, found in texts.items():
        span = plan.intent.removed[id_].span
        _mark_lines(draft, span, _lines(plan.intent.sheet, span), found)


def _renew_drops(plan: MergePlan, draft: LineEditor) -> None:
    fates = {fate.key: fate for fate in plan.scenarios}
    there: dict[str, list[Key]] = {}
    for fate in plan.scenarios:
        if fate.theirs:
            there.setdefault(fate.key[1], []).append(fate.key)
    for drop in plan.intent.drops:
        span = drop.entry.span
        keys = plan.drops[span.start]
        lines = _lines(plan.intent.sheet, span)
        if drop.field is not None and drop.requirement is not None:
            if keys and keys[0][0] != plan.intent.names.get(drop.requirement, drop.requirement):
                lines[drop.field - span.start] = _pin(keys)
        elif there.get(drop.entry.title, []) not in ([], list(keys)):
            # Others have a scenario of this title too; where none is meant, the entry has nothing left to say.
            lines = [*lines, _pin(keys)] if keys else []
        if any(fates[key].take is MergeSide.NEITHER for key in keys):
            _mark_lines(draft, span, lines, _scenario_texts(plan, fates[keys[0]]))
        elif lines and lines != _lines(plan.intent.sheet, span):
            draft.replace(span, lines)
        elif not lines:
            draft.cut(span)


def _pin(keys: tuple[Key, ...]) -> str:
    return f"  - **Requirement**: {keys[0][0] or 'none'}"


def _scenario_texts(plan: MergePlan, fate: ScenarioDecision) -> _Texts:
    return _scenario(plan, plan.base, fate.base, 3), _scenario(plan, plan.main, fate.theirs, 3)


def _mark_lines(draft: LineEditor, span: Span, yours: list[str], texts: _Texts) -> None:
    draft.replace(span, with_markers(yours, as_comment(texts[0]), as_comment(texts[1])))


def _lines(sheet: SpecUnits, span: Span) -> list[str]:
    return list(sheet.document.contents[span.start - 1 : span.end])


def mark_whole_spec(yours: SpecUnits, base: SpecUnits) -> str:
    """The change's spec with marks around all of it, for a main spec that is gone."""
    start = yours.document.frontmatter.end + 1 if yours.document.frontmatter else 1
    span = Span(start, len(yours.document.lines))
    body = Span(base.document.frontmatter.end + 1 if base.document.frontmatter else 1, len(base.document.lines))
    draft = LineEditor(yours)
    draft.replace(span, with_markers(_lines(yours, span), _lines(base, body), []))
    return draft.text()

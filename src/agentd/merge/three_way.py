"""Merge and rebase specs, and list what a change touches: text in, text out.

`main` is the current main spec and `base` the main spec when the change began, None if there is none; `yours` is the
change's spec, either a delta or a whole new spec. Each unit is decided separately: if one side changed it, that side
wins; if both made the same change, it is taken; if they differ, it is a conflict. A requirement's text and its heading
are separate units, so a rename does not conflict with a new text. Ambiguous text is refused (FormatInvalid), and so is
a rename to an id that the base uses: ids are not reused.
"""

import re
from dataclasses import dataclass, replace

from agentd.documents import REQUIREMENT_PATTERN, Span, parse_document, remove_frontmatter_key, set_frontmatter_keys
from agentd.merge import merged_text, spec_changes, units
from agentd.merge.decision import (
    MergePlan,
    MergeSide,
    RequirementDecision,
    ScenarioDecision,
    plan_merge,
    read_intent,
    refuse_lost_headings,
)
from agentd.merge.merged_text import LineEditor, requirements_end
from agentd.merge.spec_changes import SpecConflict, SpecTouch, UnitKind
from agentd.merge.units import Key, RequirementUnit, ScenarioUnit, SpecUnits, as_comment, with_markers

_Texts = tuple[list[str], list[str]]


def write_rebased(plan: MergePlan) -> str:
    editor = LineEditor(plan.intent.parsed)
    for decision in plan.requirements:
        if decision.is_removed:
            continue
        if decision.is_open:
            _mark_requirement(plan, editor, decision)
        elif decision.entry:
            _renew_requirement(plan, editor, decision.entry, decision)
    marked_ids = {decision.id for decision in plan.requirements if decision.is_open}
    for one in plan.scenarios:
        if one.entry:
            _renew_scenario(plan, editor, one.entry, one, one.entry.requirement not in marked_ids)
    _mark_removed(plan, editor)
    _renew_drops(plan, editor)
    return editor.text()


# ---- requirements


def _renew_requirement(
    plan: MergePlan, editor: LineEditor, entry: RequirementUnit, decision: RequirementDecision
) -> None:
    there = decision.theirs
    if there is None and decision.text is MergeSide.THEIRS:
        for span in entry.own:
            editor.cut(span)
    if there is None:
        return
    if decision.heading is MergeSide.THEIRS and entry.name != there.name:
        heading = units.heading_at_level(plan.main.document.content(there.line), entry.level)
        editor.replace(Span(entry.line, entry.line), [heading])
    if decision.text is MergeSide.THEIRS and entry.words not in ("", there.words):
        editor.replace(Span(entry.line + 1, entry.own[0].end), units.requirement_body(plan.main, there, entry.level))
        for span in entry.own[1:]:
            editor.cut(span)


def _mark_requirement(plan: MergePlan, editor: LineEditor, decision: RequirementDecision) -> None:
    rename, entry = decision.rename, decision.entry
    if rename and decision.theirs is None:
        editor.cut(rename.span)
    elif rename and decision.heading is MergeSide.NEITHER:
        heads = (_head(plan.base, decision.base), _head(plan.main, decision.theirs))
        _mark_lines(editor, rename.span, _lines(plan.intent.parsed, rename.span), heads)
    if entry:
        editor.replace(entry.own[0], _three(plan, decision, entry.level))
        for span in entry.own[1:]:
            editor.cut(span)
    elif rename and decision.theirs is None and decision.base:
        editor.put(requirements_end(plan.intent.parsed, editor), _three(plan, decision, decision.base.level))


def _three(plan: MergePlan, decision: RequirementDecision, level: int) -> list[str]:
    """Return the three versions of a requirement, under one heading if only its text is in conflict."""
    name = None
    if decision.base and decision.theirs and decision.heading is not MergeSide.NEITHER:
        name = (decision.id, decision.title) if decision.heading is MergeSide.YOURS else decision.theirs.name
    yours = spec_changes.wanted_lines(plan, decision if name is None else replace(decision, title=name[1]))
    yours[0] = units.heading_at_level(yours[0], level)
    return with_markers(yours, *(_whole(parsed, one, level, name) for parsed, one in _others(plan, decision)))


def _others(plan: MergePlan, decision: RequirementDecision) -> tuple[tuple[SpecUnits, RequirementUnit | None], ...]:
    return (plan.base, decision.base), (plan.main, decision.theirs)


def _whole(
    parsed: SpecUnits, one: RequirementUnit | None, level: int, name: tuple[str, str] | None = None
) -> list[str]:
    if one is None:
        return []
    return units.requirement_lines(parsed, one, units.requirement_heading(parsed, one, *(name or one.name)), level)


def _head(parsed: SpecUnits, one: RequirementUnit | None) -> list[str]:
    return [parsed.document.content(one.line)] if one else []


# ---- scenarios


def _renew_scenario(
    plan: MergePlan, editor: LineEditor, entry: ScenarioUnit, decision: ScenarioDecision, has_place: bool
) -> None:
    """Update a scenario. `has_place`: its requirement's heading stays above it, however the conflict is resolved."""
    there, names = decision.theirs, plan.intent.names
    if decision.take is MergeSide.NEITHER:
        editor.replace(entry.span, _three_scenarios(plan, entry, decision))
    elif decision.take is MergeSide.THEIRS and there is None:
        editor.cut(entry.span)
    elif decision.take is MergeSide.THEIRS and there and there.value != entry.value:
        is_named_by_place = has_place and entry.field is None
        editor.replace(entry.span, units.scenario_lines(plan.main, there, entry.level, names, is_named_by_place))
    elif entry.field is None and not has_place:
        editor.replace(entry.span, _scenario(plan, plan.intent.parsed, entry, entry.level))
    elif entry.field is not None:
        left = tuple(ref for ref in entry.written if names.get(ref, ref) not in plan.gone_there)
        content = plan.intent.parsed.document.content(entry.field)
        line = units.reference_line(content, replace(entry, refs=left or entry.written), {})
        if line != content:
            editor.replace(Span(entry.field, entry.field), [line])


def _three_scenarios(plan: MergePlan, entry: ScenarioUnit, decision: ScenarioDecision) -> list[str]:
    sides = ((plan.intent.parsed, entry), (plan.base, decision.base), (plan.main, decision.theirs))
    return with_markers(*(_scenario(plan, parsed, one, entry.level) for parsed, one in sides))


def _scenario(plan: MergePlan, parsed: SpecUnits, one: ScenarioUnit | None, level: int) -> list[str]:
    return units.scenario_lines(parsed, one, level, plan.intent.names, is_named_by_place=False) if one else []


# ---- removals


def _mark_removed(plan: MergePlan, editor: LineEditor) -> None:
    """Mark removed requirements that others changed, or whose scenarios others changed or added."""
    texts: dict[str, _Texts] = {}
    for decision in plan.requirements:
        if decision.is_removed and decision.is_open:
            for lines, (parsed, one) in zip(
                texts.setdefault(decision.id, ([], [])), _others(plan, decision), strict=True
            ):
                lines += _whole(parsed, one, 3)
    dropped = {key for keys in plan.drops.values() for key in keys}
    for scenario in plan.scenarios:
        if scenario.is_removed and scenario.take is MergeSide.NEITHER and scenario.key not in dropped:
            found = texts.setdefault(scenario.key[0], ([], []))
            for lines, more in zip(found, _scenario_texts(plan, scenario), strict=True):
                lines += more
    for id_, found in texts.items():
        span = plan.intent.removed[id_].span
        _mark_lines(editor, span, _lines(plan.intent.parsed, span), found)


def _renew_drops(plan: MergePlan, editor: LineEditor) -> None:
    decisions = {decision.key: decision for decision in plan.scenarios}
    there: dict[str, list[Key]] = {}
    for decision in plan.scenarios:
        if decision.theirs:
            there.setdefault(decision.key[1], []).append(decision.key)
    for drop in plan.intent.drops:
        span = drop.entry.span
        keys = plan.drops[span.start]
        lines = _lines(plan.intent.parsed, span)
        if drop.field is not None and drop.requirement is not None:
            if keys and keys[0][0] != plan.intent.names.get(drop.requirement, drop.requirement):
                lines[drop.field - span.start] = _pin(keys)
        elif there.get(drop.entry.title, []) not in ([], list(keys)):
            # Others have a scenario with this title too. If none is meant, remove the entry.
            lines = [*lines, _pin(keys)] if keys else []
        if any(decisions[key].take is MergeSide.NEITHER for key in keys):
            _mark_lines(editor, span, lines, _scenario_texts(plan, decisions[keys[0]]))
        elif lines and lines != _lines(plan.intent.parsed, span):
            editor.replace(span, lines)
        elif not lines:
            editor.cut(span)


def _pin(keys: tuple[Key, ...]) -> str:
    return f"  - **Requirement**: {keys[0][0] or 'none'}"


def _scenario_texts(plan: MergePlan, decision: ScenarioDecision) -> _Texts:
    return _scenario(plan, plan.base, decision.base, 3), _scenario(plan, plan.main, decision.theirs, 3)


def _mark_lines(editor: LineEditor, span: Span, yours: list[str], texts: _Texts) -> None:
    editor.replace(span, with_markers(yours, as_comment(texts[0]), as_comment(texts[1])))


def _lines(parsed: SpecUnits, span: Span) -> list[str]:
    return list(parsed.document.contents[span.start - 1 : span.end])


def mark_whole_spec(yours: SpecUnits, base: SpecUnits) -> str:
    """Return the change's spec as one conflict, for a main spec that was deleted."""
    start = yours.document.frontmatter.end + 1 if yours.document.frontmatter else 1
    span = Span(start, len(yours.document.lines))
    body = Span(base.document.frontmatter.end + 1 if base.document.frontmatter else 1, len(base.document.lines))
    editor = LineEditor(yours)
    editor.replace(span, with_markers(_lines(yours, span), _lines(base, body), []))
    return editor.text()


_ASIDE = ("Removed", "Removed Requirements", "Renamed", "Renamed Requirements")


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The new main spec, or None if there is none. On conflict it is the old text, and nothing is merged."""

    text: str | None
    touches: tuple[SpecTouch, ...]
    """What the merge did to the main spec; empty if it is merged already."""
    conflicts: tuple[SpecConflict, ...]


@dataclass(frozen=True, slots=True)
class RebaseResult:
    """The change's spec, based on the current main spec. Once its conflicts are resolved, it merges cleanly.

    One exception: if both sides used the same new id, one of them must choose another.
    """

    text: str
    conflicts: tuple[SpecConflict, ...]
    touches: tuple[SpecTouch, ...]


def merge_spec(
    main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> MergeResult:
    """Merge a change's spec into the main spec. `name` is the id of the spec, such as `auth-flow`."""
    if main is None and base is None:
        return MergeResult(_as_new(yours, name, pattern), touched_units(yours, None, name, pattern), ())
    if main is None:
        conflicts = _of_lost_spec(yours, base, name, pattern)
        return MergeResult(None, (), conflicts)
    plan = _plan(main, yours, base, name, pattern)
    touches, conflicts = spec_changes.list_touches(plan, name), spec_changes.list_conflicts(plan, name)
    return MergeResult(merged_text.write_merged(plan) if touches and not conflicts else main, touches, conflicts)


def touched_units(
    yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> tuple[SpecTouch, ...]:
    """Return what a change does to its spec, regardless of what others changed."""
    return spec_changes.list_touches(_plan(base, yours, base, name, pattern), name)


def rebase_spec(
    main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> RebaseResult:
    """Return the change's spec as if it started now. A new spec becomes a delta if a main spec exists by now."""
    if main is None:
        conflicts = () if base is None else _of_lost_spec(yours, base, name, pattern)
        if conflicts:
            both = _yours(yours, name, pattern), _base(base, name, pattern)
            return RebaseResult(_without_base(mark_whole_spec(*both), name), conflicts, ())
        return RebaseResult(yours, (), touched_units(yours, base, name, pattern))
    plan = _plan(main, yours, base, name, pattern)
    text = remove_frontmatter_key(write_rebased(plan), "version", name)
    text = set_frontmatter_keys(text, {"base_version": plan.main.spec.version or 1}, name)
    return RebaseResult(text, spec_changes.list_conflicts(plan, name), spec_changes.list_touches(plan, name))


def stamp_version(text: str, version: int, archived: str, change: str, name: str) -> str:
    """Set version, archive date and change id in the frontmatter; all other bytes are kept."""
    values = {"version": version, "archived": archived, "change": change}
    document = parse_document(text, name)
    if document.frontmatter is None:
        return set_frontmatter_keys(text, values, name)
    head = document.text_at(Span(1, document.frontmatter.end))
    return set_frontmatter_keys(head, values, name) + text[len(head) :]


def _plan(main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str]) -> MergePlan:
    there = units.read_units(main or "", f"agentd/specs/{name}.md", pattern)
    parsed = _yours(yours, name, pattern)
    if main is not None:
        refuse_lost_headings(parsed)
    return plan_merge(there, read_intent(parsed), _base(base, name, pattern))


def _yours(yours: str, name: str, pattern: re.Pattern[str]) -> SpecUnits:
    return units.read_units(yours, f"specs/{name}.md", pattern)


def _base(base: str | None, name: str, pattern: re.Pattern[str]) -> SpecUnits:
    return units.read_units(base or "", f"base/{name}.md", pattern)


def _as_new(yours: str, name: str, pattern: re.Pattern[str]) -> str:
    """Return a new spec without the sections that remove or rename, as there is nothing to remove or rename."""
    parsed = _yours(yours, name, pattern)
    sections = [section for title in _ASIDE if (section := parsed.document.section(title))]
    editor = LineEditor(parsed)
    for section in sections:
        editor.cut(section.span)
    return remove_frontmatter_key(editor.text(), "base_version", name)


def _without_base(text: str, name: str) -> str:
    return set_frontmatter_keys(remove_frontmatter_key(text, "base_version", name), {"version": 1}, name)


def _of_lost_spec(yours: str, base: str | None, name: str, pattern: re.Pattern[str]) -> tuple[SpecConflict, ...]:
    """Return a conflict for a spec that others deleted, unless the change does nothing to it."""
    if not touched_units(yours, base, name, pattern):
        return ()
    return (
        SpecConflict(UnitKind.SPEC, name, base, None, yours, "changed here, the whole spec removed in the main specs"),
    )

"""Merge, rebase, and what a change touches: texts in, texts out.

`main` is the main spec as it is now, `base` as it was when the change began, None where there is none; `yours` is
the change's spec, a delta or a whole new one. Each unit is decided by itself: changed on one side it is that
side's, changed on both to the same words it is fine, and to other words it is a conflict. The text of a requirement
and its heading are two units, so a rename and a new text do not meet. What cannot be read in one way only is
refused (FormatInvalid), and so is a rename to an id that the base has: ids are not used twice.
"""

import re
from dataclasses import dataclass

from agentd.documents import REQUIREMENT_PATTERN, Span, parse_document, remove_frontmatter_key, set_frontmatter_keys
from agentd.merge import decision, merged_text, rebase_text, spec_changes, units
from agentd.merge.decision import MergePlan, plan_merge
from agentd.merge.line_editor import LineEditor
from agentd.merge.spec_changes import SpecConflict, SpecTouch, UnitKind
from agentd.merge.units import SpecUnits

_ASIDE = ("Removed", "Removed Requirements", "Renamed", "Renamed Requirements")


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The new main spec, None where there is none. With a conflict it is the old one, and nothing is merged."""

    text: str | None
    touches: tuple[SpecTouch, ...]
    """What the merge did to the main spec; nothing is left to do when it is done again."""
    conflicts: tuple[SpecConflict, ...]


@dataclass(frozen=True, slots=True)
class RebaseResult:
    """The change's spec on the main spec of today. Once its marks are solved it merges without conflict.

    The one exception: an id that both sides gave to something of their own must be given up by one of them.
    """

    text: str
    conflicts: tuple[SpecConflict, ...]
    touches: tuple[SpecTouch, ...]


def merge_spec(
    main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> MergeResult:
    """`name` is that of the spec, as in `auth-flow`."""
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
    """What a change does to its spec, whatever others did meanwhile."""
    return spec_changes.list_touches(_plan(base, yours, base, name, pattern), name)


def rebase_spec(
    main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> RebaseResult:
    """The change's spec as if it had begun today; a new spec of which there is one by now becomes a delta."""
    if main is None:
        conflicts = () if base is None else _of_lost_spec(yours, base, name, pattern)
        if conflicts:
            sheets = _yours(yours, name, pattern), _base(base, name, pattern)
            return RebaseResult(_without_base(rebase_text.mark_whole_spec(*sheets), name), conflicts, ())
        return RebaseResult(yours, (), touched_units(yours, base, name, pattern))
    plan = _plan(main, yours, base, name, pattern)
    text = remove_frontmatter_key(rebase_text.write_rebased(plan), "version", name)
    text = set_frontmatter_keys(text, {"base_version": plan.main.spec.version or 1}, name)
    return RebaseResult(text, spec_changes.list_conflicts(plan, name), spec_changes.list_touches(plan, name))


def stamp_version(text: str, version: int, archived: str, change: str, name: str) -> str:
    """The spec with the version, date and change of its archive in the frontmatter; all else keeps its bytes."""
    values = {"version": version, "archived": archived, "change": change}
    document = parse_document(text, name)
    if document.frontmatter is None:
        return set_frontmatter_keys(text, values, name)
    head = document.text_at(Span(1, document.frontmatter.end))
    return set_frontmatter_keys(head, values, name) + text[len(head) :]


def _plan(main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str]) -> MergePlan:
    there = units.read_units(main or "", f"agentd/specs/{name}.md", pattern)
    sheet = _yours(yours, name, pattern)
    if main is not None:
        decision.refuse_lost_headings(sheet)
    return plan_merge(there, decision.read_intent(sheet), _base(base, name, pattern))


def _yours(yours: str, name: str, pattern: re.Pattern[str]) -> SpecUnits:
    return units.read_units(yours, f"specs/{name}.md", pattern)


def _base(base: str | None, name: str, pattern: re.Pattern[str]) -> SpecUnits:
    return units.read_units(base or "", f"base/{name}.md", pattern)


def _as_new(yours: str, name: str, pattern: re.Pattern[str]) -> str:
    """A new spec as it is; what would be removed or renamed is not there, so it is not said either."""
    sheet = _yours(yours, name, pattern)
    sections = [section for title in _ASIDE if (section := sheet.document.section(title))]
    draft = LineEditor(sheet)
    for section in sections:
        draft.cut(section.span)
    return remove_frontmatter_key(draft.text(), "base_version", name)


def _without_base(text: str, name: str) -> str:
    return set_frontmatter_keys(remove_frontmatter_key(text, "base_version", name), {"version": 1}, name)


def _of_lost_spec(yours: str, base: str | None, name: str, pattern: re.Pattern[str]) -> tuple[SpecConflict, ...]:
    """Nothing can be merged into a spec that others deleted, unless there is nothing to merge."""
    if not touched_units(yours, base, name, pattern):
        return ()
    return (
        SpecConflict(UnitKind.SPEC, name, base, None, yours, "changed here, the whole spec removed in the main specs"),
    )

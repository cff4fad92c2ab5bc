"""Merge, rebase, and what a change touches: texts in, texts out.

`main` is the main spec as it is now, `base` as it was when the change began, None where there is none; `yours` is
the change's spec, a delta or a whole new one. Each unit is decided by itself: changed on one side it is that
side's, changed on both to the same words it is fine, and to other words it is a conflict. The text of a requirement
and its heading are two units, so a rename and a new text do not meet. What cannot be read in one way only is
refused (FormatInvalid), and so is a rename to an id that the base has: ids are not used twice.
"""

import re
from dataclasses import dataclass

from agentd.documents import frontmatter
from agentd.documents import text as base_text
from agentd.documents.delta import REQUIREMENT
from agentd.documents.text import Span
from agentd.merge import intent, rebasing, telling, units, writing
from agentd.merge.deciding import Plan, decide
from agentd.merge.draft import Draft
from agentd.merge.telling import Conflict, Kind, Touch
from agentd.merge.units import Sheet

_ASIDE = ("Removed", "Removed Requirements", "Renamed", "Renamed Requirements")


@dataclass(frozen=True, slots=True)
class Merged:
    """The new main spec, None where there is none. With a conflict it is the old one, and nothing is merged."""

    text: str | None
    touches: tuple[Touch, ...]
    """What the merge did to the main spec; nothing is left to do when it is done again."""
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Rebased:
    """The change's spec on the main spec of today. Once its marks are solved it merges without conflict.

    The one exception: an id that both sides gave to something of their own must be given up by one of them.
    """

    text: str
    conflicts: tuple[Conflict, ...]
    touches: tuple[Touch, ...]


def merge(main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT) -> Merged:
    """`name` is that of the spec, as in `auth-flow`."""
    if main is None and base is None:
        return Merged(_as_new(yours, name, pattern), touched(yours, None, name, pattern), ())
    if main is None:
        conflicts = _of_lost_spec(yours, base, name, pattern)
        return Merged(None, (), conflicts)
    plan = _plan(main, yours, base, name, pattern)
    touches, conflicts = telling.touches(plan, name), telling.conflicts(plan, name)
    return Merged(writing.write(plan) if touches and not conflicts else main, touches, conflicts)


def touched(yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT) -> tuple[Touch, ...]:
    """What a change does to its spec, whatever others did meanwhile."""
    return telling.touches(_plan(base, yours, base, name, pattern), name)


def rebase(
    main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str] = REQUIREMENT
) -> Rebased:
    """The change's spec as if it had begun today; a new spec of which there is one by now becomes a delta."""
    if main is None:
        conflicts = () if base is None else _of_lost_spec(yours, base, name, pattern)
        if conflicts:
            sheets = _yours(yours, name, pattern), _base(base, name, pattern)
            return Rebased(_without_base(rebasing.whole(*sheets), name), conflicts, ())
        return Rebased(yours, (), touched(yours, base, name, pattern))
    plan = _plan(main, yours, base, name, pattern)
    text = frontmatter.remove_key(rebasing.write(plan), "version", name)
    text = frontmatter.set_keys(text, {"base_version": plan.main.spec.version or 1}, name)
    return Rebased(text, telling.conflicts(plan, name), telling.touches(plan, name))


def stamped(text: str, version: int, archived: str, change: str, name: str) -> str:
    """The spec with the version, date and change of its archive in the frontmatter; all else keeps its bytes."""
    values = {"version": version, "archived": archived, "change": change}
    document = base_text.parse(text, name)
    if document.frontmatter is None:
        return frontmatter.set_keys(text, values, name)
    head = document.cut(Span(1, document.frontmatter.end))
    return frontmatter.set_keys(head, values, name) + text[len(head) :]


def _plan(main: str | None, yours: str, base: str | None, name: str, pattern: re.Pattern[str]) -> Plan:
    there = units.read(main or "", f"agentd/specs/{name}.md", pattern)
    sheet = _yours(yours, name, pattern)
    if main is not None:
        intent.refuse_lost(sheet)
    return decide(there, intent.read(sheet), _base(base, name, pattern))


def _yours(yours: str, name: str, pattern: re.Pattern[str]) -> Sheet:
    return units.read(yours, f"specs/{name}.md", pattern)


def _base(base: str | None, name: str, pattern: re.Pattern[str]) -> Sheet:
    return units.read(base or "", f"base/{name}.md", pattern)


def _as_new(yours: str, name: str, pattern: re.Pattern[str]) -> str:
    """A new spec as it is; what would be removed or renamed is not there, so it is not said either."""
    sheet = _yours(yours, name, pattern)
    sections = [section for title in _ASIDE if (section := sheet.document.section(title))]
    draft = Draft(sheet)
    for section in sections:
        draft.cut(section.span)
    return frontmatter.remove_key(draft.text(), "base_version", name)


def _without_base(text: str, name: str) -> str:
    return frontmatter.set_keys(frontmatter.remove_key(text, "base_version", name), {"version": 1}, name)


def _of_lost_spec(yours: str, base: str | None, name: str, pattern: re.Pattern[str]) -> tuple[Conflict, ...]:
    """Nothing can be merged into a spec that others deleted, unless there is nothing to merge."""
    if not touched(yours, base, name, pattern):
        return ()
    return (Conflict(Kind.SPEC, name, base, None, yours, "changed here, the whole spec removed in the main specs"),)

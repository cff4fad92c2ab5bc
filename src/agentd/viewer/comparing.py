"""Rounds and specs with what changed in them, word by word, for a page."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from markupsafe import Markup

from agentd.change.folder import Change
from agentd.documents import spec as specs
from agentd.documents.delta import REQUIREMENT_PATTERN
from agentd.documents.text import InvalidDocument
from agentd.merge import TouchKind, UnitKind
from agentd.rendering import eliding, words
from agentd.viewer import margin, rounds
from agentd.viewer.outlooks import Spec
from agentd.viewer.rounds import Brief, Round

_HOW = {
    TouchKind.ADDED: "new",
    TouchKind.MODIFIED: "changed",
    TouchKind.REMOVED: "removed",
    TouchKind.RENAMED: "renamed",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """`html` None: the texts are not kept on this machine."""

    name: str
    is_new: bool
    is_gone: bool
    html: Markup | None


@dataclass(frozen=True, slots=True)
class Told:
    """`left`: what was open before and still is. `where`: findings that stand beside a document."""

    round: Round
    left: tuple[Brief, ...]
    where: dict[str, str]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """A requirement, or the spec as a whole where `id` is "". `how` is "" where only `scenarios` of it are touched."""

    id: str
    title: str
    how: str
    scenarios: int


@dataclass(frozen=True, slots=True)
class Becoming:
    spec: Spec
    touches: tuple[Touched, ...]
    html: Markup | None


def told(change: Change, one: Round) -> Told:
    opened = {brief.id for brief in one.opened}
    left = tuple(brief for brief in one.still_open if brief.id not in opened)
    differences = tuple(
        Difference(moved.name, moved.old is None, moved.new is None, _between(change, moved.name, moved.old, moved.new))
        for moved in one.documents
    )
    return Told(one, left, margin.places(change), differences)


def _between(change: Change, name: str, old: str | None, new: str | None) -> Markup | None:
    pieces = rounds.difference(change, name, old, new)
    return None if pieces is None else Markup(eliding.html(pieces))  # noqa: S704  made safe there


def spec(one: Spec, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> Becoming:
    html = None
    if one.after is not None:
        pieces = words.diff(one.before, one.after)
        html = Markup(words.html(pieces) if one.is_new else eliding.html(pieces))  # noqa: S704  made safe there
    return Becoming(one, tuple(_touched(one, pattern)), html)


def _touched(one: Spec, pattern: re.Pattern[str]) -> Iterator[Touched]:
    """By requirement, in the order of the change; each with how many of its scenarios are touched too."""
    titles = _titles(one, pattern)
    found: dict[str, tuple[dict[str, None], set[str]]] = {}
    for touch in one.touches:
        id_, _, scenario = touch.name.partition(":")[2].partition("/")
        hows, scenarios = found.setdefault(id_, ({}, set()))
        if touch.kind is UnitKind.SCENARIO:
            scenarios.add(scenario)
        else:
            hows[_HOW[touch.how]] = None
    for id_, (hows, scenarios) in found.items():
        yield Touched(id_, titles.get(id_, ""), " and ".join(hows), len(scenarios))


def _titles(one: Spec, pattern: re.Pattern[str]) -> dict[str, str]:
    """Those that will be, and of what goes those that were."""
    found = {}
    for text in (one.before, one.after or ""):
        with suppress(InvalidDocument):
            found.update({known.id: known.title for known in specs.parse_spec(text, one.id, pattern).requirements})
    return found

"""Rounds and specs with what changed in them, word by word, for a page."""

from dataclasses import dataclass

from markupsafe import Markup

from agentd.change.folder import Change
from agentd.rendering import eliding, words
from agentd.viewer import margin, rounds
from agentd.viewer.outlooks import Spec
from agentd.viewer.rounds import Brief, Round


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
class Becoming:
    spec: Spec
    touches: tuple[str, ...]
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


def spec(one: Spec) -> Becoming:
    touches = tuple(dict.fromkeys(f"{touch.name.partition(':')[2] or touch.name} {touch.how}" for touch in one.touches))
    html = None
    if one.after is not None:
        pieces = words.diff(one.before, one.after)
        html = Markup(words.html(pieces) if one.is_new else eliding.html(pieces))  # noqa: S704  made safe there
    return Becoming(one, touches, html)

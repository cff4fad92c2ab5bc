"""Rounds and specs with what changed in them, word by word, for a page."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from markupsafe import Markup

from agentd.change import Change
from agentd.documents import REQUIREMENT_PATTERN, InvalidDocument, parse_spec
from agentd.domain import AgentdError
from agentd.engine import CODE_TREE_KEY, FINDINGS_KEY, VERDICTS_KEY
from agentd.merge import TouchKind, UnitKind
from agentd.web import annotations, displayed, rounds_view
from agentd.web.archive_view import ArchivedSpec
from agentd.web.code_view import FileDiff
from agentd.web.markup import word_diff
from agentd.web.rounds_view import FindingSummary, RoundSummary

_HOW = {
    TouchKind.ADDED: "new",
    TouchKind.MODIFIED: "changed",
    TouchKind.REMOVED: "removed",
    TouchKind.RENAMED: "renamed",
}


@dataclass(frozen=True, slots=True)
class DocumentDiff:
    """`html` None: the texts are not kept on this machine."""

    name: str
    is_new: bool
    is_gone: bool
    html: Markup | None


@dataclass(frozen=True, slots=True)
class RoundView:
    """`left`: what was open before and still is. `where`: findings that stand beside a document."""

    round: RoundSummary
    left: tuple[FindingSummary, ...]
    where: dict[str, str]
    differences: tuple[DocumentDiff, ...]


@dataclass(frozen=True, slots=True)
class TouchedRequirement:
    """A requirement, or the spec as a whole where `id` is "". `how` is "" where only `scenarios` of it are touched."""

    id: str
    title: str
    how: str
    scenarios: int


@dataclass(frozen=True, slots=True)
class SpecDiff:
    spec: ArchivedSpec
    touches: tuple[TouchedRequirement, ...]
    html: Markup | None


def round_view(change: Change, one: RoundSummary) -> RoundView:
    opened = {brief.id for brief in one.opened}
    left = tuple(brief for brief in one.still_open if brief.id not in opened)
    differences = tuple(
        DocumentDiff(
            moved.name, moved.old is None, moved.new is None, _between(change, moved.name, moved.old, moved.new)
        )
        for moved in one.documents
    )
    return RoundView(one, left, annotations.finding_documents(change), differences)


def _between(change: Change, name: str, old: str | None, new: str | None) -> Markup | None:
    pieces = rounds_view.document_difference(change, name, old, new)
    return None if pieces is None else Markup(word_diff.elided_html(pieces))  # noqa: S704  made safe there


def spec_diff(one: ArchivedSpec, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> SpecDiff:
    html = None
    if one.after is not None:
        pieces = word_diff.diff_words(one.before, one.after)
        html = Markup(word_diff.diff_html(pieces) if one.is_new else word_diff.elided_html(pieces))  # noqa: S704  made safe there
    return SpecDiff(one, tuple(_touched(one, pattern)), html)


def _touched(one: ArchivedSpec, pattern: re.Pattern[str]) -> Iterator[TouchedRequirement]:
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
        yield TouchedRequirement(id_, titles.get(id_, ""), " and ".join(hows), len(scenarios))


def _titles(one: ArchivedSpec, pattern: re.Pattern[str]) -> dict[str, str]:
    """Those that will be, and of what goes those that were."""
    found = {}
    for text in (one.before, one.after or ""):
        with suppress(InvalidDocument):
            found.update({known.id: known.title for known in parse_spec(text, one.id, pattern).requirements})
    return found


_FILES = 100  # of a difference in code; who changed more reads it on its own page


@dataclass(frozen=True, slots=True)
class StaleItem:
    """`is_told`: all of it stands here, so it can be decided upon; else it is to be read at `href`."""

    name: str
    href: str
    html: Markup | None = None
    files: tuple[FileDiff, ...] = ()
    is_verdict: bool = False

    @property
    def is_told(self) -> bool:
        return bool(self.html) or (bool(self.files) and not any(one.left_out for one in self.files))


def stale_items(
    change: Change, changed: Iterable[str], shown: Mapping[str, str], now: Mapping[str, str]
) -> list[StaleItem]:
    """Of what is there now; what has gone can only be named."""
    start = f"/changes/{change.id}"
    with displayed.page_request(change.project):
        return [_stale_item(change, start, name, shown.get(name, ""), now[name]) for name in changed if name in now]


def _stale_item(change: Change, start: str, name: str, old: str, new: str) -> StaleItem:
    if name in VERDICTS_KEY:
        return StaleItem(name, f"{start}/rounds", is_verdict=True)
    if name == CODE_TREE_KEY:
        return StaleItem(name, f"{start}/code", files=_stale_code(change, old, new))
    if name == FINDINGS_KEY:
        return StaleItem(name, start, html=_text_between(change, old, new))
    return StaleItem(name, f"{start}/read/{name}", html=_text_between(change, old, new))


def _text_between(change: Change, old: str, new: str) -> Markup | None:
    """Short: the rest was read. None where this machine has not kept what was shown."""
    before, after = displayed.displayed_text(change, old), displayed.displayed_text(change, new)
    if before is None or after is None:
        return None
    return Markup(word_diff.elided_html(word_diff.diff_words(before, after)))  # noqa: S704 - escaped there


def _stale_code(change: Change, old: str, new: str) -> tuple[FileDiff, ...]:
    """Nothing where git has not kept what was shown, or where it is too much."""
    try:
        found = rounds_view.code_difference(change, old, new)
    except AgentdError:
        return ()
    return found if len(found) <= _FILES else ()

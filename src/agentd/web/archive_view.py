"""Preview of the archive of a change: the merged specs, overlapping changes, and what prevents it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from agentd.change import Change, ChangeLocator, build_overlap_index, overlapping_changes, refresh_touched
from agentd.documents import REQUIREMENT_PATTERN, InvalidDocument, decode_text, parse_spec
from agentd.domain import AgentdError, clock
from agentd.engine import SpecPreview, change_project, change_spec_files, main_spec_path, prepare_archive, preview_spec
from agentd.merge import SpecConflict, SpecTouch, TouchKind, UnitKind
from agentd.project import load_config
from agentd.storage import files
from agentd.web import document_view
from agentd.web.markup import word_diff
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, Query

_HOW = {
    TouchKind.ADDED: "new",
    TouchKind.MODIFIED: "changed",
    TouchKind.REMOVED: "removed",
    TouchKind.RENAMED: "renamed",
}


@dataclass(frozen=True, slots=True)
class ArchivedSpec:
    """`after` None: nothing is to be written, or it cannot be because of conflicts or a problem."""

    id: str
    is_new: bool
    version: int
    before: str
    after: str | None
    touches: tuple[SpecTouch, ...]
    conflicts: tuple[SpecConflict, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class RivalChange:
    """Another open change, and the requirements that both touch."""

    id: str
    phase: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveView:
    """`refused`: why it would not be archived now, and `hint` what to do about that."""

    specs: tuple[ArchivedSpec, ...]
    overlaps: tuple[RivalChange, ...]
    refused: str
    hint: str
    warnings: tuple[str, ...]
    problem: str


def read_archive_view(change: Change, settings: Sequence[str] = ()) -> ArchiveView:
    """`settings` are those of the command line."""
    try:
        pattern = load_config(change_project(change).config_file, flags=settings).validation.requirement_pattern
        if not change.read().phase.is_open:
            return ArchiveView((), (), "", "", (), problem="")
        met = _rivals(change)
    except AgentdError as error:
        return ArchiveView((), (), error.message, error.hint, (), problem=error.message)
    try:
        done = prepare_archive(change, pattern)
    except AgentdError as error:
        specs, problem = _each(change, pattern)
        return ArchiveView(specs, met, error.message, error.hint, (), problem)
    return ArchiveView(tuple(map(_spec, done.specs)), met, "", "", done.warnings, problem="")


def whole_spec(change: Change, spec_id: str, settings: Sequence[str] = ()) -> ArchivedSpec | None:
    """One spec to be read from its beginning to its end: as it would be; as it is where the change leaves it alone."""
    found = next((one for one in read_archive_view(change, settings).specs if one.id == spec_id), None)
    if found is not None and not (found.conflicts or found.problem):
        return replace(found, after=found.before if found.after is None else found.after)
    path = main_spec_path(change, spec_id)
    if found is not None or path.is_symlink() or not path.is_file():
        return found
    try:
        text = decode_text(files.read(path), path.name)
    except AgentdError as error:
        return _broken(change, path, error.message)
    return ArchivedSpec(spec_id, False, 0, text, text, (), (), "")


def _each(change: Change, pattern: re.Pattern[str]) -> tuple[tuple[ArchivedSpec, ...], str]:
    """One that cannot be merged does not hide the others; and why there are none at all, if that is so."""
    date = clock.now()[:10]
    found = []
    try:
        paths = change_spec_files(change)
    except AgentdError as error:
        return (), error.message
    for path in paths:
        try:
            found.append(_spec(preview_spec(change, path, pattern, date)))
        except AgentdError as error:
            found.append(_broken(change, path, error.message))
    return tuple(found), ""


def _spec(one: SpecPreview) -> ArchivedSpec:
    return ArchivedSpec(one.id, one.is_new, one.version, one.before or "", one.after, one.touches, one.conflicts, "")


def _broken(change: Change, path: Path, problem: str) -> ArchivedSpec:
    is_new = not main_spec_path(change, path.stem).is_file()
    return ArchivedSpec(path.stem, is_new, 0, "", None, (), (), problem)


def _rivals(change: Change) -> tuple[RivalChange, ...]:
    places = ChangeLocator(change.project)
    found = refresh_touched(places.find(change.id))
    among = build_overlap_index(places.open() if found.summary.touches else ())
    return tuple(
        RivalChange(one.id, str(one.phase), tuple(one.requirements)) for one in overlapping_changes(found, among)
    )


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


def _values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    found = read_archive_view(change, site.settings)
    pattern, _ = document_view.requirement_pattern(change, site.settings)  # `found` says what is wrong with it
    return {"outlook": found, "specs": [spec_diff(one, pattern) for one in found.specs]}


TABS = (ChangeTab("specs", 80, _values, lambda documents, state: any(name.startswith("specs/") for name in documents)),)

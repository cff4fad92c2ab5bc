"""Preview of archiving a change: the merged specs, overlapping changes, and what prevents it."""

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
    """`after` is None if nothing would be written, or if conflicts or a problem prevent it."""

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
    """Another open change, and the requirements that both changes touch."""

    id: str
    phase: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveView:
    """`refused`: why the change cannot be archived now; `hint`: what to do about it."""

    specs: tuple[ArchivedSpec, ...]
    overlaps: tuple[RivalChange, ...]
    refused: str
    hint: str
    warnings: tuple[str, ...]
    problem: str


def read_archive_view(change: Change, settings: Sequence[str] = ()) -> ArchiveView:
    """Build the preview; `settings` come from the command line."""
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
    """Return one complete spec, merged if the change touches it, else as it is; None if it does not exist."""
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
    """Preview each spec on its own, so one that fails does not hide the others; also return why there are none."""
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
    """A requirement, or the whole spec if `id` is "". `how` is "" if only `scenarios` of it are touched."""

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
        html = Markup(word_diff.diff_html(pieces) if one.is_new else word_diff.elided_html(pieces))  # noqa: S704  escaped there
    return SpecDiff(one, tuple(_touched(one, pattern)), html)


def _touched(one: ArchivedSpec, pattern: re.Pattern[str]) -> Iterator[TouchedRequirement]:
    """Yield the touched requirements in the order of the change, each with the number of its touched scenarios."""
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
    """Return the new titles, and the old ones of removed requirements."""
    found = {}
    for text in (one.before, one.after or ""):
        with suppress(InvalidDocument):
            found.update({known.id: known.title for known in parse_spec(text, one.id, pattern).requirements})
    return found


def _values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    found = read_archive_view(change, site.settings)
    pattern, _ = document_view.requirement_pattern(change, site.settings)  # `found` reports its problem
    return {"outlook": found, "specs": [spec_diff(one, pattern) for one in found.specs]}


TABS = (ChangeTab("specs", 80, _values, lambda documents, state: any(name.startswith("specs/") for name in documents)),)

"""The specs as they would be after the archive of a change, who else touches the same, and what stands in the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from re import Pattern

from agentd.change import Change, ChangeLocator, build_overlap_index, overlapping_changes, refresh_touched
from agentd.documents import decode_text
from agentd.domain import AgentdError, clock
from agentd.engine import SpecPreview, change_project, change_spec_files, main_spec_path, prepare_archive, preview_spec
from agentd.merge import SpecConflict, SpecTouch
from agentd.project import load_config
from agentd.storage import files


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


def _each(change: Change, pattern: Pattern[str]) -> tuple[tuple[ArchivedSpec, ...], str]:
    """One that cannot be merged does not hide the others; and why there are none at all, if that is so."""
    state, date = change.read(), clock.now()[:10]
    found = []
    try:
        paths = change_spec_files(change)
    except AgentdError as error:
        return (), error.message
    for path in paths:
        try:
            found.append(_spec(preview_spec(change, state, path, pattern, date)))
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

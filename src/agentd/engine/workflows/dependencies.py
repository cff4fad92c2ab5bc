"""Dependencies between changes: a change is archived after those it depends on."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentd.change import (
    STATE_FILE,
    Change,
    ChangeLocator,
    LocatedChange,
    archived_change_id,
    check_change_id,
    read_state,
)
from agentd.domain import ChangeNotFound, Phase, UsageError, WarningIssued
from agentd.engine.steps.step_context import StepContext
from agentd.project import Project


def check_dependencies(project: Project, change_id: str, wanted: Sequence[str]) -> None:
    """Refuse unknown changes and circular dependencies."""
    places = ChangeLocator(project)
    known = {one.id: one for one in places.open()}
    for other in wanted:
        if check_change_id(other) not in known and places.find_archived(other) is None:
            raise ChangeNotFound(f"there is no change '{other}' to depend on", "agentd list --all")
        if path := _dependency_path(known, other, change_id):
            message = f"{change_id} would wait for itself: {' → '.join((change_id, *path))}"
            raise UsageError(message, f"leave out --depends-on {other}")


def add_dependencies(change: Change, wanted: Sequence[str]) -> None:
    change.update(lambda old: replace(old, depends_on=tuple(dict.fromkeys((*old.depends_on, *wanted)))))


def pending_dependencies(change: Change) -> dict[str, Phase | None]:
    """Return the dependencies that are not archived yet, with their phase; None if the change no longer exists."""
    wanted = change.read().depends_on
    if not wanted:
        return {}
    places = ChangeLocator(change.project)
    known = {one.id: one for one in places.open()}
    found: dict[str, Phase | None] = {}
    for other in wanted:
        if not _is_archived_here(change, other):
            one = known.get(other) or places.find_archived(other)
            found[other] = one.summary.phase if one else None
    return found


def _is_archived_here(change: Change, other: str) -> bool:
    """Whether it is archived in the change's own worktree, whose specs the change will be merged into."""
    archive = change.project.archive_in(change.tree)
    folders = [path for path in archive.glob(f"*{other}*") if other == archived_change_id(path.name)]
    return any(read_state(path).phase is Phase.ARCHIVED for path in folders if (path / STATE_FILE).is_file())


def dependency_status(phase: Phase | None) -> str:
    if phase is Phase.ARCHIVED:
        return "is archived, but not in this worktree"
    return f"is {phase}" if phase else "no longer exists"


def warn_dependencies(ctx: StepContext) -> None:
    for other, phase in pending_dependencies(ctx.change).items():
        stands = dependency_status(phase)
        message = f"{ctx.change.id} depends on {other}, which {stands}: its specs are not merged yet"
        ctx.run.emit(WarningIssued(code="depends", message=message))


def _dependency_path(known: dict[str, LocatedChange], start: str, goal: str) -> tuple[str, ...]:
    """Return a dependency path from one change to another, or nothing."""
    paths: list[tuple[str, ...]] = [(start,)]
    seen = set()
    while paths:
        path = paths.pop()
        if path[-1] == goal:
            return path
        found = known.get(path[-1])
        if path[-1] not in seen and found and found.folder and not found.summary.problem:
            seen.add(path[-1])
            paths += [(*path, other) for other in read_state(Path(found.folder)).depends_on]
    return ()

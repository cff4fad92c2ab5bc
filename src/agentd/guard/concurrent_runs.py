"""Other changes that agentd worked on in the same worktree during a call: their edits are not violations.

They are recognized by their lock files: every run and every write holds a lock and updates its modification time.
"""

import os
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

from agentd.change import Change, archived_change_id
from agentd.documents import COMMENTS_FILE
from agentd.guard import call_record
from agentd.guard.allowed import is_allowed
from agentd.guard.protected_paths import PROJECT, TREE, ProtectedPaths, is_covered, outermost_paths, worktree_path
from agentd.guard.scan import ProtectedArea
from agentd.guard.snapshot import FileDifference, Row, Snapshot
from agentd.project import Project
from agentd.storage import LockHolder, active_run

_COMMENTS = re.compile(rf"{re.escape(COMMENTS_FILE)}|\.{re.escape(COMMENTS_FILE)}\..+\.tmp")


class ConcurrentRuns:
    """What other runs changed during a call.

    `running` are the changes with an active run when the call began, `since` is that time, `moved` the paths that
    differ.
    """

    def __init__(
        self, project: Project, own: str, running: Collection[str], since: int, moved: Collection[str]
    ) -> None:
        self._project = project
        self._own = own
        self._since = since
        self._moved = moved
        self._known = dict.fromkeys(running, True)

    def made(self, path: str) -> bool:
        """Return whether a differing path was changed by work on another change."""
        parts = path.split("/")
        if len(parts) > 2 and parts[:2] == ["agentd", "changes"]:
            return self._at_work(parts[2]) or self._commented(parts[2], "/".join(parts[3:]))
        if len(parts) > 2 and parts[:2] == ["agentd", "archive"]:
            return self._archived(parts[2])
        return parts[:2] == ["agentd", "specs"] and self._archiving

    def _at_work(self, change_id: str) -> bool:
        if change_id == self._own:
            return False
        if change_id not in self._known:
            paths = [Path(self._project.local_state_path("locks", f"{change_id}.{kind}")) for kind in ("run", "write")]
            self._known[change_id] = any(_touched(path, self._since) or active_run(path) for path in paths)
        return self._known[change_id]

    def _commented(self, change_id: str, name: str) -> bool:
        """Return whether a person edited these comments; that needs no run, and says nothing about other files."""
        lock = Path(self._project.local_state_path("locks", f"{change_id}.comments"))
        return change_id != self._own and bool(_COMMENTS.fullmatch(name)) and _touched(lock, self._since)

    def _archived(self, folder: str) -> bool:
        """Return whether another run archived this folder. A second one of the same name has a number appended."""
        name = archived_change_id(folder)
        return self._at_work(name) or self._at_work(re.sub(r"-\d+$", "", name))

    @cached_property
    def _archiving(self) -> bool:
        """Whether another change is being archived, or was archived or restored during the call: that merges specs."""
        folders = {path.split("/")[2] for path in self._moved if path.startswith("agentd/archive/")}
        return any(self._archived(folder) for folder in folders) or any(
            "archive" in holder.command.split() for holder in _holders(self._project, self._own).values()
        )


def running_changes(project: Project, own: str) -> list[str]:
    """Return the other changes whose run lock is currently held."""
    return sorted(_holders(project, own))


def active_run_folders(project: Project) -> list[Path]:
    """Return the folders of all active runs in the repository, in every project."""
    room = Path(project.repo.common, "agentd")
    found = []
    for each in (room, *room.glob("projects/*")):
        found += [each / "runs" / holder.token for holder in _held(str(each / "locks")).values() if holder.token]
    return found


def _holders(project: Project, own: str) -> dict[str, LockHolder]:
    return {name: holder for name, holder in _held(project.local_state_path("locks")).items() if name != own}


def _held(folder: str) -> dict[str, LockHolder]:
    try:
        with os.scandir(folder) as entries:
            # a released lock file is empty
            named = [entry.path for entry in entries if entry.name.endswith(".run") and entry.stat().st_size]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found = {os.path.basename(path).removesuffix(".run"): active_run(Path(path)) for path in named}
    return {name: holder for name, holder in found.items() if holder}


def _touched(path: Path, since: int) -> bool:
    try:
        return path.stat().st_mtime_ns >= since
    except OSError:
        return False


AsFound = dict[str, dict[str, Row | None]]  # by area and path: our own copy (None: the path did not exist)


def adopt_older_copies(change: Change, mirror: Snapshot, what: ProtectedPaths, own: Path) -> AsFound:
    """Adopt other guards' copies of files changed since, the oldest winning. Return our replaced copies."""
    found: AsFound = {}
    for begun, theirs in _others(change, own):
        for name, area in what.areas.items():
            for other, shared in _shared(area, begun):
                differing = _disputed(change, theirs, begun, name, theirs.differences(other, shared))
                if differing:
                    ours = mirror.adopt(name, theirs, differing)
                    found[name] = ours | found.get(name, {})
        theirs.close()
    return found


def _others(change: Change, own: Path) -> list[tuple[call_record.CallStart, Snapshot]]:
    """Return the other calls in progress in the repository, newest first."""
    found = []
    for folder in active_run_folders(change.project):
        begun = call_record.read_call_record(folder / own.name / call_record.CALL) if folder != own.parent else None
        if begun and not begun.is_done:
            theirs = Snapshot(folder / own.name)
            if theirs.load():
                found.append((begun, theirs))
    return sorted(found, key=lambda one: -one[0].since)


def _shared(area: ProtectedArea, begun: call_record.CallStart) -> list[tuple[str, ProtectedArea]]:
    """Return the other call's areas with the same root, limited to the paths that both guard."""
    found = []
    for name, other in begun.protected.areas.items():
        both = [path for path in area.paths if is_covered(path, other.paths)]
        both += [path for path in other.paths if is_covered(path, area.paths)]
        if other.root == area.root and both:
            found.append((name, ProtectedArea(area.root, outermost_paths(both), area.left_out)))
    return found


def _disputed(
    change: Change, theirs: Snapshot, begun: call_record.CallStart, name: str, differing: Sequence[FileDifference]
) -> list[FileDifference]:
    """Return the differences, except what their agent may edit and what agentd writes in the folders of changes."""
    common = os.path.realpath(change.project.repo.common)
    editable = {os.path.normpath(worktree_path(change, path)) for path in begun.editable}
    written = tuple(worktree_path(change, f"agentd/{folder}/") for folder in ("changes", "archive"))

    def is_disputed(one: FileDifference) -> bool:
        if name in (TREE, PROJECT) and (one.path in editable or one.path.startswith(written)):
            return False
        root = begun.protected.areas[one.area].root
        return not is_allowed(theirs, root, one, begun.protected, common)

    return [one for one in differing if is_disputed(one)]

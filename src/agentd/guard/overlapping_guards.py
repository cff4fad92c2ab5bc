"""Several guards at once: what another one's agent had planted when our call began is not how it was.

The other guard will put that back; ours must not undo it. So where an active run's guard has another copy, that copy
counts, and what was found instead is neither put back nor kept up by us.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from agentd.change import Change
from agentd.guard import call_record, concurrent_runs
from agentd.guard.allowed import is_allowed
from agentd.guard.protected_paths import PROJECT, TREE, ProtectedPaths, is_covered, outermost_paths, worktree_path
from agentd.guard.scan import ProtectedArea
from agentd.guard.snapshot import FileDifference, Row, Snapshot

AsFound = dict[str, dict[str, Row | None]]  # area, path: our own copy (None: nothing was there)


def adopt_older_copies(change: Change, mirror: Snapshot, what: ProtectedPaths, own: Path) -> AsFound:
    """Let the copies of other guards count, the oldest most; what ours were is returned."""
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
    """Calls under way in the repository, the newest first."""
    found = []
    for folder in concurrent_runs.active_run_folders(change.project):
        begun = call_record.read_call_record(folder / own.name / call_record.CALL) if folder != own.parent else None
        if begun and not begun.is_done:
            theirs = Snapshot(folder / own.name)
            if theirs.load():
                found.append((begun, theirs))
    return sorted(found, key=lambda one: -one[0].since)


def _shared(area: ProtectedArea, begun: call_record.CallStart) -> list[tuple[str, ProtectedArea]]:
    """Their areas of the same root, as far as both look there."""
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
    """Not what their agent may do, nor what agentd itself writes in the folders of changes."""
    common = os.path.realpath(change.project.repo.common)
    editable = {os.path.normpath(worktree_path(change, path)) for path in begun.editable}
    written = tuple(worktree_path(change, f"agentd/{folder}/") for folder in ("changes", "archive"))

    def is_disputed(one: FileDifference) -> bool:
        if name in (TREE, PROJECT) and (one.path in editable or one.path.startswith(written)):
            return False
        root = begun.protected.areas[one.area].root
        return not is_allowed(theirs, root, one, begun.protected, common)

    return [one for one in differing if is_disputed(one)]

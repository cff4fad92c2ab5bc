"""A change as shown by every interface: its next command, and its row in a listing."""

from collections.abc import Iterable
from typing import Any

from agentd.change import overlaps
from agentd.change.locator import LocatedChange
from agentd.change.overlaps import OverlapIndex, OverlappingChange
from agentd.domain import Phase
from agentd.project import Project

_NEXT = {
    Phase.DRAFTING: "agentd plan %s",
    Phase.PROPOSED: "agentd plan %s",
    Phase.CHALLENGED: "agentd impl %s",
    Phase.REJECTED: "agentd plan %s --rechallenge",
    Phase.IMPLEMENTING: "agentd impl %s",
    Phase.COMPLETE: "agentd archive %s",
    Phase.DROPPED: "agentd drop %s",  # an interrupted drop: the change is still among the open ones
}


def next_command(project: Project, found: LocatedChange) -> str | None:
    if found.fix:
        return found.fix
    if is_change_running(project, found):
        return f"agentd wait {found.id}"
    command = _NEXT.get(found.summary.phase)
    if command is None or found.summary.problem or found.archived:
        return None
    return command % found.id


def is_change_running(project: Project, found: LocatedChange) -> bool:
    """Return whether a run started (by STATE.yaml) and is still alive (by its lock)."""
    if not found.summary.running:
        return False
    from pathlib import Path  # deferred: few changes are running

    from agentd.storage import active_run

    return active_run(Path(project.local_state_path("locks", f"{found.id}.run"))) is not None


def has_run_failed(project: Project, found: LocatedChange) -> bool:
    """Return whether the last run ended early on its own, for example over budget, rather than interrupted."""
    from pathlib import Path  # deferred: see above

    from agentd.change import run_control
    from agentd.domain import Interrupted

    last = run_control.read_outcome(Path(project.local_state_path("outcomes", f"{found.id}.json")))
    if last is None or last.updated_at != found.summary.updated_at:
        return False
    return last.result.get("exit_code") != Interrupted.exit_code


def build_overlap_index(changes: Iterable[LocatedChange]) -> OverlapIndex:
    """Index the open changes by what they touch, from their summaries."""
    touching = (change for change in changes if change.summary.touches and not change.archived)
    return OverlapIndex((change.id, change.summary.phase, change.summary.touches) for change in touching)


def overlapping_changes(found: LocatedChange, among: OverlapIndex) -> list[OverlappingChange]:
    """Return the open changes that touch the same requirements as this one, if it is open itself."""
    is_open = found.summary.phase.is_open and not found.archived
    return among.find_overlapping(found.id, found.summary.touches) if is_open else []


def refresh_touched(found: LocatedChange) -> LocatedChange:
    """Return the change with what its specs touch now: a person may have edited them since the last step."""
    assert found.folder, "a change found by id is checked out"
    return found._replace(summary=found.summary._replace(touches=overlaps.read_touched(found.folder)))


def change_row(project: Project, found: LocatedChange, among: OverlapIndex) -> dict[str, Any]:
    """Return one entry of `list --json`, `status --json` and the MCP tool `list_changes`."""
    summary = found.summary
    return {
        "change_id": found.id,
        "phase": str(summary.phase),
        "round": summary.round,
        "verdict": summary.verdict,
        "open": {"high": summary.high, "medium": summary.medium, "low": summary.low},
        "cost": summary.cost,
        "running": is_change_running(project, found),
        "updated_at": summary.updated_at,
        "next": next_command(project, found),
        "description": summary.description,
        "git": {
            "setup": summary.setup,
            "branch": summary.branch,
            "tree": summary.tree,
            "target": summary.target,
        },
        "checked_out": found.folder is not None,
        "problem": summary.problem,
        "overlaps": [
            {"change_id": other.id, "requirements": other.requirements} for other in overlapping_changes(found, among)
        ],
    }

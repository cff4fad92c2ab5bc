"""A change in words and data for every face: what comes next, and its row in a listing."""

from typing import Any

from agentd.change.places import Found
from agentd.project import Project
from agentd.terms import Phase

_NEXT = {
    Phase.DRAFTING: "agentd plan %s",
    Phase.PROPOSED: "agentd plan %s",
    Phase.CHALLENGED: "agentd impl %s",
    Phase.REJECTED: "agentd plan %s --rechallenge",
    Phase.IMPLEMENTING: "agentd impl %s",
    Phase.COMPLETE: "agentd archive %s",
    Phase.DROPPED: "agentd drop %s",  # only a drop that was cut off is still among the open ones
}


def next_command(project: Project, found: Found) -> str | None:
    if found.fix:
        return found.fix
    if is_running(project, found):
        return f"agentd wait {found.id}"
    following = _NEXT.get(found.summary.phase)
    if following is None or found.summary.problem or found.archived:
        return None
    return following % found.id


def is_running(project: Project, found: Found) -> bool:
    """STATE.yaml says that a run began; the lock says whether it is alive."""
    if not found.summary.running:
        return False
    from pathlib import Path  # late: hardly any change is running

    from agentd.change import locks

    return locks.active_run(Path(project.in_room("locks", f"{found.id}.run"))) is not None


def row(project: Project, found: Found) -> dict[str, Any]:
    """One entry of `list --json`, `status --json` and the MCP tool `list_changes`."""
    summary = found.summary
    return {
        "change_id": found.id,
        "phase": str(summary.phase),
        "round": summary.round,
        "verdict": summary.verdict,
        "open": {"high": summary.high, "medium": summary.medium, "low": summary.low},
        "cost": summary.cost,
        "running": is_running(project, found),
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
    }

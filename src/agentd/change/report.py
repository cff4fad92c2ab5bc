"""A change in words and data for every face: what comes next, and its row in a listing."""

from typing import Any

from agentd.change import locks
from agentd.change.places import Found
from agentd.project import Project
from agentd.terms import Phase

_NEXT = {
    Phase.DRAFTING: "agentd plan {id}",
    Phase.PROPOSED: "agentd plan {id}",
    Phase.CHALLENGED: "agentd impl {id}",
    Phase.REJECTED: "agentd plan {id} --rechallenge",
    Phase.IMPLEMENTING: "agentd impl {id}",
    Phase.COMPLETE: "agentd archive {id}",
    Phase.DROPPED: "agentd drop {id}",  # only a drop that was cut off is still among the open ones
}


def next_command(found: Found) -> str | None:
    if found.fix:
        return found.fix
    if found.summary.problem or _is_archived(found):
        return None
    return _NEXT[found.summary.phase].format(id=found.id)


def _is_archived(found: Found) -> bool:
    return found.summary.phase is Phase.ARCHIVED or "/archive/" in (found.folder or "")


def is_running(project: Project, found: Found) -> bool:
    """STATE.yaml says that a run began; the lock says whether it is alive."""
    return found.summary.running and locks.active_run(project.room / "locks" / f"{found.id}.run") is not None


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
        "next": next_command(found),
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

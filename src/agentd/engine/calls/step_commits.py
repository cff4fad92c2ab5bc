"""`git.commit = "per-step"`: commit what a step produced on the change's own branch."""

import os

from agentd.change import Change
from agentd.domain import AgentdError, events
from agentd.engine.calls.run_context import RunContext
from agentd.project import git


def commit_step(run: RunContext, step: str) -> None:
    """Commit the step. A failure is only a warning: the next commit includes the work."""
    change, place = run.change, run.change.read().git
    if run.config.git.commit != "per-step":
        return
    if not place.branch:
        _warn_once(run, "the change has no branch of its own, so nothing is committed")
        return
    try:
        names = _pending_paths(change)
        if names:
            git.run(change.tree, "add", "--all", "--", *names)
            message = f"{change.id}: {step}"
            git.run(change.tree, "commit", "--quiet", "--message", message, "--only", "--", *names)
    except AgentdError as error:
        _warn_once(run, f"{step} could not be committed: {error.message}")


def _pending_paths(change: Change) -> list[str]:
    """Return uncommitted paths of the change's folder, and of the code changed since the first edit."""
    folder = os.path.join(change.project.prefix, "agentd", "changes", change.id)
    names = _uncommitted(change, folder)
    if base := change.read().base.tree:
        now = git.snapshot(change.tree)
        rows = git.run(change.tree, "diff", "--no-renames", "--name-only", "-z", base, now).split("\0")
        code = [name for name in rows if name and not name.startswith(os.path.join(change.project.prefix, "agentd/"))]
        names += _uncommitted(change, *code) if code else []
    return names


def _uncommitted(change: Change, *paths: str) -> list[str]:
    literal = [f":(top,literal){path}" for path in paths]
    rows = git.run(change.tree, "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z", "--", *literal)
    return [f":(top,literal){row[3:]}" for row in rows.split("\0") if row]


def _warn_once(run: RunContext, message: str) -> None:
    if message not in run.warned:
        run.warned.add(message)
        run.emit(events.WarningIssued(code="not-committed", message=message))

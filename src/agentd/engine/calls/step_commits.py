"""`git.commit = "per-step"`: what a step made is committed on the change's own branch, and nothing else is."""

import os

from agentd.change import Change
from agentd.domain import AgentdError, events
from agentd.engine.calls.run_context import RunContext
from agentd.project import git


def commit_step(run: RunContext, step: str) -> None:
    """A commit that fails is a warning: the work is in the tree, and the next step's commit has it too."""
    change, place = run.change, run.change.read().git
    if run.config.git.commit != "per-step":
        return
    if not place.branch:
        _say(run, "the change has no branch of its own, so nothing is committed")
        return
    try:
        names = _names(change)
        if names:
            git.run(change.tree, "add", "--all", "--", *names)
            message = f"{change.id}: {step}"
            git.run(change.tree, "commit", "--quiet", "--message", message, "--only", "--", *names)
    except AgentdError as error:
        _say(run, f"{step} could not be committed: {error.message}")


def _names(change: Change) -> list[str]:
    """What git lacks of the change's folder, and of the code that differs from before the first edit."""
    folder = os.path.join(change.project.prefix, "agentd", "changes", change.id)
    names = _lacking(change, folder)
    if base := change.read().base.tree:
        now = git.snapshot(change.tree)
        told = git.run(change.tree, "diff", "--no-renames", "--name-only", "-z", base, now).split("\0")
        code = [name for name in told if name and not name.startswith(os.path.join(change.project.prefix, "agentd/"))]
        names += _lacking(change, *code) if code else []
    return names


def _lacking(change: Change, *paths: str) -> list[str]:
    literal = [f":(top,literal){path}" for path in paths]
    rows = git.run(change.tree, "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z", "--", *literal)
    return [f":(top,literal){row[3:]}" for row in rows.split("\0") if row]


def _say(run: RunContext, words: str) -> None:
    if words not in run.warned:
        run.warned.add(words)
        run.emit(events.WarningIssued(code="not-committed", message=words))

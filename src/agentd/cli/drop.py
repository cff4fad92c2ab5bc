"""`agentd drop`: move an open change to the archive without deleting anything."""

import os
import shlex

import click

from agentd.change import Change, GitLocation, drop_change, open_change
from agentd.cli import output
from agentd.cli.change_argument import change_argument
from agentd.domain import GitSetup, Unanswered
from agentd.project import find_project, git

COMMANDS = {"drop": (160, "Move a change to the archive as dropped.")}


@click.command("drop")
@change_argument()
@click.option("--reason", default="", help="Why the change is dropped; recorded in its history.")
@output.yes_option
@output.json_option
def command(change_id: str, reason: str, yes: bool, as_json: bool) -> int:
    """Move the change ID to agentd/archive/ as dropped.

    Nothing is deleted: documents, branch and code are kept.
    """
    project = find_project()
    change = open_change(project, change_id)
    phase = change.read().phase
    if output.interactive(as_json, yes):
        question = f"Move {change_id} ({phase}) to the archive as dropped?"
        if not click.confirm(question, default=True, err=True):
            raise Unanswered(f"{change_id} was not dropped", f"agentd status {change_id}")
    elif not yes:
        raise Unanswered(f"dropping {change_id} needs confirmation", f"agentd drop {change_id} --yes")
    location = change.read().git
    archived = drop_change(change, f"person:{git.user_name(change.tree)}", reason)
    shown = os.path.relpath(archived)
    cleanup = _cleanup_commands(change, location)
    data = {"change_id": change_id, "phase": "dropped", "folder": shown, "next": None, "to_remove": cleanup}

    def text() -> str:
        lines = [f"{change_id} was dropped. Its documents are in {shown}."]
        if cleanup:
            lines.append(f"Its branch {location.branch} is kept: commit and merge anything you want to keep.")
            lines.append("To delete the branch, including unmerged work:")
        return "\n".join([*lines, *(f"  {line}" for line in cleanup)])

    return output.show_result("drop", as_json, data, text)


def _cleanup_commands(change: Change, location: GitLocation) -> list[str]:
    """Return the commands that delete the branch and its worktree."""
    repo = change.project.repo
    if not location.branch or location.branch not in git.branches(repo):
        return []
    delete = f"git branch -D {shlex.quote(location.branch)}"
    trees = {tree.path: tree.branch for tree in git.worktrees(repo)}
    holder = next((path for path, branch in trees.items() if branch == location.branch), None)
    if holder is None:
        return [delete]
    if location.setup is GitSetup.WORKTREE and holder != repo.main:
        others = (path for path in (*trees, repo.common) if path != holder)
        return [*_remove_worktree(holder, repo.top, next(others)), delete]
    new_branch = location.target if location.target in git.branches(repo) - set(trees.values()) else None
    option = "" if holder == repo.top else f" -C {shlex.quote(os.path.relpath(holder))}"
    return [f"git{option} switch {shlex.quote(new_branch) if new_branch else '--detach'}", delete]


def _remove_worktree(tree: str, here: str, other: str) -> list[str]:
    """Return the commands that remove a worktree, leaving it first if it is the current folder."""
    cd = [f"cd {shlex.quote(os.path.relpath(other))}"] if here == tree else []
    start = other if cd else None
    return [*cd, f"git worktree remove --force {shlex.quote(os.path.relpath(tree, start))}"]

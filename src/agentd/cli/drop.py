"""`agentd drop`: an open change goes to the archive, nothing is deleted."""

import os
import shlex

import click

from agentd.change import Change, GitLocation, drop_change, open_change
from agentd.cli import output
from agentd.cli.change_argument import change_argument
from agentd.domain import GitSetup, Unanswered
from agentd.project import find_project, git


@click.command("drop")
@change_argument()
@click.option("--reason", default="", help="Why it is dropped; kept in its history.")
@output.yes_option
@output.json_option
def command(change_id: str, reason: str, yes: bool, as_json: bool) -> int:
    """Move the change ID to agentd/archive/ as dropped.

    Nothing is deleted: its documents, branch and code stay.
    """
    project = find_project()
    change = open_change(project, change_id)
    phase = change.read().phase
    if output.interactive(as_json, yes):
        question = f"Move {change_id} ({phase}) to the archive as dropped?"
        if not click.confirm(question, default=True, err=True):
            raise Unanswered(f"{change_id} stays as it is", f"agentd status {change_id}")
    elif not yes:
        raise Unanswered(f"dropping {change_id} needs a yes", f"agentd drop {change_id} --yes")
    place = change.read().git
    target = drop_change(change, f"person:{git.user_name(change.tree)}", reason)
    shown = os.path.relpath(target)
    left = _to_remove(change, place)
    data = {"change_id": change_id, "phase": "dropped", "folder": shown, "next": None, "to_remove": left}

    def text() -> str:
        lines = [f"{change_id} is dropped. Its documents are in {shown}."]
        if left:
            lines.append(f"Its branch {place.branch} stays: commit and merge there what you want to keep.")
            lines.append("To remove it, with all that is not merged:")
        return "\n".join([*lines, *(f"  {line}" for line in left)])

    return output.show_result("drop", as_json, data, text)


def _to_remove(change: Change, place: GitLocation) -> list[str]:
    """What to type, from here, to be rid of the branch and its work tree."""
    repo = change.project.repo
    if not place.branch or place.branch not in git.branches(repo):
        return []
    delete = f"git branch -D {shlex.quote(place.branch)}"
    trees = {tree.path: tree.branch for tree in git.worktrees(repo)}
    holder = next((path for path, branch in trees.items() if branch == place.branch), None)
    if holder is None:
        return [delete]
    if place.setup is GitSetup.WORKTREE and holder != repo.main:
        others = (path for path in (*trees, repo.common) if path != holder)
        return [*_without(holder, repo.top, next(others)), delete]
    to = place.target if place.target in git.branches(repo) - set(trees.values()) else None
    at = "" if holder == repo.top else f" -C {shlex.quote(os.path.relpath(holder))}"
    return [f"git{at} switch {shlex.quote(to) if to else '--detach'}", delete]


def _without(tree: str, here: str, other: str) -> list[str]:
    """A tree is not removed by somebody who stands in it; what is not committed there goes too."""
    away = [f"cd {shlex.quote(os.path.relpath(other))}"] if here == tree else []
    start = other if away else None
    return [*away, f"git worktree remove --force {shlex.quote(os.path.relpath(tree, start))}"]

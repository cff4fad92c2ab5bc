"""`agentd drop`: an open change goes to the archive, nothing is deleted."""

import os
import shlex

import click

from agentd import git
from agentd.change import entry
from agentd.change.folder import Change
from agentd.change.state import Place
from agentd.cli import output
from agentd.cli.common import change_argument
from agentd.errors import Unanswered
from agentd.project import find_project
from agentd.terms import GitSetup


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
    change = entry.open_change(project, change_id)
    phase = change.read().phase
    if output.interactive(as_json, yes):
        question = f"Move {change_id} ({phase}) to the archive as dropped?"
        if not click.confirm(question, default=True, err=True):
            raise Unanswered(f"{change_id} stays as it is")
    elif not yes:
        raise Unanswered(f"dropping {change_id} needs a yes", f"agentd drop {change_id} --yes")
    place = change.read().git
    target = entry.drop(change, f"person:{git.user_name(change.tree)}", reason)
    shown = os.path.relpath(target)
    left = _to_remove(change, place)
    data = {"change_id": change_id, "phase": "dropped", "folder": shown, "next": None, "to_remove": left}

    def text() -> str:
        lines = [f"{change_id} is dropped. Its documents are in {shown}."]
        if place.branch:
            lines.append(
                f"They and the code are on {place.branch}; commit and merge there what you want to keep. To remove it:"
            )
        return "\n".join([*lines, *(f"  {line}" for line in left)])

    return output.show("drop", as_json, data, text)


def _to_remove(change: Change, place: Place) -> list[str]:
    """What to type, from here, to be rid of the branch and its work tree."""
    if not place.branch:
        return []
    branch = shlex.quote(place.branch)
    if place.setup is GitSetup.WORKTREE:
        tree = shlex.quote(os.path.relpath(change.tree))
        return [f"git worktree remove {tree}", f"git branch -D {branch}"]
    away = [f"git switch {shlex.quote(place.target)}"] if place.target else []
    return [*away, f"git branch -D {branch}"]

"""`agentd drop`: an open change goes to the archive, nothing is deleted."""

import shlex

import click

from agentd import git
from agentd.change import entry
from agentd.cli import output
from agentd.cli.common import change_argument
from agentd.errors import Unanswered
from agentd.project import find_project


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
    shown = str(target.relative_to(change.tree))
    left = []
    if place.setup == "worktree":
        left.append(f"git worktree remove {shlex.quote(place.tree)}")
    if place.branch:
        left.append(f"git branch -D {shlex.quote(place.branch)}")
    data = {"change_id": change_id, "phase": "dropped", "folder": shown, "next": None, "to_remove": left}

    def text() -> str:
        lines = [f"{change_id} is dropped. Its documents are in {shown}."]
        if left:
            lines.append("Its code is still there. To remove it, once you are sure:")
        return "\n".join([*lines, *(f"  {line}" for line in left)])

    return output.show("drop", as_json, data, text)

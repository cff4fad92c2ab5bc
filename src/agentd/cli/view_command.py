"""`agentd view`: the last verdict on a change, or its plan, to read."""

import sys
from pathlib import Path

import click

from agentd.change import entry
from agentd.change.folder import Change, documents
from agentd.cli import output, pager
from agentd.cli.common import change_argument
from agentd.errors import AnswerIsNo
from agentd.project import find_project

_FIRST = ("REVIEW.md", "CHALLENGE.md", "proposal.md", "clarifications.md")  # the latest word first


@click.command("view")
@change_argument()
def command(change_id: str) -> int:
    """Read the last review or challenge of the change ID; before there is one, its proposal."""
    change = entry.open_change(find_project(), change_id)
    try:
        pager.show(_latest(change), sys.stdout)
    except BrokenPipeError:
        output.quiet()  # whoever read it has seen enough
    return 0


def _latest(change: Change) -> Path:
    there = documents(change.folder)
    for name in _FIRST:
        if name in there:
            return change.folder / name
    raise AnswerIsNo(f"{change.id} has nothing to read yet", f"agentd plan {change.id}")

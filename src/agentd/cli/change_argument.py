"""What several commands share: the project, a change's argument, and change ids for the shell's completion."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from agentd.cli import text_table
from agentd.domain import AgentdError, ChangeNotFound

if TYPE_CHECKING:
    from agentd.change import ChangeLocator, LocatedChange


def complete_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from agentd.change import ChangeLocator
    from agentd.project import find_project

    try:
        found = ChangeLocator(find_project()).open()
    except (AgentdError, OSError):
        return []
    return [
        CompletionItem(one.id, help=text_table.shorten_line(f"{one.summary.phase}: {one.summary.description}", 80))
        for one in found
        if one.id.startswith(incomplete)
    ]


def find_anywhere(places: "ChangeLocator", change_id: str) -> "LocatedChange":
    """The open change of that id, else the one that has ended."""
    try:
        return places.find(change_id)
    except ChangeNotFound:
        if found := places.ended(change_id):
            return found
        raise


def change_argument(required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    metavar = "ID" if required else "[ID]"
    return click.argument("change_id", metavar=metavar, required=required, shell_complete=complete_ids)

"""The ID argument shared by several commands, with shell completion."""

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
        changes = ChangeLocator(find_project()).open()
    except (AgentdError, OSError):
        return []
    return [
        CompletionItem(
            change.id, help=text_table.shorten_line(f"{change.summary.phase}: {change.summary.description}", 80)
        )
        for change in changes
        if change.id.startswith(incomplete)
    ]


def find_anywhere(locator: "ChangeLocator", change_id: str) -> "LocatedChange":
    """Return the open change with this id, else the ended one."""
    try:
        return locator.find(change_id)
    except ChangeNotFound:
        if ended := locator.find_archived(change_id):
            return ended
        raise


def change_argument(required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    metavar = "ID" if required else "[ID]"
    return click.argument("change_id", metavar=metavar, required=required, shell_complete=complete_ids)

"""`agentd stop`: stop the run of a change cleanly."""

import click

from agentd.change import open_change, stop_run
from agentd.cli import output
from agentd.cli.change_argument import change_argument
from agentd.project import find_project

COMMANDS = {"stop": (150, "Stop the run of a change.")}


@click.command("stop")
@change_argument()
@output.json_option
def command(change_id: str, as_json: bool) -> int:
    """Stop the run of the change ID and its agent processes; completed work is kept.

    Run the same command again to resume.
    """
    change = open_change(find_project(), change_id)
    holder = stop_run(change)
    data = {"change_id": change_id, "stopped": bool(holder), "command": holder and holder.command}

    def text() -> str:
        if not holder:
            return f"Nothing is running for {change_id}."
        return "\n".join([f"Stopped the run of {change_id}.", *output.following(holder.command)])

    return output.show_result("stop", as_json, data, text)

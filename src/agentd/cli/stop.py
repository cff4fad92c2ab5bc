"""`agentd stop`: end the run of a change, cleanly."""

import click

from agentd.change import open_change, stop_run
from agentd.cli import output
from agentd.cli.change_argument import change_argument
from agentd.project import find_project


@click.command("stop")
@change_argument()
@output.json_option
def command(change_id: str, as_json: bool) -> int:
    """End the run of the change ID: its agent's processes end, what was done is kept.

    The same command goes on later where it stopped.
    """
    change = open_change(find_project(), change_id)
    holder = stop_run(change)
    data = {"change_id": change_id, "stopped": bool(holder), "command": holder and holder.command}

    def text() -> str:
        if not holder:
            return f"Nothing is running for {change_id}."
        return "\n".join([f"The run of {change_id} is stopped.", *output.following(holder.command)])

    return output.show_result("stop", as_json, data, text)

"""`agentd run`: plan, then impl, as one command."""

import click

from agentd.cli.options import CommandOptions, detach_option, new_options, run_options
from agentd.cli.run_command import plan_change

COMMANDS = {"run": (60, "Plan a change, then implement it.")}


@run_options("run")
@click.argument("description", required=False)
@new_options
@detach_option
def command(change_id: str, options: CommandOptions, description: str | None) -> int:
    """Plan the change ID and, once its plan is approved, implement it. Exit code 0 when it is complete.

    It stops where a person has to decide, as plan and impl do. Interrupted? Run the same command again.
    """
    return plan_change(options, description)

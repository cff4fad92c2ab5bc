"""`agentd proposal`: the documents of a plan and no verdict, for scripts."""

import click

from agentd.cli import planning
from agentd.cli.options import Options, new_options, run_options
from agentd.engine.workflows import plan


@run_options("proposal")
@click.argument("description", required=False)
@new_options
def command(change_id: str, options: Options, description: str | None) -> int:
    """Write proposal, specs and tasks of the change ID, and stop there. Exit code 0 when they are generated."""
    return planning.begin(change_id, description, options, plan.run_proposal)

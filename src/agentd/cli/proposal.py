"""`agentd proposal`: the documents of a plan and no verdict, for scripts."""

import click

from agentd.cli import planning
from agentd.cli.planning import Options
from agentd.workflows import plan


@planning.run_options("proposal")
@click.argument("description", required=False)
@click.option("--light", is_flag=True, help="For a small change: one session writes all, no self-review.")
@click.option("--skip-clarify", is_flag=True, help="Ask no questions; plan from the description alone.")
def command(change_id: str, options: Options, description: str | None, skip_clarify: bool) -> int:
    """Write proposal, specs and tasks of the change ID, and stop there. Exit code 0 when they are generated."""
    return planning.begin(change_id, description, skip_clarify, options, plan.propose)

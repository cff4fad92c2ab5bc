"""`agentd plan`: from a sentence to a judged plan."""

import click

from agentd.cli import dry_run, planning
from agentd.cli.planning import Options
from agentd.project import find_project
from agentd.workflows import plan


@planning.run_options("plan")
@click.argument("description", required=False)
@click.option("--light", is_flag=True, help="For a small change: one session writes all, no self-review.")
@click.option("--skip-clarify", is_flag=True, help="Ask no questions; plan from the description alone.")
@click.option("--dry-run", "dry", is_flag=True, help="Print the steps that would run, and about what they cost.")
def command(change_id: str, options: Options, description: str | None, skip_clarify: bool, dry: bool) -> int:
    """Plan the change ID: proposal, specs and tasks by one agent, challenged by another.

    A new ID needs a DESCRIPTION, a sentence that says what should change. Run again, it goes on where it stopped.
    """
    if dry:
        return dry_run.show(find_project(), change_id, description, options)
    return planning.begin(change_id, description, skip_clarify, options, plan.plan)

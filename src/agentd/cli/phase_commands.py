"""The commands that run one phase of a workflow, for scripts."""

import click

from agentd.change import open_change
from agentd.cli.options import CommandOptions, new_options, run_options
from agentd.cli.run_command import plan_change, run_change
from agentd.project import find_project

COMMANDS = {
    "proposal": (500, "Write proposal, specs and tasks."),
    "challenge": (510, "Have the challenger review the plan."),
    "reproposal": (520, "Have the planner answer the findings."),
    "implement": (530, "Write the code."),
    "review": (540, "Run the checks and have the reviewer review the code."),
    "resolve-reviews": (550, "Have the implementer answer the findings."),
}


@run_options("proposal")
@click.argument("description", required=False)
@new_options
def proposal_command(change_id: str, options: CommandOptions, description: str | None) -> int:
    """Write proposal, specs and tasks of the change ID, then stop. Exit code 0 when they are generated."""
    return plan_change(options, description)


@run_options("challenge")
def challenge_command(change_id: str, options: CommandOptions) -> int:
    """Let the challenger judge the plan of the change ID. Exit code 0 when it is APPROVED, 1 otherwise.

    A plan that has not changed since its last challenge is not judged again.
    """
    return run_change(open_change(find_project(), change_id), options)


@run_options("reproposal")
def reproposal_command(change_id: str, options: CommandOptions) -> int:
    """Let the planner answer the open findings of the change ID. Exit code 0 when that is done."""
    return run_change(open_change(find_project(), change_id), options)


@run_options("implement")
@click.option("--tasks", metavar="1.1,2.1", help="Only these tasks.")
def implement_command(change_id: str, options: CommandOptions) -> int:
    """Write the code of the change ID, then stop. Exit code 0 when that is done."""
    return run_change(open_change(find_project(), change_id), options)


@run_options("review")
def review_command(change_id: str, options: CommandOptions) -> int:
    """Run the checks and let the reviewer judge the code of the change ID. Exit code 0 when it is APPROVED.

    Code that has not changed since its last review is not judged again; agentd impl ID --review does that.
    """
    return run_change(open_change(find_project(), change_id), options)


@run_options("resolve-reviews")
def resolve_reviews_command(change_id: str, options: CommandOptions) -> int:
    """Let the implementer answer the open findings of the change ID. Exit code 0 when that is done."""
    return run_change(open_change(find_project(), change_id), options)

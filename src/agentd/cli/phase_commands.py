"""`agentd implement`: the code of a change and no verdict, for scripts."""

import click

from agentd.change import open_change
from agentd.cli import impl as whole
from agentd.cli import new_change
from agentd.cli.options import CommandOptions, new_options, run_options
from agentd.cli.run_command import run_workflow, show_settled
from agentd.domain import Workflow
from agentd.engine import (
    impl_settled,
    run_challenge,
    run_implement,
    run_proposal,
    run_reproposal,
    run_resolve,
    run_review,
)
from agentd.project import find_project

COMMANDS = {
    "proposal": (500, "Write proposal, specs and tasks."),
    "challenge": (510, "Have the challenger review the plan."),
    "reproposal": (520, "Have the planner answer the findings."),
    "implement": (530, "Write the code."),
    "review": (540, "Run the checks and have the reviewer review the code."),
    "resolve-reviews": (550, "Have the implementer answer the findings."),
}


@run_options("challenge")
def challenge_command(change_id: str, options: CommandOptions) -> int:
    """Let the challenger judge the plan of the change ID. Exit code 0 when it is APPROVED, 1 otherwise.

    A plan that was judged as it is now is not judged again.
    """
    return run_workflow(open_change(find_project(), change_id), options, run_challenge)


@run_options("implement")
@click.option("--tasks", metavar="1.1,2.1", help="Only these tasks.")
def implement_command(change_id: str, options: CommandOptions) -> int:
    """Write the code of the change ID, and stop there. Exit code 0 when that is done."""
    change = open_change(find_project(), change_id)
    if message := impl_settled(change, False):
        return show_settled(change, options, message, 0)
    ahead = None if options.tasks is None else whole.course_of(options)
    return run_workflow(change, options, run_implement, Workflow.IMPL, lambda: whole.made(change), ahead)


@run_options("proposal")
@click.argument("description", required=False)
@new_options
def proposal_command(change_id: str, options: CommandOptions, description: str | None) -> int:
    """Write proposal, specs and tasks of the change ID, and stop there. Exit code 0 when they are generated."""
    return new_change.begin_plan(change_id, description, options, run_proposal)


@run_options("reproposal")
def reproposal_command(change_id: str, options: CommandOptions) -> int:
    """Let the planner answer the open findings of the change ID. Exit code 0 when that is done."""
    change = open_change(find_project(), change_id)
    message = f"The findings are answered; agentd challenge {change_id} judges the answers"
    return run_workflow(change, options, run_reproposal, told=lambda: (message, None))


@run_options("resolve-reviews")
def resolve_reviews_command(change_id: str, options: CommandOptions) -> int:
    """Let the implementer answer the open findings of the change ID. Exit code 0 when that is done."""
    change = open_change(find_project(), change_id)
    message = f"The findings are answered; agentd review {change_id} judges the answers"
    return run_workflow(change, options, run_resolve, Workflow.IMPL, lambda: (message, 0))


@run_options("review")
def review_command(change_id: str, options: CommandOptions) -> int:
    """Run the checks and let the reviewer judge the code of the change ID. Exit code 0 when it is APPROVED.

    A tree that was judged is not judged again; agentd impl ID --review does that.
    """
    return run_workflow(open_change(find_project(), change_id), options, run_review, Workflow.IMPL)

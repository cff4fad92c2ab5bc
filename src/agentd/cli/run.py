"""`agentd run`: plan, then impl, as one command."""

import click

from agentd.change import Change
from agentd.cli import new_change
from agentd.cli.options import CommandOptions, detach_option, new_options, run_options
from agentd.domain import Phase
from agentd.engine import (
    PlannedStep,
    RunOptions,
    StepContext,
    impl_settled,
    impl_steps,
    plan_settled,
    plan_steps,
    run_impl,
    run_plan,
)
from agentd.project import WorkflowSettings

COMMANDS = {"run": (60, "Plan a change, then implement it.")}

_PLANNING = (Phase.DRAFTING, Phase.PROPOSED)


@run_options("run")
@click.argument("description", required=False)
@new_options
@detach_option
def command(change_id: str, options: CommandOptions, description: str | None) -> int:
    """Plan the change ID and, once its plan is approved, implement it. Exit code 0 when it is complete.

    Where a person has to decide it stops, as plan and impl do. Run again, it goes on.
    """
    return new_change.begin_plan(change_id, description, options, _both, _settled, _ahead)


def _both(desk: StepContext, wishes: RunOptions) -> None:
    if desk.change.read().phase in _PLANNING:
        run_plan(desk, wishes)
    if desk.change.read().phase in (Phase.CHALLENGED, Phase.IMPLEMENTING):
        run_impl(desk, wishes)


def _settled(change: Change, _: bool) -> str | None:
    is_planned = change.read().phase not in (*_PLANNING, Phase.REJECTED)
    return impl_settled(change, False) if is_planned else plan_settled(change)


def _ahead(change: Change, settings: WorkflowSettings) -> list[PlannedStep]:
    """The code's steps are known when the plan is."""
    is_planning = change.read().phase in _PLANNING
    return plan_steps(change, settings) if is_planning else impl_steps(change, settings)

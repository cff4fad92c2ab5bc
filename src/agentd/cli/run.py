"""`agentd run`: plan, then impl, as one command."""

import click

from agentd.change.folder import Change
from agentd.cli import planning
from agentd.cli.options import Options, detach_option, new_options, run_options
from agentd.domain.terms import Phase
from agentd.project.config import WorkflowSettings
from agentd.steps.desk import Desk
from agentd.workflows import code_course, course, impl, opening, plan, starting
from agentd.workflows.course import Ahead
from agentd.workflows.wishes import Wishes

_PLANNING = (Phase.DRAFTING, Phase.PROPOSED)


@run_options("run")
@click.argument("description", required=False)
@new_options
@detach_option
def command(change_id: str, options: Options, description: str | None) -> int:
    """Plan the change ID and, once its plan is approved, implement it. Exit code 0 when it is complete.

    Where a person has to decide it stops, as plan and impl do. Run again, it goes on.
    """
    return planning.begin(change_id, description, options, _both, _settled, _ahead)


def _both(desk: Desk, wishes: Wishes) -> None:
    if desk.change.read().phase in _PLANNING:
        plan.plan(desk, wishes)
    if desk.change.read().phase in (Phase.CHALLENGED, Phase.IMPLEMENTING):
        impl.impl(desk, wishes)


def _settled(change: Change, _: bool) -> str | None:
    is_planned = change.read().phase not in (*_PLANNING, Phase.REJECTED)
    return starting.settled(change, False) if is_planned else opening.settled(change)


def _ahead(change: Change, settings: WorkflowSettings) -> list[Ahead]:
    """The code's steps are known when the plan is."""
    is_planning = change.read().phase in _PLANNING
    return course.of_plan(change, settings) if is_planning else code_course.of_code(change, settings)

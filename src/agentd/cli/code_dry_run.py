"""`impl --dry-run`: the runs, rounds and reviews ahead, and about what they cost. Nothing is made or spent."""

from agentd.change.folder import Change
from agentd.cli import dry_run
from agentd.cli.options import Options
from agentd.engine.calls import run_context as runs
from agentd.engine.steps import code_trees, plan_facts
from agentd.engine.workflows import impl_steps, task_batches
from agentd.engine.workflows.cost_forecast import forecast_steps
from agentd.project import config


def show(change: Change, options: Options) -> int:
    there = runs.change_project(change)
    in_force = config.load_config(there.config_file, flags=options.settings)
    state = change.read()
    task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)  # what cannot be built is told now
    if options.review:
        steps = impl_steps.review_steps(change)
    elif options.tasks is None:
        steps = impl_steps.impl_steps(change, in_force.workflow)
    else:
        steps = impl_steps.task_steps(change, options.wishes.tasks, in_force.workflow)
    return dry_run.tell(
        options, change.id, state, forecast_steps(there, in_force, state, steps, plan_facts.plan_complexity(change))
    )

"""`impl --dry-run`: the runs, rounds and reviews ahead, and about what they cost. Nothing is made or spent."""

from agentd.calls import run as runs
from agentd.change.folder import Change
from agentd.cli import dry_run
from agentd.cli.options import Options
from agentd.project import config
from agentd.steps import code, facts
from agentd.workflows import building, code_course
from agentd.workflows.forecast import forecast


def show(change: Change, options: Options) -> int:
    there = runs.there(change)
    in_force = config.load_config(there.config_file, flags=options.settings)
    state = change.read()
    building.in_order(code.tasks_of(change), change.id)  # what cannot be built is told now
    if options.review:
        steps = code_course.of_review(change)
    elif options.tasks is None:
        steps = code_course.of_code(change, in_force.workflow)
    else:
        steps = code_course.of_tasks(change, options.wishes.tasks, in_force.workflow)
    return dry_run.tell(options, change.id, state, forecast(there, in_force, state, steps, facts.complexity(change)))

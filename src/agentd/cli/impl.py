"""`agentd impl`: from an approved plan to code that is proved and reviewed."""

import click

from agentd.change import Change, open_change
from agentd.cli import dry_run, run_command
from agentd.cli.options import CommandOptions, detach_option, run_options
from agentd.domain import AgentdError, UsageError, Workflow, pluralize
from agentd.engine import PlannedStep, built_tasks, impl_settled, read_change_tasks, run_impl, task_steps
from agentd.project import WorkflowSettings, find_project

COMMANDS = {"impl": (30, "Implement a planned change: code, verified by checks, reviewed by another agent.")}


@run_options("impl")
@click.option("--tasks", metavar="1.1,2.1", help="Only these tasks, and no review.")
@click.option("--rounds", type=click.IntRange(min=0), metavar="N", help="Rounds of fixing at most; 0: only review.")
@click.option("--review", is_flag=True, help="Run the checks and judge the code again, also if it was judged.")
@click.option("--known-failures", default="", metavar="REASON", help="What failed before the first edit may fail.")
@click.option("--accept", metavar="REASON", help="Accept the code in spite of findings; never over a failed check.")
@click.option("--send-back", metavar="REASON", help="Send complete code back; the reason must be answered.")
@click.option("--plan-wrong", metavar="REASON", help="The plan is wrong: back to planning with this reason.")
@run_command.seen_option
@detach_option
@click.option("--dry-run", "dry", is_flag=True, help="Print the steps that would run, and about what they cost.")
def command(
    change_id: str,
    options: CommandOptions,
    accept: str | None,
    send_back: str | None,
    plan_wrong: str | None,
    dry: bool,
) -> int:
    """Implement the change ID: code by one agent, proved by the project's checks, reviewed by another.

    Run again, it goes on where it stopped.
    """
    decision = run_command.chosen_decision(
        options, dry, {"accept": accept, "send-back": send_back, "plan-wrong": plan_wrong}
    )
    if options.tasks is not None and options.review:
        raise UsageError("--tasks makes a part of the code, and --review judges all of it", "give one of them")
    if decision:
        return run_command.make_decision(change_id, options, *decision)
    change = open_change(find_project(), change_id)
    if message := impl_settled(change, options.review):
        return run_command.show_settled(change, options, message, 0)
    if dry:
        return dry_run.show_code_dry_run(change, options)
    if options.detach:
        return run_command.start_detached(change, options)
    if options.tasks is None:
        return run_command.run_workflow(change, options, run_impl, Workflow.IMPL)
    return run_command.run_workflow(change, options, run_impl, Workflow.IMPL, lambda: made(change), course_of(options))


def course_of(options: CommandOptions) -> run_command.StepsFunction:
    """Only the tasks that were asked for are ahead."""

    def ahead(change: Change, settings: WorkflowSettings) -> list[PlannedStep]:
        try:
            return task_steps(change, options.wishes.tasks, settings)
        except AgentdError:
            return []  # the run itself says what is wrong with them

    return ahead


def made(change: Change) -> tuple[str, int | None]:
    """2 of 7 tasks."""
    tasks, done = read_change_tasks(change), built_tasks(change.read())
    return f"{sum(task.id in done for task in tasks)} of {pluralize(len(tasks), 'task')}", 0

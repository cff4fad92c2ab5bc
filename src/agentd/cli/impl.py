"""`agentd impl`: from an approved plan to tested and reviewed code."""

import click

from agentd.change import open_change
from agentd.cli import dry_run, run_command
from agentd.cli.options import CommandOptions, detach_option, run_options
from agentd.domain import UsageError
from agentd.engine import forecast_code
from agentd.project import find_project

COMMANDS = {"impl": (30, "Implement a planned change: code, verified by checks, reviewed by another agent.")}


@run_options("impl")
@click.option("--tasks", metavar="1.1,2.1", help="Only implement these tasks, without a review.")
@click.option("--rounds", type=click.IntRange(min=0), metavar="N", help="Fix at most N times; 0: only review.")
@click.option("--review", is_flag=True, help="Run the checks and review the code again, even if it was judged already.")
@click.option("--known-failures", default="", metavar="REASON", help="Accept checks that failed before the first edit.")
@click.option("--accept", metavar="REASON", help="Accept the code despite findings; never over a failed check.")
@click.option("--send-back", metavar="REASON", help="Send complete code back; the implementer must answer the reason.")
@click.option("--plan-wrong", metavar="REASON", help="The plan is wrong: return to planning with this reason.")
@run_command.seen_option
@detach_option
@click.option("--dry-run", "dry", is_flag=True, help="Print the steps that would run and what they would cost.")
def command(
    change_id: str,
    options: CommandOptions,
    accept: str | None,
    send_back: str | None,
    plan_wrong: str | None,
    dry: bool,
) -> int:
    """Implement the change ID: one agent writes the code, the project's checks test it, another agent reviews it.

    Interrupted? Run the same command again.
    """
    decisions = {"accept": accept, "send-back": send_back, "plan-wrong": plan_wrong}
    decision = run_command.chosen_decision(options, dry, decisions)
    if options.tasks is not None and options.review:
        raise UsageError("--tasks implements a part of the code, and --review judges all of it", "give one of them")
    if decision:
        return run_command.make_decision(change_id, options, *decision)
    change = open_change(find_project(), change_id)
    if dry:
        return dry_run.show_dry_run(options, forecast_code(change, options.request()))
    return run_command.run_change(change, options)

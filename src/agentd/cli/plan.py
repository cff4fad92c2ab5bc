"""`agentd plan`: from a sentence to a judged plan."""

import click

from agentd.cli import dry_run, new_change, run_command
from agentd.cli.options import CommandOptions, detach_option, new_options, run_options
from agentd.domain import UsageError
from agentd.engine import run_plan
from agentd.project import find_project

COMMANDS = {"plan": (20, "Plan a change: proposal, specs and tasks, challenged by another agent.")}


@run_options("plan")
@click.argument("description", required=False)
@new_options
@click.option("--rounds", type=click.IntRange(min=0), metavar="N", help="Rounds of fixing at most; 0: only challenge.")
@click.option("--rechallenge", is_flag=True, help="Challenge again, also a plan that was judged.")
@click.option("--accept", metavar="REASON", help="Accept the plan in spite of its findings.")
@click.option("--reject", metavar="REASON", help="Reject the plan.")
@click.option("--send-back", metavar="REASON", help="Send the plan back; the reason is what the planner must answer.")
@run_command.seen_option
@detach_option
@click.option("--dry-run", "dry", is_flag=True, help="Print the steps that would run, and about what they cost.")
def command(
    change_id: str,
    options: CommandOptions,
    description: str | None,
    accept: str | None,
    reject: str | None,
    send_back: str | None,
    dry: bool,
) -> int:
    """Plan the change ID: proposal, specs and tasks by one agent, challenged by another.

    A new ID needs a DESCRIPTION, a sentence that says what should change. Run again, it goes on where it stopped.
    """
    decision = run_command.chosen_decision(options, dry, {"accept": accept, "reject": reject, "send-back": send_back})
    if decision and dry:
        raise UsageError(f"--dry-run changes nothing, and --{decision[0]} is a decision", "give one of them")
    if options.detach and options.as_events:
        raise UsageError("--events needs somebody who reads them", f"--detach, then: agentd log {change_id} --follow")
    if decision:
        return run_command.make_decision(change_id, options, *decision)
    if dry:
        return dry_run.show_dry_run(find_project(), change_id, description, options)
    return new_change.begin_plan(change_id, description, options, run_plan)

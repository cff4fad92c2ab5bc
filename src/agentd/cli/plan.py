"""`agentd plan`: from a sentence to a challenged plan."""

import click

from agentd.cli import dry_run, run_command
from agentd.cli.options import CommandOptions, detach_option, new_options, run_options
from agentd.domain import UsageError
from agentd.engine import NewChange, forecast_plan
from agentd.project import find_project

COMMANDS = {"plan": (20, "Plan a change: proposal, specs and tasks, challenged by another agent.")}


@run_options("plan")
@click.argument("description", required=False)
@new_options
@click.option("--rounds", type=click.IntRange(min=0), metavar="N", help="Revise at most N times; 0: only challenge.")
@click.option("--rechallenge", is_flag=True, help="Challenge the plan again, even if it was judged already.")
@click.option("--accept", metavar="REASON", help="Accept the plan despite its findings.")
@click.option("--reject", metavar="REASON", help="Reject the plan.")
@click.option("--send-back", metavar="REASON", help="Send the plan back; the planner must answer the reason.")
@run_command.seen_option
@detach_option
@click.option("--dry-run", "dry", is_flag=True, help="Print the steps that would run and what they would cost.")
def command(
    change_id: str,
    options: CommandOptions,
    description: str | None,
    accept: str | None,
    reject: str | None,
    send_back: str | None,
    dry: bool,
) -> int:
    """Plan the change ID: one agent writes proposal, specs and tasks, another challenges them.

    A new ID needs a DESCRIPTION, one sentence that says what should change. Interrupted? Run the same command again.
    """
    decision = run_command.chosen_decision(options, dry, {"accept": accept, "reject": reject, "send-back": send_back})
    if decision and dry:
        raise UsageError(f"--dry-run changes nothing, and --{decision[0]} is a decision", "give one of them")
    if options.detach and options.as_events:
        raise UsageError("--events needs a reader", f"use --detach, then: agentd log {change_id} --follow")
    if decision:
        return run_command.make_decision(change_id, options, *decision)
    if dry:
        new = NewChange(description or "")
        return dry_run.show_dry_run(options, forecast_plan(find_project(), options.request(), new))
    return run_command.plan_change(options, description)

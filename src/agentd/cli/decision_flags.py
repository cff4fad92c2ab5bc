"""A person's decision by flag: `--accept`, `--send-back` and their kind, each with its reason."""

import click

from agentd.change import Decision, open_change
from agentd.cli import run_command
from agentd.cli.options import CommandOptions
from agentd.domain import UsageError, Workflow
from agentd.engine import (
    belongs_to_workflow,
    check_reading,
    current_reading,
    decide_code,
    decide_plan,
    deliver_decision,
    pending_question,
)
from agentd.project import find_project, git

seen_option = click.option("--seen", default="", metavar="DIGEST", help="Decide only if this is what is there.")


def chosen_decision(options: CommandOptions, is_dry: bool, decisions: dict[str, str | None]) -> tuple[str, str] | None:
    """The one that was given, and its reason; refused beside what is no part of a decision."""
    given = {name: reason for name, reason in decisions.items() if reason is not None}
    if len(given) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in given)} are two decisions", "give one of them")
    at_once = next(iter(given), "dry-run" if is_dry else None)
    if at_once and options.detach:
        raise UsageError(f"--{at_once} is done at once", "leave --detach out")
    if at_once and options.raise_budget:
        raise UsageError(f"--{at_once} spends nothing, so it goes without --raise-budget", "give one of them")
    if options.seen and not given:
        raise UsageError("--seen says what a decision is about, and none was given", "leave it out")
    for name, reason in given.items():
        if not reason.strip():
            raise UsageError(f"--{name} needs a reason", f'--{name} "why"')
        return name, reason.strip()
    return None


def make_decision(change_id: str, options: CommandOptions, answer: str, reason: str) -> int:
    """At once; or, if a run waits for just that, through its inbox."""
    change = open_change(find_project(), change_id)
    by = f"person:{git.user_name(change.tree)}"
    asked = pending_question(change)
    if asked and belongs_to_workflow(options.command, str(asked.get("id"))):
        now = current_reading(change)
        check_reading(change, options.seen)
        deliver_decision(change, Decision(str(asked.get("id")), answer, reason, by, now))
        return run_command.show_standing(change, options, code=0)
    workflow = Workflow.PLAN if options.command == "plan" else Workflow.IMPL
    decided = decide_plan if workflow is Workflow.PLAN else decide_code
    return run_command.run_workflow(
        change, options, lambda desk, _: decided(desk, answer, reason, by, options.seen), workflow, told=lambda: ("", 0)
    )

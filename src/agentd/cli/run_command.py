"""From the options to a run, and from the run to its end in words: what all workflows share."""

import functools
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agentd.change import Change, ChangeLocator, save_outcome
from agentd.cli import output, run_summary
from agentd.cli.live import watch_run
from agentd.cli.options import CommandOptions
from agentd.cli.terminal_person import TerminalPerson
from agentd.cli.trust import ensure_trust
from agentd.domain import AgentdError, Busy, Interrupted, Workflow
from agentd.engine import (
    PlannedStep,
    RunOptions,
    StepContext,
    begin_run,
    build_result,
    change_project,
    impl_steps,
    plan_steps,
    raise_budget,
)
from agentd.project import Config, Project, WorkflowSettings, git, load_config

WorkflowFunction = Callable[[StepContext, RunOptions], None]
StepsFunction = Callable[[Change, WorkflowSettings], list[PlannedStep]]


def load_trusted_config(project: Project, options: CommandOptions) -> Config:
    """What the repository wants run is trusted, or nothing goes on."""
    in_force = load_config(project.config_file, flags=options.settings)
    ensure_trust(project, in_force, options.trusting, options.can_ask)
    return in_force


def run_workflow(
    change: Change,
    options: CommandOptions,
    work: WorkflowFunction,
    workflow: Workflow = Workflow.PLAN,
    told: Callable[[], tuple[str, int | None]] = lambda: ("", None),
    ahead: StepsFunction | None = None,
) -> int:
    """Do the work, look on, and tell how it ended: a verdict and a failure alike as one result.

    `told` gives message and exit code, for work whose end is no verdict.
    """
    there = change_project(change)
    in_force = load_trusted_config(there, options)
    before, failure, person = len(change.read().llm_calls), None, None
    ahead = ahead or (plan_steps if workflow is Workflow.PLAN else impl_steps)

    try:
        title = f"agentd {options.command} {change.id}"
        with watch_run(title, lambda: ahead(change, in_force.workflow), options.mode, output.is_verbose()) as view:
            person = TerminalPerson(view, change.tree) if options.can_ask else None
            wishes = replace(options.wishes, person=person)
            begun = begin_run(
                change,
                lambda: load_config(there.config_file, flags=options.settings),
                workflow,
                f"agentd {shlex.join(sys.argv[1:])}",
                view,
                again=options.again(change.id),
                max_cost=options.max_cost,
            )
            with begun as at_work:
                if options.raise_budget:
                    raise_budget(at_work, options.raise_budget, f"person:{git.user_name(change.tree)}")
                work(StepContext(at_work, os.environ), wishes)
                message, code = told()
                ended = build_result(change, options.command, options.wanted, before, message, None, code)
                at_work.endings.append((ended["exit_code"], ended["message"]))
    except AgentdError as error:
        failure = error
    ChangeLocator(change.project).remember(change.tree, change.id)  # for whoever looks from another branch
    message, code = ("", None) if failure else told()
    data = build_result(change, options.command, options.wanted, before, message, failure, code)
    if not isinstance(failure, Busy):
        save_outcome(change, os.getpid(), data)
    return show_run_result(options, data, failure, person.told if person else ())


def show_settled(change: Change, options: CommandOptions, message: str, code: int | None = None) -> int:
    """Nothing is left to do, but for a budget that is to be raised."""
    if options.raise_budget:
        return run_workflow(change, options, lambda desk, wishes: None, told=lambda: (message, code))
    return show_standing(change, options, message, code)


def show_standing(change: Change, options: CommandOptions, message: str = "", code: int | None = None) -> int:
    """How the change stands, where nothing had to run."""
    before = len(change.read().llm_calls)
    return show_run_result(options, build_result(change, options.command, options.wanted, before, message, None, code))


def show_run_result(
    options: CommandOptions, data: dict[str, Any], error: AgentdError | None = None, told: Sequence[str] = ()
) -> int:
    if options.as_events:
        output.stream([json.dumps(data, ensure_ascii=False)])
        return int(data["exit_code"])
    if isinstance(error, Interrupted) and output.is_part():
        return error.exit_code
    if error and not options.as_json:
        output.report(run_summary.run_summary(data, told))
        return error.exit_code
    text = functools.partial(run_summary.run_summary, data, told)
    return output.show_result(options.command, options.as_json, data, text, data["exit_code"], error)

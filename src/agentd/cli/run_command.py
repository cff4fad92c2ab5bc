"""From the options to a run, and from the run to its end in words: what all workflows share."""

import contextlib
import functools
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from agentd.change import Change, ChangeLocator, Decision, open_change, save_outcome
from agentd.cli import output, run_summary
from agentd.cli.live_display import watch_run
from agentd.cli.options import CommandOptions
from agentd.cli.terminal_person import TerminalPerson
from agentd.cli.trust import ensure_trust
from agentd.domain import AgentdError, Busy, Interrupted, UsageError, Workflow
from agentd.engine import (
    PlannedStep,
    RunOptions,
    StepContext,
    begin_run,
    belongs_to_workflow,
    build_result,
    change_project,
    check_reading,
    current_reading,
    decide_code,
    decide_plan,
    deliver_decision,
    impl_steps,
    pending_question,
    plan_steps,
    raise_budget,
)
from agentd.project import Config, Project, WorkflowSettings, find_project, git, load_config

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
        return show_standing(change, options, code=0)
    workflow = Workflow.PLAN if options.command == "plan" else Workflow.IMPL
    decided = decide_plan if workflow is Workflow.PLAN else decide_code
    return run_workflow(
        change, options, lambda desk, _: decided(desk, answer, reason, by, options.seen), workflow, told=lambda: ("", 0)
    )


_PAUSE = 0.05  # seconds between two looks whether it runs


def start_detached(change: Change, options: CommandOptions) -> int:
    """Until it has the change's run lock. One that ends before that tells what it has to tell."""
    if holder := change.active_run():
        raise Busy(f"{change.id} is being worked on by {holder}", f"agentd wait {change.id}")
    folder = Path(change.project.local_state_path("detached"))
    folder.mkdir(parents=True, exist_ok=True)
    out, err = folder / f"{change.id}.out", folder / f"{change.id}.err"
    argv = [sys.executable, "-P", "-m", "agentd", *options.arguments(change.id)]
    with out.open("wb") as words, err.open("wb") as asides:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=words, stderr=asides, start_new_session=True)
    try:
        while child.poll() is None:
            holder = change.active_run()
            if holder and holder.pid == child.pid:
                return _running(change, options, child.pid)
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        child.terminate()
        raise
    for source, target in ((err, sys.stderr), (out, sys.stdout)):
        with contextlib.suppress(BrokenPipeError):
            target.write(source.read_text(encoding="utf-8", errors="replace"))
            target.flush()
    return child.returncode


def _running(change: Change, options: CommandOptions, pid: int) -> int:
    place = change.read().git
    data = {
        "change_id": change.id,
        "resolved_from": options.wanted,
        "state": "running",
        "pid": pid,
        "git": {"setup": str(place.setup), "branch": place.branch, "tree": place.tree, "target": place.target},
        "next": f"agentd wait {change.id}",
    }

    def text() -> str:
        words = f"{change.id} is being worked on in the background (process {pid})."
        other = f"agentd log {change.id} --follow looks on, agentd stop {change.id} ends it"
        return "\n".join([*output.prose(words), *output.prose(other), *output.following(f"agentd wait {change.id}")])

    return output.show_result(options.command, options.as_json, data, text)

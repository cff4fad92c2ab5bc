"""One run of a command on a change, from start to recorded outcome. Every interface runs changes through here."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agentd.change import Change, ChangeLocator, new_change_folder, save_outcome
from agentd.domain import AgentdError, Busy, GitSetup, Interrupted, Phase, Role, Workflow, pluralize
from agentd.engine.calls.agent_selection import ensure_agent_installed
from agentd.engine.calls.run_context import EventListener, begin_run, change_project
from agentd.engine.steps.code_trees import read_change_tasks
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows import impl, plan, step_lists
from agentd.engine.workflows.change_start import NewChange, begin_change, open_change_to_plan, plan_settled
from agentd.engine.workflows.clarification import (
    clarify_first,
    needs_no_clarification,
    nobody_to_ask_error,
    refuse_second_clarification,
)
from agentd.engine.workflows.decision_questions import Person
from agentd.engine.workflows.dependencies import add_dependencies, check_dependencies
from agentd.engine.workflows.impl_start import impl_settled
from agentd.engine.workflows.run_request import RunOptions, RunRequest
from agentd.engine.workflows.run_result import build_result
from agentd.engine.workflows.run_scope import raise_budget
from agentd.engine.workflows.step_lists import PlannedStep
from agentd.engine.workflows.task_batches import built_tasks
from agentd.project import Config, Project, WorkflowSettings, git, load_config

_PLANNING = (Phase.DRAFTING, Phase.PROPOSED)


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run in the format of `--json`."""

    data: dict[str, Any]

    @property
    def exit_code(self) -> int:
        return int(self.data["exit_code"])

    @property
    def is_interrupted(self) -> bool:
        return bool(self.data["error"]) and self.exit_code == Interrupted.exit_code


def run_workflow(
    change: Change, request: RunRequest, listener: EventListener = lambda entry: None, person: Person | None = None
) -> RunResult:
    """Load the configuration, check trust, take the lock, do the work and record the outcome.

    A failure is part of the result, as a verdict is.
    """
    if result := settled_result(change, request):
        return result
    command = _COMMANDS[request.command]
    calls_before, error = len(change.read().llm_calls), None
    config_file = change_project(change).config_file
    try:
        with begin_run(
            change,
            lambda: load_config(config_file, flags=request.settings),
            command.workflow,
            request.command_line or request.command_text(change.id),
            listener,
            resume_command=request.command_text(change.id),
            max_cost=request.max_cost,
        ) as run:
            if request.raise_budget:
                raise_budget(run, request.raise_budget, f"person:{git.user_name(change.tree)}")
            _work(StepContext(run, os.environ), request, person)
            result = _result(change, request, calls_before)
            run.results.append((result.exit_code, result.data["message"]))
    except AgentdError as failure:
        error = failure
    ChangeLocator(change.project).remember(change.tree, change.id)  # so that other branches find it
    result = _result(change, request, calls_before, error)
    if not isinstance(error, Busy):
        save_outcome(change, os.getpid(), result.data)
    return result


def settled_result(change: Change, request: RunRequest) -> RunResult | None:
    """Return the result if there is nothing left to run; None if there is."""
    if request.decision or request.raise_budget:
        return None
    message = _COMMANDS[request.command].settled(change, request.options)
    return current_result(change, request, message) if message else None


def current_result(change: Change, request: RunRequest, message: str = "", code: int | None = None) -> RunResult:
    """Return the state of the change as the result of a command that ran nothing."""
    calls = len(change.read().llm_calls)
    return RunResult(build_result(change, request.command, request.requested_id, calls, message, None, code))


def planned_steps(change: Change, request: RunRequest, settings: WorkflowSettings) -> list[PlannedStep]:
    """Return the steps the run is expected to take, as far as they are known now."""
    return _COMMANDS[request.command].steps(change, settings, request.options)


def _work(ctx: StepContext, request: RunRequest, person: Person | None) -> None:
    command = _COMMANDS[request.command]
    if decision := request.decision:
        decide = plan.decide_plan if command.workflow is Workflow.PLAN else impl.decide_code
        decide(ctx, decision.answer, decision.reason, decision.by, decision.seen)
    elif not command.settled(ctx.change, request.options):
        command.work(ctx, replace(request.options, person=person))


def _result(change: Change, request: RunRequest, calls_before: int, error: AgentdError | None = None) -> RunResult:
    command = _COMMANDS[request.command]
    message, code = "", None
    if request.decision:
        code = 0
    elif not error:
        settled = command.settled(change, request.options) if request.raise_budget else None
        message, code = (settled, None) if settled else command.summary(change, request.options)
    return RunResult(build_result(change, request.command, request.requested_id, calls_before, message, error, code))


def open_or_create_change(
    project: Project,
    request: RunRequest,
    new: NewChange,
    load: Callable[[], Config],
    choose_setup: Callable[[str, Config], GitSetup],
    notify: Callable[[str], None],
    can_answer: bool,
) -> Change:
    """Return the change to plan; a new one is created where `choose_setup` says, unless something stands in the way.

    `can_answer`: somebody will answer the planner's questions. `load` returns a trusted configuration.
    """
    opened = open_change_to_plan(project, request.requested_id, new)
    for note in opened.notes:
        notify(note)
    if new.depends_on:
        check_dependencies(project, opened.id, new.depends_on)
    change = opened.change
    if change is None:
        config = load()
        ensure_agent_installed(config, Role.PLANNER, os.environ)
        folder = new_change_folder(project, opened.id) or project.changes_in(project.tree) / opened.id
        refuse_second_clarification(opened.id, request.options, folder)
        if not can_answer and not needs_no_clarification(request.options, config, folder):
            raise nobody_to_ask_error(opened.id)
        setup = choose_setup(opened.id, config)
        change = begin_change(project, opened.id, new, setup, config.git.worktree_setup, notify)
        notify(describe_location(change))
    if new.depends_on:
        add_dependencies(change, new.depends_on)
    return change


def describe_location(change: Change) -> str:
    place = change.read().git
    source = f", started from {place.target}" if place.target else ""
    if place.setup is GitSetup.WORKTREE:
        return f"{change.id} lives in {os.path.relpath(change.tree)}, on the branch {place.branch}{source}"
    if place.setup is GitSetup.BRANCH:
        return f"{change.id} lives on the branch {place.branch}{source}"
    return f"{change.id} lives here{f', on {place.target}' if place.target else ''}"


# ---- the commands


@dataclass(frozen=True)
class _Command:
    """`settled` returns a message if nothing is left to run; `summary` the message and exit code of a good end."""

    workflow: Workflow
    work: Callable[[StepContext, RunOptions], None]
    steps: Callable[[Change, WorkflowSettings, RunOptions], list[PlannedStep]]
    settled: Callable[[Change, RunOptions], str | None] = lambda change, options: None
    summary: Callable[[Change, RunOptions], tuple[str, int | None]] = lambda change, options: ("", None)


def _plan_and_implement(ctx: StepContext, options: RunOptions) -> None:
    if ctx.change.read().phase in _PLANNING:
        plan.run_plan(ctx, options)
    if ctx.change.read().phase in (Phase.CHALLENGED, Phase.IMPLEMENTING):
        impl.run_impl(ctx, options)


def _is_planned(change: Change, options: RunOptions) -> str | None:
    return plan_settled(change, options.rechallenge)


def _is_implemented(change: Change, options: RunOptions) -> str | None:
    return impl_settled(change, options.review)


def _is_planned_and_implemented(change: Change, options: RunOptions) -> str | None:
    is_planning = change.read().phase in (*_PLANNING, Phase.REJECTED)
    return _is_planned(change, options) if is_planning else _is_implemented(change, options)


def _plan_steps(change: Change, settings: WorkflowSettings, options: RunOptions) -> list[PlannedStep]:
    return step_lists.plan_steps(change, settings)


def _impl_steps(change: Change, settings: WorkflowSettings, options: RunOptions) -> list[PlannedStep]:
    if not options.tasks:
        return step_lists.impl_steps(change, settings)
    try:
        return step_lists.task_steps(change, options.tasks, settings)
    except AgentdError:
        return []  # the run itself reports what is wrong with the tasks


def _all_steps(change: Change, settings: WorkflowSettings, options: RunOptions) -> list[PlannedStep]:
    """The steps of the code are known once the plan is."""
    steps = _plan_steps if change.read().phase in _PLANNING else _impl_steps
    return steps(change, settings, options)


def _count_tasks(change: Change, options: RunOptions) -> tuple[str, int | None]:
    tasks, done = read_change_tasks(change), built_tasks(change.read())
    return f"{sum(task.id in done for task in tasks)} of {pluralize(len(tasks), 'task')}", 0


def _impl_summary(change: Change, options: RunOptions) -> tuple[str, int | None]:
    return _count_tasks(change, options) if options.tasks else ("", None)


def _answered(judge: str, code: int | None) -> Callable[[Change, RunOptions], tuple[str, int | None]]:
    return lambda change, options: (f"The findings are answered; agentd {judge} {change.id} judges the answers", code)


_COMMANDS = {
    "clarify": _Command(Workflow.PLAN, clarify_first, _plan_steps),  # a part of plan that the demo plays by itself
    "plan": _Command(Workflow.PLAN, plan.run_plan, _plan_steps, _is_planned),
    "proposal": _Command(Workflow.PLAN, plan.run_proposal, _plan_steps, _is_planned),
    "challenge": _Command(Workflow.PLAN, plan.run_challenge, _plan_steps),
    "reproposal": _Command(Workflow.PLAN, plan.run_reproposal, _plan_steps, summary=_answered("challenge", None)),
    "run": _Command(Workflow.PLAN, _plan_and_implement, _all_steps, _is_planned_and_implemented),
    "impl": _Command(Workflow.IMPL, impl.run_impl, _impl_steps, _is_implemented, _impl_summary),
    "implement": _Command(Workflow.IMPL, impl.run_implement, _impl_steps, _is_implemented, _count_tasks),
    "review": _Command(Workflow.IMPL, impl.run_review, _impl_steps),
    "resolve-reviews": _Command(Workflow.IMPL, impl.run_resolve, _impl_steps, summary=_answered("review", 0)),
}

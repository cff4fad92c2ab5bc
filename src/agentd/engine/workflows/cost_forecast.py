"""Forecasts what a command would run and cost: from recent calls of the same kind, else from typical figures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from statistics import median

from agentd.agents import AgentSettings, PriceSettings, TokenUsage, usage_cost
from agentd.change import CallRecord, Change, ChangeState, StepRecord, remaining_faults
from agentd.domain import SPEC_STEPS, Complexity, Lane, Phase, Role, StepStatus, clock
from agentd.engine.calls import call_costs
from agentd.engine.calls.run_context import change_project
from agentd.engine.steps import planner
from agentd.engine.steps.code_trees import read_change_tasks
from agentd.engine.steps.step_context import plan_complexity, read_plan_facts
from agentd.engine.workflows import step_lists
from agentd.engine.workflows.change_start import NewChange, open_change_to_plan, plan_settled
from agentd.engine.workflows.clarification import is_clarification_due, needs_no_clarification
from agentd.engine.workflows.impl_start import impl_settled
from agentd.engine.workflows.run_request import RunRequest
from agentd.engine.workflows.step_lists import PlannedStep
from agentd.engine.workflows.task_batches import tasks_in_order
from agentd.engine.workflows.verdict_status import challenges, is_answering
from agentd.project import Config, Project, load_config

_DAYS = 30
_ENOUGH = 3  # calls; fewer are not representative

# Typical tokens in and out of one call, by kind of step; not measured in this repository.
_TYPICAL = {
    "clarify": (15_000, 500),
    "plan-gen": (25_000, 5_000),
    "plan-review": (5_000, 700),
    "proposal-gen": (15_000, 1_000),
    "proposal-review": (8_000, 700),
    "spec-gen": (12_000, 1_000),
    "spec-review": (8_000, 450),
    "tasks-gen": (18_000, 1_500),
    "tasks-review": (8_000, 500),
    "format-fix": (18_000, 2_000),
    "challenge": (25_000, 2_000),
    "reproposal": (20_000, 2_000),
}


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """One call. `cost` is in USD, None if the price is unknown; `measured` is the number of earlier calls used."""

    tokens_in: int
    tokens_out: int
    cost: float | None
    measured: int


def estimate_cost(project: Project, config: Config, step: str, agent: AgentSettings, model: str | None) -> CostEstimate:
    """Estimate one call; without a `model` the CLI uses its default. An unknown step has no tokens and no cost."""
    calls = [call for call in _recent(project) if call.agent == agent.name and _kind(call.step) == _kind(step)]
    if len(calls) >= _ENOUGH:
        return _measured(calls, model, config.prices)
    return _typical(step, model, config.prices)


def _measured(calls: list[CallRecord], model: str | None, known: Mapping[str, PriceSettings]) -> CostEstimate:
    costs = [cost for call in calls if (cost := _cost(call, model, known)) is not None]
    return CostEstimate(
        tokens_in=round(median(call.tokens_in or 0 for call in calls)),
        tokens_out=round(median(call.tokens_out or 0 for call in calls)),
        cost=round(median(costs), 6) if costs else None,
        measured=len(calls),
    )


def _typical(step: str, model: str | None, known: Mapping[str, PriceSettings]) -> CostEstimate:
    if _kind(step) not in _TYPICAL:
        return CostEstimate(0, 0, None, 0)
    tokens_in, tokens_out = _TYPICAL[_kind(step)]
    usage = TokenUsage(tokens_in=tokens_in, tokens_out=tokens_out)
    return CostEstimate(tokens_in, tokens_out, usage_cost(usage, model, known), 0)


def _cost(call: CallRecord, model: str | None, known: Mapping[str, PriceSettings]) -> float | None:
    """Return what the call cost, or would have cost with another model.

    A CLI may be asked for an alias ("sonnet") and report a full name: an alias has no price, but the call has a cost.
    """
    if call.cost is not None and model in (None, call.model):
        return call.cost
    usage = TokenUsage(
        tokens_in=call.tokens_in or 0, tokens_out=call.tokens_out or 0, tokens_cached=call.tokens_cached or 0
    )
    cost = usage_cost(usage, model or call.model, known)
    is_alias = model is not None and model in (call.model or "")
    return call.cost if cost is None and is_alias else cost


def _recent(project: Project) -> list[CallRecord]:
    today = clock.utc_now()
    days = [f"{today - timedelta(days=ago):%Y-%m-%d}" for ago in range(_DAYS)]
    return [call for day in days for call in _of_day(project, day, call_costs.ledger_size(project, day))]


@lru_cache(maxsize=_DAYS)  # each step of a plan would read the whole month again
def _of_day(project: Project, day: str, _size: int) -> tuple[CallRecord, ...]:
    """Return the calls that were not interrupted."""
    calls = (entry.call for entry in call_costs.read_ledger(project, day).values())
    return tuple(call for call in calls if not call.extra.get("cut"))


def _kind(step: str) -> str:
    """Return the kind of a step; the steps of all specs are one kind."""
    return next((prefix.rstrip("-") for prefix in SPEC_STEPS if step.startswith(prefix)), step)


_ROLES = {
    "challenge": Role.CHALLENGER,
    "implement": Role.IMPLEMENTER,
    "resolve": Role.IMPLEMENTER,
    "review": Role.REVIEWER,
}


@dataclass(frozen=True)
class StepForecast:
    planned: PlannedStep
    role: Role
    agent: str
    model: str | None
    expected: CostEstimate


@dataclass(frozen=True)
class RunForecast:
    """The steps a command would run. `specs_known`: False while the proposal that names the specs is missing."""

    change_id: str
    phase: Phase
    steps: list[StepForecast]
    message: str = ""
    specs_known: bool = True


def forecast_plan(project: Project, request: RunRequest, new: NewChange) -> RunForecast:
    """Forecast `agentd plan`; of the rounds to come, the next one is included."""
    opened, options = open_change_to_plan(project, request.requested_id, new), request.options
    change = opened.change
    tree = change_project(change) if change else project
    config = load_config(tree.config_file, flags=request.settings)
    state = change.read() if change else _new_state(opened.id, new.description, config, options.light)
    if is_clarification_due(state):  # forecast as if clarification were running or skipped
        folder = change.folder if change else project.changes_in(project.tree) / opened.id
        status = StepStatus.SKIPPED if needs_no_clarification(options, config, folder) else StepStatus.RUNNING
        state = state.with_step(StepRecord("clarify", 1, 1, 1, status, {}, clock.now()))
    facts = read_plan_facts(change) if change else None
    message = plan_settled(change, options.rechallenge) if change else None
    if message:
        return RunForecast(opened.id, state.phase, [], message)
    is_answer_due = change is not None and is_answering(change) and not options.rechallenge
    if options.rechallenge:
        state = replace(state, phase=Phase.PROPOSED)  # forecast another challenge
    round_ = len(challenges(change)) + 1 if change else 1
    iterations = config.workflow.self_review_iterations
    steps = step_lists.plan_steps_ahead(state, iterations, facts, round_, is_answer_due)
    if state.phase is not Phase.DRAFTING:
        steps = [step for step in steps if step.kind in ("challenge", "reproposal")]
    is_challenge_due = state.phase is Phase.PROPOSED and not is_answer_due
    if change and is_challenge_due and remaining_faults(change, config.validation):
        fix = planner.FORMAT_STEP
        steps = [PlannedStep(fix, round_, 1, "Format fix", fix), *steps]
    complexity = facts.complexity if facts else Complexity.MEDIUM
    is_known = state.phase is not Phase.DRAFTING or facts is not None or state.lane is not Lane.FULL
    forecasts = _forecast_steps(tree, config, state, steps, complexity)
    return RunForecast(opened.id, state.phase, forecasts, specs_known=is_known)


def forecast_code(change: Change, request: RunRequest) -> RunForecast:
    """Forecast `agentd impl`."""
    tree, state, options = change_project(change), change.read(), request.options
    if message := impl_settled(change, options.review):
        return RunForecast(change.id, state.phase, [], message)
    config = load_config(tree.config_file, flags=request.settings)
    tasks_in_order(read_change_tasks(change), change.id)  # raises if the tasks cannot be ordered
    if options.review:
        steps = step_lists.review_steps(change)
    elif options.tasks:
        steps = step_lists.task_steps(change, options.tasks, config.workflow)
    else:
        steps = step_lists.impl_steps(change, config.workflow)
    return RunForecast(change.id, state.phase, _forecast_steps(tree, config, state, steps, plan_complexity(change)))


def _new_state(change_id: str, description: str, config: Config, light: bool) -> ChangeState:
    lane = Lane.LIGHT if light else Lane.FULL if config.workflow.human_in_loop else Lane.AUTOMATED
    return ChangeState(change_id, description, clock.now(), clock.now(), lane=lane)


def _forecast_steps(
    project: Project, config: Config, state: ChangeState, steps: Iterable[PlannedStep], complexity: Complexity
) -> list[StepForecast]:
    """Forecast the steps that are left and need an agent."""
    ended = {step.key[:3] for step in state.steps if step.status in (StepStatus.DONE, StepStatus.SKIPPED)}
    found = []
    for step in steps:
        if step.key in ended or step.kind == "checks":
            continue
        role = _ROLES.get(step.kind, Role.PLANNER)
        agent = config.agent_for(role)
        choice = agent.model_for(complexity)
        model = choice.model if choice else None
        expected = estimate_cost(project, config, step.step, agent, model)
        found.append(StepForecast(step, role, agent.name, model, expected))
    return found

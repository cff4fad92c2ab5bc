"""What a planned call will cost: by the calls of its kind that ended here lately, else by typical figures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from statistics import median

from agentd.agents import AgentSettings, PriceSettings, TokenUsage, usage_cost
from agentd.change import CallRecord, ChangeState
from agentd.domain import SPEC_STEPS, Complexity, Phase, Role, StepStatus, clock
from agentd.engine.calls import call_costs
from agentd.engine.steps import planner
from agentd.engine.steps.step_context import PlanFacts
from agentd.engine.workflows import step_lists
from agentd.engine.workflows.step_lists import PlannedStep
from agentd.project import Config, Project

_DAYS = 30
_ENOUGH = 3  # calls; fewer say more about themselves than about the next one

# Tokens in and out of one call, by kind of step. Typical figures, nothing measured here.
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
    """One call; `cost` is in USD, None: the price is unknown. `measured` is how many earlier calls it rests on."""

    tokens_in: int
    tokens_out: int
    cost: float | None
    measured: int


def estimate_cost(project: Project, config: Config, step: str, agent: AgentSettings, model: str | None) -> CostEstimate:
    """`model` None: the CLI's own default. A step of which nothing is known gets no tokens and no cost."""
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
    """What it did cost, or would have cost with another model.

    A CLI may be asked for an alias ("sonnet") and tell a full name: an alias has no price, but the call has a cost.
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


@lru_cache(maxsize=_DAYS)  # a plan is many steps, and each would read the whole month
def _of_day(project: Project, day: str, _size: int) -> tuple[CallRecord, ...]:
    """Whole calls: one that was cut off tells only a part."""
    calls = (slip.call for slip in call_costs.read_ledger(project, day).values())
    return tuple(call for call in calls if not call.extra.get("cut"))


def _kind(step: str) -> str:
    """The steps of all specs are one kind."""
    return next((prefix.rstrip("-") for prefix in SPEC_STEPS if step.startswith(prefix)), step)


_ROLES = {
    "challenge": Role.CHALLENGER,
    "implement": Role.IMPLEMENTER,
    "resolve": Role.IMPLEMENTER,
    "review": Role.REVIEWER,
}


@dataclass(frozen=True)
class StepForecast:
    ahead: PlannedStep
    role: Role
    agent: str
    model: str | None
    expected: CostEstimate


def forecast_plan(
    project: Project,
    config: Config,
    state: ChangeState,
    facts: PlanFacts | None,
    round_: int,
    is_answering: bool,
    is_malformed: bool = False,
) -> list[StepForecast]:
    """Steps of specs that no proposal names yet are not among them; of rounds to come, the next one is."""
    steps = step_lists.plan_steps_ahead(state, config.workflow.self_review_iterations, facts, round_, is_answering)
    is_drafting = state.phase is Phase.DRAFTING
    left = [one for one in steps if is_drafting or one.kind in ("challenge", "reproposal")]
    if is_malformed:
        left.insert(0, PlannedStep(planner.FORMAT_STEP, round_, 1, "Format fix", planner.FORMAT_STEP))
    return forecast_steps(project, config, state, left, facts.complexity if facts else Complexity.MEDIUM)


def forecast_steps(
    project: Project, config: Config, state: ChangeState, steps: Iterable[PlannedStep], complexity: Complexity
) -> list[StepForecast]:
    """Of those that are left and that an agent takes."""
    ended = {step.key[:3] for step in state.steps if step.status in (StepStatus.DONE, StepStatus.SKIPPED)}
    found = []
    for one in steps:
        if one.key in ended or one.kind == "checks":
            continue
        role = _ROLES.get(one.kind, Role.PLANNER)
        agent = config.agent_for(role)
        model = agent.model_for(complexity)
        name = model.model if model else None
        expected = estimate_cost(project, config, one.step, agent, name)
        found.append(StepForecast(one, role, agent.name, name, expected))
    return found

"""Decides whether a call may be made or continue: limits against what was spent so far (pure)."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentd.change import CallRecord, ChangeState
from agentd.domain import OverBudget, Role, Workflow
from agentd.engine.calls.call_costs import Spending
from agentd.project import BudgetSettings


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """A limit that has been reached."""

    limit: Literal["per_change", "per_day", "per_run"]
    spent: float
    allowed: float


def effective_budget(budget: BudgetSettings, state: ChangeState) -> BudgetSettings:
    """Return the configured limits with the increase for this change; an increase never lowers one."""
    if state.budget is None or not budget.per_change:
        return budget
    return replace(budget, per_change=max(budget.per_change, state.budget.per_change))


def find_exceeded(
    budget: BudgetSettings, spent: Spending, in_flight: float | None = None, max_cost: float = 0.0
) -> ExceededLimit | None:
    """Before a call (`in_flight` None), a limit that is reached counts; during one, only a limit that is exceeded.

    `spent` excludes the call in flight. `max_cost` is the run's limit; it comes last because a new run resets it.
    """
    for over in (
        ExceededLimit("per_change", round(spent.change + (in_flight or 0.0), 6), budget.per_change),
        ExceededLimit("per_day", round(spent.today + (in_flight or 0.0), 6), budget.per_day),
        ExceededLimit("per_run", round(spent.run + (in_flight or 0.0), 6), max_cost),
    ):
        if over.allowed and (over.spent > over.allowed or (in_flight is None and over.spent == over.allowed)):
            return over
    return None


def check_budget(
    budget: BudgetSettings,
    change_id: str,
    spent: Spending,
    in_flight: float | None = None,
    max_cost: float = 0.0,
    role: Role = Role.PLANNER,
) -> None:
    """Raise OverBudget if a limit is used up, with the figures and how to raise it."""
    if found := find_exceeded(budget, spent, in_flight, max_cost):
        workflow = Workflow.PLAN if role in (Role.PLANNER, Role.CHALLENGER) else Workflow.IMPL
        raise _error(found, change_id, workflow)


def check_price(
    budget: BudgetSettings, agent: str, model: str | None, known: bool, max_cost: float = 0.0
) -> str | None:
    """Return a warning if the price of the next call is unknown, or raise OverBudget if that is not allowed."""
    if known or not (budget.per_change or budget.per_day or max_cost):
        return None
    what = f"the price of {model}" if model else f"which model {agent} uses, and so its price,"
    problem = f"{what} is not known, so the budget cannot count what {agent} spends"
    if budget.unknown_price == "allow":
        return problem
    name = json.dumps(model, ensure_ascii=False) if model else '"<model>"'
    first = "" if model else f"name its model under [[agents.{agent}.models]], and "
    raise OverBudget(
        problem,
        f"{first}add [prices.{name}] with input and output in USD per 1M tokens to agentd/config.toml "
        "(or run agentd --set budget.unknown_price=allow …), then run the command again",
    )


def _error(found: ExceededLimit, change_id: str, workflow: Workflow) -> OverBudget:
    spent, allowed = _figures(found.spent, found.allowed)
    if found.limit == "per_run":
        return OverBudget(
            f"this run has cost {spent} USD of the {allowed} USD it may (--max-cost)",
            f"run again with a higher --max-cost, such as {_enough(found)}: it continues where it stopped",
        )
    key = f"budget.{found.limit}"
    if found.limit == "per_change":
        message = f"{change_id} has cost {spent} USD of its {allowed} USD"
        first, later = f"agentd {workflow} {change_id} --raise-budget {_enough(found)} continues; or ", ""
    else:
        message = f"today's calls have cost {spent} USD of the day's {allowed} USD"
        first, later = "", ", or wait for the next day (UTC)"
    hint = (
        f"{first}set {key} above {spent} in agentd/config.toml (or run agentd --set {key}={_enough(found)} …), "
        f"then run the command again{later}"
    )
    return OverBudget(message, hint)


def _figures(spent: float, allowed: float) -> tuple[str, str]:
    """Format to the cent; finer where cents would hide an amount or the difference."""
    for digits in (2, 4):
        texts = f"{spent:.{digits}f}", f"{allowed:.{digits}f}"
        if float(texts[1]) == allowed and (float(texts[0]) > allowed or spent == allowed):
            return texts
    return f"{spent:.6f}", f"{allowed:.6f}"


def _enough(found: ExceededLimit) -> str:
    """Return the limit, doubled until it covers what was spent."""
    limit = found.allowed
    while round(limit, 6) <= found.spent:
        limit *= 2
    return f"{limit:.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class CostTotals:
    """Totals over some calls; tokens and cost count known values only."""

    calls: int = 0
    without_price: int = 0
    without_usage: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0.0

    @classmethod
    def of(cls, calls: Iterable[CallRecord]) -> "CostTotals":
        calls = tuple(calls)
        return cls(
            len(calls),
            sum(call.cost is None for call in calls),
            sum(call.tokens_in is None for call in calls),
            sum(call.tokens_in or 0 for call in calls),
            sum(call.tokens_out or 0 for call in calls),
            sum(call.tokens_cached or 0 for call in calls),
            round(sum(call.cost or 0.0 for call in calls), 6),
        )

    def data(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "calls_without_price": self.without_price,
            "tokens": {"in": self.tokens_in, "out": self.tokens_out, "cached": self.tokens_cached},
            "cost": self.cost,
        }


def group_costs(calls: Iterable[CallRecord], key: Callable[[CallRecord], str | None]) -> dict[str | None, CostTotals]:
    """Group the calls by key, in the order of the calls."""
    groups: dict[str | None, list[CallRecord]] = {}
    for call in calls:
        groups.setdefault(key(call), []).append(call)
    return {name: CostTotals.of(some) for name, some in groups.items()}

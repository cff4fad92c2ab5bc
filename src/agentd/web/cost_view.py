"""The cost of a change by step, model and round, and its budget."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from agentd.change import CallRecord, Change, StepRecord
from agentd.domain import AgentdError, clock
from agentd.engine import CHECKS_STEP as CHECKS
from agentd.engine import IMPLEMENT_STEP as IMPLEMENT
from agentd.engine import REVIEWER_SPEC, CostTotals, change_project, change_spending, effective_budget, group_costs
from agentd.project import load_config
from agentd.web.markup import cost_chart, svg
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, Query

_UNNAMED = "not named"


@dataclass(frozen=True, slots=True)
class CostView:
    """Costs in USD, over the calls with a known price."""

    by_step: tuple[cost_chart.ChartRow, ...]
    by_model: tuple[cost_chart.ChartRow, ...]
    by_round: tuple[cost_chart.ChartRow, ...]
    total: float
    budget: float | None
    calls: int
    without_price: int
    tokens_in: int
    tokens_out: int
    problem: str


_NOTHING = CostView((), (), (), 0.0, None, 0, 0, 0, 0, "")


def read_costs(change: Change, settings: Sequence[str] = ()) -> CostView:
    """Read the costs; `settings` come from the command line. A budget of 0 means no limit."""
    problem, limits = "", None
    try:
        state, spent = change.read(), change_spending(change)
    except AgentdError as error:
        return replace(_NOTHING, problem=error.message)
    try:
        limits = effective_budget(load_config(change_project(change).config_file, flags=settings).budget, state)
    except AgentdError as error:
        problem = error.message
    calls, whole = state.llm_calls, CostTotals.of(state.llm_calls)
    budget = (limits.per_change or None) if limits else None
    return CostView(
        by_step=_rows(calls, lambda call: call.step),
        by_model=tuple(sorted(_rows(calls, lambda call: call.model), key=lambda row: -(row.cost or 0.0))),
        by_round=_rows(calls, lambda call: _round(call, state.steps)),
        total=spent.change,
        budget=budget,
        calls=whole.calls,
        without_price=whole.without_price,
        tokens_in=whole.tokens_in,
        tokens_out=whole.tokens_out,
        problem=problem,
    )


def _rows(calls: Iterable[CallRecord], key: Callable[[CallRecord], str | None]) -> tuple[cost_chart.ChartRow, ...]:
    return tuple(_row(name or _UNNAMED, some) for name, some in group_costs(calls, key).items())


def _row(label: str, some: CostTotals) -> cost_chart.ChartRow:
    """Return one chart row; its cost is None if no price is known at all."""
    return cost_chart.ChartRow(label, None if some.without_price == some.calls else some.cost, some.without_price)


def _round(call: CallRecord, steps: Sequence[StepRecord]) -> str:
    """Return the round of a call. STATE.yaml does not store it: use the step of that name that ended nearest to it."""
    moment = clock.utc_now()
    ended = clock.seconds_since(call.timestamp, moment)

    def distance(step: StepRecord) -> float:
        other = clock.seconds_since(step.at, moment)
        return abs(ended - other) if ended is not None and other is not None else float("inf")

    rows = [step for step in steps if step.name == call.step]
    nearest = min(rows, key=distance, default=None)
    stage = "code" if _is_code(call.step) else "plan"
    return f"{stage}, round {nearest.round}" if nearest else stage


def _is_code(step: str) -> bool:
    return step in (CHECKS, REVIEWER_SPEC.kind, REVIEWER_SPEC.answer) or step.partition("-")[0] == IMPLEMENT


def cost_charts(costs: CostView, budget: float | None = None) -> list[tuple[str, Markup]]:
    """Render the charts; the first one shows the total within the budget, if one is given."""
    groups = {"By step": costs.by_step, "By model": costs.by_model, "By round": costs.by_round}
    charts: list[tuple[str, Markup]] = []
    for title, rows in groups.items():
        if rows:
            charts.append((title, Markup(cost_chart.render_bars(rows, None if charts else budget))))  # noqa: S704
    return charts


def render_meter(cost: float, budget: float | None) -> Markup:
    return Markup(svg.svg_meter(cost, budget)) if budget else Markup()  # noqa: S704  made of numbers only


def _values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    costs = read_costs(change, site.settings)
    return {"costs": costs, "pictures": cost_charts(costs), "meter": render_meter(costs.total, costs.budget)}


TABS = (ChangeTab("cost", 90, _values, lambda documents, state: bool(state and state.llm_calls)),)

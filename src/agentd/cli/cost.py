"""`agentd cost`: what changes have cost, or one change by step and model."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from agentd.change import CallRecord, Change, ChangeLocator, LocatedChange, check_change_id, read_state
from agentd.cli import output, text_table
from agentd.cli.change_argument import change_argument, find_anywhere
from agentd.cli.list_command import phase_words
from agentd.domain import AgentdError, clock, format_amount, format_usd, pluralize, usd_digits
from agentd.engine import CostTotals, Spending, change_spending, day_spending, effective_budget, group_costs
from agentd.project import BudgetSettings, Project, find_project, load_config

COMMANDS = {"cost": (90, "Show what changes have cost.")}

_NOT_CHECKED_OUT = "not checked out"
_BAR, _SHORT = 16, 4  # maximum and minimum width of a bar
_NO_CALLS = "No call has reported its usage yet."


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """A change and its calls; if it is not checked out, only its total cost is known."""

    found: LocatedChange
    calls: tuple[CallRecord, ...] = ()
    problem: str | None = None

    @property
    def sum(self) -> CostTotals:
        return CostTotals.of(self.calls) if self.found.folder else CostTotals(cost=self.found.summary.cost)


Groups = dict[str | None, CostTotals]
Rows = Sequence[tuple[tuple[str, ...], CostTotals]]


@click.command("cost")
@change_argument(required=False)
@click.option(
    "--by",
    type=click.Choice(["change", "day", "model", "step"]),
    help="Group the costs. Default: by change; with ID, by step and by model.",
)
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str | None, by: str | None, as_json: bool) -> int:
    """Show what all changes have cost; with ID, what that change has cost and its remaining budget.

    Includes archived and dropped changes. Days are UTC; a call counts on the day it started.
    """
    project = find_project()
    if change_id is None:
        return _overview(project, by, as_json)
    located = find_anywhere(ChangeLocator(project), check_change_id(change_id))
    assert located.folder and located.tree
    state = read_state(Path(located.folder))
    spent = change_spending(Change(project, located.id, located.tree, Path(located.folder)))
    limits = load_config(project.config_file, flags=ctx.find_root().obj or ()).budget
    change_cost = ChangeCost(located, state.llm_calls)
    budget = _budget_data(effective_budget(limits, state), spent)
    data = {
        "change_id": located.id,
        "phase": str(located.summary.phase),
        **_groupings([change_cost]),
        "total": change_cost.sum.data(),
        "budget": budget,
    }
    return output.show_result("cost", as_json, data, lambda: _render_change(project, change_cost, budget, by))


def _overview(project: Project, by: str | None, as_json: bool) -> int:
    locator = ChangeLocator(project)
    costs = [_change_cost(located) for located in (*locator.open(), *locator.archived())]
    day = clock.now()[:10]
    today = day_spending(project, day)
    data = {
        "changes": [
            {
                "change_id": change_cost.found.id,
                "phase": str(change_cost.found.summary.phase),
                **change_cost.sum.data(),
                "checked_out": change_cost.found.folder is not None,
                "problem": change_cost.problem,
            }
            for change_cost in costs
        ],
        **_groupings(costs),
        "total": _total(costs).data(),
        "today": {"day": day, "cost": today},
    }
    return output.show_result("cost", as_json, data, lambda: _render_all(project, costs, today, by or "change"))


def _change_cost(located: LocatedChange) -> ChangeCost:
    if located.folder is None:
        return ChangeCost(located, problem=f"{_NOT_CHECKED_OUT}, so only its total cost is known")
    try:
        return ChangeCost(located, read_state(Path(located.folder)).llm_calls)
    except AgentdError as error:
        return ChangeCost(located, problem=error.message)


def _total(costs: list[ChangeCost]) -> CostTotals:
    calls = CostTotals.of(call for change_cost in costs for call in change_cost.calls)
    absent = sum(change_cost.sum.cost for change_cost in costs if change_cost.found.folder is None)
    return replace(calls, cost=round(calls.cost + absent, 6))


def _grouped(costs: list[ChangeCost], key: Callable[[CallRecord], str | None]) -> Groups:
    """Group in call order; changes that are not checked out come last."""
    groups = group_costs((call for change_cost in costs for call in change_cost.calls), key)
    absent = sum(change_cost.sum.cost for change_cost in costs if change_cost.found.folder is None)
    return {**groups, _NOT_CHECKED_OUT: CostTotals(cost=absent)} if absent else groups


def _groups(costs: list[ChangeCost], by: str) -> Groups:
    if by == "step":
        return _grouped(costs, lambda call: call.step)
    if by == "model":
        groups = _grouped(costs, lambda call: call.model)
        return dict(sorted(groups.items(), key=lambda item: -item[1].cost))
    return dict(sorted(_grouped(costs, _day).items(), key=lambda item: item[0] or ""))


def _day(call: CallRecord) -> str | None:
    """Return the UTC day a call started on, from its end and duration; None if unreadable."""
    try:
        ended = datetime.fromisoformat(call.timestamp)
        began = ended.replace(tzinfo=ended.tzinfo or UTC) - timedelta(milliseconds=call.duration_ms)
        return f"{began.astimezone(UTC):%Y-%m-%d}"
    except (ValueError, OverflowError):
        return None


def _groupings(costs: list[ChangeCost]) -> dict[str, Any]:
    return {
        f"by_{by}": [{by: name, **totals.data()} for name, totals in _groups(costs, by).items()]
        for by in ("day", "model", "step")
    }


def _budget_data(limits: BudgetSettings, spent: Spending) -> dict[str, Any]:
    """Return spending and limits; a limit of 0 means no limit and becomes None."""
    return {
        "spent": spent.change,
        "per_change": limits.per_change or None,
        "left": max(0.0, round(limits.per_change - spent.change, 6)) if limits.per_change else None,
        "spent_today": spent.today,
        "per_day": limits.per_day or None,
        "left_today": max(0.0, round(limits.per_day - spent.today, 6)) if limits.per_day else None,
    }


def _render_all(project: Project, costs: list[ChangeCost], today: float, by: str) -> str:
    if not costs:
        return _NO_CALLS
    if by == "change":
        by_change = [((change_cost.found.id, _phase(project, change_cost)), change_cost.sum) for change_cost in costs]
        lines = _tables([(("CHANGE", "PHASE"), by_change)], _total(costs))
    else:
        lines = _tables([((by.upper(),), _rows(costs, by))], _total(costs))
    if today:
        lines += ["", *output.prose(f"{format_usd(today)} today, over all changes")]
    lines += _notes([call for change_cost in costs for call in change_cost.calls])
    problems = [f"{change_cost.found.id}: {change_cost.problem}" for change_cost in costs if change_cost.problem]
    lines += [""] * bool(problems) + [
        line for problem in problems for line in output.prose(text_table.clean_line(problem), "", "  ")
    ]
    return "\n".join(lines)


def _render_change(project: Project, change_cost: ChangeCost, budget: dict[str, Any], by: str | None) -> str:
    lines = output.heading(change_cost.found.id, phase_words(project, change_cost.found))
    if (pending := round(budget["spent"] - change_cost.sum.cost, 6)) > 0:
        text = "for a running or interrupted call, not in the tables yet"
        lines += output.prose(f"{format_usd(pending)} {text}")
    if budget["per_change"]:
        text = f"{format_usd(budget['left'])} left of {format_usd(budget['per_change'])} for this change"
        lines += output.prose(text)
    if budget["per_day"]:
        lines += output.prose(f"{format_usd(budget['left_today'])} left of {format_usd(budget['per_day'])} for today")
    if not change_cost.calls:
        return "\n".join([*lines, "", _NO_CALLS])
    tables = [
        (
            (name.upper(),),
            [((change_cost.found.id,), change_cost.sum)] if name == "change" else _rows([change_cost], name),
        )
        for name in ((by,) if by else ("step", "model"))
    ]
    return "\n".join([*lines, "", *_tables(tables, change_cost.sum), *_notes(change_cost.calls)])


def _phase(project: Project, change_cost: ChangeCost) -> str:
    return _NOT_CHECKED_OUT if change_cost.found.folder is None else phase_words(project, change_cost.found)


def _rows(costs: list[ChangeCost], by: str) -> Rows:
    return [((text_table.clean_line(name or "-"),), totals) for name, totals in _groups(costs, by).items()]


def _tables(tables: Sequence[tuple[tuple[str, ...], Rows]], total: CostTotals) -> list[str]:
    """Stack the tables, all with the same number of digits."""
    digits = usd_digits(totals.cost for _, rows in tables for totals in (total, *(totals for _, totals in rows)))
    lines = [line for head, rows in tables for line in ("", *_table(head, rows, total, digits))]
    return lines[1:]


def _table(head: tuple[str, ...], rows: Rows, total: CostTotals, digits: int) -> list[str]:
    """Drop columns that do not fit the terminal; names and costs always stay. Bars appear if they compare something."""
    width = output.width()
    sums = [*(totals for _, totals in rows), total]
    names = [head, *(name for name, _ in rows), ("total", *[""] * (len(head) - 1))]
    figures = [("CALLS", "TOKENS IN", "OUT", "CACHED", "COST"), *(_figures(totals, digits) for totals in sums)]
    amounts = [totals.cost for _, totals in rows]
    smallest = (
        _SHORT if width is not None and sum(cost > 0 for cost in amounts) > 1 else 0
    )  # with one amount there is nothing to compare
    for kept, least in _column_choices(smallest):
        columns = [_align_right([row[number] for row in figures]) for number in kept]
        cells = [(*name, *row) for name, row in zip(names, zip(*columns, strict=True), strict=True)]
        available = sys.maxsize if width is None else width - text_table.rows_width(cells)
        if available >= (least + 2 if least else 0):
            bars = (
                [text_table.render_bar(cost, max(amounts), min(available - 2, _BAR)) for cost in amounts]
                if least
                else ()
            )
            return _add_bars(text_table.align_rows(cells), bars)
    cost_column = _align_right([row[-1] for row in figures])
    name_width = max((width or 0) - len(cost_column[0]) - 2, 1)
    return _add_bars(
        text_table.align_rows(
            [(text_table.shorten_end(n[0], name_width), c) for n, c in zip(names, cost_column, strict=True)]
        )
    )


def _column_choices(smallest: int) -> list[tuple[tuple[int, ...], int]]:
    """Return figure columns and the width bars need beside them, best first; 0: no bars."""
    every, few, two, one = (0, 1, 2, 3, 4), (0, 1, 2, 4), (0, 4), (4,)
    bare = [(every, 0), (few, 0), (two, 0)]
    if not smallest:
        return bare
    return [(every, _BAR), (few, _BAR), *((kept, smallest) for kept in (every, few, two, one)), *bare]


def _add_bars(lines: list[str], bars: Sequence[str] = ()) -> list[str]:
    """Append bars to the rows; the header and the total have none."""
    padded = ["", *bars, *[""] * len(lines)]
    rows = [output.charted(line, bar) for line, bar in zip(lines, padded, strict=False)]
    return [output.paint(rows[0], dim=True), *rows[1:]]


def _figures(totals: CostTotals, digits: int) -> tuple[str, ...]:
    if not totals.calls:
        return (*["-"] * 4, _cost_cell(totals, digits))
    tokens = (totals.tokens_in, totals.tokens_out, totals.tokens_cached)
    is_known = totals.without_usage < totals.calls
    return (f"{totals.calls:,}", *(f"{count:,}" if is_known else "?" for count in tokens), _cost_cell(totals, digits))


def _align_right(column: list[str]) -> list[str]:
    width = max(map(len, column))
    return [cell.rjust(width) for cell in column]


def _cost_cell(totals: CostTotals, digits: int) -> str:
    if totals.calls and totals.without_price == totals.calls:
        return "unknown"
    return format_amount(totals.cost, digits) if totals.cost else "-"


def _notes(calls: Iterable[CallRecord]) -> list[str]:
    unknown = [call for call in calls if call.cost is None]
    if not unknown:
        return []
    models = ", ".join(
        sorted({text_table.clean_line(call.model) if call.model else "an unknown model" for call in unknown})
    )
    text = f"Not included: {pluralize(len(unknown), 'call')} without a known price ({models})"
    return ["", *output.prose(text)]

"""`agentd cost`: what the changes have cost, or one of them by step and model."""

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

_NOT_HERE = "not checked out"
_BAR, _SHORT = 16, 4  # columns of the longest, and where there is little room
_NO_CALLS = "No call has reported its usage yet."


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """One change and its calls. One that is not checked out is known by its cost alone."""

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
    help="Show this table. Usual: by change; for one change by step and by model.",
)
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str | None, by: str | None, as_json: bool) -> int:
    """Show what all changes have cost; with ID, what the calls of that change have cost and what is left for it.

    Archived and dropped changes are counted too. A day is a UTC day, and a call belongs to the one it began on.
    """
    project = find_project()
    if change_id is None:
        return _overview(project, by, as_json)
    found = find_anywhere(ChangeLocator(project), check_change_id(change_id))
    assert found.folder and found.tree
    state = read_state(Path(found.folder))
    spent = change_spending(Change(project, found.id, found.tree, Path(found.folder)))
    limits = load_config(project.config_file, flags=ctx.find_root().obj or ()).budget
    bill = ChangeCost(found, state.llm_calls)
    budget = _budget(effective_budget(limits, state), spent)
    data = {
        "change_id": found.id,
        "phase": str(found.summary.phase),
        **_by_all([bill]),
        "total": bill.sum.data(),
        "budget": budget,
    }
    return output.show_result("cost", as_json, data, lambda: _one(project, bill, budget, by))


def _overview(project: Project, by: str | None, as_json: bool) -> int:
    places = ChangeLocator(project)
    bills = [_change_cost(found) for found in (*places.open(), *places.archived())]
    day = clock.now()[:10]
    today = day_spending(project, day)
    data = {
        "changes": [
            {
                "change_id": bill.found.id,
                "phase": str(bill.found.summary.phase),
                **bill.sum.data(),
                "checked_out": bill.found.folder is not None,
                "problem": bill.problem,
            }
            for bill in bills
        ],
        **_by_all(bills),
        "total": _total(bills).data(),
        "today": {"day": day, "cost": today},
    }
    return output.show_result("cost", as_json, data, lambda: _all(project, bills, today, by or "change"))


def _change_cost(found: LocatedChange) -> ChangeCost:
    if found.folder is None:
        return ChangeCost(found, problem=f"{_NOT_HERE}, so only its cost is known")
    try:
        return ChangeCost(found, read_state(Path(found.folder)).llm_calls)
    except AgentdError as error:
        return ChangeCost(found, problem=error.message)


def _total(bills: list[ChangeCost]) -> CostTotals:
    calls = CostTotals.of(call for bill in bills for call in bill.calls)
    absent = sum(bill.sum.cost for bill in bills if bill.found.folder is None)
    return replace(calls, cost=round(calls.cost + absent, 6))


def _grouped(bills: list[ChangeCost], key: Callable[[CallRecord], str | None]) -> Groups:
    """In the order of the calls; what is not checked out comes last."""
    groups = group_costs((call for bill in bills for call in bill.calls), key)
    absent = sum(bill.sum.cost for bill in bills if bill.found.folder is None)
    return {**groups, _NOT_HERE: CostTotals(cost=absent)} if absent else groups


def _groups(bills: list[ChangeCost], by: str) -> Groups:
    if by == "step":
        return _grouped(bills, lambda call: call.step)
    if by == "model":
        groups = _grouped(bills, lambda call: call.model)
        return dict(sorted(groups.items(), key=lambda item: -item[1].cost))
    return dict(sorted(_grouped(bills, _day).items(), key=lambda item: item[0] or ""))


def _day(call: CallRecord) -> str | None:
    """STATE.yaml says when a call ended and how long it took. None: nothing readable."""
    try:
        ended = datetime.fromisoformat(call.timestamp)
        began = ended.replace(tzinfo=ended.tzinfo or UTC) - timedelta(milliseconds=call.duration_ms)
        return f"{began.astimezone(UTC):%Y-%m-%d}"
    except (ValueError, OverflowError):
        return None


def _by_all(bills: list[ChangeCost]) -> dict[str, Any]:
    return {
        f"by_{by}": [{by: name, **some.data()} for name, some in _groups(bills, by).items()]
        for by in ("day", "model", "step")
    }


def _budget(limits: BudgetSettings, spent: Spending) -> dict[str, Any]:
    """A limit of 0 is none."""
    return {
        "spent": spent.change,
        "per_change": limits.per_change or None,
        "left": max(0.0, round(limits.per_change - spent.change, 6)) if limits.per_change else None,
        "spent_today": spent.today,
        "per_day": limits.per_day or None,
        "left_today": max(0.0, round(limits.per_day - spent.today, 6)) if limits.per_day else None,
    }


def _all(project: Project, bills: list[ChangeCost], today: float, by: str) -> str:
    if not bills:
        return _NO_CALLS
    if by == "change":
        by_change = [((bill.found.id, _phase(project, bill)), bill.sum) for bill in bills]
        lines = _tables([(("CHANGE", "PHASE"), by_change)], _total(bills))
    else:
        lines = _tables([((by.upper(),), _rows(bills, by))], _total(bills))
    if today:
        lines += ["", *output.prose(f"{format_usd(today)} today, over all changes")]
    lines += _notes([call for bill in bills for call in bill.calls])
    problems = [f"{bill.found.id}: {bill.problem}" for bill in bills if bill.problem]
    lines += [""] * bool(problems) + [
        line for words in problems for line in output.prose(text_table.clean_line(words), "", "  ")
    ]
    return "\n".join(lines)


def _one(project: Project, bill: ChangeCost, budget: dict[str, Any], by: str | None) -> str:
    lines = output.heading(bill.found.id, phase_words(project, bill.found))
    if (under_way := round(budget["spent"] - bill.sum.cost, 6)) > 0:
        words = "by a call that is under way or was cut off, not in the tables yet"
        lines += output.prose(f"{format_usd(under_way)} {words}")
    if budget["per_change"]:
        words = f"{format_usd(budget['left'])} left of {format_usd(budget['per_change'])} for this change"
        lines += output.prose(words)
    if budget["per_day"]:
        lines += output.prose(f"{format_usd(budget['left_today'])} left of {format_usd(budget['per_day'])} for today")
    if not bill.calls:
        return "\n".join([*lines, "", _NO_CALLS])
    tables = [
        ((name.upper(),), [((bill.found.id,), bill.sum)] if name == "change" else _rows([bill], name))
        for name in ((by,) if by else ("step", "model"))
    ]
    return "\n".join([*lines, "", *_tables(tables, bill.sum), *_notes(bill.calls)])


def _phase(project: Project, bill: ChangeCost) -> str:
    return _NOT_HERE if bill.found.folder is None else phase_words(project, bill.found)


def _rows(bills: list[ChangeCost], by: str) -> Rows:
    return [((text_table.clean_line(name or "-"),), some) for name, some in _groups(bills, by).items()]


def _tables(tables: Sequence[tuple[tuple[str, ...], Rows]], total: CostTotals) -> list[str]:
    """One below the other, all with the same digits."""
    digits = usd_digits(some.cost for _, rows in tables for some in (total, *(some for _, some in rows)))
    lines = [line for head, rows in tables for line in ("", *_table(head, rows, total, digits))]
    return lines[1:]


def _table(head: tuple[str, ...], rows: Rows, total: CostTotals, digits: int) -> list[str]:
    """As many columns as the terminal has room for, names and cost always; bars where they compare something."""
    width = output.width()
    sums = [*(some for _, some in rows), total]
    names = [head, *(name for name, _ in rows), ("total", *[""] * (len(head) - 1))]
    figures = [("CALLS", "TOKENS IN", "OUT", "CACHED", "COST"), *(_figures(some, digits) for some in sums)]
    costs = [some.cost for _, some in rows]
    smallest = _SHORT if width is not None and sum(cost > 0 for cost in costs) > 1 else 0  # else nothing to compare
    for kept, least in _choices(smallest):
        columns = [_right([row[number] for row in figures]) for number in kept]
        cells = [(*name, *row) for name, row in zip(names, zip(*columns, strict=True), strict=True)]
        left = sys.maxsize if width is None else width - text_table.rows_width(cells)
        if left >= (least + 2 if least else 0):
            bars = [text_table.render_bar(cost, max(costs), min(left - 2, _BAR)) for cost in costs] if least else ()
            return _with_head(text_table.align_rows(cells), bars)
    told = _right([row[-1] for row in figures])
    room = max((width or 0) - len(told[0]) - 2, 1)
    return _with_head(
        text_table.align_rows([(text_table.shorten_end(n[0], room), c) for n, c in zip(names, told, strict=True)])
    )


def _choices(smallest: int) -> list[tuple[tuple[int, ...], int]]:
    """Figures to show and the room that bars need beside them, the best first; 0: no bars."""
    every, few, two, one = (0, 1, 2, 3, 4), (0, 1, 2, 4), (0, 4), (4,)
    bare = [(every, 0), (few, 0), (two, 0)]
    if not smallest:
        return bare
    return [(every, _BAR), (few, _BAR), *((kept, smallest) for kept in (every, few, two, one)), *bare]


def _with_head(lines: list[str], bars: Sequence[str] = ()) -> list[str]:
    """The head and the total have no bar."""
    beside = ["", *bars, *[""] * len(lines)]
    told = [output.charted(line, bar) for line, bar in zip(lines, beside, strict=False)]
    return [output.paint(told[0], dim=True), *told[1:]]


def _figures(some: CostTotals, digits: int) -> tuple[str, ...]:
    if not some.calls:
        return (*["-"] * 4, _cost(some, digits))
    tokens = (some.tokens_in, some.tokens_out, some.tokens_cached)
    is_told = some.without_usage < some.calls
    return (f"{some.calls:,}", *(f"{count:,}" if is_told else "?" for count in tokens), _cost(some, digits))


def _right(column: list[str]) -> list[str]:
    room = max(map(len, column))
    return [cell.rjust(room) for cell in column]


def _cost(some: CostTotals, digits: int) -> str:
    if some.calls and some.without_price == some.calls:
        return "unknown"
    return format_amount(some.cost, digits) if some.cost else "-"


def _notes(calls: Iterable[CallRecord]) -> list[str]:
    unknown = [call for call in calls if call.cost is None]
    if not unknown:
        return []
    models = ", ".join(
        sorted({text_table.clean_line(call.model) if call.model else "a model not named" for call in unknown})
    )
    words = f"Not in these costs: {pluralize(len(unknown), 'call')} without a known price ({models})"
    return ["", *output.prose(words)]

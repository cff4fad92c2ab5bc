"""`--dry-run`: list the steps that would run, their agents and estimated costs, without running anything."""

from typing import Any

from agentd.cli import output, text_table
from agentd.cli.options import CommandOptions
from agentd.domain import format_amount, format_usd, pluralize, usd_digits
from agentd.engine import RunForecast, StepForecast


def show_dry_run(options: CommandOptions, forecast: RunForecast) -> int:
    steps = forecast.steps
    data = {
        "change_id": forecast.change_id,
        "phase": str(forecast.phase),
        "message": forecast.message,
        "steps": [_step_row(step) for step in steps],
        "cost": round(sum(step.expected.cost or 0.0 for step in steps), 6),
        "steps_without_price": sum(step.expected.cost is None for step in steps),
        "specs_known": forecast.specs_known,
    }
    return output.show_result(options.command, options.as_json, data, lambda: _render(data, steps))


def _step_row(step: StepForecast) -> dict[str, Any]:
    return {
        "step": step.planned.step,
        "round": step.planned.round,
        "number": step.planned.number,
        "role": str(step.role),
        "agent": step.agent,
        "model": step.model,
        "tokens_in": step.expected.tokens_in,
        "tokens_out": step.expected.tokens_out,
        "cost": step.expected.cost,
        "measured": step.expected.measured,
    }


def _render(data: dict[str, Any], steps: list[StepForecast]) -> str:
    if not steps:
        return data["message"] or "Nothing left to do."
    unknown = data["steps_without_price"]
    measured = sum(step.expected.measured > 0 for step in steps)
    basis = f"{measured} of {len(steps)} estimated from earlier calls here" if measured else "typical figures"
    cost = f"for about {format_usd(data['cost'])} ({basis})" if data["cost"] else "at an unknown price"
    lines = output.heading(data["change_id"], data["phase"])
    lines += output.prose(f"{pluralize(len(steps), 'step')} would run, {cost}.")
    lines += ["", *_table(steps, output.width())]
    if not data["specs_known"]:
        lines += [
            "",
            *output.prose("Spec steps come between the proposal and the tasks; the proposal determines which."),
        ]
    if unknown and data["cost"]:
        note = f"Not included, because the price is unknown: {pluralize(unknown, 'step')}."
        lines += ["", *output.prose(note)]
    return "\n".join([*lines, "", "Nothing was run and nothing was spent."])


def _table(steps: list[StepForecast], width: int | None) -> list[str]:
    """Drop columns that do not fit the terminal; the step and its cost always stay."""
    digits = usd_digits(step.expected.cost or 0.0 for step in steps)
    rows = [("STEP", "AGENT", "MODEL", "ABOUT")]
    for step in steps:
        cost = step.expected.cost
        about = "unknown" if cost is None else format_amount(cost, digits) if cost else "-"
        rows.append((step.planned.label, step.agent, step.model or "its default", about))
    for kept in ((0, 1, 2, 3), (0, 1, 3), (0, 3)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or text_table.rows_width(chosen) <= width:
            break
    else:
        label_width = (width or 0) - text_table.rows_width([row[-1:] for row in rows]) - 2
        chosen = [[text_table.shorten_end(row[0], label_width), row[-1]] for row in rows]
    head, *lines = text_table.align_rows(chosen)
    return [output.paint(head, dim=True), *lines]

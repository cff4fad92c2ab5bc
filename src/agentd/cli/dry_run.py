"""`--dry-run`: the steps that would run, by whom, and about what they cost. Nothing is made or spent."""

from dataclasses import replace
from typing import Any

from agentd.change import Change, ChangeState, StepRecord, remaining_faults
from agentd.cli import output, text_table
from agentd.cli.options import CommandOptions
from agentd.domain import Lane, Phase, StepStatus, clock, format_amount, format_usd, pluralize, usd_digits
from agentd.engine import (
    StepForecast,
    challenges,
    change_project,
    forecast_plan,
    forecast_steps,
    impl_steps,
    is_answering,
    is_clarification_due,
    needs_no_clarification,
    open_change_to_plan,
    plan_complexity,
    plan_settled,
    read_change_tasks,
    read_plan_facts,
    review_steps,
    task_steps,
    tasks_in_order,
)
from agentd.project import Config, Project, load_config


def show_dry_run(project: Project, wanted: str, description: str | None, options: CommandOptions) -> int:
    opened = open_change_to_plan(project, wanted, description)
    change = opened.change
    there = change_project(change) if change else project
    in_force = load_config(there.config_file, flags=options.settings)
    state = change.read() if change else _new(opened.id, description or "", in_force, options.light)
    if is_clarification_due(state):  # as while it asks, or after it need not
        folder = change.folder if change else project.changes_in(project.tree) / opened.id
        status = StepStatus.SKIPPED if needs_no_clarification(options.wishes, in_force, folder) else StepStatus.RUNNING
        state = state.with_step(StepRecord("clarify", 1, 1, 1, status, {}, clock.now()))
    found = read_plan_facts(change) if change else None
    round_ = len(challenges(change)) + 1 if change else 1
    message = plan_settled(change, options.rechallenge) if change else None
    asked = change is not None and is_answering(change) and not options.rechallenge
    if options.rechallenge and not message:
        state = replace(state, phase=Phase.PROPOSED)  # as it is while it is judged again
    is_judged = state.phase is Phase.PROPOSED and not (asked or message)
    is_malformed = bool(change and is_judged and remaining_faults(change, in_force.validation))
    steps = [] if message else forecast_plan(there, in_force, state, found, round_, asked, is_malformed)
    is_known = state.phase is not Phase.DRAFTING or found is not None or state.lane is not Lane.FULL
    return report_dry_run(options, opened.id, state, steps, message or "", is_known)


def report_dry_run(
    options: CommandOptions,
    change_id: str,
    state: ChangeState,
    steps: list[StepForecast],
    message: str = "",
    specs_known: bool = True,
) -> int:
    data = {
        "change_id": change_id,
        "phase": str(state.phase),
        "message": message,
        "steps": [_row(one) for one in steps],
        "cost": round(sum(one.expected.cost or 0.0 for one in steps), 6),
        "steps_without_price": sum(one.expected.cost is None for one in steps),
        "specs_known": specs_known,
    }
    return output.show_result(options.command, options.as_json, data, lambda: _text(data, steps))


def _new(change_id: str, description: str, in_force: Config, light: bool) -> ChangeState:
    lane = Lane.LIGHT if light else Lane.FULL if in_force.workflow.human_in_loop else Lane.AUTOMATED
    return ChangeState(change_id, description, clock.now(), clock.now(), lane=lane)


def _row(one: StepForecast) -> dict[str, Any]:
    return {
        "step": one.ahead.step,
        "round": one.ahead.round,
        "number": one.ahead.number,
        "role": str(one.role),
        "agent": one.agent,
        "model": one.model,
        "tokens_in": one.expected.tokens_in,
        "tokens_out": one.expected.tokens_out,
        "cost": one.expected.cost,
        "measured": one.expected.measured,
    }


def _text(data: dict[str, Any], steps: list[StepForecast]) -> str:
    if not steps:
        return data["message"] or "Nothing is left to do."
    unknown = data["steps_without_price"]
    measured = sum(one.expected.measured > 0 for one in steps)
    basis = f"{measured} of {len(steps)} estimated from earlier calls here" if measured else "typical figures"
    cost = f"for about {format_usd(data['cost'])} ({basis})" if data["cost"] else "for a price that is not known"
    lines = output.heading(data["change_id"], data["phase"])
    lines += output.prose(f"{pluralize(len(steps), 'step')} would run, {cost}.")
    lines += ["", *_table(steps, output.width())]
    if not data["specs_known"]:
        lines += ["", *output.prose("Specs come between the proposal and the tasks; the proposal says which.")]
    if unknown and data["cost"]:
        words = f"Not in the sum, because its price is not known: {pluralize(unknown, 'step')}."
        lines += ["", *output.prose(words)]
    return "\n".join([*lines, "", "Nothing was run and nothing was spent."])


def _table(steps: list[StepForecast], width: int | None) -> list[str]:
    """As many columns as the terminal has room for, steps and what they cost always."""
    digits = usd_digits(one.expected.cost or 0.0 for one in steps)
    rows = [("STEP", "AGENT", "MODEL", "ABOUT")]
    for one in steps:
        cost = one.expected.cost
        about = "unknown" if cost is None else format_amount(cost, digits) if cost else "-"
        rows.append((one.ahead.label, one.agent, one.model or "its default", about))
    for kept in ((0, 1, 2, 3), (0, 1, 3), (0, 3)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or text_table.rows_width(chosen) <= width:
            break
    else:
        room = (width or 0) - text_table.rows_width([row[-1:] for row in rows]) - 2
        chosen = [[text_table.shorten_end(row[0], room), row[-1]] for row in rows]
    head, *lines = text_table.align_rows(chosen)
    return [output.paint(head, dim=True), *lines]


def show_code_dry_run(change: Change, options: CommandOptions) -> int:
    there = change_project(change)
    in_force = load_config(there.config_file, flags=options.settings)
    state = change.read()
    tasks_in_order(read_change_tasks(change), change.id)  # what cannot be built is told now
    if options.review:
        steps = review_steps(change)
    elif options.tasks is None:
        steps = impl_steps(change, in_force.workflow)
    else:
        steps = task_steps(change, options.wishes.tasks, in_force.workflow)
    return report_dry_run(
        options, change.id, state, forecast_steps(there, in_force, state, steps, plan_complexity(change))
    )

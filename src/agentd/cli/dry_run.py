"""`--dry-run`: list the steps that would run, their agents and estimated costs, without running anything."""

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
    change_tree = change_project(change) if change else project
    config = load_config(change_tree.config_file, flags=options.settings)
    state = change.read() if change else _new_state(opened.id, description or "", config, options.light)
    if is_clarification_due(state):  # forecast as if clarification were running or skipped
        folder = change.folder if change else project.changes_in(project.tree) / opened.id
        status = StepStatus.SKIPPED if needs_no_clarification(options.wishes, config, folder) else StepStatus.RUNNING
        state = state.with_step(StepRecord("clarify", 1, 1, 1, status, {}, clock.now()))
    facts = read_plan_facts(change) if change else None
    round_ = len(challenges(change)) + 1 if change else 1
    message = plan_settled(change, options.rechallenge) if change else None
    is_answered = change is not None and is_answering(change) and not options.rechallenge
    if options.rechallenge and not message:
        state = replace(state, phase=Phase.PROPOSED)  # forecast another challenge
    is_judged = state.phase is Phase.PROPOSED and not (is_answered or message)
    is_malformed = bool(change and is_judged and remaining_faults(change, config.validation))
    steps = [] if message else forecast_plan(change_tree, config, state, facts, round_, is_answered, is_malformed)
    is_known = state.phase is not Phase.DRAFTING or facts is not None or state.lane is not Lane.FULL
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
        "steps": [_step_row(step) for step in steps],
        "cost": round(sum(step.expected.cost or 0.0 for step in steps), 6),
        "steps_without_price": sum(step.expected.cost is None for step in steps),
        "specs_known": specs_known,
    }
    return output.show_result(options.command, options.as_json, data, lambda: _render(data, steps))


def _new_state(change_id: str, description: str, config: Config, light: bool) -> ChangeState:
    lane = Lane.LIGHT if light else Lane.FULL if config.workflow.human_in_loop else Lane.AUTOMATED
    return ChangeState(change_id, description, clock.now(), clock.now(), lane=lane)


def _step_row(step: StepForecast) -> dict[str, Any]:
    return {
        "step": step.ahead.step,
        "round": step.ahead.round,
        "number": step.ahead.number,
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
        rows.append((step.ahead.label, step.agent, step.model or "its default", about))
    for kept in ((0, 1, 2, 3), (0, 1, 3), (0, 3)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or text_table.rows_width(chosen) <= width:
            break
    else:
        label_width = (width or 0) - text_table.rows_width([row[-1:] for row in rows]) - 2
        chosen = [[text_table.shorten_end(row[0], label_width), row[-1]] for row in rows]
    head, *lines = text_table.align_rows(chosen)
    return [output.paint(head, dim=True), *lines]


def show_code_dry_run(change: Change, options: CommandOptions) -> int:
    change_tree = change_project(change)
    config = load_config(change_tree.config_file, flags=options.settings)
    state = change.read()
    tasks_in_order(read_change_tasks(change), change.id)  # raises if the tasks cannot be ordered
    if options.review:
        steps = review_steps(change)
    elif options.tasks is None:
        steps = impl_steps(change, config.workflow)
    else:
        steps = task_steps(change, options.wishes.tasks, config.workflow)
    return report_dry_run(
        options, change.id, state, forecast_steps(change_tree, config, state, steps, plan_complexity(change))
    )

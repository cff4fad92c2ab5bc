"""Which steps the code of a change takes, in which order, for somebody who looks on."""

from collections.abc import Sequence

from agentd.change import Change, ChangeState
from agentd.documents import Task
from agentd.domain import AgentdError, Phase, StepStatus
from agentd.engine.steps import check_run, code_trees
from agentd.engine.steps.judge_spec import REVIEWER_SPEC
from agentd.engine.workflows import task_batches
from agentd.engine.workflows.plan_steps import PlannedStep
from agentd.engine.workflows.verdict_status import last_record, open_findings
from agentd.project import WorkflowSettings


def impl_steps(change: Change, settings: WorkflowSettings) -> list[PlannedStep]:
    """The steps of a change as it is now."""
    try:
        tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)
    except AgentdError:
        tasks = ()  # the run itself says what is wrong with them
    state, record = change.read(), last_record(change, REVIEWER_SPEC)
    round_ = record.round + 1 if record else 1
    return impl_steps_ahead(
        state, tasks, settings.sequential_implementation, round_, bool(record and open_findings(change))
    )


def task_steps(change: Change, wanted: Sequence[str], settings: WorkflowSettings) -> list[PlannedStep]:
    """The runs of the tasks that were asked for; what cannot be built is an error."""
    state = change.read()
    tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(change), change.id)
    chosen = task_batches.select_tasks(tasks, wanted, task_batches.built_tasks(state))
    baseline = [
        PlannedStep(
            check_run.CHECKS_STEP, check_run.BASELINE_STEP, 1, "Checks before the first edit", check_run.CHECKS_STEP
        )
    ]
    return [*([] if state.base.tree else baseline), *batch_steps(state, chosen, settings.sequential_implementation)]


def review_steps(change: Change) -> list[PlannedStep]:
    """What `--review` does first: the checks, and one verdict."""
    round_ = len(change.records(REVIEWER_SPEC.kind)) + 1
    checks = PlannedStep(check_run.CHECKS_STEP, round_, 1, f"Checks, round {round_}", check_run.CHECKS_STEP)
    return [checks, PlannedStep(REVIEWER_SPEC.kind, round_, 1, f"Review, round {round_}", REVIEWER_SPEC.kind)]


def impl_steps_ahead(
    state: ChangeState, tasks: Sequence[Task], is_sequential: bool, round_: int, is_answering: bool
) -> list[PlannedStep]:
    if state.phase not in (Phase.CHALLENGED, Phase.IMPLEMENTING):
        return []
    found = []
    if state.base.tree is None or round_ == 1:
        found.append(
            PlannedStep(
                check_run.CHECKS_STEP, check_run.BASELINE_STEP, 1, "Checks before the first edit", check_run.CHECKS_STEP
            )
        )
    if round_ == 1:
        rows = [row for row in state.steps if _is_made(row.name, row.status)]
        found += [_made(row.name, row.number, row.extra.get("tasks", ())) for row in rows]
    found += batch_steps(state, tasks, is_sequential)
    if is_answering:
        found.append(
            PlannedStep(
                REVIEWER_SPEC.answer, round_, 1, f"Answers to the findings, round {round_}", REVIEWER_SPEC.answer
            )
        )
    more = "" if round_ == 1 else f", round {round_}"
    found.append(PlannedStep(check_run.CHECKS_STEP, round_, 1, f"Checks{more}", check_run.CHECKS_STEP))
    return [*found, PlannedStep(REVIEWER_SPEC.kind, round_, 1, f"Review{more}", REVIEWER_SPEC.kind)]


def batch_steps(state: ChangeState, tasks: Sequence[Task], is_sequential: bool) -> list[PlannedStep]:
    """The runs of the implementer that are left."""
    left = task_batches.remaining_batches(state, tasks, is_sequential)
    return [_made(one.step, one.number, [task.id for task in one.tasks]) for one in left]


def _made(step: str, number: int, ids: Sequence[str]) -> PlannedStep:
    spec = step.removeprefix(task_batches.IMPLEMENT_STEP).lstrip("-")
    listed = ", ".join(ids)
    tasks = f"task {listed}" if len(ids) == 1 else f"tasks {listed}"
    return PlannedStep(
        step, 1, number, f"Implement {spec + ': ' if spec else ''}{tasks}", task_batches.IMPLEMENT_STEP, spec
    )


def _is_made(name: str, status: StepStatus) -> bool:
    return status is StepStatus.DONE and (
        name == task_batches.IMPLEMENT_STEP or name.startswith(f"{task_batches.IMPLEMENT_STEP}-")
    )

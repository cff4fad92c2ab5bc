"""Groups the tasks into steps for the implementer (pure)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from agentd.change import ChangeState, StepRecord
from agentd.documents import Task, canonical_task_id, order_tasks, unknown_dependencies
from agentd.domain import FormatInvalid, Phase, Refusal, StepStatus, TaskStatus, TransitionEvent, UsageError

IMPLEMENT_STEP = "implement"


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Adjacent tasks of one spec, implemented in one step."""

    step: str
    number: int
    tasks: tuple[Task, ...]


def tasks_in_order(tasks: Sequence[Task], change_id: str) -> tuple[Task, ...]:
    """Return the tasks in dependency order, or raise FormatInvalid."""
    hint = f"fix agentd/changes/{change_id}/tasks.md, then: agentd validate {change_id}"
    if not tasks:
        raise FormatInvalid(f"{change_id} has no tasks to implement", hint)
    ids = [task.id for task in tasks]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise FormatInvalid(f"task {twice} appears twice", hint)
    if missing := unknown_dependencies(tasks):
        task, other = missing[0]
        raise FormatInvalid(f"task {task.id} depends on {other}, which is not a task", hint)
    try:
        return order_tasks(tasks)
    except FormatInvalid as error:
        raise FormatInvalid(error.message, hint) from None


def built_tasks(state: ChangeState) -> set[str]:
    """Return the tasks implemented since the implementation of this plan began."""
    if state.phase is Phase.CHALLENGED:
        return set()  # work for an earlier plan does not count
    since = implementation_start(state)
    rows = [row for row in state.steps if is_implemented(row) and row.at >= since]
    return {str(id_) for row in rows for id_ in row.extra.get("tasks", ())}


def implementation_start(state: ChangeState) -> str:
    """Return when the implementation of this plan began."""
    started = [moved.at for moved in state.history if moved.event is TransitionEvent.IMPLEMENTATION_STARTED]
    return started[-1] if started else ""


def remaining_batches(state: ChangeState, tasks: Sequence[Task], is_sequential: bool) -> list[TaskBatch]:
    """Return the batches that are left. `tasks` are in order."""
    finished = built_tasks(state)
    left = [task for task in tasks if task.id not in finished and task.status is not TaskStatus.WAIVED]
    used = [row.name for row in state.steps if is_implemented(row)]
    found: list[TaskBatch] = []
    for name, group in groupby(left, lambda task: _name(task) if is_sequential else IMPLEMENT_STEP):
        number = 1 + used.count(name) + sum(one.step == name for one in found)
        found.append(TaskBatch(name, number, tuple(group)))
    return found


def select_tasks(tasks: Sequence[Task], wanted: Sequence[str], finished: Collection[str]) -> tuple[Task, ...]:
    """Return the tasks of `--tasks`; what they depend on must be done or selected too."""
    ids = [canonical_task_id(one.strip()) for one in wanted if one.strip()]
    known = {task.id: task for task in tasks}
    if strange := [one for one in ids if one not in known]:
        raise UsageError(f"there is no task {', '.join(strange)}", f"the tasks are {', '.join(known)}")
    if not ids:
        raise UsageError("--tasks names no task", f"the tasks are {', '.join(known)}")
    for one in ids:
        if lacking := [other for other in known[one].depends_on if other not in (*ids, *finished)]:
            message = f"task {one} depends on {', '.join(lacking)}, which is not done yet"
            raise Refusal(message, f"add it: --tasks {','.join([*lacking, *ids])}")
    return tuple(task for task in tasks if task.id in ids)


def _name(task: Task) -> str:
    spec = task.spec_refs[0].partition(":")[0] if task.spec_refs else ""
    return f"{IMPLEMENT_STEP}-{spec}" if spec else IMPLEMENT_STEP


def is_implemented(step: StepRecord) -> bool:
    """Whether the step is an implementer's and is done."""
    return step.status is StepStatus.DONE and f"{step.name}-".startswith(f"{IMPLEMENT_STEP}-")

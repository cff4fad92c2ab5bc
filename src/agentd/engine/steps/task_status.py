"""Tasks are ticked by agentd alone: when the review has approved a tree in which their files show their action."""

from collections.abc import Collection, Mapping

from agentd.documents import TASKS_FILE, decode_text, set_task_status
from agentd.domain import TaskStatus
from agentd.engine.steps import code_trees
from agentd.engine.steps.step_context import StepContext
from agentd.storage import files


def reset_tasks(desk: StepContext) -> None:
    """The plan is to change, and what was done by it with it; what a person waived stays so."""
    done = {
        task.id: TaskStatus.PENDING
        for task in code_trees.read_change_tasks(desk.change)
        if task.status is TaskStatus.DONE
    }
    _write(desk, done)


def mark_done_tasks(desk: StepContext, base: str, tree: str) -> None:
    wanted = [task for task in code_trees.read_change_tasks(desk.change) if task.status is TaskStatus.PENDING]
    left = {task.id for task, _ in code_trees.undone_tasks(wanted, code_trees.changed_paths(desk.change, base, tree))}
    _write(desk, {task.id: TaskStatus.DONE for task in wanted if task.id not in left})


def waive_tasks(desk: StepContext) -> list[str]:
    """A person has accepted the change without those that are not done."""
    left = [task.id for task in code_trees.read_change_tasks(desk.change) if task.status is TaskStatus.PENDING]
    _write(desk, dict.fromkeys(left, TaskStatus.WAIVED))
    return left


def reclaim_tasks(desk: StepContext, waived: Collection[str]) -> None:
    """The acceptance is taken back: what it waived is wanted again."""
    now = [
        task.id
        for task in code_trees.read_change_tasks(desk.change)
        if task.status is TaskStatus.WAIVED and task.id in waived
    ]
    _write(desk, dict.fromkeys(now, TaskStatus.PENDING))


def _write(desk: StepContext, statuses: Mapping[str, TaskStatus]) -> None:
    path = desk.change.folder / TASKS_FILE
    if not statuses:
        return
    with desk.change.writing(desk.run.token):
        text = decode_text(files.read(path), TASKS_FILE)
        for id_, status in statuses.items():
            text = set_task_status(text, id_, status)
        files.write(path, text.encode())

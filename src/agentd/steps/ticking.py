"""Tasks are ticked by agentd alone: when the review has approved a tree in which their files show their action."""

from collections.abc import Collection, Mapping

from agentd.documents import tasks
from agentd.documents.text import decode_text
from agentd.domain.terms import TaskStatus
from agentd.steps import code
from agentd.steps.desk import Desk
from agentd.storage import files


def untick(desk: Desk) -> None:
    """The plan is to change, and what was done by it with it; what a person waived stays so."""
    done = {task.id: TaskStatus.PENDING for task in code.tasks_of(desk.change) if task.status is TaskStatus.DONE}
    _write(desk, done)


def tick(desk: Desk, base: str, tree: str) -> None:
    wanted = [task for task in code.tasks_of(desk.change) if task.status is TaskStatus.PENDING]
    left = {task.id for task, _ in code.undone(wanted, code.changed(desk.change, base, tree))}
    _write(desk, {task.id: TaskStatus.DONE for task in wanted if task.id not in left})


def waive(desk: Desk) -> list[str]:
    """A person has accepted the change without those that are not done."""
    left = [task.id for task in code.tasks_of(desk.change) if task.status is TaskStatus.PENDING]
    _write(desk, dict.fromkeys(left, TaskStatus.WAIVED))
    return left


def claim(desk: Desk, waived: Collection[str]) -> None:
    """The acceptance is taken back: what it waived is wanted again."""
    now = [task.id for task in code.tasks_of(desk.change) if task.status is TaskStatus.WAIVED and task.id in waived]
    _write(desk, dict.fromkeys(now, TaskStatus.PENDING))


def _write(desk: Desk, statuses: Mapping[str, TaskStatus]) -> None:
    path = desk.change.folder / tasks.TASKS_FILE
    if not statuses:
        return
    with desk.change.writing(desk.run.token):
        text = decode_text(files.read(path), tasks.TASKS_FILE)
        for id_, status in statuses.items():
            text = tasks.set_task_status(text, id_, status)
        files.write(path, text.encode())

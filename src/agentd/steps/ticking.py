"""Tasks are ticked by agentd alone: when the review has approved a tree in which their files show their action."""

from agentd import files
from agentd.documents import tasks
from agentd.documents.text import decode
from agentd.steps import code
from agentd.steps.desk import Desk
from agentd.terms import TaskStatus


def untick(desk: Desk) -> None:
    """The plan is to change, and what was done by it with it; what a person waived stays so."""
    path = desk.change.folder / tasks.NAME
    if not path.is_file():
        return
    with desk.change.writing(desk.run.token):
        text = decode(files.read(path), tasks.NAME)
        for task in tasks.parse(text).tasks:
            if task.status is TaskStatus.DONE:
                text = tasks.tick(text, task.id, TaskStatus.PENDING)
        files.write(path, text.encode())


def tick(desk: Desk, base: str, tree: str, is_waived: bool = False) -> None:
    """`is_waived`: a person has accepted the change without those that are not done."""
    path = desk.change.folder / tasks.NAME
    if not path.is_file():
        return
    with desk.change.writing(desk.run.token):
        text = decode(files.read(path), tasks.NAME)
        wanted = tasks.parse(text).tasks
        left = {task.id for task, _ in code.undone(wanted, code.changed(desk.change, base, tree))}
        for task in wanted:
            if task.status is TaskStatus.PENDING and (is_waived or task.id not in left):
                status = TaskStatus.WAIVED if task.id in left else TaskStatus.DONE
                text = tasks.tick(text, task.id, status)
        files.write(path, text.encode())

"""The implementer writes the code of some tasks. That it did is shown by the tree, never by its word."""

import os
from collections.abc import Callable, Sequence

from agentd.calls import attempts
from agentd.calls.work import Work
from agentd.context.briefing import brief
from agentd.documents.task import Task
from agentd.domain import events
from agentd.domain.formatting import pluralize
from agentd.domain.terms import Role
from agentd.steps import code, facts
from agentd.steps.desk import Desk
from agentd.tools.table import Stage

_GIT = tuple(f"git {name}" for name in ("diff", "log", "show", "status", "blame", "grep", "ls-files"))


def implement(desk: Desk, step: str, number: int, tasks: Sequence[Task], done: Sequence[str], is_last: bool) -> None:
    """One run of the implementer; code goes on from the tree as it is."""
    base = desk.change.read().base.tree
    assert base
    before = code.now(desk.change)
    ids = [task.id for task in tasks]
    prompt = desk.prompt(
        "implement",
        Role.IMPLEMENTER,
        Stage.IMPLEMENT,
        **brief(desk.change, ids),
        done=list(done),
        commands=checks(desk),
        is_last=is_last,
        there=_was_begun(desk, step, number),
    )

    def is_made() -> bool:
        tree = code.now(desk.change)
        is_edited = bool(code.changed(desk.change, before, tree))
        return is_edited or not any(code.undone(tasks, code.changed(desk.change, base, tree)))

    work = Work(
        step=step,
        number=number,
        role=Role.IMPLEMENTER,
        stage=Stage.IMPLEMENT,
        prompt=prompt,
        effect=is_made,
        reminder="No file was changed. Do the tasks now, in this project's files; a description of the work is not it.",
        complexity=facts.complexity(desk.change),
        commands=commands(desk),
        may_edit=named_by(tasks),
    )
    finished = attempts.perform(desk.run, work)
    tree = code.now(desk.change)
    left = sorted({task.id for task, _ in code.undone(tasks, code.changed(desk.change, base, tree))})
    if left:
        words = f"{step} ended, but the files of {', '.join(left)} do not show it"
        desk.run.emit(events.WarningIssued(**work.names(finished.attempt), code="undone", message=words))
    said = f"{len(ids) - len(left)} of {pluralize(len(ids), 'task')}"
    attempts.finish(desk.run, work, finished, {"tree": tree}, said, tasks=ids)


def named_by(tasks: Sequence[Task]) -> Callable[[str], bool]:
    """A file that defines a check may be changed where the approved plan says so."""
    named = {os.path.normpath(file.path) for task in tasks for file in task.files}
    return lambda path: path in named and not path.startswith(("agentd/", ".git/"))


def checks(desk: Desk) -> list[str]:
    return [check.command for check in desk.config.checks]


def commands(desk: Desk) -> tuple[str, ...]:
    """What a maker of code may run: the checks, git where it only reads, and what the configuration adds."""
    return (*dict.fromkeys((*checks(desk), *_GIT, *desk.config.agent_for(Role.IMPLEMENTER).shell)),)


def _was_begun(desk: Desk, step: str, number: int) -> bool:
    return any((row.name, row.number) == (step, number) for row in desk.change.read().steps)

"""The implementer writes the code of some tasks. That it did is shown by the tree, never by its word."""

import os
from collections.abc import Callable, Sequence

from agentd.documents import Task
from agentd.domain import Role, events, pluralize
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.context.implementer_brief import implementer_brief
from agentd.engine.steps import code_trees
from agentd.engine.steps.step_context import StepContext, plan_complexity
from agentd.engine.tools.tool_table import Stage

_GIT = tuple(f"git {name}" for name in ("diff", "log", "show", "status", "blame", "grep", "ls-files"))


def run_implement_step(
    ctx: StepContext, step: str, number: int, tasks: Sequence[Task], done: Sequence[str], is_last: bool
) -> None:
    """One run of the implementer; code goes on from the tree as it is."""
    base = ctx.change.read().base.tree
    assert base
    before = code_trees.current_tree(ctx.change)
    ids = [task.id for task in tasks]
    prompt = ctx.prompt(
        "implement",
        Role.IMPLEMENTER,
        Stage.IMPLEMENT,
        **implementer_brief(ctx.change, ids),
        done=list(done),
        commands=check_commands(ctx),
        is_last=is_last,
        there=_was_begun(ctx, step, number),
    )

    def is_made() -> bool:
        tree = code_trees.current_tree(ctx.change)
        is_edited = bool(code_trees.changed_paths(ctx.change, before, tree))
        return is_edited or not any(code_trees.undone_tasks(tasks, code_trees.changed_paths(ctx.change, base, tree)))

    work = CallRequest(
        step=step,
        number=number,
        role=Role.IMPLEMENTER,
        stage=Stage.IMPLEMENT,
        prompt=prompt,
        effect=is_made,
        reminder="No file was changed. Do the tasks now, in this project's files; a description of the work is not it.",
        complexity=plan_complexity(ctx.change),
        commands=allowed_commands(ctx),
        may_edit=files_named_by(tasks),
    )
    finished = retries.perform_call(ctx.run, work)
    tree = code_trees.current_tree(ctx.change)
    left = sorted(
        {task.id for task, _ in code_trees.undone_tasks(tasks, code_trees.changed_paths(ctx.change, base, tree))}
    )
    if left:
        message = f"{step} ended, but the files of {', '.join(left)} do not show it"
        ctx.run.emit(events.WarningIssued(**work.names(finished.attempt), code="undone", message=message))
    said = f"{len(ids) - len(left)} of {pluralize(len(ids), 'task')}"
    retries.finish_step(ctx.run, work, finished, {"tree": tree}, said, tasks=ids)


def files_named_by(tasks: Sequence[Task]) -> Callable[[str], bool]:
    """A file that defines a check may be changed where the approved plan says so."""
    named = {os.path.normpath(file.path) for task in tasks for file in task.files}
    return lambda path: path in named and not path.startswith(("agentd/", ".git/"))


def check_commands(ctx: StepContext) -> list[str]:
    return [check.command for check in ctx.config.checks]


def allowed_commands(ctx: StepContext) -> tuple[str, ...]:
    """What a maker of code may run: the checks, git where it only reads, and what the configuration adds."""
    return (*dict.fromkeys((*check_commands(ctx), *_GIT, *ctx.config.agent_for(Role.IMPLEMENTER).shell)),)


def _was_begun(ctx: StepContext, step: str, number: int) -> bool:
    return any((row.name, row.number) == (step, number) for row in ctx.change.read().steps)

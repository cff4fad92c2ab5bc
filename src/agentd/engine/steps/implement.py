"""The implementer's steps: write the code of some tasks, answer a review. The tree shows what it did, not its words."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agentd.change import ChangeState
from agentd.documents import ReviewRecord, Task
from agentd.domain import CheckStatus, Role, events, pluralize
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.context.implementer_brief import implementer_brief
from agentd.engine.steps import code_trees, judge_call
from agentd.engine.steps.step_context import REVIEWER_SPEC, StepContext
from agentd.engine.tools.question_tools import ANSWERS
from agentd.engine.tools.tool import Stage

_GIT = tuple(f"git {name}" for name in ("diff", "log", "show", "status", "blame", "grep", "ls-files"))
_TAIL = 3000  # characters of a failed check's output


def run_implement_step(
    ctx: StepContext, step: str, number: int, tasks: Sequence[Task], done: Sequence[str], is_last: bool
) -> None:
    """Let the implementer do `tasks`, starting from the tree as it is."""
    base, before = ctx.change.read().base.tree, code_trees.current_tree(ctx.change)
    assert base
    ids = [task.id for task in tasks]

    def undone(tree: str) -> list[str]:
        changed = code_trees.changed_paths(ctx.change, base, tree)
        return sorted({task.id for task, _ in code_trees.undone_tasks(tasks, changed)})

    def is_done() -> bool:
        tree = code_trees.current_tree(ctx.change)
        return bool(code_trees.changed_paths(ctx.change, before, tree)) or not undone(tree)

    was_started = any((row.name, row.number) == (step, number) for row in ctx.change.read().steps)
    request, result = _call_implementer(
        ctx,
        "implement",
        {**implementer_brief(ctx.change, ids), "done": list(done), "is_last": is_last, "there": was_started},
        tasks,
        step=step,
        number=number,
        effect=is_done,
        reminder="No file was changed. Do the tasks now, in this project's files; describing them is not enough.",
    )
    tree = code_trees.current_tree(ctx.change)
    if left := undone(tree):
        message = f"{step} ended, but the files of {', '.join(left)} do not show it"
        ctx.run.emit(events.WarningIssued(**request.names(result.attempt), code="undone", message=message))
    message = f"{len(ids) - len(left)} of {pluralize(len(ids), 'task')}"
    retries.finish_step(ctx.run, request, result, {"tree": tree}, message, tasks=ids)


def run_resolve_step(
    ctx: StepContext, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """Let the implementer answer the last review, `record`. `also` is written together with the end of the step."""
    findings, step, round_ = judge_call.open_judge_findings(ctx, REVIEWER_SPEC), REVIEWER_SPEC.answer, record.round + 1
    checks = [
        {"name": str(row["name"]), "command": str(row["command"]), "tail": str(row.get("tail") or "")[-_TAIL:]}
        for row in record.checks or ()
        if row.get("status") != CheckStatus.PASSED
    ]

    def is_done() -> bool:  # edits of an interrupted call count too
        if (ctx.run.folder / ANSWERS).is_file():
            return True
        now = code_trees.current_tree(ctx.change)
        return bool(code_trees.changed_paths(ctx.change, record.judged["tree"], now))

    rows = judge_call.finding_rows(ctx, REVIEWER_SPEC, findings)
    request, result = _call_implementer(
        ctx,
        step,
        {"findings": rows, "checks": checks, "round": round_},
        code_trees.read_change_tasks(ctx.change),
        step=step,
        round=round_,
        effect=is_done,
        reminder=ctx.reminder(Role.IMPLEMENTER, Stage.IMPLEMENT, judge_call.NOTHING_ANSWERED, "answer_finding"),
    )
    outputs = {"tree": code_trees.current_tree(ctx.change)}
    judge_call.finish_answers(ctx, REVIEWER_SPEC, record, request, result, findings, outputs, also)


def _call_implementer(
    ctx: StepContext, prompt: str, values: dict[str, Any], tasks: Iterable[Task], **request: Any
) -> tuple[CallRequest, CallResult]:
    """Call the implementer, who may run the checks, read-only git and what the configuration adds.

    It may change a file that defines a check only where the approved plan, `tasks`, names it.
    """
    checks = [check.command for check in ctx.config.checks]
    named = {os.path.normpath(file.path) for task in tasks for file in task.files}
    return ctx.call_agent(
        Role.IMPLEMENTER,
        Stage.IMPLEMENT,
        prompt=ctx.prompt(prompt, Role.IMPLEMENTER, Stage.IMPLEMENT, commands=checks, **values),
        commands=tuple(dict.fromkeys((*checks, *_GIT, *ctx.config.agent_for(Role.IMPLEMENTER).shell))),
        may_edit=lambda path: path in named and not path.startswith(("agentd/", ".git/")),
        **request,
    )

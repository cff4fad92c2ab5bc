"""What agentd itself finds in the code: failed checks, tasks that are not done, gaps of the trace, weakened tests.

Such a finding keeps its id over the rounds. It is open while it is so, and closed when it is gone; what a judge or a
person says of it counts only where that is a matter of opinion.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat

from agentd.checks import check_findings
from agentd.documents import Evidence, Finding, Task, TaskFile, closed_by_people, current_findings
from agentd.domain import FindingState, Severity, TaskAction, TaskStatus
from agentd.engine.steps import code_trees
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.step_context import REVIEWER_SPEC, StepContext
from agentd.project import git
from agentd.trace import build_matrix, find_weakenings, has_fewer_tests, trace_findings

UNDONE = "rule:task-undone"
_OWN = ("check:", "rule:")
_VERBS = {TaskAction.CREATE: "created", TaskAction.MODIFY: "changed", TaskAction.DELETE: "deleted"}

Words = list[dict[str, str]]


def find_problems(ctx: StepContext, proof: CheckRun, base: str) -> list[Finding]:
    """On the tree that the checks ran on; ids are given later."""
    change, settings = ctx.change, ctx.config.validation
    pattern = re.compile(settings.requirement_pattern)
    matrix = build_matrix(change, base, proof.tree, pattern)
    weaker = find_weakenings(change, base, proof.tree, pattern)
    checked = [one for result, comparison in proof.results for one in check_findings(result, comparison)]
    traced = trace_findings(matrix, weaker, settings.severity, repeat(""))
    if (severity := settings.severity["test-weakened"]) and not weaker:
        checked += _not_run(proof, severity, has_fewer_tests(change, base, proof.tree, pattern))
    return [*checked, *_undone(ctx, base, proof.tree), *traced]


def split_by_round(ctx: StepContext, found: Sequence[Finding], first: int) -> tuple[list[Finding], Words]:
    """New ones with their ids from `first` on, and agentd's word on those of earlier rounds."""
    records = ctx.change.records(REVIEWER_SPEC.kind)
    earlier = recorded_engine_findings(ctx)
    closed = closed_by_people(records)
    known = {_likeness(one): one for one in earlier}
    now = {_likeness(one): one for one in found}
    checks = {check.name for check in ctx.config.checks}
    words = [_word(one, now.get(_likeness(one)), checks) for one in earlier if _is_due(one, now, closed)]
    new = [one for likeness, one in now.items() if likeness not in known]
    return [replace(one, id=f"{REVIEWER_SPEC.prefix}{number}") for number, one in enumerate(new, first)], words


def recorded_engine_findings(ctx: StepContext) -> list[Finding]:
    return [one for one in current_findings(ctx.change.records(REVIEWER_SPEC.kind)) if one.by.startswith(_OWN)]


def is_fact(one: Finding) -> bool:
    """No matter of opinion: nobody but agentd closes it."""
    return one.by.startswith("check:") or one.by == UNDONE


def _is_due(one: Finding, now: Mapping[tuple[str, ...], Finding], closed: set[str]) -> bool:
    """A word is needed: it is open, or a fact that is there again."""
    if is_fact(one):
        return one.state.is_open or _likeness(one) in now
    return one.state.is_open and one.id not in closed


def _word(one: Finding, now: Finding | None, checks: Collection[str]) -> dict[str, str]:
    if now:
        return {"id": one.id, "state": str(FindingState.OPEN), "note": f"agentd: {now.what}"}
    note = "looked again, and it is gone"
    if one.by.startswith("check:"):
        is_there = one.by.removeprefix("check:") in checks
        note = "the check does not fail any more" if is_there else "there is no such check any more"
    return {"id": one.id, "state": str(FindingState.FIXED), "note": f"agentd: {note}."}


def _likeness(one: Finding) -> tuple[str, ...]:
    return (one.by, one.title, re.sub(r":\d+$", "", one.where or ""))


def _not_run(proof: CheckRun, severity: Severity, is_explained: bool) -> Iterator[Finding]:
    """Tests are all there, and fewer of them run: something keeps them from it."""
    for result, comparison in proof.results:
        if comparison.fewer and not comparison.blocks and not is_explained and result.counts:
            ran = result.counts.ran
            yield Finding(
                id="",
                severity=severity,
                title=f"Fewer tests run than before: {result.name}",
                what=f"`{result.command}` ran {ran + comparison.fewer} before the first edit and {ran} now, "
                "though no test was taken out of a file.",
                suggestion="Find out what keeps them from running, and let them run again.",
                requirement=None,
                where=f"check {result.name}",
                evidence=Evidence(check=result.name),
                verified=True,
                by="rule:test-weakened",
                state=FindingState.OPEN,
            )


def _undone(ctx: StepContext, base: str, tree: str) -> Iterator[Finding]:
    """Waived ones are a person's word."""
    wanted = [task for task in code_trees.read_change_tasks(ctx.change) if task.status is not TaskStatus.WAIVED]
    for task, file in code_trees.undone_tasks(wanted, code_trees.changed_paths(ctx.change, base, tree)):
        yield _not_done(ctx, task, file)


def _not_done(ctx: StepContext, task: Task, file: TaskFile) -> Finding:
    verb = _VERBS.get(file.action or TaskAction.MODIFY, "changed")
    what = f"Task {task.id} says that {file.path} is {verb}, and the tree does not show it."
    if git.run(ctx.change.tree, "check-ignore", "--", file.path, failing=""):
        what += " git ignores that file, so it is in no tree."
    return Finding(
        id="",
        severity=Severity.HIGH,
        title=f"Task {task.id} is not done: {file.path}"[:200],
        what=what,
        suggestion=f"Do it, or let a person set `status: waived` in {ctx.path('tasks.md')}.",
        requirement=task.spec_refs[0] if task.spec_refs else None,
        where=f"tasks.md:{task.line}",
        evidence=Evidence(file="tasks.md", line=task.line, quote=task.title or None),
        verified=True,
        by=UNDONE,
        state=FindingState.OPEN,
    )

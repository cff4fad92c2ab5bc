"""What agentd itself finds in the code: failed checks, undone tasks, gaps in the trace, weakened tests.

Such a finding keeps its id over the rounds. It is open while the problem exists and closed when it is gone; what a
judge or a person says about it counts only where it is a matter of opinion.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from agentd.checks import check_findings
from agentd.documents import Evidence, Finding, Task, TaskFile, closed_by_people, current_findings
from agentd.domain import FindingState, Severity, TaskAction, TaskStatus
from agentd.engine.steps import code_trees
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.step_context import REVIEWER_SPEC, StepContext
from agentd.project import git
from agentd.trace import build_matrix, find_weakenings, has_fewer_tests, trace_findings

UNDONE = "rule:task-undone"
_VERBS = {TaskAction.CREATE: "created", TaskAction.MODIFY: "changed", TaskAction.DELETE: "deleted"}


def find_problems(ctx: StepContext, run: CheckRun, base: str) -> list[Finding]:
    """Return the problems of the tree that the checks ran on, without ids."""
    change, settings = ctx.change, ctx.config.validation
    pattern = re.compile(settings.requirement_pattern)
    matrix = build_matrix(change, base, run.tree, pattern)
    weaker = find_weakenings(change, base, run.tree, pattern)
    found = [one for result, comparison in run.results for one in check_findings(result, comparison)]
    severity = settings.severity["test-weakened"]
    if severity and not weaker and not has_fewer_tests(change, base, run.tree, pattern):
        found += _not_run(run, severity)
    wanted = [task for task in code_trees.read_change_tasks(change) if task.status is not TaskStatus.WAIVED]
    undone = code_trees.undone_tasks(wanted, code_trees.changed_paths(change, base, run.tree))
    found += [_undone_finding(ctx, task, file) for task, file in undone]
    return [*found, *trace_findings(matrix, weaker, settings.severity)]


def split_by_round(
    ctx: StepContext, found: Sequence[Finding], first: int
) -> tuple[list[Finding], list[dict[str, str]]]:
    """Return new findings, with ids from number `first`, and agentd's judgement on those of earlier rounds."""
    earlier = recorded_engine_findings(ctx)
    closed = closed_by_people(ctx.change.records(REVIEWER_SPEC.kind))
    known = {_identity(one) for one in earlier}
    current = {_identity(one): one for one in found}
    checks = {f"check:{check.name}" for check in ctx.config.checks}
    judgements = []
    for one in earlier:
        now = current.get(_identity(one))
        # One that is open needs a judgement, and a fact that is back.
        if (one.state.is_open or now) if is_fact(one) else (one.state.is_open and one.id not in closed):
            judgements.append(_judgement(one, now, checks))
    new = [one for identity, one in current.items() if identity not in known]
    return [replace(one, id=f"{REVIEWER_SPEC.prefix}{number}") for number, one in enumerate(new, first)], judgements


def recorded_engine_findings(ctx: StepContext) -> list[Finding]:
    records = ctx.change.records(REVIEWER_SPEC.kind)
    return [one for one in current_findings(records) if one.by.startswith(("check:", "rule:"))]


def is_fact(one: Finding) -> bool:
    """Return whether only agentd closes the finding, because it is no matter of opinion."""
    return one.by.startswith("check:") or one.by == UNDONE


def _judgement(one: Finding, now: Finding | None, checks: Collection[str]) -> dict[str, str]:
    if now:
        return {"id": one.id, "state": str(FindingState.OPEN), "note": f"agentd: {now.what}"}
    note = "the problem is gone"
    if one.by.startswith("check:"):
        note = "the check does not fail any more" if one.by in checks else "there is no such check any more"
    return {"id": one.id, "state": str(FindingState.FIXED), "note": f"agentd: {note}."}


def _identity(one: Finding) -> tuple[str, ...]:
    return (one.by, one.title, re.sub(r":\d+$", "", one.where or ""))


def _not_run(run: CheckRun, severity: Severity) -> Iterator[Finding]:
    """Yield a finding for each check that runs fewer tests although no test was removed."""
    for result, comparison in run.results:
        if comparison.fewer and not comparison.blocks and result.counts:
            ran = result.counts.ran
            yield Finding(
                id="",
                severity=severity,
                title=f"Fewer tests run than before: {result.name}",
                what=f"`{result.command}` ran {ran + comparison.fewer} before the first edit and {ran} now, "
                "although no test was removed from a file.",
                suggestion="Find out what keeps them from running, and let them run again.",
                requirement=None,
                where=f"check {result.name}",
                evidence=Evidence(check=result.name),
                verified=True,
                by="rule:test-weakened",
                state=FindingState.OPEN,
            )


def _undone_finding(ctx: StepContext, task: Task, file: TaskFile) -> Finding:
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

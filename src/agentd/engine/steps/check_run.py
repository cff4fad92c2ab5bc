"""agentd runs the checks itself, on the tree to be reviewed: what an agent says about tests counts for nothing."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentd.change import ChangeState, StepRecord, format_names
from agentd.checks import CheckComparison, CheckResult, compare_check, result_from_row, run_check
from agentd.domain import CheckStatus, StepStatus, clock, events
from agentd.engine.calls.run_context import change_project
from agentd.engine.steps import code_trees
from agentd.engine.steps.step_context import StepContext
from agentd.project import CheckSettings

CHECKS_STEP = "checks"
BASELINE_STEP = 0  # the round before the first edit
_RUN_FIELDS = ("before", "tree", "at", "tail")  # of one run, so not part of the baseline


@dataclass(frozen=True)
class CheckRun:
    """The results of the checks on one tree, each compared with the one before the first edit."""

    tree: str
    rows: tuple[Mapping[str, Any], ...]
    results: tuple[tuple[CheckResult, CheckComparison], ...]

    @property
    def blocking(self) -> list[str]:
        return [result.name for result, comparison in self.results if comparison.blocks]


def run_checks(ctx: StepContext, round_: int) -> CheckRun:
    """Run the checks; if they write files, which changes what is reviewed, once more on the tree they left."""
    used = [step.attempt for step in ctx.change.read().steps if (step.name, step.round) == (CHECKS_STEP, round_)]
    names: dict[str, Any] = {"step": CHECKS_STEP, "round": round_, "number": 1, "attempt": max(used, default=0) + 1}
    ctx.run.emit(events.StepStarted(**names, role=None, agent=None, model=None, session=None, resumed=False))
    began = time.monotonic()
    run, left = _run_once(ctx, round_, names), ""
    if written := list(code_trees.changed_paths(ctx.change, run.tree, code_trees.current_tree(ctx.change))):
        message = f"the checks changed {format_names(written)}, so they run once more"
        ctx.run.emit(events.NoticeIssued(**names, code="checks-wrote", message=message))
        run = _run_once(ctx, round_, names)
        left = code_trees.current_tree(ctx.change)  # what is new in every run never settles
    duration_ms = round((time.monotonic() - began) * 1000)
    outputs = {"tree": run.tree, **code_trees.spec_hashes(ctx.change.hashes())}
    if left not in ("", run.tree):
        outputs["left"] = left
    row = StepRecord(CHECKS_STEP, round_, 1, names["attempt"], StepStatus.DONE, outputs, clock.now())
    rows = tuple({**one, "blocks": True} if one["name"] in run.blocking else one for one in run.rows)
    ctx.run.update(lambda old: replace(old.with_step(row), checks=rows))
    counts = Counter(str(result.status).replace("-", " ") for result, _ in run.results)
    message = ", ".join(f"{count} {status}" for status, count in counts.items())  # 2 passed, 1 failed
    ctx.run.emit(
        events.StepFinished(
            **names,
            status=StepStatus.DONE,
            duration_ms=duration_ms,
            outputs=outputs,
            message=message or "none configured: nothing verifies this code",
        )
    )
    return run


def _run_once(ctx: StepContext, round_: int, names: Mapping[str, Any]) -> CheckRun:
    tree, state = code_trees.current_tree(ctx.change), ctx.change.read()
    rows, results = [], []
    for check in ctx.config.checks:
        before = None if round_ == BASELINE_STEP else check_before(state, check)
        result = run_check(check, Path(change_project(ctx.change).root), ctx.environ, lock=ctx.run.lock.handle)
        values = {name: getattr(result, name) for name in ("name", "status", "required", "exit_code", "duration_ms")}
        ctx.run.emit(events.CheckFinished(**names, **values))
        comparison, row = compare_check(result, before), result.row(before, tree, clock.now())
        if reason := str(_baseline_row(state, check).get("known") or ""):
            row["known"] = reason
            comparison = _accept_known(comparison, result, before, reason)
        rows.append(row)
        results.append((result, comparison))
    return CheckRun(tree, tuple(rows), tuple(results))


def _accept_known(
    comparison: CheckComparison, now: CheckResult, before: CheckResult | None, reason: str
) -> CheckComparison:
    """Return a comparison that does not block: a person said that the check failed before. It must have."""
    has_failed = before is not None and before.status is CheckStatus.FAILED and now.status is CheckStatus.FAILED
    if not comparison.blocks or not has_failed or comparison.new:
        return comparison
    return replace(comparison, blocks=False, why=f"{now.name} failed before the first edit: {reason}")


def check_before(state: ChangeState, check: CheckSettings) -> CheckResult | None:
    """Return the check's result before the first edit; None if it is new or its command has changed."""
    row = _baseline_row(state, check)
    return result_from_row(row) if row else None


def with_baseline(state: ChangeState, rows: Sequence[Mapping[str, Any]]) -> ChangeState:
    """Return the state with the results before the first edit, kept beside their tree."""
    kept = [{name: value for name, value in row.items() if name not in _RUN_FIELDS} for row in rows]
    return replace(state, base=replace(state.base, extra={**state.base.extra, "checks": kept}))


def check_baseline(state: ChangeState) -> list[dict[str, Any]]:
    rows = state.base.extra.get("checks")
    return [dict(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list | tuple) else []


def _baseline_row(state: ChangeState, check: CheckSettings) -> dict[str, Any]:
    wanted = (check.name, check.command)
    return next((row for row in check_baseline(state) if (row.get("name"), row.get("command")) == wanted), {})


def check_outputs(state: ChangeState, round_: int) -> Mapping[str, str]:
    """Return `tree`, which the checks of the round ran on, `left`, if they changed it, and the hashes of the specs."""
    outputs = [row.outputs for row in state.steps if (row.name, row.round) == (CHECKS_STEP, round_)]
    return outputs[-1] if outputs else {}

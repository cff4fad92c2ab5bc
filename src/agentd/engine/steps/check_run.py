"""agentd runs the checks itself, on the tree to be reviewed: what an agent says about tests counts for nothing."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentd.change import ChangeState, StepRecord
from agentd.checks import CheckComparison, CheckResult, compare_check, result_from_row, run_check
from agentd.domain import CheckStatus, StepStatus, clock, events
from agentd.engine.calls.run_context import change_project
from agentd.engine.steps import code_trees
from agentd.engine.steps.step_context import StepContext
from agentd.project import CheckSettings

CHECKS_STEP = "checks"
BASELINE_STEP = 0  # the round before the first edit
_OF_ONE_RUN = ("before", "tree", "at", "tail")


@dataclass(frozen=True)
class CheckRun:
    """What the checks say about one tree, each beside how it was before the first edit."""

    tree: str
    rows: tuple[Mapping[str, Any], ...]
    results: tuple[tuple[CheckResult, CheckComparison], ...]
    left: str = ""
    """The tree that the checks left, where it is not the one they ran on."""

    @property
    def blocking(self) -> list[str]:
        return [result.name for result, comparison in self.results if comparison.blocks]


def run_checks(ctx: StepContext, round_: int) -> CheckRun:
    """A check that writes files changes what is reviewed: then they run again, on the tree that it left."""
    names: dict[str, Any] = {"step": CHECKS_STEP, "round": round_, "number": 1, "attempt": _attempt(ctx, round_)}
    ctx.run.emit(events.StepStarted(**names, role=None, agent=None, model=None, session=None, resumed=False))
    began = time.monotonic()
    proof = _once(ctx, round_, names)
    if wrote := list(code_trees.changed_paths(ctx.change, proof.tree, code_trees.current_tree(ctx.change))):
        message = f"the checks changed {_some(wrote)}, so they run once more"
        ctx.run.emit(events.NoticeIssued(**names, code="checks-wrote", message=message))
        proof = _once(ctx, round_, names)
        proof = replace(proof, left=code_trees.current_tree(ctx.change))  # what is new in each run settles never
    took = round((time.monotonic() - began) * 1000)
    judged_by = code_trees.spec_hashes(ctx.change.hashes())
    trees = {"tree": proof.tree, **({"left": proof.left} if proof.left not in ("", proof.tree) else {})}
    row = StepRecord(CHECKS_STEP, round_, 1, names["attempt"], StepStatus.DONE, {**trees, **judged_by}, clock.now())
    ctx.run.update(lambda old: replace(old.with_step(row), checks=_marked(proof)))
    outputs, said = dict(row.outputs), summarize_checks(proof)
    ctx.run.emit(events.StepFinished(**names, status=StepStatus.DONE, duration_ms=took, outputs=outputs, message=said))
    return proof


def summarize_checks(proof: CheckRun) -> str:
    """2 passed, 1 failed."""
    if not proof.rows:
        return "none configured: nothing verifies this code"
    statuses = [str(result.status).replace("-", " ") for result, _ in proof.results]
    return ", ".join(f"{statuses.count(word)} {word}" for word in dict.fromkeys(statuses))


def _once(ctx: StepContext, round_: int, names: Mapping[str, Any]) -> CheckRun:
    tree, state = code_trees.current_tree(ctx.change), ctx.change.read()
    rows, results = [], []
    for check in ctx.config.checks:
        before = None if round_ == BASELINE_STEP else check_before(state, check)
        result = run_check(check, Path(change_project(ctx.change).root), ctx.environ, lock=ctx.run.held.handle)
        told = {name: getattr(result, name) for name in ("name", "status", "required", "exit_code", "duration_ms")}
        ctx.run.emit(events.CheckFinished(**names, **told))
        comparison = compare_check(result, before)
        if reason := known_failure_reason(state, check):
            comparison = _accepted(comparison, result, before, reason)
        rows.append({**result.row(before, tree, clock.now()), **_known(reason)})
        results.append((result, comparison))
    return CheckRun(tree, tuple(rows), tuple(results))


def check_before(state: ChangeState, check: CheckSettings) -> CheckResult | None:
    """How it was before the first edit; None for one that is new, or another one by now."""
    row = _baseline(state, check)
    return result_from_row(row) if row else None


def known_failure_reason(state: ChangeState, check: CheckSettings) -> str:
    """Why a person says that its failures were there before."""
    return str(_baseline(state, check).get("known") or "")


def with_baseline(state: ChangeState, rows: Sequence[Mapping[str, Any]]) -> ChangeState:
    """Kept beside the tree that they are of."""
    kept = [{name: value for name, value in row.items() if name not in _OF_ONE_RUN} for row in rows]
    return replace(state, base=replace(state.base, extra={**state.base.extra, "checks": kept}))


def check_baseline(state: ChangeState) -> list[dict[str, Any]]:
    rows = state.base.extra.get("checks")
    return [dict(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list | tuple) else []


def _baseline(state: ChangeState, check: CheckSettings) -> dict[str, Any]:
    wanted = (check.name, check.command)
    return next((row for row in check_baseline(state) if (row.get("name"), row.get("command")) == wanted), {})


def _known(reason: str) -> dict[str, str]:
    return {"known": reason} if reason else {}


def _marked(proof: CheckRun) -> tuple[Mapping[str, Any], ...]:
    """For STATE.yaml: those that stand in the way of an approval say so."""
    return tuple({**row, "blocks": True} if row["name"] in proof.blocking else row for row in proof.rows)


def _accepted(
    comparison: CheckComparison, now: CheckResult, before: CheckResult | None, reason: str
) -> CheckComparison:
    """A person has said that it failed before; one that passed then is not among those."""
    failed_before = before is not None and before.status is CheckStatus.FAILED
    if not comparison.blocks or not failed_before or now.status is not CheckStatus.FAILED or comparison.new:
        return comparison
    return replace(comparison, blocks=False, why=f"{now.name} failed before the first edit: {reason}")


def tree_left_by_checks(state: ChangeState, round_: int) -> str:
    """The tree as the checks of that round left it; empty where it is the one they ran on."""
    return str(_outputs(state, round_).get("left", ""))


def judged_specs(state: ChangeState, round_: int) -> dict[str, str]:
    """The specs that the code of that round is judged by, as they were when it was proved."""
    return code_trees.spec_hashes(_outputs(state, round_))


def _outputs(state: ChangeState, round_: int) -> Mapping[str, str]:
    rows = [row.outputs for row in state.steps if (row.name, row.round) == (CHECKS_STEP, round_)]
    return rows[-1] if rows else {}


def _attempt(ctx: StepContext, round_: int) -> int:
    used = [step.attempt for step in ctx.change.read().steps if (step.name, step.round) == (CHECKS_STEP, round_)]
    return 1 + max(used, default=0)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

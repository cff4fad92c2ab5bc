"""agentd runs the checks itself, on the tree to be reviewed: what an agent says about tests counts for nothing."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentd.calls.run import there
from agentd.change.state import ChangeState, StepRecord
from agentd.checks.comparison import CheckComparison, compare_check
from agentd.checks.result import CheckResult, result_from_row
from agentd.checks.runner import run_check
from agentd.domain import clock, events
from agentd.domain.terms import CheckStatus, StepStatus
from agentd.project.config import CheckSettings
from agentd.steps import code
from agentd.steps.desk import Desk

STEP = "checks"
BASELINE = 0  # the round before the first edit
_OF_ONE_RUN = ("before", "tree", "at", "tail")


@dataclass(frozen=True)
class Proof:
    """What the checks say about one tree, each beside how it was before the first edit."""

    tree: str
    rows: tuple[Mapping[str, Any], ...]
    results: tuple[tuple[CheckResult, CheckComparison], ...]
    left: str = ""
    """The tree that the checks left, where it is not the one they ran on."""

    @property
    def blocking(self) -> list[str]:
        return [result.name for result, comparison in self.results if comparison.blocks]


def prove(desk: Desk, round_: int) -> Proof:
    """A check that writes files changes what is reviewed: then they run again, on the tree that it left."""
    names: dict[str, Any] = {"step": STEP, "round": round_, "number": 1, "attempt": _attempt(desk, round_)}
    desk.run.emit(events.StepStarted(**names, role=None, agent=None, model=None, session=None, resumed=False))
    began = time.monotonic()
    proof = _once(desk, round_, names)
    if wrote := list(code.changed(desk.change, proof.tree, code.now(desk.change))):
        words = f"the checks changed {_some(wrote)}, so they run once more"
        desk.run.emit(events.NoticeIssued(**names, code="checks-wrote", message=words))
        proof = _once(desk, round_, names)
        proof = replace(proof, left=code.now(desk.change))  # what is new in each run settles never
    took = round((time.monotonic() - began) * 1000)
    judged_by = code.specs_of(desk.change.hashes())
    trees = {"tree": proof.tree, **({"left": proof.left} if proof.left not in ("", proof.tree) else {})}
    row = StepRecord(STEP, round_, 1, names["attempt"], StepStatus.DONE, {**trees, **judged_by}, clock.now())
    desk.run.update(lambda old: replace(old.with_step(row), checks=_marked(proof)))
    outputs, said = dict(row.outputs), said_of(proof)
    desk.run.emit(events.StepFinished(**names, status=StepStatus.DONE, duration_ms=took, outputs=outputs, message=said))
    return proof


def said_of(proof: Proof) -> str:
    """2 passed, 1 failed."""
    if not proof.rows:
        return "none configured: nothing proves this code"
    words = [str(result.status).replace("-", " ") for result, _ in proof.results]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def _once(desk: Desk, round_: int, names: Mapping[str, Any]) -> Proof:
    tree, state = code.now(desk.change), desk.change.read()
    rows, results = [], []
    for check in desk.config.checks:
        before = None if round_ == BASELINE else before_of(state, check)
        result = run_check(check, Path(there(desk.change).root), desk.environ, lock=desk.run.held.handle)
        told = {name: getattr(result, name) for name in ("name", "status", "required", "exit_code", "duration_ms")}
        desk.run.emit(events.CheckFinished(**names, **told))
        comparison = compare_check(result, before)
        if reason := known_because(state, check):
            comparison = _accepted(comparison, result, before, reason)
        rows.append({**result.row(before, tree, clock.now()), **_known(reason)})
        results.append((result, comparison))
    return Proof(tree, tuple(rows), tuple(results))


def before_of(state: ChangeState, check: CheckSettings) -> CheckResult | None:
    """How it was before the first edit; None for one that is new, or another one by now."""
    row = _baseline(state, check)
    return result_from_row(row) if row else None


def known_because(state: ChangeState, check: CheckSettings) -> str:
    """Why a person says that its failures were there before."""
    return str(_baseline(state, check).get("known") or "")


def with_baseline(state: ChangeState, rows: Sequence[Mapping[str, Any]]) -> ChangeState:
    """Kept beside the tree that they are of."""
    kept = [{name: value for name, value in row.items() if name not in _OF_ONE_RUN} for row in rows]
    return replace(state, base=replace(state.base, extra={**state.base.extra, "checks": kept}))


def baseline(state: ChangeState) -> list[dict[str, Any]]:
    rows = state.base.extra.get("checks")
    return [dict(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list | tuple) else []


def _baseline(state: ChangeState, check: CheckSettings) -> dict[str, Any]:
    wanted = (check.name, check.command)
    return next((row for row in baseline(state) if (row.get("name"), row.get("command")) == wanted), {})


def _known(reason: str) -> dict[str, str]:
    return {"known": reason} if reason else {}


def _marked(proof: Proof) -> tuple[Mapping[str, Any], ...]:
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


def left_by(state: ChangeState, round_: int) -> str:
    """The tree as the checks of that round left it; empty where it is the one they ran on."""
    return str(_outputs(state, round_).get("left", ""))


def specs_of(state: ChangeState, round_: int) -> dict[str, str]:
    """The specs that the code of that round is judged by, as they were when it was proved."""
    return code.specs_of(_outputs(state, round_))


def _outputs(state: ChangeState, round_: int) -> Mapping[str, str]:
    rows = [row.outputs for row in state.steps if (row.name, row.round) == (STEP, round_)]
    return rows[-1] if rows else {}


def _attempt(desk: Desk, round_: int) -> int:
    used = [step.attempt for step in desk.change.read().steps if (step.name, step.round) == (STEP, round_)]
    return 1 + max(used, default=0)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

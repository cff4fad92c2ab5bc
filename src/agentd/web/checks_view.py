"""How the checks of a change stand, beside how they were before the first edit, each with the end of its output."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentd.change import Change
from agentd.checks import CheckResult, TestCounts, compare_check, result_from_row
from agentd.domain import AgentdError
from agentd.engine import check_baseline


@dataclass(frozen=True, slots=True)
class CheckRow:
    """`before` is "" for one that did not run then. `known`: why a person says that its failures were there before."""

    name: str
    command: str
    status: str
    is_required: bool
    blocks: bool
    why: str
    exit_code: int | None
    seconds: float
    counts: TestCounts | None
    failed_tests: tuple[str, ...]
    new_failures: tuple[str, ...]
    before: str
    counts_before: TestCounts | None
    known: str
    output: str
    """The end of what it printed, as it is kept in STATE.yaml."""
    tree: str
    at: str


@dataclass(frozen=True, slots=True)
class ChecksView:
    """`is_baseline`: nothing has run since the first edit, so this is how they were before it."""

    rows: tuple[CheckRow, ...]
    is_baseline: bool
    problem: str


def read_checks(change: Change) -> ChecksView:
    """One that cannot be read is left out, and told."""
    try:
        state = change.read()
    except AgentdError as error:
        return ChecksView((), is_baseline=False, problem=error.message)
    earlier = {(row.get("name"), row.get("command")): row for row in check_baseline(state)}
    found = state.checks or tuple(earlier.values())
    rows, problems = [], []
    for row in found:
        try:
            rows.append(_row(row, earlier.get((row.get("name"), row.get("command")), {})))
        except AgentdError as error:
            problems.append(error.message)
    return ChecksView(tuple(rows), not state.checks and bool(rows), "; ".join(problems))


def _row(row: Mapping[str, Any], earlier: Mapping[str, Any]) -> CheckRow:
    now = result_from_row(row)
    before: CheckResult | None = result_from_row(earlier) if earlier and row is not earlier else None
    comparison = compare_check(now, before)
    return CheckRow(
        name=now.name,
        command=now.command,
        status=str(now.status),
        is_required=now.required,
        blocks=bool(row.get("blocks")),
        why=comparison.why,
        exit_code=now.exit_code,
        seconds=now.duration_ms / 1000,
        counts=now.counts,
        failed_tests=now.failed_tests,
        new_failures=comparison.new,
        before=str(before.status) if before else "",
        counts_before=before.counts if before else None,
        known=str(earlier.get("known") or row.get("known") or ""),
        output=now.tail,
        tree=str(row.get("tree") or ""),
        at=str(row.get("at") or ""),
    )

"""The results of a change's checks compared with the baseline, and the trace of its requirements."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentd.change import Change
from agentd.checks import CheckResult, ResultCounts, compare_check, result_from_row
from agentd.documents import REQUIREMENT_PATTERN
from agentd.domain import AgentdError
from agentd.engine import check_baseline
from agentd.trace import TraceMatrix, build_matrix, find_weakenings
from agentd.web import code_view, document_view
from agentd.web.site import Site
from agentd.web.tabs import ChangeTab, Query


@dataclass(frozen=True, slots=True)
class CheckRow:
    """`before` is "" if the check was not in the baseline. `known`: why a person says its failures are not new."""

    name: str
    command: str
    status: str
    is_required: bool
    blocks: bool
    why: str
    exit_code: int | None
    seconds: float
    counts: ResultCounts | None
    failed_tests: tuple[str, ...]
    new_failures: tuple[str, ...]
    before: str
    counts_before: ResultCounts | None
    known: str
    output: str
    """The end of what it printed, as it is kept in STATE.yaml."""
    at: str


@dataclass(frozen=True, slots=True)
class ChecksView:
    """`is_baseline`: nothing has run since the first edit, so these are the baseline results."""

    rows: tuple[CheckRow, ...]
    is_baseline: bool
    problem: str


def read_checks(change: Change) -> ChecksView:
    """Read the check results. Unreadable rows are left out and reported in `problem`."""
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
        at=str(row.get("at") or ""),
    )


@dataclass(frozen=True, slots=True)
class TraceRowView:
    """`gaps`: which of task, file and test are missing. `document` and `line` locate the requirement."""

    requirement: str
    title: str
    document: str
    line: int
    scenarios: tuple[str, ...]
    tasks: tuple[str, ...]
    files: tuple[str, ...]
    tests: tuple[str, ...]
    is_waived: bool
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TracePlace:
    """`line` 0: the place no longer exists, or the whole file is meant."""

    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class TraceView:
    """Without code there are no files, no tests and no gaps in them. `problem`: why git failed."""

    rows: tuple[TraceRowView, ...]
    is_implemented: bool
    files_without_task: tuple[str, ...]
    """Changed files that no task names."""
    weakened: tuple[TracePlace, ...]
    notes: tuple[TracePlace, ...]
    problem: str

    @property
    def gaps(self) -> int:
        return sum(len(row.gaps) for row in self.rows)


def read_trace(change: Change, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> TraceView:
    """Trace requirements to tasks, files and tests; without the code, only what the plan says."""
    try:
        trees = code_view.code_trees(change)
        matrix = build_matrix(change, trees.base, trees.tree, pattern)
        weaker = find_weakenings(change, trees.base, trees.tree, pattern)
    except AgentdError as error:
        return _told(build_matrix(change, None, None, pattern), (), error.message)
    return _told(matrix, tuple(TracePlace(one.path, one.line, one.what) for one in weaker))


def _told(matrix: TraceMatrix, weakened: tuple[TracePlace, ...], problem: str = "") -> TraceView:
    rows = tuple(
        TraceRowView(
            requirement=row.requirement,
            title=row.title,
            document=f"specs/{row.requirement.partition(':')[0]}.md",
            line=row.line,
            scenarios=row.scenarios,
            tasks=row.tasks,
            files=row.files,
            tests=row.tests,
            is_waived=row.waived,
            gaps=row.gaps(matrix.implemented),
        )
        for row in matrix.rows
    )
    notes = tuple(TracePlace(one.path, one.line, one.what) for one in matrix.notes)
    return TraceView(rows, matrix.implemented, matrix.files_without_task, weakened, notes, problem)


def _checks_values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    return {"checks": read_checks(change)}


def _trace_values(site: Site, change: Change, query: Query) -> dict[str, Any]:
    pattern, problem = document_view.requirement_pattern(change, site.settings)
    return {"trace": read_trace(change, pattern), "problem": problem}


TABS = (
    ChangeTab("trace", 50, _trace_values, lambda documents, state: any(one.startswith("specs/") for one in documents)),
    ChangeTab("checks", 60, _checks_values, lambda documents, state: bool(state and state.base.tree)),
)

"""The result of a check, as data and as a row of a record (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentd.domain import CheckStatus, FieldReader, Severity

SUGGESTION = "Fix it if it belongs to this change; if not, say so."


class ResultCounts(NamedTuple):
    """Numbers of tests. Errors count as failed; expected failures and to-dos count as skipped."""

    passed: int
    failed: int
    skipped: int

    @property
    def ran(self) -> int:
        return self.passed + self.failed


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """A problem that the status does not show: an audit found a vulnerability, or no test ran."""

    title: str
    what: str
    severity: Severity
    suggestion: str = SUGGESTION


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. `counts` is None if unknown.

    A name is in `failed_tests` twice if two tests of that name failed. `exit_code` is None if the check did not run or
    was stopped at its time limit. `is_whole` is False if the runner stopped early or output was dropped, so that other
    tests may have failed too.
    """

    name: str
    command: str
    required: bool
    status: CheckStatus
    exit_code: int | None
    duration_ms: int
    counts: ResultCounts | None
    failed_tests: tuple[str, ...]
    tail: str
    problems: tuple[CheckProblem, ...] = ()
    is_whole: bool = True

    def row(self, before: "CheckResult | Mapping[str, Any] | None", tree: str, at: str) -> dict[str, Any]:
        """Return the row for a record. `before` is the run before the first edit, or None."""
        earlier = result_from_row(before) if isinstance(before, Mapping) else before
        return {
            "name": self.name,
            "command": self.command,
            "required": self.required,
            "status": str(self.status),
            "exit_code": self.exit_code,
            "duration_ms": self.duration_ms,
            "counts": self.counts._asdict() if self.counts is not None else None,
            "failed_tests": list(self.failed_tests),
            "before": earlier and {"status": str(earlier.status), "failed_tests": list(earlier.failed_tests)},
            "tree": tree,
            "at": at,
            "tail": f"{self.tail}\n" if self.tail else "",
        }


def result_from_row(row: Mapping[str, Any]) -> CheckResult:
    """Parse a row. Raise StateError if it is invalid."""
    fields = FieldReader(row, f"the check {row.get('name')}")
    counts = fields.inner("counts")
    return CheckResult(
        name=fields.text("name"),
        command=fields.text("command", ""),
        required=fields.flag("required"),
        status=fields.choice("status", CheckStatus),
        exit_code=fields.count("exit_code") if fields.has("exit_code") else None,
        duration_ms=fields.count("duration_ms"),
        counts=None
        if counts is None
        else ResultCounts(counts.count("passed"), counts.count("failed"), counts.count("skipped")),
        failed_tests=fields.texts("failed_tests"),
        tail=fields.text("tail", "").removesuffix("\n"),
    )


MAX_NAMES = 1000  # failed tests; any more are dropped, and such a run cannot be compared
MAX_NAME_LENGTH = 500


@dataclass(frozen=True, slots=True)
class RunnerSummary:
    """The summary of one test runner. `counts` is None if the runner prints names but no numbers.

    `unnamed` failures do not belong to a test and are included in `counts`. `failure_lines` are the lines that name a
    failure.
    """

    runner: str
    counts: ResultCounts | None
    names: tuple[str, ...] = ()
    unnamed: int = 0
    failure_lines: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class TestSummary:
    """The summaries of all runners of a command.

    `failed_tests` is complete if `counts` has the same number; without counts it has all failures or none.
    """

    counts: ResultCounts | None
    failed_tests: tuple[str, ...]
    runner: str | None
    failure_lines: tuple[str, ...] = ()
    is_whole: bool = True


NOTHING = TestSummary(None, (), None)


def combine_summaries(summaries: Sequence[RunnerSummary]) -> TestSummary:
    """Add up the summaries of all runners of a command."""
    if not summaries:
        return NOTHING
    known = [summary.counts for summary in summaries if summary.counts is not None]
    counts = ResultCounts(*map(sum, zip(*known, strict=True))) if len(known) == len(summaries) else None
    all_names = [name for summary in summaries for name in summary.names]
    names = [name for name in all_names if len(name) <= MAX_NAME_LENGTH][:MAX_NAMES]
    is_all_named = len(names) == len(all_names) and not any(summary.unnamed for summary in summaries)
    return TestSummary(
        counts=counts,
        failed_tests=tuple(names) if counts or is_all_named else (),
        runner=", ".join(summary.runner for summary in summaries),
        failure_lines=tuple(line for summary in summaries for line in summary.failure_lines),
        is_whole=all(summary.is_whole for summary in summaries),
    )

"""What came of a check, as data and as the row of a record (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.domain import CheckStatus, FieldReader, Severity

SUGGESTION = "Mend it if it belongs to this change; if not, say so."


@dataclass(frozen=True, slots=True)
class ResultCounts:
    """Tests. Errors count as failed, expected failures and those to be done as skipped."""

    passed: int
    failed: int
    skipped: int

    @property
    def ran(self) -> int:
        return self.passed + self.failed


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """Something to know about a check that its status does not say: what an audit found, that no test ran."""

    title: str
    what: str
    severity: Severity
    suggestion: str = SUGGESTION


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`counts` None: they could not be read. A name stands twice in `failed_tests` if two tests of that name failed.

    `exit_code` None: it did not run, or was ended at its time limit. `is_whole` False: the runner stopped early, or
    some of its output was not kept, so tests that nothing is said about may have failed too.
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
        """As a record has it. `before`: the run before the first edit, None if there was none."""
        earlier = result_from_row(before) if isinstance(before, Mapping) else before
        return {
            "name": self.name,
            "command": self.command,
            "required": self.required,
            "status": str(self.status),
            "exit_code": self.exit_code,
            "duration_ms": self.duration_ms,
            "counts": self.counts and _counts_row(self.counts),
            "failed_tests": list(self.failed_tests),
            "before": earlier and {"status": str(earlier.status), "failed_tests": list(earlier.failed_tests)},
            "tree": tree,
            "at": at,
            "tail": f"{self.tail}\n" if self.tail else "",
        }


def result_from_row(row: Mapping[str, Any]) -> CheckResult:
    """A row that cannot be read is a StateError."""
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


def _counts_row(counts: ResultCounts) -> dict[str, int]:
    return {"passed": counts.passed, "failed": counts.failed, "skipped": counts.skipped}


MANY = 1000  # names of failed tests; more are not kept, and such a run cannot be compared
LONG = 500  # characters of a name


@dataclass(frozen=True, slots=True)
class RunnerSummary:
    """`unnamed`: failures that are no test's. `said`: the lines that name a failure. `counts` has the unnamed too.

    `counts` None: the runner tells names, but no numbers.
    """

    runner: str
    counts: ResultCounts | None
    names: tuple[str, ...] = ()
    unnamed: int = 0
    said: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class TestSummary:
    """`failed_tests` has all that failed if `counts` says as many; without counts it has all, or none."""

    counts: ResultCounts | None
    failed_tests: tuple[str, ...]
    runner: str | None
    said: tuple[str, ...] = ()
    is_whole: bool = True


NOTHING = TestSummary(None, (), None)


def combine_summaries(found: Sequence[RunnerSummary]) -> TestSummary:
    """The sum of what all runners of a command say."""
    if not found:
        return NOTHING
    known = [one.counts for one in found if one.counts]
    counts = _sum(known) if len(known) == len(found) else None
    every = [name for one in found for name in one.names]
    names = [name for name in every if len(name) <= LONG][:MANY]
    is_all_named = len(names) == len(every) and not any(one.unnamed for one in found)
    return TestSummary(
        counts=counts,
        failed_tests=tuple(names) if counts or is_all_named else (),
        runner=", ".join(one.runner for one in found),
        said=tuple(line for one in found for line in one.said),
        is_whole=all(one.is_whole for one in found),
    )


def _sum(counts: Sequence[ResultCounts]) -> ResultCounts:
    return ResultCounts(
        sum(one.passed for one in counts), sum(one.failed for one in counts), sum(one.skipped for one in counts)
    )

"""What one runner said, and several of them together (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentd.checks.result import TestCounts

MANY = 1000  # names of failed tests; more are not kept, and such a run cannot be compared
LONG = 500  # characters of a name


@dataclass(frozen=True, slots=True)
class RunnerSummary:
    """`unnamed`: failures that are no test's. `said`: the lines that name a failure. `counts` has the unnamed too.

    `counts` None: the runner tells names, but no numbers.
    """

    runner: str
    counts: TestCounts | None
    names: tuple[str, ...] = ()
    unnamed: int = 0
    said: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class TestSummary:
    """`failed_tests` has all that failed if `counts` says as many; without counts it has all, or none."""

    counts: TestCounts | None
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


def _sum(counts: Sequence[TestCounts]) -> TestCounts:
    return TestCounts(
        sum(one.passed for one in counts), sum(one.failed for one in counts), sum(one.skipped for one in counts)
    )

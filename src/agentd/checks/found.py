"""What one runner said, and several of them together (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentd.checks.result import Counts

MANY = 1000  # names of failed tests; more are not kept, and such a run cannot be compared
LONG = 500  # characters of a name


@dataclass(frozen=True, slots=True)
class Found:
    """`unnamed`: failures that are no test's. `said`: the lines that name a failure. `counts` has the unnamed too.

    `counts` None: the runner tells names, but no numbers.
    """

    runner: str
    counts: Counts | None
    names: tuple[str, ...] = ()
    unnamed: int = 0
    said: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Summary:
    """`failed_tests` has all that failed if `counts` says as many; without counts it has all, or none."""

    counts: Counts | None
    failed_tests: tuple[str, ...]
    runner: str | None
    said: tuple[str, ...] = ()
    is_whole: bool = True


NOTHING = Summary(None, (), None)


def together(found: Sequence[Found]) -> Summary:
    """The sum of what all runners of a command say."""
    if not found:
        return NOTHING
    known = [one.counts for one in found if one.counts]
    counts = _sum(known) if len(known) == len(found) else None
    every = [name for one in found for name in one.names]
    names = [name for name in every if len(name) <= LONG][:MANY]
    is_all_named = len(names) == len(every) and not any(one.unnamed for one in found)
    return Summary(
        counts=counts,
        failed_tests=tuple(names) if counts or is_all_named else (),
        runner=", ".join(one.runner for one in found),
        said=tuple(line for one in found for line in one.said),
        is_whole=all(one.is_whole for one in found),
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(
        sum(one.passed for one in counts), sum(one.failed for one in counts), sum(one.skipped for one in counts)
    )

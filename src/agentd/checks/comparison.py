"""Compare a check with its run before the first edit: whether it blocks, and which failures are known (pure)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentd.checks.result import CheckResult
from agentd.domain import CheckStatus

_MAX_NAMES = 5  # tests named in a sentence


@dataclass(frozen=True, slots=True)
class CheckComparison:
    """`known` tests failed before the first edit too, `new` ones did not or it is unknown. `why` is for a finding."""

    blocks: bool
    known: tuple[str, ...]
    new: tuple[str, ...]
    why: str
    fewer: int = 0
    """How many fewer tests ran than before the first edit."""


def compare_check(now: CheckResult, before: CheckResult | None) -> CheckComparison:
    """Compare a check. Only a required one blocks, unless all its failures are known by name from before."""
    known, new = _split_known(now.failed_tests, before.failed_tests if before else ())
    blocks = now.required and _blocks(now, before, new)
    return CheckComparison(blocks, known, new, _why(now, before, known, new), _fewer(now, before))


def _blocks(now: CheckResult, before: CheckResult | None, new: Sequence[str]) -> bool:
    if now.status is CheckStatus.PASSED:
        return _has_lost_tests(now, before)
    if now.status is CheckStatus.COULD_NOT_RUN:
        return True
    return bool(new) or not _is_comparable(now, before)


def _split_known(names: Sequence[str], earlier: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split names into known and new failures; a name that occurs twice must have failed twice before."""
    left = Counter(earlier)
    known: list[str] = []
    new: list[str] = []
    for name in names:
        (known if left[name] > 0 else new).append(name)
        left[name] -= 1
    return tuple(known), tuple(new)


def _is_comparable(now: CheckResult, before: CheckResult | None) -> bool:
    """Return whether failures can be compared by name: same command and exit code, all failures named, full output."""
    return bool(
        before
        and before.status is CheckStatus.FAILED
        and (before.command, before.exit_code) == (now.command, now.exit_code)
        and (before.counts is None) == (now.counts is None)
        and _all_named(before)
        and _all_named(now)
        and now.is_whole
    )


def _all_named(result: CheckResult) -> bool:
    """Return whether every failure has a name; a crash has none."""
    names = len(result.failed_tests)
    return names > 0 and (result.counts is None or result.counts.failed == names)


def _fewer(now: CheckResult, before: CheckResult | None) -> int:
    if not (now.counts and before and before.counts and now.is_whole):
        return 0
    return max(0, before.counts.ran - now.counts.ran)


def _has_lost_tests(now: CheckResult, before: CheckResult | None) -> bool:
    """Return whether no tests ran now although some ran before."""
    is_silent = now.counts is None or not now.counts.ran
    return bool(is_silent and before and before.counts and before.counts.ran)


# ---- text


def _why(now: CheckResult, before: CheckResult | None, known: Sequence[str], new: Sequence[str]) -> str:
    if now.status is CheckStatus.COULD_NOT_RUN:
        return f"`{now.command}` could not run, so nothing was checked."
    if now.status is CheckStatus.PASSED:
        return f"`{now.command}` {_passed(now, before)}"
    ended = "was stopped at its time limit" if now.exit_code is None else f"ended with exit code {now.exit_code}"
    return f"`{now.command}` {ended}{_failures(now, before, known, new)}"


def _passed(now: CheckResult, before: CheckResult | None) -> str:
    if before and before.counts and _has_lost_tests(now, before):
        return f"no longer ran any tests; {_tests(before.counts.ran)} ran before the first edit."
    return "passed."


def _failures(now: CheckResult, before: CheckResult | None, known: Sequence[str], new: Sequence[str]) -> str:
    if before and before.status is CheckStatus.PASSED:
        return (
            f"; {_tests(len(new))} failed that did not fail before the first edit: {_list(new)}."
            if new
            else ". It passed before the first edit."
        )
    if not _is_comparable(now, before):
        failed = f"; {_tests(len(now.failed_tests))} failed: {_list(now.failed_tests)}." if now.failed_tests else "."
        return f"{failed} {_earlier(before)}"
    if not new:
        return f"; {_tests(len(known))} failed, as before the first edit: {_list(known)}."
    more = f" {_tests(len(known))} failed before too." if known else ""
    return f"; {_tests(len(new))} failed that did not fail before the first edit: {_list(new)}.{more}"


def _earlier(before: CheckResult | None) -> str:
    if before is None:
        return "It was not run before the first edit."
    if before.status is CheckStatus.COULD_NOT_RUN:
        return "It could not run before the first edit."
    return "It failed before the first edit too, but the failures cannot be compared by name."


def _tests(number: int) -> str:
    return f"{number} test" if number == 1 else f"{number} tests"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else shown

"""Compare a check with its run before the first edit: whether it blocks, and which failures are known (pure)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentd.checks.result import CheckProblem, CheckResult
from agentd.documents import Evidence, Finding
from agentd.domain import CheckStatus, FindingState, Severity, pluralize

_MAX_NAMES = 5  # most tests named in a sentence


@dataclass(frozen=True, slots=True)
class CheckComparison:
    """`known` tests also failed before the first edit; `new` ones did not, or it is unknown. `why` is for a finding."""

    blocks: bool
    known: tuple[str, ...]
    new: tuple[str, ...]
    why: str
    fewer: int = 0
    """How many fewer tests ran than before the first edit."""


def compare_check(now: CheckResult, before: CheckResult | None) -> CheckComparison:
    """Compare a check. Only a required check blocks, unless all its failures are known by name from before."""
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
    """Split names into known and new failures. A name that occurs twice must have failed twice before."""
    left = Counter(earlier)
    known: list[str] = []
    new: list[str] = []
    for name in names:
        (known if left[name] > 0 else new).append(name)
        left[name] -= 1
    return tuple(known), tuple(new)


def _is_comparable(now: CheckResult, before: CheckResult | None) -> bool:
    """Return whether failures can be compared: same command and exit code, all failures named, complete output."""
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
    """Return whether every failure has a name. A crash has none."""
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
        if before and before.counts and _has_lost_tests(now, before):
            ran = pluralize(before.counts.ran, "test")
            return f"`{now.command}` no longer ran any tests; {ran} ran before the first edit."
        return f"`{now.command}` passed."
    ended = "was stopped at its time limit" if now.exit_code is None else f"ended with exit code {now.exit_code}"
    return f"`{now.command}` {ended}{_failures(now, before, known, new)}"


def _failures(now: CheckResult, before: CheckResult | None, known: Sequence[str], new: Sequence[str]) -> str:
    is_known_to_pass = before is not None and before.status is CheckStatus.PASSED
    if not is_known_to_pass and not _is_comparable(now, before):
        failed = pluralize(len(now.failed_tests), "test")
        return (f"; {failed} failed: {_list(now.failed_tests)}. " if now.failed_tests else ". ") + _earlier(before)
    if new:
        more = f" {pluralize(len(known), 'test')} failed before too." if known else ""
        return f"; {pluralize(len(new), 'test')} failed that did not fail before the first edit: {_list(new)}.{more}"
    if is_known_to_pass:
        return ". It passed before the first edit."
    return f"; {pluralize(len(known), 'test')} failed, as before the first edit: {_list(known)}."


def _earlier(before: CheckResult | None) -> str:
    if before is None:
        return "It was not run before the first edit."
    if before.status is CheckStatus.COULD_NOT_RUN:
        return "It could not run before the first edit."
    return "It failed before the first edit too, but the failures cannot be compared by name."


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else shown


_FAILS = re.compile(r"\b(?:FAIL(?:ED|URE)?|ERROR|not ok)\b|✖|●|\berror\b", re.IGNORECASE)
_LAST_WORD = re.compile(r"[\w-]+(?=\W*$)")
_OUTCOMES = {
    CheckStatus.COULD_NOT_RUN: "could not run",
    CheckStatus.FAILED: "failed",
    CheckStatus.PASSED: "ran no tests",
}


def check_findings(result: CheckResult, comparison: CheckComparison) -> list[Finding]:
    """Return a finding for a check that blocks, and one per problem. Ids are assigned later."""
    problems = list(result.problems)
    quotes = [_line_with(result.tail, problem.title.rpartition(": ")[2]) for problem in problems]
    if comparison.blocks:
        title = f"Required check {_OUTCOMES[result.status]}: {result.name}"
        problems.insert(0, CheckProblem(title, comparison.why, Severity.HIGH, _suggestion(result, comparison)))
        quotes.insert(0, _quote(result, comparison))
    return [
        Finding(
            id="",
            severity=problem.severity,
            title=problem.title,
            what=problem.what,
            suggestion=problem.suggestion,
            requirement=None,
            where=f"check {result.name}",
            evidence=Evidence(check=result.name, quote=quote),
            verified=True,
            by=f"check:{result.name}",
            state=FindingState.OPEN,
        )
        for problem, quote in zip(problems, quotes, strict=True)
    ]


def _suggestion(result: CheckResult, comparison: CheckComparison) -> str:
    if result.status is CheckStatus.COULD_NOT_RUN:
        return f"Install what `{result.command}` needs, or fix the check in agentd/config.toml."
    if result.status is CheckStatus.PASSED:
        return "Restore the tests, or make the command find them."
    if result.exit_code is None:
        return "Find out what takes so long. If the check needs more time, raise its timeout in agentd/config.toml."
    tests = len(comparison.new) or len(comparison.known)
    if not tests:
        return f"Make `{result.command}` pass without weakening it."
    return "Make the test pass without weakening it." if tests == 1 else "Make the tests pass without weakening them."


def _quote(result: CheckResult, comparison: CheckComparison) -> str | None:
    """Return the most telling line: one that names a failed test, then one that mentions a failure, then the last."""
    lines = [line.strip() for line in result.tail.split("\n") if line.strip()]
    if result.exit_code is None:
        return lines[-1] if lines else None
    for name in (*comparison.new, *comparison.known):
        last = _LAST_WORD.search(name)
        for part in (name, last[0] if last else name):
            if line := next((line for line in lines if part in line and _FAILS.search(line)), None):
                return line
    return next((line for line in lines if _FAILS.search(line)), lines[-1] if lines else None)


def _line_with(tail: str, word: str) -> str | None:
    return next((line.strip() for line in tail.split("\n") if word and word in line), None)

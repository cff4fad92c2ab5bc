"""Failed checks as findings for the implementer to answer (pure)."""

import re

from agentd.checks.comparison import CheckComparison
from agentd.checks.result import CheckProblem, CheckResult
from agentd.documents import Evidence, Finding
from agentd.domain import CheckStatus, FindingState, Severity

_FAILS = re.compile(r"\b(?:FAIL(?:ED|URE)?|ERROR|not ok)\b|✖|●|\berror\b", re.IGNORECASE)
_LAST_WORD = re.compile(r"[\w-]+(?=\W*$)")


def check_findings(result: CheckResult, comparison: CheckComparison) -> list[Finding]:
    """Return a finding for a check that blocks, and one per problem; ids are assigned later."""
    blocking = [failed_check_finding(result, comparison)] if comparison.blocks else []
    return blocking + [problem_finding(result, problem) for problem in result.problems]


def failed_check_finding(result: CheckResult, comparison: CheckComparison, id_: str = "") -> Finding:
    """Return the finding for a required check that blocks."""
    return _finding(
        result,
        id_,
        severity=Severity.HIGH,
        title=f"{_title(result)}: {result.name}",
        what=comparison.why,
        suggestion=_suggestion(result, comparison),
        quote=_quote(result, comparison),
    )


def problem_finding(result: CheckResult, problem: CheckProblem, id_: str = "") -> Finding:
    return _finding(
        result,
        id_,
        severity=problem.severity,
        title=problem.title,
        what=problem.what,
        suggestion=problem.suggestion,
        quote=_line_with(result.tail, problem.title.rpartition(": ")[2]),
    )


def _finding(
    result: CheckResult, id_: str, *, severity: Severity, title: str, what: str, suggestion: str, quote: str | None
) -> Finding:
    return Finding(
        id=id_,
        severity=severity,
        title=title,
        what=what,
        suggestion=suggestion,
        requirement=None,
        where=f"check {result.name}",
        evidence=Evidence(check=result.name, quote=quote),
        verified=True,
        by=f"check:{result.name}",
        state=FindingState.OPEN,
    )


def _title(result: CheckResult) -> str:
    match result.status:
        case CheckStatus.COULD_NOT_RUN:
            return "Required check could not run"
        case CheckStatus.FAILED:
            return "Required check failed"
        case CheckStatus.PASSED:
            return "Required check ran no tests"


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
    """Return the most telling line: one that names a failed test, else one that mentions a failure, else the last."""
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

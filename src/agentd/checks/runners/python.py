"""pytest (with -q, -v, xdist and subtests), with counts from the last line and names from the summary; and unittest."""

import re
from collections.abc import Iterator, Sequence

from agentd.checks.result import ResultCounts, RunnerSummary

_TOTALS = re.compile(
    r"(?:=+ )?(\d+ [a-z]+(?: [a-z]+)?(?:, \d+ [a-z]+(?: [a-z]+)?)*|no tests ran) in [\d.]+s(?: \([\d:]+\))?(?: =+)?"
)
_SECTION = re.compile(r"=+ short test summary info =+")
_SUBTEST = re.compile(r"SUBFAILED ?(.*?) (\S+::.*)")
_PROGRESS = re.compile(r"(?:\[gw\d+\] )?(?:\[ *\d+%\] )?")
_STOPPED = re.compile(r"!{3,} .* !{3,}|INTERNALERROR>.*")

_FAILED = ("failed", "error", "errors")
_PASSED = ("passed", "xpassed")
_SKIPPED = ("skipped", "xfailed")


def read_pytest(lines: Sequence[str]) -> RunnerSummary | None:
    totals = [match[1] for line in lines if (match := _TOTALS.fullmatch(line))]
    if not totals:
        return None
    counts = _counts(totals)
    failure_lines = list(_summary_lines(lines)) or [line for line in lines if _verbose_name(line)]
    names = [name for line in failure_lines if (name := _name(line))]
    return RunnerSummary(
        runner="pytest",
        counts=counts,
        names=tuple(names),
        unnamed=max(0, counts.failed - len(names)),
        failure_lines=tuple(failure_lines),
        is_whole=not any(_STOPPED.fullmatch(line) for line in lines),
    )


def _counts(totals: Sequence[str]) -> ResultCounts:
    words = [part.split(" ", 1) for total in totals if total[0].isdigit() for part in total.split(", ")]
    passed, failed, skipped = (
        sum(int(number) for number, word in words if word in kind) for kind in (_PASSED, _FAILED, _SKIPPED)
    )
    return ResultCounts(passed, failed, skipped)


def _summary_lines(lines: Sequence[str]) -> Iterator[str]:
    is_inside = False
    for line in lines:
        if _SECTION.fullmatch(line):
            is_inside = True
        elif is_inside and _TOTALS.fullmatch(line):
            is_inside = False
        elif is_inside and line.startswith(("FAILED ", "ERROR ", "SUBFAILED")):
            yield line


def _name(line: str) -> str | None:
    """Return the test's name, or None for a file that could not be collected."""
    if subtest := _SUBTEST.fullmatch(line):
        return f"{_node_id(subtest[2])} {subtest[1]}"
    if line.startswith(("FAILED ", "ERROR ")):
        line = line.partition(" ")[2]
        return _node_id(line) if "::" in line.partition(" - ")[0] else None
    return _verbose_name(line)


def _verbose_name(line: str) -> str | None:
    """Parse `tests/a.py::test_b FAILED [ 50%]`, or with xdist `[gw0] [ 50%] FAILED tests/a.py::test_b`."""
    if "FAILED" not in line and "ERROR" not in line:
        return None
    line = _PROGRESS.sub("", line, count=1)
    if line.endswith("%]"):
        line = line.rpartition("[")[0].rstrip()
    for word in ("FAILED", "ERROR"):
        name = line.removeprefix(f"{word} ").removesuffix(f" {word}")
        if name != line and "::" in name.partition(" ")[0]:
            return name
    return None


def _node_id(text: str) -> str:
    """Remove the message. Parameter values may look like the start of a message."""
    bracket, dash = text.find("["), text.find(" - ")
    if -1 < bracket < dash:
        end = text.find("] - ", bracket)
        return text[: end + 1] if end != -1 else text
    return text if dash == -1 else text[:dash]


_RAN = re.compile(r"Ran (\d+) tests? in [\d.]+s")
_END = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?")
_MAX_DISTANCE = 3  # most lines between the two
_LINE = "=" * 70
_HEAD = re.compile(r"(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([\w.<>]+)\)(?: (.+))?")
_NO_MODULE = "unittest.loader._FailedTest"
_NO_TESTS = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")

_UNITTEST_FAILED = ("failures", "errors", "unexpected successes")
_UNITTEST_SKIPPED = ("skipped", "expected failures")


def read_unittest(lines: Sequence[str]) -> RunnerSummary | None:
    runs = list(_runs(lines))
    if not runs:
        return None
    ran = sum(number for number, _ in runs)
    words = [word.partition("=") for _, detail in runs for word in detail.split(", ")]
    failed, skipped = (
        sum(int(number) for word, _, number in words if word in kind and number.isdecimal())
        for kind in (_UNITTEST_FAILED, _UNITTEST_SKIPPED)
    )
    heads = list(_heads(lines))
    named = [(test, detail) for _, test, detail in heads if test]
    # A module that cannot be imported counts as a test; a failing class setup does not.
    failed_runs = len({test for test, _ in named}) + sum(_NO_MODULE in line for line, _, _ in heads)
    return RunnerSummary(
        runner="unittest",
        counts=ResultCounts(max(0, ran - failed_runs - skipped), failed, skipped),
        names=tuple(f"{test} {detail}".rstrip() for test, detail in named),
        unnamed=max(0, failed - len(named)),
        failure_lines=tuple(line for line, _, _ in heads),
    )


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for at, line in enumerate(lines):
        if ran := _RAN.fullmatch(line):
            ends = (_END.fullmatch(next_line) for next_line in lines[at + 1 : at + 1 + _MAX_DISTANCE])
            if end := next(filter(None, ends), None):
                yield int(ran[1]), end[1] or ""


def _heads(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the line, the test ("" if it is not a test), and the values of a subtest."""
    for before, line in zip(("", *lines), lines, strict=False):
        if (before == _LINE or line.startswith("UNEXPECTED SUCCESS: ")) and (head := _HEAD.fullmatch(line)):
            yield line, _test(head[1], head[2]), head[3] or ""


def _test(method: str, where: str) -> str:
    """Return the full name. Since Python 3.11, `where` already ends with the method."""
    if method in _NO_TESTS or where.startswith(_NO_MODULE):
        return ""
    return where if where.endswith(f".{method}") else f"{where}.{method}"

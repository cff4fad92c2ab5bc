"""unittest and Django's runner: "Ran 3 tests", then OK or FAILED with the counts; several runs are added up."""

import re
from collections.abc import Iterator, Sequence

from agentd.checks.result import TestCounts
from agentd.checks.test_summary import RunnerSummary

_RAN = re.compile(r"Ran (\d+) tests? in [\d.]+s")
_END = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?")
_NEAR = 3  # lines from the one to the other
_LINE = "=" * 70
_HEAD = re.compile(r"(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([\w.<>]+)\)(?: (.+))?")
_NO_MODULE = "unittest.loader._FailedTest"
_NO_TESTS = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")

_FAILED = ("failures", "errors", "unexpected successes")
_SKIPPED = ("skipped", "expected failures")


def read(lines: Sequence[str]) -> RunnerSummary | None:
    runs = list(_runs(lines))
    if not runs:
        return None
    ran = sum(number for number, _ in runs)
    words = [word.partition("=") for _, detail in runs for word in detail.split(", ")]
    failed, skipped = (
        sum(int(number) for word, _, number in words if word in kind and number.isdecimal())
        for kind in (_FAILED, _SKIPPED)
    )
    heads = list(_heads(lines))
    named = [(test, detail) for _, test, detail in heads if test]
    # A module that cannot be imported is run as a test; setting up a class is not.
    ended_badly = len({test for test, _ in named}) + sum(_NO_MODULE in line for line, _, _ in heads)
    return RunnerSummary(
        runner="unittest",
        counts=TestCounts(max(0, ran - ended_badly - skipped), failed, skipped),
        names=tuple(f"{test} {detail}".rstrip() for test, detail in named),
        unnamed=max(0, failed - len(named)),
        said=tuple(line for line, _, _ in heads),
    )


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for at, line in enumerate(lines):
        if ran := _RAN.fullmatch(line):
            ends = (_END.fullmatch(near) for near in lines[at + 1 : at + 1 + _NEAR])
            if end := next(filter(None, ends), None):
                yield int(ran[1]), end[1] or ""


def _heads(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Line, test ("" for what is none) and the values of a subtest."""
    for before, line in zip(("", *lines), lines, strict=False):
        if (before == _LINE or line.startswith("UNEXPECTED SUCCESS: ")) and (head := _HEAD.fullmatch(line)):
            yield line, _test(head[1], head[2]), head[3] or ""


def _test(method: str, where: str) -> str:
    """Since Python 3.11 the method stands at the end of the place too."""
    if method in _NO_TESTS or where.startswith(_NO_MODULE):
        return ""
    return where if where.endswith(f".{method}") else f"{where}.{method}"

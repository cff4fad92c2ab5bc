"""Vitest: "Tests  1 failed | 2 passed (3)", the names after FAIL."""

import re
from collections.abc import Sequence

from agentd.checks.result import TestCounts
from agentd.checks.test_summary import RunnerSummary

_TOTALS = re.compile(r" +Tests  ((?:\d+ \w+ \| )*\d+ \w+|no tests)(?: \(\d+\))?")
_FAIL = re.compile(r" FAIL  (\S.*)")
_NOTHING = re.compile(r"No test files found, exiting with code \d+")


def read(lines: Sequence[str]) -> RunnerSummary | None:
    totals = [match[1] for line in lines if (match := _TOTALS.fullmatch(line))]
    if not totals:
        return RunnerSummary("vitest", TestCounts(0, 0, 0)) if any(map(_NOTHING.fullmatch, lines)) else None
    words = [part.split(" ") for total in totals for part in total.split(" | ")]
    passed, failed, skipped = (
        sum(int(number) for number, word in words if word in kind and number.isdecimal())
        for kind in (("passed",), ("failed",), ("skipped", "todo"))
    )
    said = [(line.strip(), match[1]) for line in lines if (match := _FAIL.fullmatch(line))]
    names = [name for _, name in said if " > " in name]
    crashes = len(said) - len(names)  # a file without a test in it
    return RunnerSummary(
        runner="vitest",
        counts=TestCounts(passed, failed + crashes, skipped),
        names=tuple(names),
        unnamed=max(crashes, failed + crashes - len(names)),
        said=tuple(line for line, _ in said),
    )

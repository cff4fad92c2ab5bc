"""Jest: "Tests: 1 failed, 2 passed, 3 total", the names after a bullet under the file that failed."""

import re
from collections.abc import Iterator, Sequence

from agentd.checks.result import TestCounts
from agentd.checks.test_summary import RunnerSummary

_TOTALS = re.compile(r"Tests: +((?:\d+ \w+, )*\d+ total)")
_FILE = re.compile(r"(FAIL|PASS) (\S.*?)(?: \([\d.]+ m?s\))?")
_BULLET = re.compile(r"  ● (.+)")
_CRASH = "Test suite failed to run"
_REPEATED = "Summary of all failing tests"
_NOTHING = re.compile(r"No tests found, exiting with code \d+")


def read(lines: Sequence[str]) -> RunnerSummary | None:
    totals = [match[1] for line in lines if (match := _TOTALS.fullmatch(line))]
    if not totals:
        return RunnerSummary("jest", TestCounts(0, 0, 0)) if any(map(_NOTHING.fullmatch, lines)) else None
    words = [part.split(" ") for total in totals for part in total.split(", ")]
    passed, failed, skipped = (
        sum(int(number) for number, word in words if word in kind)
        for kind in (("passed",), ("failed",), ("skipped", "todo"))
    )
    if _REPEATED in lines:  # of many files: what went before stands there again
        lines = lines[lines.index(_REPEATED) :]
    failures = list(_failures(lines))
    names = [f"{file} › {title}" for file, title in failures if title != _CRASH]
    crashes = len(failures) - len(names)
    return RunnerSummary(
        runner="jest",
        counts=TestCounts(passed, failed + crashes, skipped),
        names=tuple(names),
        unnamed=max(crashes, failed + crashes - len(names)),
        said=tuple(f"  ● {title}" for _, title in failures),
    )


def _failures(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    file = ""
    for line in lines:
        if head := _FILE.fullmatch(line):
            file = head[2].removeprefix("./") if head[1] == "FAIL" else ""
        elif file and (bullet := _BULLET.fullmatch(line)) and bullet[1] != "Console":
            yield file, bullet[1]

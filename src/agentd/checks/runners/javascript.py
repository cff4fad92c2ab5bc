"""Jest and Vitest. Jest prints "Tests: 1 failed, 2 passed, 3 total", and names after a bullet below the failed file."""

import re
from collections.abc import Iterator, Sequence

from agentd.checks.result import ResultCounts, RunnerSummary

_JEST_TOTALS = re.compile(r"Tests: +((?:\d+ \w+, )*\d+ total)")
_JEST_FILE = re.compile(r"(FAIL|PASS) (\S.*?)(?: \([\d.]+ m?s\))?")
_JEST_BULLET = re.compile(r"  ● (.+)")
_JEST_CRASH = "Test suite failed to run"
_JEST_REPEATED = "Summary of all failing tests"
_NO_JEST_TESTS = re.compile(r"No tests found, exiting with code \d+")


def read_jest(lines: Sequence[str]) -> RunnerSummary | None:
    totals = [match[1] for line in lines if (match := _JEST_TOTALS.fullmatch(line))]
    if not totals:
        return RunnerSummary("jest", ResultCounts(0, 0, 0)) if any(map(_NO_JEST_TESTS.fullmatch, lines)) else None
    words = [part.split(" ") for total in totals for part in total.split(", ")]
    passed, failed, skipped = (
        sum(int(number) for number, word in words if word in kind)
        for kind in (("passed",), ("failed",), ("skipped", "todo"))
    )
    if _JEST_REPEATED in lines:  # with many files, all failures are repeated there
        lines = lines[lines.index(_JEST_REPEATED) :]
    failures = list(_jest_failures(lines))
    names = [f"{file} › {title}" for file, title in failures if title != _JEST_CRASH]
    crashes = len(failures) - len(names)
    return RunnerSummary(
        runner="jest",
        counts=ResultCounts(passed, failed + crashes, skipped),
        names=tuple(names),
        unnamed=max(crashes, failed + crashes - len(names)),
        failure_lines=tuple(f"  ● {title}" for _, title in failures),
    )


def _jest_failures(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    file = ""
    for line in lines:
        if head := _JEST_FILE.fullmatch(line):
            file = head[2].removeprefix("./") if head[1] == "FAIL" else ""
        elif file and (bullet := _JEST_BULLET.fullmatch(line)) and bullet[1] != "Console":
            yield file, bullet[1]


_VITEST_TOTALS = re.compile(r" +Tests  ((?:\d+ \w+ \| )*\d+ \w+|no tests)(?: \(\d+\))?")
_VITEST_FAIL = re.compile(r" FAIL  (\S.*)")
_NO_VITEST_FILES = re.compile(r"No test files found, exiting with code \d+")


def read_vitest(lines: Sequence[str]) -> RunnerSummary | None:
    totals = [match[1] for line in lines if (match := _VITEST_TOTALS.fullmatch(line))]
    if not totals:
        return RunnerSummary("vitest", ResultCounts(0, 0, 0)) if any(map(_NO_VITEST_FILES.fullmatch, lines)) else None
    words = [part.split(" ") for total in totals for part in total.split(" | ")]
    passed, failed, skipped = (
        sum(int(number) for number, word in words if word in kind and number.isdecimal())
        for kind in (("passed",), ("failed",), ("skipped", "todo"))
    )
    failures = [(line.strip(), match[1]) for line in lines if (match := _VITEST_FAIL.fullmatch(line))]
    names = [name for _, name in failures if " > " in name]
    crashes = len(failures) - len(names)  # files without a test
    return RunnerSummary(
        runner="vitest",
        counts=ResultCounts(passed, failed + crashes, skipped),
        names=tuple(names),
        unnamed=max(crashes, failed + crashes - len(names)),
        failure_lines=tuple(line for line, _ in failures),
    )

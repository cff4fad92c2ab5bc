"""node's test runner, Jest and Vitest.

Jest prints "Tests: 1 failed, 2 passed, 3 total", and names after a bullet below the failed file.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentd.checks.result import ResultCounts, RunnerSummary

_OPENED = re.compile(r"( *)# Subtest: (.*)")
_POINT = re.compile(r"( *)(not ok|ok) \d+(?: - (.*))?")
_DETAIL = re.compile(r" *(failureType|type|location): '(.*)'")
_PLACE = re.compile(r"(.+?)(?::\d+)+")
_BY_SUBTESTS = "subtestsFailed"


class _TapFailure(NamedTuple):
    file: str
    path: tuple[str, ...]
    line: str
    is_parent: bool  # it failed only because of its subtests


def _tap_failures(lines: Sequence[str]) -> Iterator[_TapFailure]:
    opened: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if start := _OPENED.fullmatch(line):
            opened[len(start[1]) // 4 :] = [start[2]]
        elif point := _POINT.fullmatch(line):
            depth = len(point[1]) // 4
            details, at = _details(lines, at, point[1])
            name, _, directive = (point[3] or "").partition(" # ")
            if point[2] == "not ok" and not directive.startswith(("TODO", "SKIP")):
                place = _PLACE.fullmatch(details.get("location", ""))
                is_parent = details.get("failureType") == _BY_SUBTESTS
                yield _TapFailure(place[1] if place else "", (*opened[:depth], name), line.strip(), is_parent)


def _details(lines: Sequence[str], at: int, indent: str) -> tuple[dict[str, str], int]:
    """Return the details in the YAML block, and the line after it. Other text in the block is indented further."""
    if at >= len(lines) or lines[at] != f"{indent}  ---":
        return {}, at
    details: dict[str, str] = {}
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if line == f"{indent}  ...":
            return details, number + 1
        is_key = line.startswith(f"{indent}  ") and not line.startswith(f"{indent}   ")
        if is_key and (detail := _DETAIL.fullmatch(line)):
            details[detail[1]] = detail[2]
    return details, len(lines)


_COUNT = re.compile(r"(?:ℹ|#) (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)")
_TEST = re.compile(r"( *)([✔✖⚠﹣▶]) (.*)")
_TIME = re.compile(r" \([\d.]+ms\)")
_SPEC_PLACE = re.compile(r"test at (.+?)(?::\d+)+")
_LIST = "✖ failing tests:"


class _NodeFailure(NamedTuple):
    file: str
    path: tuple[str, ...]
    line: str

    @property
    def is_file(self) -> bool:
        """Return whether this is a file that could not be run, rather than a test."""
        return self.path[-1] in (self.file, "") or self.path[-1].endswith(f"/{self.file}")


def read_node(lines: Sequence[str]) -> RunnerSummary | None:
    totals = list(_totals(lines))
    if not totals:
        return None
    if any(line == "TAP version 13" for line in lines):
        reported = list(_tap_failures(lines))
        failures = [_NodeFailure(each.file, each.path, each.line) for each in reported if not each.is_parent]
        parents = sum(each.is_parent for each in reported)
    else:
        failures, parents = _spec_failures(lines)
    passed, failed, skipped = (
        sum(total.get(word, 0) for total in totals for word in words)
        for words in (("pass",), ("fail", "cancelled"), ("skipped", "todo"))
    )
    # node also counts tests that fail only because of their subtests.
    failed = len(failures) if len(failures) <= failed <= len(failures) + parents else failed
    tests = [failure for failure in failures if not failure.is_file]
    return RunnerSummary(
        runner="node",
        counts=ResultCounts(passed, failed, skipped),
        names=tuple(" > ".join((test.file, *test.path) if test.file else test.path) for test in tests),
        unnamed=max(0, failed - len(tests)),
        failure_lines=tuple(failure.line for failure in failures),
    )


def _totals(lines: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yield the counts at the end of each run, which are on consecutive lines. Tests may print similar lines."""
    total: dict[str, int] = {}
    for line in (*lines, ""):
        if count := _COUNT.fullmatch(line):
            total[count[1]] = int(count[2])
        elif total:
            if {"tests", "pass", "fail"} <= total.keys():
                yield total
            total = {}


def _spec_failures(lines: Sequence[str]) -> tuple[list[_NodeFailure], int]:
    """Return the failures, and how many groups or tests failed because of their subtests."""
    start = lines.index(_LIST) if _LIST in lines else len(lines)
    listed = list(_listed(lines[start + 1 :]))
    shown, parents = _shown(lines[:start])
    if [path[-1] for path in shown] != [failure.path[-1] for failure in listed]:
        return listed, parents
    return [failure._replace(path=path) for failure, path in zip(listed, shown, strict=True)], parents


def _listed(lines: Sequence[str]) -> Iterator[_NodeFailure]:
    """Parse the list at the end, which has the file of each test but not its groups."""
    file = ""
    for line in lines:
        if place := _SPEC_PLACE.fullmatch(line):
            file = place[1]
        elif line.startswith("✖ ") and (name := _failed_name(line[2:])) is not None:
            yield _NodeFailure(file, (name,), line)


def _shown(lines: Sequence[str]) -> tuple[list[tuple[str, ...]], int]:
    """Parse the progress output, which has the groups of each test but not its file."""
    failed: list[tuple[str, ...]] = []
    parents: set[int] = set()
    opened: list[tuple[str, int]] = []  # the groups that contain the line, with their line numbers
    for number, line in enumerate(lines):
        test = _TEST.fullmatch(line)
        if not test:
            continue
        depth, mark, name = len(test[1]) // 2, test[2], test[3]
        at_end = _TIME.search(name)
        if mark == "▶" and not at_end:
            opened[depth:] = [(name, number)]
            continue
        if len(opened) > depth and at_end and opened[depth][0] == name[: at_end.start()]:
            del opened[depth:]
        elif mark == "✖" and (leaf := _failed_name(name)) is not None:
            failed.append((*(group for group, _ in opened[:depth]), leaf))
            parents.update(group for _, group in opened[:depth])
    return failed, len(parents)


def _failed_name(text: str) -> str | None:
    """Return the name without its duration; None for a to-do, or if this is not a test."""
    at_end = _TIME.search(text)
    return text[: at_end.start()] if at_end and "# TODO" not in text[at_end.end() :] else None


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

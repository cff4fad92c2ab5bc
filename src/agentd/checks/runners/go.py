"""go test: plain (names of failures, no counts), with -v, and with -json. Subtests count instead of their parent."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agentd.checks.result import ResultCounts, RunnerSummary

_TEST = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)")
_PACKAGE = re.compile(r"(ok  |FAIL|\?   )\t(\S+)[\t ](\(cached\)|[\d.]+s|\[.*\]).*")
_MAX_DEPTH = 20
_NO_FILES = "[no test files]"
_ENDS = {"PASS": "pass", "FAIL": "fail", "SKIP": "skip"}


class _GoTest(NamedTuple):
    package: str
    name: str
    end: str  # pass, fail or skip
    line: str


class _GoReader:
    def __init__(self) -> None:
        self.tests: list[_GoTest] = []
        self.pending: dict[str, list[_GoTest]] = {}  # by package; in plain text, its name comes after its tests
        self.crashed: list[str] = []  # the line of each package that failed for a reason other than a test
        self.packages = self.without_tests = 0
        self.has_counts = self.has_panicked = False

    def take(self, line: str) -> None:
        if line.startswith('{"'):
            self._event(line)
        elif line.startswith("=== RUN "):
            self.has_counts = True
        elif line.startswith("panic: "):
            self.has_panicked = True
        elif test := _TEST.fullmatch(line):
            self._add_pending("", test[2], _ENDS[test[1]], line.strip())
        elif package := _PACKAGE.fullmatch(line):
            tests = [test._replace(package=package[2]) for test in self.pending.pop("", ())]
            self._package(tests, package[1] == "FAIL", package[3] == _NO_FILES, line)

    def _add_pending(self, package: str, name: str, end: str, line: str) -> None:
        self.pending.setdefault(package, []).append(_GoTest(package, name, end, line))

    def _package(self, tests: list[_GoTest], has_failed: bool, is_without_tests: bool, line: str) -> None:
        self.packages += 1
        self.without_tests += is_without_tests
        self.tests += tests
        if has_failed and (self.has_panicked or not any(test.end == "fail" for test in tests)):
            self.crashed.append(line)
        self.has_panicked = False

    def _event(self, line: str) -> None:
        if '"Action":"output"' in line:  # most events are like this, and long
            self.has_panicked |= '"Output":"panic: ' in line
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        action, package, test = (event.get(key) for key in ("Action", "Package", "Test"))
        if action not in ("pass", "fail", "skip") or not isinstance(package, str):
            return
        self.has_counts = True
        if isinstance(test, str):
            self._add_pending(package, test, action, line)
        else:
            self._package(self.pending.pop(package, []), action == "fail", action == "skip", line)


def read_go(lines: Sequence[str]) -> RunnerSummary | None:
    reader = _GoReader()
    for line in lines:
        reader.take(line)
    if not reader.packages:
        return None
    tests = _leaves(reader.tests)
    failed = [test for test in tests if test.end == "fail"]
    passed, skipped = (sum(test.end == end for test in tests) for end in ("pass", "skip"))
    unnamed = len(reader.crashed)
    is_counted = reader.has_counts or reader.without_tests == reader.packages
    return RunnerSummary(
        runner="go",
        counts=ResultCounts(passed, len(failed) + unnamed, skipped) if is_counted else None,
        names=tuple(f"{test.package}.{test.name}" for test in failed),
        unnamed=unnamed,
        failure_lines=(*(test.line for test in failed), *reader.crashed),
    )


def _leaves(tests: Iterable[_GoTest]) -> list[_GoTest]:
    """Return the tests that have no subtests."""
    tests = list(tests)
    parents = {(test.package, parent) for test in tests for parent in _parents(test.name)}
    return [test for test in tests if (test.package, test.name) not in parents]


def _parents(name: str) -> Iterator[str]:
    """Yield all possible parents of a test. A test's own name may contain a slash too."""
    at = -1
    for _ in range(_MAX_DEPTH):
        at = name.find("/", at + 1)
        if at == -1:
            return
        yield name[:at]

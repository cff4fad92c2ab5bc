"""node --test: the counts at the end, the names from the list of failing tests (spec) or from the TAP lines."""

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
    is_parent: bool  # it failed by its subtests alone


def _tap_failures(lines: Sequence[str]) -> list[_TapFailure]:
    return [one for one in _failed(lines) if not one.is_parent]


def _failed_parents(lines: Sequence[str]) -> int:
    return sum(one.is_parent for one in _failed(lines))


def _failed(lines: Sequence[str]) -> Iterator[_TapFailure]:
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
    """What stands in the block, and where it ends: at the latest with the text. Texts of others are indented deeper."""
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
        """The file itself, which could not be run."""
        return self.path[-1] in (self.file, "") or self.path[-1].endswith(f"/{self.file}")


def read_node(lines: Sequence[str]) -> RunnerSummary | None:
    totals = list(_totals(lines))
    if not totals:
        return None
    if any(line == "TAP version 13" for line in lines):
        failures = [_NodeFailure(one.file, one.path, one.line) for one in _tap_failures(lines)]
        parents = _failed_parents(lines)
    else:
        failures, parents = _of_spec(lines)
    passed, failed, skipped = (
        sum(total.get(word, 0) for total in totals for word in words)
        for words in (("pass",), ("fail", "cancelled"), ("skipped", "todo"))
    )
    # A test that fails by its subtests alone is counted by node, and is none of the failures.
    failed = len(failures) if len(failures) <= failed <= len(failures) + parents else failed
    tests = [one for one in failures if not one.is_file]
    return RunnerSummary(
        runner="node",
        counts=ResultCounts(passed, failed, skipped),
        names=tuple(" > ".join((one.file, *one.path) if one.file else one.path) for one in tests),
        unnamed=max(0, failed - len(tests)),
        said=tuple(one.line for one in failures),
    )


def _totals(lines: Sequence[str]) -> Iterator[dict[str, int]]:
    """Each run ends with its counts, one under the other. What a test prints may look like one of them."""
    total: dict[str, int] = {}
    for line in (*lines, ""):
        if count := _COUNT.fullmatch(line):
            total[count[1]] = int(count[2])
        elif total:
            if {"tests", "pass", "fail"} <= total.keys():
                yield total
            total = {}


def _of_spec(lines: Sequence[str]) -> tuple[list[_NodeFailure], int]:
    """Also how many groups or tests failed by what is in them: which of the two they are is not said."""
    start = lines.index(_LIST) if _LIST in lines else len(lines)
    listed = list(_listed(lines[start + 1 :]))
    shown, parents = _shown(lines[:start])
    if [path[-1] for path in shown] != [failure.path[-1] for failure in listed]:
        return listed, parents
    return [failure._replace(path=path) for failure, path in zip(listed, shown, strict=True)], parents


def _listed(lines: Sequence[str]) -> Iterator[_NodeFailure]:
    """The list knows the file of a test, not its groups."""
    file = ""
    for line in lines:
        if place := _SPEC_PLACE.fullmatch(line):
            file = place[1]
        elif line.startswith("✖ ") and (name := _failed_name(line[2:])) is not None:
            yield _NodeFailure(file, (name,), line)


def _shown(lines: Sequence[str]) -> tuple[list[tuple[str, ...]], int]:
    """What is shown while they run knows the groups, not the file."""
    failed: list[tuple[str, ...]] = []
    parents: set[int] = set()
    opened: list[tuple[str, int]] = []  # the groups that the line is in, each with its own number
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
            del opened[depth:]  # its end
        elif mark == "✖" and (leaf := _failed_name(name)) is not None:
            failed.append((*(group for group, _ in opened[:depth]), leaf))
            parents.update(group for _, group in opened[:depth])
    return failed, len(parents)


def _failed_name(text: str) -> str | None:
    """Without its time; None for a test that is still to be done, or for no test at all."""
    at_end = _TIME.search(text)
    return text[: at_end.start()] if at_end and "# TODO" not in text[at_end.end() :] else None

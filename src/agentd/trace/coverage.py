"""Which tests of a text say what they cover (pure)."""

import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass

from agentd.trace import looks, marks
from agentd.trace.cases import Case, Scan
from agentd.trace.marks import Known, Mark
from agentd.trace.matrix import Note, Test
from agentd.trace.scanning import scan

# A comment, a decorator or nothing: what may stand between a mark and the test below it.
_BETWEEN = re.compile(r"\s*(?:#|//|/\*|\*|@|\[|--|;|%|$)")


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whom a mark belongs to, and the tests in it."""

    line: int
    name: str
    cases: tuple[Case, ...]


def tests_of(path: str, text: str, known: Known, removed: Collection[str]) -> tuple[list[Test], list[Note]]:
    found = marks.find(text, known) if "covers" in text.lower() else []
    if not found or not looks.is_test(path, text):
        return [], []
    scanned = scan(path, text)
    lines = text.split("\n")
    covered: dict[tuple[int, str], list[str]] = {}
    notes: list[Note] = []
    for mark in found:
        if problem := _problem(mark, removed):
            notes.append(Note(path, mark.line, problem))
            continue
        owner = _owner(mark, scanned, lines)
        if scanned is not None and not any(case.skip is None for case in owner.cases):
            why = "is skipped" if owner.cases else "stands beside no test"
            what = f"{owner.name or 'the mark'} {why}, so nothing here covers {mark.requirement}"
            notes.append(Note(path, mark.line, what))
            continue
        covered.setdefault((owner.line, owner.name), []).append(mark.requirement)
    tests = [Test(path, line, name, tuple(dict.fromkeys(some))) for (line, name), some in covered.items()]
    return tests, notes


def _problem(mark: Mark, removed: Collection[str]) -> str | None:
    if mark.requirement in removed:
        return f"{mark.requirement} is removed by this change"
    return None if mark.known else f"{mark.requirement} is in no spec"


def _owner(mark: Mark, scanned: Scan | None, lines: list[str]) -> _Owner:
    """The test around the mark or right below it, else the class or block around it, else the whole file."""
    if scanned is None:
        return _Owner(mark.line, "", ())
    cases = sorted(scanned.cases, key=lambda case: case.first)
    at = bisect_right([case.first for case in cases], mark.line)
    if at and mark.line <= cases[at - 1].last:
        return _Owner(cases[at - 1].line, cases[at - 1].leaf, (cases[at - 1],))
    if at < len(cases) and all(_BETWEEN.match(line) for line in lines[mark.line - 1 : cases[at].first - 1]):
        return _Owner(cases[at].line, cases[at].leaf, (cases[at],))
    around = [one for one in scanned.groups if one.first <= mark.line <= one.last]
    if around:
        group = max(around, key=lambda one: one.first)
        inside = tuple(case for case in cases if group.first <= case.line <= group.last)
        return _Owner(group.first, group.name.rpartition(" > ")[2], inside)
    return _Owner(mark.line, "", tuple(cases))

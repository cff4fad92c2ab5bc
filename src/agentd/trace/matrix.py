"""The trace matrix of a change: the tasks, files and tests of each requirement, and what is missing."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from agentd.documents import Evidence, Finding
from agentd.domain import FindingState, Severity
from agentd.trace import test_cases
from agentd.trace.test_cases import ScannedTests, TestCase
from agentd.trace.text_tests import scan_tests
from agentd.trace.weakened_tests import Weakening


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One requirement. `files` are its tasks' changed files; `tests` name it (`tests/a.py:12 test_x`)."""

    requirement: str  # auth-flow:R1
    title: str
    scenarios: tuple[str, ...]
    tasks: tuple[str, ...]
    files: tuple[str, ...]
    tests: tuple[str, ...]
    line: int = 0  # of its heading in specs/<spec>.md
    waived: bool = False  # all its tasks are waived

    def gaps(self, implemented: bool) -> tuple[str, ...]:
        """Return what is missing. Files and tests count only once there is code, and not if all tasks are waived."""
        is_due = implemented and not self.waived
        lacks = {"task": not self.tasks, "file": is_due and not self.files, "test": is_due and not self.tests}
        return tuple(name for name, is_lacking in lacks.items() if is_lacking)


@dataclass(frozen=True, slots=True)
class CoveringTest:
    """A test that says what it covers. Without a name, the mark applies to the whole file."""

    path: str
    line: int
    name: str
    covers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class TraceNote:
    """A note about a location, such as a mark that names an unknown requirement."""

    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class TraceMatrix:
    rows: tuple[TraceRow, ...]
    files_without_task: tuple[str, ...] = ()  # changed files that no task names
    tests: tuple[CoveringTest, ...] = ()
    notes: tuple[TraceNote, ...] = ()
    implemented: bool = False  # False: there are no files or tests yet


def trace_findings(
    matrix: TraceMatrix, weakenings: Iterable[Weakening], severities: Mapping[str, Severity | None]
) -> tuple[Finding, ...]:
    """Return the gaps of a trace as findings; ids are assigned later. A rule whose severity is None is off."""
    found = [gap for row in matrix.rows for gap in _row_gaps(row, matrix.implemented)]
    found += _file_gaps(matrix)
    for one in weakenings:
        evidence = Evidence(file=one.path, line=one.line or None, quote=one.quote or None)
        title, what = f"A test proves less than before: {one.what}", f"{one.path}: {one.what}."
        hint = "Make the code pass the test as it was; if the test was wrong, say why."
        found.append(_gap("test-weakened", title, what, hint, evidence))
    graded = ((gap, severities[gap.by.removeprefix("rule:")]) for gap in found)
    return tuple(replace(gap, severity=severity) for gap, severity in graded if severity)


def _row_gaps(row: TraceRow, implemented: bool) -> Iterator[Finding]:
    """Yield the gaps of a requirement. Before implementation, only a task can be missing; waived tasks leave no gap."""
    id_, name = row.requirement, f"{row.requirement}: {row.title[:60]}"
    evidence = Evidence(file=f"specs/{id_.partition(':')[0]}.md", line=row.line or None, quote=row.title or None)
    gaps = row.gaps(implemented)
    if "task" in gaps:
        what = f"No task in tasks.md has {id_} as its spec_ref."
        hint = f"Add a task with `spec_ref: {id_}`."
        yield _gap("requirement-without-task", f"No task works on {name}", what, hint, evidence, id_)
    if "file" in gaps and row.tasks:
        what = f"None of the files of task {', '.join(row.tasks)} has changed since the implementation began."
        hint = "Do what the task says in the file it names."
        yield _gap("requirement-without-file", f"No file changed for {name}", what, hint, evidence, id_)
    if "test" in gaps:
        what = f"No test that runs says `covers: {id_}` in its name, docstring or a comment."
        hint = f"Write a test for it that says `covers: {id_}`, or add those words to an existing test."
        yield _gap("requirement-without-test", f"No test covers {name}", what, hint, evidence, id_)


def _file_gaps(matrix: TraceMatrix) -> Iterator[Finding]:
    """Yield changed files without a task. A test file that covers a requirement needs none."""
    own = {row.requirement for row in matrix.rows}
    covering = {test.path for test in matrix.tests if own.intersection(test.covers)}
    for path in matrix.files_without_task:
        if path not in covering:
            hint = "Revert the change, or say why it is needed."
            what = f"{path} has changed since the implementation began, and no task in tasks.md names it."
            yield _gap("file-without-task", f"No task names {path}", what, hint, Evidence(file=path))


def _gap(
    rule: str, title: str, what: str, suggestion: str, evidence: Evidence, requirement: str | None = None
) -> Finding:
    return Finding(
        id="",
        severity=Severity.LOW,  # placeholder until graded
        title=title,
        what=what,
        suggestion=suggestion,
        requirement=requirement,
        where=f"{evidence.file}:{evidence.line}" if evidence.line else evidence.file,
        evidence=evidence,
        verified=True,
        by=f"rule:{rule}",
        state=FindingState.OPEN,
    )


_SAID = re.compile(r"(?<![A-Za-z0-9])covers[ \t:=(\[\"'`]{1,8}(?=[a-z0-9])", re.IGNORECASE)
_FULL = re.compile(r"([a-z0-9][a-z0-9-]{0,63}):([a-z](?=[a-z.-]{0,32}[0-9])[a-z0-9.-]{0,63})", re.IGNORECASE)
_LONE = re.compile(r"[a-z](?=[a-z.-]{0,32}[0-9])[a-z0-9.-]{0,63}(?![\w:])", re.IGNORECASE)
_NEXT = re.compile(r"[\"'`]?[ \t]{0,8}(?:,|;|&|and\b)[ \t]{0,8}(?:and\b[ \t]{0,8})?[\"'`]?", re.IGNORECASE)
_NAMED = re.compile(r"(?<![A-Za-z0-9])(?i:covers)_(\w{2,200})|(?<=[a-z0-9_])Covers(?=[A-Z_])_?(\w{2,200})")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ID = re.compile(r"_?((?:[a-z]{1,16}_)?r[0-9]{1,6})(?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class CoverageMark:
    """A `covers` mark. `requirement` is spelled as in the specs if known, otherwise as written."""

    requirement: str
    line: int
    known: bool


@dataclass(frozen=True)
class KnownRequirements:
    """The requirements that exist, such as `auth-flow:R1`."""

    ids: tuple[str, ...]

    def get(self, word: str) -> str | None:
        return self._folded.get(word.casefold())

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {one.casefold(): one for one in self.ids}

    @cached_property
    def in_names(self) -> dict[str, str]:
        """Requirements by their spelling in a test name: `auth_flow_r1`."""
        return {_in_name(one): one for one in self.ids}

    @cached_property
    def specs_in_names(self) -> dict[str, str]:
        return {_in_name(one.partition(":")[0]): one.partition(":")[0] for one in self.ids}


def find_marks(text: str, known: KnownRequirements) -> list[CoverageMark]:
    """Return the marks in text order, each requirement at most once per line."""
    found: dict[tuple[int, str], CoverageMark] = {}
    line, last = 1, 0
    for at, word in sorted([*_marks_in_text(text), *_marks_in_names(text, known)]):
        line += text.count("\n", last, at)
        last = at
        real = known.get(word)
        found.setdefault((line, real or word), CoverageMark(real or word, line, real is not None))
    return list(found.values())


def _marks_in_text(text: str) -> Iterator[tuple[int, str]]:
    """Yield the marks in comments and strings. A bare `R2` belongs to the spec named before it."""
    for said in _SAID.finditer(text):
        at, spec = said.end(), ""
        while True:
            match = _FULL.match(text, at) or (_LONE.match(text, at) if spec else None)
            if match is None:
                break
            full = match.re is _FULL
            spec = match[1] if full else spec
            yield said.start(), f"{spec}:{(match[2] if full else match[0]).rstrip('.-')}"
            following = _NEXT.match(text, match.end())
            if following is None:
                break
            at = following.end()


def _marks_in_names(text: str, known: KnownRequirements) -> Iterator[tuple[int, str]]:
    for match in _NAMED.finditer(text):
        rest = _in_name(_HUMP.sub("_", match[1] or match[2]))
        while rest:
            word, rest = _first_of(rest, known)
            if not word:
                break
            yield match.start(), word
            rest = rest.lstrip("_").removeprefix("and_").removeprefix("covers_")


def _first_of(name: str, known: KnownRequirements) -> tuple[str, str]:
    """Return the requirement that a name starts with, and the rest; both empty if the spec is unknown."""
    pieces = name.split("_")
    for end in range(len(pieces), 0, -1):
        head = "_".join(pieces[:end])
        if head in known.in_names:
            return known.in_names[head], "_".join(pieces[end:])
        if head in known.specs_in_names and (id_ := _ID.match(name, len(head))):
            return f"{known.specs_in_names[head]}:{id_[1].upper().replace('_', '-')}", name[id_.end() :]
    return "", ""


def _in_name(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", word.casefold())


def known_requirements(requirements: Iterable[str]) -> KnownRequirements:
    return KnownRequirements(tuple(dict.fromkeys(requirements)))


# What may be between a mark and the test below it: a comment, a decorator or a blank line.
_BETWEEN = re.compile(r"\s*(?:#|//|/\*|\*|@|\[|--|;|%|$)")


@dataclass(frozen=True, slots=True)
class _MarkOwner:
    """What a mark applies to, and the tests inside it."""

    line: int
    name: str
    cases: tuple[TestCase, ...]


def covering_tests(
    path: str, text: str, known: KnownRequirements, removed: Collection[str]
) -> tuple[list[CoveringTest], list[TraceNote]]:
    found = find_marks(text, known) if "covers" in text.lower() else []
    if not found or not test_cases.is_test(path, text):
        return [], []
    scanned = scan_tests(path, text)
    lines = text.split("\n")
    covered: dict[tuple[int, str], list[str]] = {}
    notes: list[TraceNote] = []
    for mark in found:
        if problem := _problem(mark, removed):
            notes.append(TraceNote(path, mark.line, problem))
            continue
        owner = _owner(mark, scanned, lines)
        if scanned is not None and not any(case.skip is None for case in owner.cases):
            why = "is skipped" if owner.cases else "is not next to a test"
            what = f"{owner.name or 'the mark'} {why}, so nothing here covers {mark.requirement}"
            notes.append(TraceNote(path, mark.line, what))
            continue
        covered.setdefault((owner.line, owner.name), []).append(mark.requirement)
    tests = [CoveringTest(path, line, name, tuple(dict.fromkeys(some))) for (line, name), some in covered.items()]
    return tests, notes


def _problem(mark: CoverageMark, removed: Collection[str]) -> str | None:
    if mark.requirement in removed:
        return f"{mark.requirement} is removed by this change"
    return None if mark.known else f"{mark.requirement} is in no spec"


def _owner(mark: CoverageMark, scanned: ScannedTests | None, lines: list[str]) -> _MarkOwner:
    """Return the test around or right below the mark; otherwise the enclosing class or block, or the whole file."""
    if scanned is None:
        return _MarkOwner(mark.line, "", ())
    cases = sorted(scanned.cases, key=lambda case: case.first)
    at = bisect_right([case.first for case in cases], mark.line)
    if at and mark.line <= cases[at - 1].last:
        return _MarkOwner(cases[at - 1].line, cases[at - 1].leaf, (cases[at - 1],))
    if at < len(cases) and all(_BETWEEN.match(line) for line in lines[mark.line - 1 : cases[at].first - 1]):
        return _MarkOwner(cases[at].line, cases[at].leaf, (cases[at],))
    around = [one for one in scanned.groups if one.first <= mark.line <= one.last]
    if around:
        group = max(around, key=lambda one: one.first)
        inside = tuple(case for case in cases if group.first <= case.line <= group.last)
        return _MarkOwner(group.first, group.name.rpartition(" > ")[2], inside)
    return _MarkOwner(mark.line, "", tuple(cases))

"""The matrix of a change: which task, file and test carries each requirement."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from agentd.documents import Evidence, Finding
from agentd.domain import FindingState, Severity
from agentd.trace.weakened_tests import Weakening


@dataclass(frozen=True, slots=True)
class TraceRow:
    """`files` are those of its tasks that changed, `tests` those that say they cover it: `tests/a.py:12 test_x`."""

    requirement: str  # auth-flow:R1
    title: str
    scenarios: tuple[str, ...]
    tasks: tuple[str, ...]
    files: tuple[str, ...]
    tests: tuple[str, ...]
    line: int = 0  # of its heading in specs/<spec>.md
    waived: bool = False  # every one of its tasks is

    def gaps(self, implemented: bool) -> tuple[str, ...]:
        """What it lacks; files and tests are not due before there is code, nor where all is waived."""
        is_due = implemented and not self.waived
        lacks = {"task": not self.tasks, "file": is_due and not self.files, "test": is_due and not self.tests}
        return tuple(name for name, is_lacking in lacks.items() if is_lacking)


@dataclass(frozen=True, slots=True)
class CoveringTest:
    """A test that says what it covers. Without a name the mark is for the whole file."""

    path: str
    line: int
    name: str
    covers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class TraceNote:
    """What a reader of the matrix should know about a place, such as a mark of a requirement that is not there."""

    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class TraceMatrix:
    rows: tuple[TraceRow, ...]
    files_without_task: tuple[str, ...] = ()  # changed files that no task names
    tests: tuple[CoveringTest, ...] = ()
    notes: tuple[TraceNote, ...] = ()
    implemented: bool = False  # before that there are no files and no tests


@dataclass(frozen=True, slots=True)
class _TraceGap:
    rule: str
    title: str
    what: str
    suggestion: str
    evidence: Evidence
    requirement: str | None = None


def trace_findings(
    matrix: TraceMatrix, weakenings: Iterable[Weakening], severities: Mapping[str, Severity | None], ids: Iterator[str]
) -> tuple[Finding, ...]:
    """Each takes the next of `ids`; a rule without a severity is off."""
    gaps = [gap for row in matrix.rows for gap in _row_gaps(row, matrix.implemented)]
    gaps += _file_gaps(matrix)
    gaps += [_weakened(one) for one in weakenings]
    return tuple(_finding(gap, severity, next(ids)) for gap in gaps if (severity := severities[gap.rule]))


def _row_gaps(row: TraceRow, implemented: bool) -> Iterator[_TraceGap]:
    """Before implementation starts only a task can be missing; a requirement whose tasks are waived has no gap."""
    name = f"{row.requirement}: {row.title[:60]}"
    file = f"specs/{row.requirement.partition(':')[0]}.md"
    evidence = Evidence(file=file, line=row.line or None, quote=row.title or None)
    if not row.tasks:
        what = f"No task in tasks.md has {row.requirement} as its spec_ref."
        hint = f"Add a task with `spec_ref: {row.requirement}`."
        yield _TraceGap("requirement-without-task", f"No task works on {name}", what, hint, evidence, row.requirement)
    if not implemented or row.waived:
        return
    if row.tasks and not row.files:
        what = f"None of the files of task {', '.join(row.tasks)} has changed since the implementation began."
        hint = "Do what the task says in the file it names."
        yield _TraceGap(
            "requirement-without-file", f"No file changed for {name}", what, hint, evidence, row.requirement
        )
    if not row.tests:
        what = f"No test that runs says `covers: {row.requirement}` in its name, docstring or a comment."
        hint = (
            f"Write a test for it that says `covers: {row.requirement}`, or add those words to the test that there is."
        )
        yield _TraceGap("requirement-without-test", f"No test covers {name}", what, hint, evidence, row.requirement)


def _file_gaps(matrix: TraceMatrix) -> Iterator[_TraceGap]:
    """A test that covers a requirement is named by that."""
    own = {row.requirement for row in matrix.rows}
    covering = {test.path for test in matrix.tests if own.intersection(test.covers)}
    for path in matrix.files_without_task:
        if path not in covering:
            hint = "Take the change back, or say why it is needed."
            what = f"{path} has changed since the implementation began, and no task in tasks.md names it."
            yield _TraceGap("file-without-task", f"No task names {path}", what, hint, Evidence(file=path))


def _weakened(one: Weakening) -> _TraceGap:
    what = f"{one.path}: {one.what}."
    hint = "Make the code pass the test as it was; if the test was wrong, say why."
    evidence = Evidence(file=one.path, line=one.line or None, quote=one.quote or None)
    return _TraceGap("test-weakened", f"A test proves less than before: {one.what}", what, hint, evidence)


def _finding(gap: _TraceGap, severity: Severity, id_: str) -> Finding:
    place = gap.evidence
    return Finding(
        id=id_,
        severity=severity,
        title=gap.title,
        what=gap.what,
        suggestion=gap.suggestion,
        requirement=gap.requirement,
        where=f"{place.file}:{place.line}" if place.line else place.file,
        evidence=place,
        verified=True,
        by=f"rule:{gap.rule}",
        state=FindingState.OPEN,
    )

"""The matrix of a change: which task, file and test carries each requirement."""

from dataclasses import dataclass


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
    unnamed: tuple[str, ...] = ()  # changed files that no task names
    tests: tuple[CoveringTest, ...] = ()
    notes: tuple[TraceNote, ...] = ()
    implemented: bool = False  # before that there are no files and no tests

"""The trace matrix of a change with its gaps marked, and the tests that prove less than before."""

import re
from dataclasses import dataclass

from agentd.change import Change
from agentd.documents import REQUIREMENT_PATTERN
from agentd.domain import AgentdError
from agentd.trace import TraceMatrix, build_matrix, find_weakenings
from agentd.web import code_view


@dataclass(frozen=True, slots=True)
class TraceRowView:
    """`gaps`: what is missing, of task, file and test. `document` and `line` are where the requirement stands."""

    requirement: str
    title: str
    document: str
    line: int
    scenarios: tuple[str, ...]
    tasks: tuple[str, ...]
    files: tuple[str, ...]
    tests: tuple[str, ...]
    is_waived: bool
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TracePlace:
    """`line` 0: the place is gone, or the whole file is meant."""

    path: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class TraceView:
    """Without code there are no files, no tests and no gaps of them. `problem`: why git could not be asked."""

    rows: tuple[TraceRowView, ...]
    is_implemented: bool
    unnamed: tuple[str, ...]
    """Changed files that no task names."""
    weakened: tuple[TracePlace, ...]
    notes: tuple[TracePlace, ...]
    problem: str

    @property
    def gaps(self) -> int:
        return sum(len(row.gaps) for row in self.rows)


def read_trace(change: Change, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> TraceView:
    """Where the code cannot be seen, the plan alone."""
    try:
        trees = code_view.code_trees(change)
        matrix = build_matrix(change, trees.base, trees.tree, pattern)
        weaker = find_weakenings(change, trees.base, trees.tree, pattern)
    except AgentdError as error:
        return _told(build_matrix(change, None, None, pattern), (), error.message)
    return _told(matrix, tuple(TracePlace(one.path, one.line, one.what) for one in weaker))


def _told(matrix: TraceMatrix, weakened: tuple[TracePlace, ...], problem: str = "") -> TraceView:
    rows = tuple(
        TraceRowView(
            requirement=row.requirement,
            title=row.title,
            document=f"specs/{row.requirement.partition(':')[0]}.md",
            line=row.line,
            scenarios=row.scenarios,
            tasks=row.tasks,
            files=row.files,
            tests=row.tests,
            is_waived=row.waived,
            gaps=row.gaps(matrix.implemented),
        )
        for row in matrix.rows
    )
    notes = tuple(TracePlace(one.path, one.line, one.what) for one in matrix.notes)
    return TraceView(rows, matrix.implemented, matrix.unnamed, weakened, notes, problem)

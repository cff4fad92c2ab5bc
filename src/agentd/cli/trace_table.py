"""The matrix of a change for people: a table, blocks on a narrow terminal, or Markdown."""

import re
from collections import Counter
from collections.abc import Sequence

from agentd.cli import output, text_table
from agentd.domain import pluralize
from agentd.trace import TraceMatrix, TraceRow, Weakening

_NONE = "✗ none"
_AHEAD = "-"
_EMPTY = "There are no requirements in the specs of %s."
_HEAD = ("REQUIREMENT", "TITLE", "TASKS", "FILES", "TESTS")
_TITLE = 40  # columns
_GAPS = {"task": "task", "file": "changed file", "test": "test"}


def matrix_text(change_id: str, matrix: TraceMatrix, weaker: Sequence[Weakening]) -> str:
    width = output.width()
    if not matrix.rows:
        lines = output.prose(_EMPTY % change_id)
    else:
        lines = _table(matrix, width) or _blocks(matrix, width or 0)
        lines += ["", *output.prose(_summary(matrix))]
    for title, places in _below(matrix, weaker):
        lines += ["", output.paint(title, bold=True)]
        lines += [line for place in places for line in output.prose(text_table.clean_line(place), "  ", "  ")]
    return "\n".join(lines)


def matrix_markdown(change_id: str, matrix: TraceMatrix, weaker: Sequence[Weakening]) -> str:
    lines = [f"# Trace of {change_id}", ""]
    if matrix.rows:
        lines += ["| Requirement | Scenarios | Tasks | Files | Tests |", "|---|---|---|---|---|"]
        for row in matrix.rows:
            cells = ["<br>".join(_escaped(one) for one in some) for some in _cells(row, matrix)]
            name = f"**{_escaped(row.requirement)}** {_escaped(row.title)}"
            lines.append(f"| {' | '.join((name, *cells))} |")
        lines += ["", f"{_summary(matrix)}."]
    else:
        lines.append(_EMPTY % change_id)
    for title, places in _below(matrix, weaker):
        lines += ["", f"## {title}", "", *(f"- {_escaped(place)}" for place in places)]
    return "\n".join(lines)


def _cells(row: TraceRow, matrix: TraceMatrix) -> list[list[str]]:
    """Scenarios, tasks, files and tests; what is missing is said."""
    gaps = row.gaps(matrix.implemented)
    tasks = [f"{', '.join(row.tasks)} (waived)"] if row.waived else [", ".join(row.tasks)] if row.tasks else [_NONE]
    found = [list(row.scenarios) or [_AHEAD], tasks]
    for name, some in (("file", row.files), ("test", row.tests)):
        found.append(list(some) or [_NONE if name in gaps else _AHEAD])
    return found


def _table(matrix: TraceMatrix, width: int | None) -> list[str] | None:
    """Without titles where there is no room for them; None where even that is too wide."""
    rows = [_HEAD]
    for row in matrix.rows:
        tasks, files, tests = ([text_table.clean_line(one) for one in some] for some in _cells(row, matrix)[1:])
        first = [row.requirement], [text_table.shorten_line(row.title, _TITLE)]
        columns = (*first, tasks, files, tests)
        height = max(map(len, columns))
        padded = [[*column, *[""] * (height - len(column))] for column in columns]
        rows += list(zip(*padded, strict=True))
    for kept in ((0, 1, 2, 3, 4), (0, 2, 3, 4)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or text_table.rows_width(chosen) <= width:
            lines = text_table.align_rows([chosen[0], *([_marked(cell) for cell in row] for row in chosen[1:])])
            return [output.paint(lines[0], dim=True), *lines[1:]]
    return None


def _blocks(matrix: TraceMatrix, width: int) -> list[str]:
    """One requirement after another, for a narrow terminal."""
    lines: list[str] = []
    for row in matrix.rows:
        lines += [""] * bool(lines)
        lines.append(output.paint(text_table.shorten_line(row.requirement, width), bold=True))
        if row.title:
            lines.append(f"  {text_table.shorten_line(row.title, width - 2)}")
        for name, some in zip(("tasks", "files", "tests"), _cells(row, matrix)[1:], strict=True):
            for number, one in enumerate(some):
                label = output.paint((name if number == 0 else "").ljust(6), dim=True)
                lines.append(f"  {label} {_marked(_end_of(text_table.clean_line(one), width - 9))}")
    return lines


def _end_of(words: str, room: int) -> str:
    """The end of a path says more than its beginning."""
    if text_table.display_width(words) <= room:
        return words
    while words and text_table.display_width(words) > room - 1:
        words = words[1:]
    return f"…{words}"


def _marked(cell: str) -> str:
    return output.paint(cell, fg="yellow") if cell == _NONE else cell


def _summary(matrix: TraceMatrix) -> str:
    rows = matrix.rows
    count = pluralize(len(rows), "requirement")
    lacking = Counter(gap for row in rows for gap in row.gaps(matrix.implemented))
    gaps = ", ".join(f"{lacking[gap]} without a {word}" for gap, word in _GAPS.items() if lacking[gap])
    if not matrix.implemented:
        return f"{count}, {gaps or 'each with a task'}; nothing is implemented yet"
    return f"{count}, {gaps or 'each with task, changed file and test'}"


def _below(matrix: TraceMatrix, weaker: Sequence[Weakening]) -> list[tuple[str, list[str]]]:
    """What there is to tell beside the matrix, each part with its title."""
    parts = [
        ("Tests that prove less than before", [f"{_place(one.path, one.line)}: {one.what}" for one in weaker]),
        ("Changed files that no task names", list(matrix.unnamed)),
        ("Notes", [f"{_place(one.path, one.line)}: {one.what}" for one in matrix.notes]),
    ]
    return [(title, places) for title, places in parts if places]


def _place(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _escaped(words: str) -> str:
    """Text that stays in its cell and is no mark-up there."""
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", text_table.clean_line(words))

"""`agentd trace`: which task, file and test carries each requirement of a change."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agentd.change import Change, ChangeLocator, check_change_id
from agentd.cli import output, text_table
from agentd.cli.change_argument import change_argument, find_anywhere
from agentd.domain import Refusal, UsageError, pluralize
from agentd.project import find_project, git, load_config
from agentd.trace import TraceMatrix, TraceRow, Weakening, build_matrix, find_weakenings

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


_TREE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@click.command("trace")
@change_argument()
@click.option("--markdown", is_flag=True, help="Print a Markdown table, such as for a pull request.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str, markdown: bool, as_json: bool) -> int:
    """Show which task, changed file and test carries each requirement of the change ID, and what is missing.

    A test says what it covers: `covers: auth-flow:R1` in its name, its docstring or a comment. A change that has
    ended is shown as it was last reviewed.
    """
    if markdown and as_json:
        raise UsageError("--markdown and --json exclude each other", f"agentd trace {change_id} --json")
    project = find_project()
    found = find_anywhere(ChangeLocator(project), check_change_id(change_id))
    change = Change(project, found.id, found.tree or "", Path(found.folder or ""))
    pattern = load_config(project.config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    base, now = _trees(change, found.archived)
    matrix = build_matrix(change, base, now, pattern)
    weaker = find_weakenings(change, base, now, pattern)
    draw = matrix_markdown if markdown else matrix_text
    return output.show_result(
        "trace", as_json, _data(change_id, matrix, weaker), lambda: draw(change_id, matrix, weaker)
    )


def _trees(change: Change, is_over: bool) -> tuple[str | None, str | None]:
    """Before the first edit and now; of a change that has ended as it was last judged, whatever it has become since."""
    state = change.read()
    if not is_over or not state.base.tree:
        return state.base.tree, git.snapshot(change.tree) if state.base.tree else None
    judged = next((moved.hashes["tree"] for moved in reversed(state.history) if moved.hashes.get("tree")), None)
    if judged and not _is_here(change.tree, judged):
        words = f"the code of {change.id} as it was judged is not in this repository"
        raise Refusal(words, f"agentd view {change.id} shows the rest")
    return state.base.tree, judged


def _is_here(tree: str, judged: str) -> bool:
    """By its whole name: anything else could be an option of git."""
    return bool(_TREE.fullmatch(judged)) and git.run(tree, "cat-file", "-t", judged, failing="") == "tree"


def _data(change_id: str, matrix: TraceMatrix, weaker: tuple[Weakening, ...]) -> dict[str, Any]:
    """`files` and `tests` are null as long as nothing is implemented."""
    there = matrix.implemented
    return {
        "change_id": change_id,
        "implemented": there,
        "requirements": [
            {
                "requirement": row.requirement,
                "title": row.title,
                "scenarios": list(row.scenarios),
                "tasks": list(row.tasks),
                "files": list(row.files) if there else None,
                "tests": list(row.tests) if there else None,
                "waived": row.waived,
            }
            for row in matrix.rows
        ],
        "unnamed": list(matrix.unnamed),
        "weakened": [{"file": one.path, "line": one.line or None, "what": one.what} for one in weaker],
        "notes": [{"file": one.path, "line": one.line or None, "what": one.what} for one in matrix.notes],
    }

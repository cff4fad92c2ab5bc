"""`agentd trace`: the tasks, files and tests behind each requirement of a change."""

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

COMMANDS = {"trace": (110, "Show the tasks, files and tests behind each requirement.")}

_NONE = "✗ none"
_NOT_YET = "-"
_EMPTY = "There are no requirements in the specs of %s."
_HEAD = ("REQUIREMENT", "TITLE", "TASKS", "FILES", "TESTS")
_TITLE = 40  # maximum width of a title
_GAPS = {"task": "task", "file": "changed file", "test": "test"}


def matrix_text(change_id: str, matrix: TraceMatrix, weakenings: Sequence[Weakening]) -> str:
    width = output.width()
    if not matrix.rows:
        lines = output.prose(_EMPTY % change_id)
    else:
        lines = _table(matrix, width) or _stacked(matrix, width or 0)
        lines += ["", *output.prose(_summary(matrix))]
    for title, places in _sections(matrix, weakenings):
        lines += ["", output.paint(title, bold=True)]
        lines += [line for place in places for line in output.prose(text_table.clean_line(place), "  ", "  ")]
    return "\n".join(lines)


def matrix_markdown(change_id: str, matrix: TraceMatrix, weakenings: Sequence[Weakening]) -> str:
    lines = [f"# Trace of {change_id}", ""]
    if matrix.rows:
        lines += ["| Requirement | Scenarios | Tasks | Files | Tests |", "|---|---|---|---|---|"]
        for row in matrix.rows:
            cells = ["<br>".join(_escape_markdown(value) for value in values) for values in _cells(row, matrix)]
            name = f"**{_escape_markdown(row.requirement)}** {_escape_markdown(row.title)}"
            lines.append(f"| {' | '.join((name, *cells))} |")
        lines += ["", f"{_summary(matrix)}."]
    else:
        lines.append(_EMPTY % change_id)
    for title, places in _sections(matrix, weakenings):
        lines += ["", f"## {title}", "", *(f"- {_escape_markdown(place)}" for place in places)]
    return "\n".join(lines)


def _cells(row: TraceRow, matrix: TraceMatrix) -> list[list[str]]:
    """Return scenarios, tasks, files and tests; gaps are marked."""
    gaps = row.gaps(matrix.implemented)
    tasks = [f"{', '.join(row.tasks)} (waived)"] if row.waived else [", ".join(row.tasks)] if row.tasks else [_NONE]
    cells = [list(row.scenarios) or [_NOT_YET], tasks]
    for name, values in (("file", row.files), ("test", row.tests)):
        cells.append(list(values) or [_NONE if name in gaps else _NOT_YET])
    return cells


def _table(matrix: TraceMatrix, width: int | None) -> list[str] | None:
    """Return the table, without titles if they do not fit; None if it is still too wide."""
    rows = [_HEAD]
    for row in matrix.rows:
        tasks, files, tests = ([text_table.clean_line(value) for value in values] for values in _cells(row, matrix)[1:])
        first = [row.requirement], [text_table.shorten_line(row.title, _TITLE)]
        columns = (*first, tasks, files, tests)
        height = max(map(len, columns))
        padded = [[*column, *[""] * (height - len(column))] for column in columns]
        rows += list(zip(*padded, strict=True))
    for kept in ((0, 1, 2, 3, 4), (0, 2, 3, 4)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or text_table.rows_width(chosen) <= width:
            lines = text_table.align_rows([chosen[0], *([_highlight_gap(cell) for cell in row] for row in chosen[1:])])
            return [output.paint(lines[0], dim=True), *lines[1:]]
    return None


def _stacked(matrix: TraceMatrix, width: int) -> list[str]:
    """Return one block per requirement, for narrow terminals."""
    lines: list[str] = []
    for row in matrix.rows:
        lines += [""] * bool(lines)
        lines.append(output.paint(text_table.shorten_line(row.requirement, width), bold=True))
        if row.title:
            lines.append(f"  {text_table.shorten_line(row.title, width - 2)}")
        for name, values in zip(("tasks", "files", "tests"), _cells(row, matrix)[1:], strict=True):
            for number, value in enumerate(values):
                label = output.paint((name if number == 0 else "").ljust(6), dim=True)
                lines.append(f"  {label} {_highlight_gap(_keep_end(text_table.clean_line(value), width - 9))}")
    return lines


def _keep_end(text: str, width: int) -> str:
    """Keep the end of a path, which says more than its beginning."""
    if text_table.display_width(text) <= width:
        return text
    while text and text_table.display_width(text) > width - 1:
        text = text[1:]
    return f"…{text}"


def _highlight_gap(cell: str) -> str:
    return output.paint(cell, fg="yellow") if cell == _NONE else cell


def _summary(matrix: TraceMatrix) -> str:
    rows = matrix.rows
    count = pluralize(len(rows), "requirement")
    gap_counts = Counter(gap for row in rows for gap in row.gaps(matrix.implemented))
    gaps = ", ".join(f"{gap_counts[gap]} without a {word}" for gap, word in _GAPS.items() if gap_counts[gap])
    if not matrix.implemented:
        return f"{count}, {gaps or 'each with a task'}; nothing is implemented yet"
    return f"{count}, {gaps or 'each with task, changed file and test'}"


def _sections(matrix: TraceMatrix, weakenings: Sequence[Weakening]) -> list[tuple[str, list[str]]]:
    """Return the sections below the matrix, each with its title."""
    parts = [
        (
            "Tests that check less than before",
            [f"{_location(item.path, item.line)}: {item.what}" for item in weakenings],
        ),
        ("Changed files that no task names", list(matrix.files_without_task)),
        ("Notes", [f"{_location(note.path, note.line)}: {note.what}" for note in matrix.notes]),
    ]
    return [(title, places) for title, places in parts if places]


def _location(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _escape_markdown(text: str) -> str:
    """Escape Markdown, so the text stays in its table cell."""
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", text_table.clean_line(text))


_TREE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@click.command("trace")
@change_argument()
@click.option("--markdown", is_flag=True, help="Print a Markdown table, for example for a pull request.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str, markdown: bool, as_json: bool) -> int:
    """Show the tasks, changed files and tests behind each requirement of the change ID, and what is missing.

    Tests declare what they cover with `covers: auth-flow:R1` in their name, docstring or a comment. A change that has
    ended is shown as last reviewed.
    """
    if markdown and as_json:
        raise UsageError("--markdown and --json cannot be used together", f"agentd trace {change_id} --json")
    project = find_project()
    located = find_anywhere(ChangeLocator(project), check_change_id(change_id))
    change = Change(project, located.id, located.tree or "", Path(located.folder or ""))
    pattern = load_config(project.config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    base, now = _trees(change, located.archived)
    matrix = build_matrix(change, base, now, pattern)
    weakenings = find_weakenings(change, base, now, pattern)
    render = matrix_markdown if markdown else matrix_text
    return output.show_result(
        "trace", as_json, _data(change_id, matrix, weakenings), lambda: render(change_id, matrix, weakenings)
    )


def _trees(change: Change, has_ended: bool) -> tuple[str | None, str | None]:
    """Return the base tree and the current one; for an ended change, the last reviewed one."""
    state = change.read()
    if not has_ended or not state.base.tree:
        return state.base.tree, git.snapshot(change.tree) if state.base.tree else None
    reviewed = next(
        (transition.hashes["tree"] for transition in reversed(state.history) if transition.hashes.get("tree")), None
    )
    if reviewed and not _tree_exists(change.tree, reviewed):
        message = f"the reviewed code of {change.id} is not in this repository"
        raise Refusal(message, f"agentd view {change.id} shows the rest")
    return state.base.tree, reviewed


def _tree_exists(tree: str, tree_hash: str) -> bool:
    """Return whether git has this tree. Accept only a full hash, which cannot be mistaken for an option."""
    return bool(_TREE.fullmatch(tree_hash)) and git.run(tree, "cat-file", "-t", tree_hash, failing="") == "tree"


def _data(change_id: str, matrix: TraceMatrix, weakenings: tuple[Weakening, ...]) -> dict[str, Any]:
    """Return the `--json` data; `files` and `tests` are null until something is implemented."""
    is_implemented = matrix.implemented
    return {
        "change_id": change_id,
        "implemented": is_implemented,
        "requirements": [
            {
                "requirement": row.requirement,
                "title": row.title,
                "scenarios": list(row.scenarios),
                "tasks": list(row.tasks),
                "files": list(row.files) if is_implemented else None,
                "tests": list(row.tests) if is_implemented else None,
                "waived": row.waived,
            }
            for row in matrix.rows
        ],
        "unnamed": list(matrix.files_without_task),
        "weakened": [{"file": item.path, "line": item.line or None, "what": item.what} for item in weakenings],
        "notes": [{"file": note.path, "line": note.line or None, "what": note.what} for note in matrix.notes],
    }

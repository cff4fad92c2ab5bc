"""`agentd trace`: which task, file and test carries each requirement of a change."""

import re
from pathlib import Path
from typing import Any

import click

from agentd.change import Change, ChangeLocator, check_change_id
from agentd.cli import output, trace_table
from agentd.cli.change_argument import change_argument, find_anywhere
from agentd.domain import Refusal, UsageError
from agentd.project import find_project, git, load_config
from agentd.trace import TraceMatrix, Weakening, build_matrix, find_weakenings

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
    draw = trace_table.matrix_markdown if markdown else trace_table.matrix_text
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

"""`agentd trace`: which task, file and test carries each requirement of a change."""

from typing import Any

import click

from agentd import config, git
from agentd.change import entry
from agentd.cli import output, trace_table
from agentd.cli.common import change_argument
from agentd.errors import UsageError
from agentd.project import find_project
from agentd.trace import build
from agentd.trace.matrix import Matrix
from agentd.trace.weakened import Weakening


@click.command("trace")
@change_argument()
@click.option("--markdown", is_flag=True, help="Print a Markdown table, such as for a pull request.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str, markdown: bool, as_json: bool) -> int:
    """Show which task, changed file and test carries each requirement of the change ID, and what is missing.

    A test says what it covers: `covers: auth-flow:R1` in its name, its docstring or a comment.
    """
    if markdown and as_json:
        raise UsageError("--markdown and --json exclude each other", f"agentd trace {change_id} --json")
    project = find_project()
    change = entry.open_change(project, change_id)
    pattern = config.load(project.config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    base = change.read().base.tree
    now = git.snapshot(change.tree) if base else None
    matrix = build.build(change, base, now, pattern)
    weaker = build.weakenings(change, base, now, pattern)
    draw = trace_table.markdown if markdown else trace_table.text
    return output.show("trace", as_json, _data(change_id, matrix, weaker), lambda: draw(change_id, matrix, weaker))


def _data(change_id: str, matrix: Matrix, weaker: tuple[Weakening, ...]) -> dict[str, Any]:
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

"""`agentd doctor`: check what agentd needs, and how to fix what is missing."""

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from agentd.cli import output, text_table
from agentd.doctor import MACHINE_SECTION, PROJECT_SECTION, DoctorReport, DoctorRow, DoctorState, agent_section, examine
from agentd.domain import Role, SetupError, join_words

COMMANDS = {"doctor": (200, "Check that everything agentd needs is installed and configured.")}

_COLOURS = {DoctorState.OK: "green", DoctorState.NOTE: "yellow", DoctorState.PROBLEM: "red"}
_STATE = 11  # width of the state column
_NARROW = 30  # minimum width of the text; if less is left, it goes below the name


@click.command("doctor")
@output.json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Check that everything agentd needs is in place, and show how to fix what is not.

    Calls no model and changes nothing. Exit code 3: a role cannot run.
    """
    report = examine(os.environ, Path(os.path.expanduser("~")), ctx.find_root().obj or ())
    blocked = [role for role in Role if not report.can_run(role)]
    data = {
        "project": report.project,
        "rows": [
            {"about": row.about, "name": row.name, "state": row.state, "words": row.words, "fix": row.fix or None}
            for row in report.rows
        ],
        "roles": {role: {"agent": report.roles.get(role), "can_run": role not in blocked} for role in Role},
    }
    return output.show_result(
        "doctor", as_json, data, lambda: _render(report, blocked), SetupError.exit_code if blocked else 0
    )


def _render(report: DoctorReport, blocked: list[Role]) -> str:
    name_width = _name_width(report)
    lines = []
    for about, rows in groupby(report.rows, lambda row: row.about):
        lines += [_heading(report, about), *(line for row in rows for line in _lines(row, name_width)), ""]
    return "\n".join([*lines, *output.prose(_summary(report, blocked))])


def _name_width(report: DoctorReport) -> int | None:
    """Return the width of the name column; None if the text goes below the names."""
    widest, width = max(len(row.name) for row in report.rows), output.width()
    return None if width is not None and width - _STATE - widest - 2 < _NARROW else widest


def _heading(report: DoctorReport, about: str) -> str:
    roles = [str(role) for role, name in report.roles.items() if about == agent_section(name)]
    title = {MACHINE_SECTION: "This machine", PROJECT_SECTION: "This project"}.get(about) or about.removeprefix(
        "agent "
    )
    return output.paint(text_table.clean_line(title), bold=True) + (f" ({', '.join(roles)})" if roles else "")


def _lines(row: DoctorRow, name_width: int | None) -> Iterator[str]:
    if name_width is not None and not _fits_beside(row.words, _STATE + name_width + 2):
        name_width = None  # a long path goes on its own line
    state = output.paint(f"{row.state:7}", fg=_COLOURS[row.state])
    margin = " " * (4 if name_width is None else _STATE + name_width + 2)
    first, *others = ["", *_wrapped(row.words, margin)] if name_width is None else _wrapped(row.words, margin)
    yield f"  {state}  {row.name.ljust(name_width or 0)}  {first}".rstrip()
    arrow = output.paint("→", fg="cyan")
    yield from (margin + line for line in others)
    for number, line in enumerate(_wrapped(row.fix, f"{margin}  ") if row.fix else ()):
        yield f"{margin}{arrow if number == 0 else ' '} {line}"


def _fits_beside(text: str, margin: int) -> bool:
    width = output.width()
    return width is None or all(margin + text_table.display_width(word) <= width for word in text.split())


def _wrapped(text: str, margin: str) -> list[str]:
    """Wrap to the terminal's width, without control characters: the text may come from the repository."""
    lines = [text_table.strip_control(line) for line in text.splitlines()] or [""]
    width = output.width()
    if width is None:
        return lines
    return [part for line in lines for part in text_table.wrap_text(line, width - len(margin)) or [""]]


def _summary(report: DoctorReport, blocked: list[Role]) -> str:
    if not blocked:
        return "Every role can run."
    count = len(report.problems)
    who = "No role" if len(blocked) == len(Role) else join_words(blocked)
    cannot = "can run" if len(blocked) == len(Role) else "cannot run"
    return f"{who} {cannot} until {'the problem is' if count == 1 else f'the {count} problems are'} fixed."

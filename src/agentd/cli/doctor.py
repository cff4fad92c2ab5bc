"""`agentd doctor`: what is here of all that agentd needs, and how to mend what is not."""

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from agentd.cli import output, text_table
from agentd.doctor import MACHINE_SECTION, PROJECT_SECTION, DoctorReport, DoctorRow, DoctorState, agent_section, examine
from agentd.domain import Role, SetupError, join_words

_COLOURS = {DoctorState.OK: "green", DoctorState.NOTE: "yellow", DoctorState.PROBLEM: "red"}
_STATE = 11  # columns before a name
_NARROW = 30  # columns below which the words stand under the name


@click.command("doctor")
@output.json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Check that everything agentd needs is here, and say how to mend what is not.

    No model is asked and nothing is changed. Exit code 3: a role cannot run.
    """
    report = examine(os.environ, Path(os.path.expanduser("~")), ctx.find_root().obj or ())
    stopped = [role for role in Role if not report.can_run(role)]
    data = {
        "project": report.project,
        "rows": [
            {"about": row.about, "name": row.name, "state": row.state, "words": row.words, "fix": row.fix or None}
            for row in report.rows
        ],
        "roles": {role: {"agent": report.roles.get(role), "can_run": role not in stopped} for role in Role},
    }
    return output.show_result(
        "doctor", as_json, data, lambda: _render(report, stopped), SetupError.exit_code if stopped else 0
    )


def _render(report: DoctorReport, stopped: list[Role]) -> str:
    room = _room(report)
    lines = []
    for about, rows in groupby(report.rows, lambda row: row.about):
        lines += [_heading(report, about), *(line for row in rows for line in _lines(row, room)), ""]
    return "\n".join([*lines, *output.prose(_closing(report, stopped))])


def _room(report: DoctorReport) -> int | None:
    """Columns of the names; None: the words go below them."""
    room, width = max(len(row.name) for row in report.rows), output.width()
    return None if width is not None and width - _STATE - room - 2 < _NARROW else room


def _heading(report: DoctorReport, about: str) -> str:
    seats = [str(role) for role, name in report.roles.items() if about == agent_section(name)]
    words = {MACHINE_SECTION: "This machine", PROJECT_SECTION: "This project"}.get(about) or about.removeprefix(
        "agent "
    )
    return output.paint(text_table.clean_line(words), bold=True) + (f" ({', '.join(seats)})" if seats else "")


def _lines(row: DoctorRow, room: int | None) -> Iterator[str]:
    if room is not None and not _fits(row.words, _STATE + room + 2):
        room = None  # a long path stands on a line of its own
    state = output.paint(f"{row.state:7}", fg=_COLOURS[row.state])
    margin = " " * (4 if room is None else _STATE + room + 2)
    first, *others = ["", *_folded(row.words, margin)] if room is None else _folded(row.words, margin)
    yield f"  {state}  {row.name.ljust(room or 0)}  {first}".rstrip()
    arrow = output.paint("→", fg="cyan")
    yield from (margin + line for line in others)
    for number, line in enumerate(_folded(row.fix, f"{margin}  ") if row.fix else ()):
        yield f"{margin}{arrow if number == 0 else ' '} {line}"


def _fits(text: str, margin: int) -> bool:
    width = output.width()
    return width is None or all(margin + text_table.display_width(word) <= width for word in text.split())


def _folded(text: str, margin: str) -> list[str]:
    """To the terminal's width. The words may be a repository's, so nothing in them can act on the terminal."""
    lines = [text_table.strip_control(line) for line in text.splitlines()] or [""]
    width = output.width()
    if width is None:
        return lines
    return [part for line in lines for part in text_table.wrap_text(line, width - len(margin)) or [""]]


def _closing(report: DoctorReport, stopped: list[Role]) -> str:
    if not stopped:
        return "Every role can run."
    count = len(report.problems)
    who = "No role" if len(stopped) == len(Role) else join_words(stopped)
    cannot = "can run" if len(stopped) == len(Role) else "cannot run"
    return f"{who} {cannot} until {'the problem is' if count == 1 else f'the {count} problems are'} mended."

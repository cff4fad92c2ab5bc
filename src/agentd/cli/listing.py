"""`agentd list`: every change in a line."""

from typing import Any

import click

from agentd.change import report
from agentd.change.overlaps import Radar, some
from agentd.change.places import Found, Places
from agentd.cli import output, table
from agentd.project import Project, find_project

_COLOURS = {
    "proposed": "yellow",
    "challenged": "cyan",
    "rejected": "red",
    "implementing": "blue",
    "complete": "green",
}
_MEETINGS = 5  # of many the first ones
_EMPTY = 'No changes yet. Begin one: agentd plan <id> "what should change"'


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Archived and dropped changes too.")
@output.json_option
def command(everything: bool, as_json: bool) -> int:
    """List the changes of this project, newest first, from all its branches and work trees."""
    project = find_project()
    places = Places(project)
    found = places.open() + (places.archived() if everything else [])
    among = report.radar(found)
    data = {"changes": [report.row(project, one, among) for one in found]} if as_json else {}
    return output.show("list", as_json, data, lambda: _render(project, found, among, output.width()))


def _render(project: Project, found: list[Found], among: Radar, width: int | None) -> str:
    if not found:
        return _EMPTY
    head = ("CHANGE", "PHASE", "FINDINGS", "COST", "UPDATED", "NEXT")
    rows = [head, *(_cells(project, one) for one in found)]
    for kept in ((0, 1, 2, 3, 4, 5), (0, 1, 2, 4, 5), (0, 1, 2, 5), (0, 1, 5)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or table.total(chosen) <= width:
            first, *lines = table.align(chosen)
            lines.insert(0, output.paint(first, dim=True))
            break
    else:
        lines = [line for row in rows[1:] for line in _stacked(row, width or 0)]
    return "\n".join([*lines, *_meetings(among, width)])


def _meetings(among: Radar, width: int | None) -> list[str]:
    """Below the table: who touches the same."""
    found = among.meetings()
    if not found:
        return []
    import textwrap  # late: hardly ever do changes meet

    told = [
        f"{some(changes)} {'both' if len(changes) == 2 else 'all'} change {table.clean(some(names))}"
        for changes, names in found[:_MEETINGS]
    ]
    if len(found) > _MEETINGS:
        told.append(f"and {len(found) - _MEETINGS} more; agentd list --json has them all")
    return ["", *(line for words in told for line in (textwrap.wrap(words, width) if width else [words]))]


def phase_words(project: Project, found: Found) -> str:
    summary = found.summary
    if summary.problem:
        return output.paint("unreadable", fg="red")
    words = output.paint(summary.phase, fg=_COLOURS.get(summary.phase))
    if not summary.running:
        return words
    return words + (", running" if report.is_running(project, found) else ", interrupted")


def _cells(project: Project, found: Found) -> tuple[str, ...]:
    summary = found.summary
    return (
        found.id,
        phase_words(project, found),
        output.findings(summary.high, summary.medium, summary.low),
        output.money(summary.cost),
        output.age(summary.updated_at),
        report.next_command(project, found) or "-",
    )


def _stacked(cells: tuple[str, ...], width: int) -> list[str]:
    """One change in a few short lines, for a narrow terminal."""
    name, phase, *facts, following = cells
    told = [fact for fact in facts if fact != "-"]
    lines: list[Any] = [name, f"  {phase}", *(f"  {fact}" for fact in told), f"  → {following}"]
    if table.columns(f"{name}  {phase}") <= width:
        lines[:2] = [f"{name}  {phase}"]
    if table.columns("  " + ", ".join(told)) <= width and told:
        lines[-1 - len(told) : -1] = ["  " + ", ".join(told)]
    return lines

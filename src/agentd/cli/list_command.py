"""`agentd list`: every change in a line."""

import click

from agentd.change import (
    ChangeLocator,
    LocatedChange,
    OverlapIndex,
    build_overlap_index,
    change_row,
    format_names,
    has_run_failed,
    is_change_running,
    next_command,
)
from agentd.cli import output, text_table
from agentd.project import Project, find_project

_COLOURS = {
    "proposed": "yellow",
    "challenged": "cyan",
    "rejected": "red",
    "implementing": "blue",
    "complete": "green",
}
_MEETINGS = 5  # of many the first ones
_BEGIN = 'agentd plan <id> "what should change"'


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Archived and dropped changes too.")
@output.json_option
def command(everything: bool, as_json: bool) -> int:
    """List the changes of this project, newest first, from all its branches and work trees."""
    project = find_project()
    places = ChangeLocator(project)
    found = places.open() + (places.archived() if everything else [])
    among = build_overlap_index(found)
    data = {"changes": [change_row(project, one, among) for one in found]} if as_json else {}
    return output.show_result("list", as_json, data, lambda: _render(places, found, among, output.width()))


def no_changes_text(places: ChangeLocator) -> str:
    """Where no change is open."""
    ended = output.prose("No open changes; agentd list --all shows those that have ended.")
    return "\n".join([*(ended if places.archived() else ["No open changes."]), *output.following(_BEGIN)])


def _render(places: ChangeLocator, found: list[LocatedChange], among: OverlapIndex, width: int | None) -> str:
    if not found:
        return no_changes_text(places)
    head = ("CHANGE", "PHASE", "FINDINGS", "COST", "UPDATED", "NEXT")
    rows = [head, *(_cells(places.project, one) for one in found)]
    for kept in ((0, 1, 2, 3, 4, 5), (0, 1, 2, 4, 5), (0, 1, 2, 5), (0, 1, 5)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or text_table.rows_width(chosen) <= width:
            first, *lines = text_table.align_rows(chosen)
            lines.insert(0, output.paint(first, dim=True))
            break
    else:
        lines = [line for row in rows[1:] for line in _stacked(row, width or 0)]
    return "\n".join([*lines, *_meetings(among)])


def _meetings(among: OverlapIndex) -> list[str]:
    """Below the table: who touches the same."""
    found = among.meetings()
    if not found:
        return []
    told = [
        f"{format_names(changes)} {'both' if len(changes) == 2 else 'all'} change "
        + text_table.clean_line(format_names(names))
        for changes, names in found[:_MEETINGS]
    ]
    if len(found) > _MEETINGS:
        told.append(f"and {len(found) - _MEETINGS} more; agentd list --json has them all")
    return ["", *(line for words in told for line in output.prose(words))]


def phase_words(project: Project, found: LocatedChange) -> str:
    summary = found.summary
    if summary.problem:
        return output.paint("unreadable", fg="red")
    words = output.paint(summary.phase, fg=_COLOURS.get(summary.phase))
    if not summary.running or not summary.phase.is_open:
        return words
    if is_change_running(project, found):
        return f"{words}, running"
    return f"{words}, {'stopped' if has_run_failed(project, found) else 'interrupted'}"


def _cells(project: Project, found: LocatedChange) -> tuple[str, ...]:
    summary = found.summary
    return (
        found.id,
        phase_words(project, found),
        output.findings(summary.high, summary.medium, summary.low),
        output.money_cell(summary.cost),
        output.format_age(summary.updated_at),
        next_command(project, found) or "-",
    )


def _stacked(cells: tuple[str, ...], width: int) -> list[str]:
    """One change in a few short lines, for a narrow terminal."""
    name, phase, *facts, following = cells
    told = [fact for fact in facts if fact != "-"]
    lines = [f"  {line}" for line in text_table.join_facts(told, width - 2)]
    return [*output.heading(name, phase), *lines, f"  → {following}"]

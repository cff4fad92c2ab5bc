"""`agentd list`: one line per change."""

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

COMMANDS = {"list": (70, "List the changes.")}

_COLOURS = {
    "proposed": "yellow",
    "challenged": "cyan",
    "rejected": "red",
    "implementing": "blue",
    "complete": "green",
}
_OVERLAPS = 5  # overlaps shown below the table
_FIRST_COMMAND = 'agentd plan <id> "what should change"'


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Include archived and dropped changes.")
@output.json_option
def command(everything: bool, as_json: bool) -> int:
    """List the changes of this project, newest first, across all branches and worktrees."""
    project = find_project()
    locator = ChangeLocator(project)
    changes = locator.open() + (locator.archived() if everything else [])
    overlaps = build_overlap_index(changes)
    data = {"changes": [change_row(project, change, overlaps) for change in changes]} if as_json else {}
    return output.show_result("list", as_json, data, lambda: _render(locator, changes, overlaps, output.width()))


def no_changes_text(locator: ChangeLocator) -> str:
    """Return the text shown if no change is open."""
    ended = output.prose("No open changes; agentd list --all includes archived and dropped ones.")
    return "\n".join([*(ended if locator.archived() else ["No open changes."]), *output.following(_FIRST_COMMAND)])


def _render(locator: ChangeLocator, changes: list[LocatedChange], overlaps: OverlapIndex, width: int | None) -> str:
    if not changes:
        return no_changes_text(locator)
    head = ("CHANGE", "PHASE", "FINDINGS", "COST", "UPDATED", "NEXT")
    rows = [head, *(_cells(locator.project, change) for change in changes)]
    for kept in ((0, 1, 2, 3, 4, 5), (0, 1, 2, 4, 5), (0, 1, 2, 5), (0, 1, 5)):
        chosen = [[row[number] for number in kept] for row in rows]
        if width is None or text_table.rows_width(chosen) <= width:
            first, *lines = text_table.align_rows(chosen)
            lines.insert(0, output.paint(first, dim=True))
            break
    else:
        lines = [line for row in rows[1:] for line in _stacked(row, width or 0)]
    return "\n".join([*lines, *_overlap_lines(overlaps)])


def _overlap_lines(overlaps: OverlapIndex) -> list[str]:
    """Return the overlaps shown below the table."""
    shared = overlaps.all_overlaps()
    if not shared:
        return []
    lines = [
        f"{format_names(changes)} {'both' if len(changes) == 2 else 'all'} change "
        + text_table.clean_line(format_names(names))
        for changes, names in shared[:_OVERLAPS]
    ]
    if len(shared) > _OVERLAPS:
        lines.append(f"and {len(shared) - _OVERLAPS} more; agentd list --json has them all")
    return ["", *(part for line in lines for part in output.prose(line))]


def phase_words(project: Project, located: LocatedChange) -> str:
    summary = located.summary
    if summary.problem:
        return output.paint("unreadable", fg="red")
    text = output.paint(summary.phase, fg=_COLOURS.get(summary.phase))
    if not summary.running or not summary.phase.is_open:
        return text
    if is_change_running(project, located):
        return f"{text}, running"
    return f"{text}, {'stopped' if has_run_failed(project, located) else 'interrupted'}"


def _cells(project: Project, located: LocatedChange) -> tuple[str, ...]:
    summary = located.summary
    return (
        located.id,
        phase_words(project, located),
        output.findings(summary.high, summary.medium, summary.low),
        output.money_cell(summary.cost),
        output.format_age(summary.updated_at),
        next_command(project, located) or "-",
    )


def _stacked(cells: tuple[str, ...], width: int) -> list[str]:
    """Return one change as a few short lines, for narrow terminals."""
    name, phase, *facts, following = cells
    known = [fact for fact in facts if fact != "-"]
    lines = [f"  {line}" for line in text_table.join_facts(known, width - 2)]
    return [*output.heading(name, phase), *lines, f"  → {following}"]

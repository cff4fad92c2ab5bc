"""`agentd status`: the status of one change, or of all open ones."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentd.change import (
    NAMES_SHOWN,
    ChangeLocator,
    LocatedChange,
    Overlap,
    OverlapIndex,
    OverlappingChange,
    build_overlap_index,
    change_row,
    format_names,
    next_command,
    overlapping_changes,
    refresh_touched,
)
from agentd.cli import output, run_summary, text_table
from agentd.cli.change_argument import change_argument, find_anywhere
from agentd.cli.list_command import no_changes_text, phase_words
from agentd.domain import Phase, StepStatus, format_amount, format_usd, pluralize, usd_digits
from agentd.project import Project, find_project

if TYPE_CHECKING:
    from agentd.change import ChangeState, StepRecord

COMMANDS = {"status": (80, "Show the status of one change, or of all open changes.")}

_BAR, _SHORT = 16, 4  # maximum and minimum width of a bar
_STEPS = 5  # steps shown; `agentd cost` shows all
_INTERRUPTED = "interrupted"  # the cause in a step's row
_LABEL = 10  # width of a label column, including the gap


@click.command("status")
@change_argument(required=False)
@output.json_option
def command(change_id: str | None, as_json: bool) -> int:
    """Show the status of the change ID, open or ended. Without ID: every open change and its next command."""
    project = find_project()
    if change_id is None:
        return _overview(project, as_json)
    from agentd.change import check_change_id  # deferred: the overview must start fast

    locator = ChangeLocator(project)
    found = refresh_touched(find_anywhere(locator, check_change_id(change_id)))
    overlaps = build_overlap_index(locator.open() if found.summary.touches else ())
    data = _details(project, found, overlaps)
    return output.show_result(
        "status", as_json, data, lambda: _render(project, found, data, overlapping_changes(found, overlaps))
    )


def _overview(project: Project, as_json: bool) -> int:
    locator = ChangeLocator(project)
    changes = locator.open()
    overlaps = build_overlap_index(changes)
    data = {"changes": [change_row(project, change, overlaps) for change in changes]} if as_json else {}
    return output.show_result("status", as_json, data, lambda: _blocks(locator, changes, overlaps))


def _blocks(locator: ChangeLocator, changes: list[LocatedChange], overlaps: OverlapIndex) -> str:
    if not changes:
        return no_changes_text(locator)
    project, width = locator.project, (output.width() or output.PIPE) - 2
    lines = [pluralize(len(changes), "open change")]
    by_change: dict[str, list[Overlap]] = {}
    for overlap in overlaps.all_overlaps():
        for change_id in overlap.changes:
            by_change.setdefault(change_id, []).append(overlap)
    for change in changes:
        summary = change.summary
        facts = [summary.verdict, output.findings(summary.high, summary.medium, summary.low)]
        facts += [output.money_cell(summary.cost), output.format_age(summary.updated_at)]
        shown_facts = [fact for fact in facts if fact and fact != "-"]
        lines += ["", *output.heading(change.id, phase_words(project, change))]
        lines += [
            f"  {text_table.shorten_line(text, width)}" for text in (summary.description, summary.problem) if text
        ]
        lines += [f"  {line}" for line in text_table.join_facts(shown_facts, width)]
        lines += [
            f"  {line}"
            for line in text_table.wrap_text(
                text_table.clean_line(_overlap_line(change.id, by_change.get(change.id, []))), width, "  "
            )
        ]
        if following := next_command(project, change):
            lines.append(f"  → {following}")
    return "\n".join(lines)


def _overlap_line(change_id: str, overlaps: Sequence[Overlap]) -> str:
    """Summarise overlapping changes in one line."""
    parts = [
        f"{format_names(overlap.changes, change_id)} in {format_names(overlap.requirements)}"
        for overlap in overlaps[:NAMES_SHOWN]
    ]
    return f"meets {_join_limited(parts, len(overlaps))}" if parts else ""


def _join_limited(parts: list[str], count: int) -> str:
    return "; ".join([*parts, f"{count - len(parts)} more"] if count > len(parts) else parts)


def _details(project: Project, found: LocatedChange, overlaps: OverlapIndex) -> dict[str, Any]:
    """Return the listing's row plus everything in STATE.yaml and the review records."""
    from pathlib import Path  # deferred: the overview reads no YAML

    from agentd.change import read_records, read_state
    from agentd.documents import count_open, current_findings
    from agentd.engine import group_costs

    assert found.folder
    state, rounds = read_state(Path(found.folder)), read_records(Path(found.folder))
    known = (*current_findings([record for record in rounds if record.kind == state.phase.judged_by]), *state.findings)
    open_findings = [finding for finding in known if finding.state.is_open]
    last = state.steps[-1] if state.steps else None
    row, edited, waits_for = (
        change_row(project, found, overlaps),
        _edited(project, found),
        _waits_for(project, found),
    )
    return {
        **row,
        "next": _next(found.id, row["next"], edited, waits_for),
        "open": {str(severity): count for severity, count in count_open(open_findings).items()},
        "folder": str(Path(found.folder).relative_to(found.tree or "")),
        "created_at": state.created_at,
        "session_id": state.session_id,
        "lane": str(state.lane),
        "findings": [
            {
                "id": finding.id,
                "severity": str(finding.severity),
                "title": finding.title,
                "where": finding.where,
                "requirement": finding.requirement,
                "state": str(finding.state),
            }
            for finding in open_findings
        ],
        "rounds": [
            {"kind": record.kind, "round": record.round, "verdict": record.verdict, "by": record.by, "at": record.at}
            for record in rounds
        ],
        "steps": _step_counts(state, row["running"]),
        "last_step": last and {"name": last.name, "round": last.round, "status": str(last.status), "at": last.at},
        "checks": [dict(check) for check in state.checks],
        "edited": edited,
        "waits_for": waits_for,
        "budget": _budget(project, state),
        "calls": len(state.llm_calls),
        "by_step": [
            {"step": step, **totals.data()}
            for step, totals in group_costs(state.llm_calls, lambda call: call.step).items()
        ],
        "calls_without_price": sum(call.cost is None for call in state.llm_calls),
        "tokens": {
            "in": sum(call.tokens_in or 0 for call in state.llm_calls),
            "out": sum(call.tokens_out or 0 for call in state.llm_calls),
            "cached": sum(call.tokens_cached or 0 for call in state.llm_calls),
        },
    }


def _step_counts(state: "ChangeState", is_running: bool) -> dict[str, int]:
    """Count steps by the status of their last attempt; an interrupted step has not failed."""
    last = {step.key[:3]: step for step in state.steps}.values()
    return dict(Counter(_step_status(step, is_running) for step in last))


def _step_status(step: "StepRecord", is_running: bool) -> str:
    is_cut = step.status == StepStatus.RUNNING and not is_running
    return _INTERRUPTED if is_cut or step.extra.get("cause") == _INTERRUPTED else str(step.status)


def _render(project: Project, found: LocatedChange, data: dict[str, Any], others: Sequence[OverlappingChange]) -> str:
    width = output.width() or output.PIPE
    facts = [
        ("Verdict", _verdict(data)),
        ("Rounds", _rounds(data["rounds"])),
        ("Where", _where(data)),
        ("Findings", output.findings(**data["open"]).replace("-", "none open")),
        ("Steps", _steps(data)),
        ("Checks", ", ".join(f"{check.get('name')} {check.get('status')}" for check in data["checks"])),
        ("Edited", _edited_text(data)),
        ("Meets", text_table.clean_line(_overlap_facts(others))),
        ("Waits for", ", ".join(f"{name} ({phase or 'gone'})" for name, phase in data["waits_for"].items())),
        ("Cost", _cost(data)),
        ("Updated", output.format_age(data["updated_at"])),
    ]
    lines = output.heading(found.id, phase_words(project, found))
    lines += [*text_table.wrap_text(text_table.clean_line(data["description"]), width), ""]
    for name, text in facts:
        lines += output.label(name, text, width, _LABEL) if text else []
        if name == "Findings":
            lines += run_summary.finding_lines(data["findings"], width)
        if name == "Cost":
            lines += _by_step(found.id, data["by_step"], width)
    return "\n".join([*lines, *(output.following(data["next"], _LABEL) if data["next"] else ())])


def _overlap_facts(others: Sequence[OverlappingChange]) -> str:
    """List the other open changes, their phases and the requirements they share."""
    parts = [f"{other.id} ({other.phase}) in {format_names(other.requirements)}" for other in others[:NAMES_SHOWN]]
    return _join_limited(parts, len(others))


def _edited(project: Project, found: LocatedChange) -> list[str]:
    """Return files of a complete change that were edited after its review."""
    if found.summary.phase != Phase.COMPLETE or not found.tree or not found.folder:
        return []
    from pathlib import Path  # deferred, see above

    from agentd.change import Change
    from agentd.engine import files_edited_since_review, specs_edited_since_review

    change = Change(project, found.id, found.tree, Path(found.folder))
    return [*specs_edited_since_review(change), *files_edited_since_review(change)]


def _budget(project: Project, state: "ChangeState") -> float | None:
    """Return the change's budget in USD; None without a limit or if the configuration is unreadable."""
    from agentd.domain import AgentdError
    from agentd.engine import effective_budget
    from agentd.project import load_config  # deferred, see above

    try:
        limits = load_config(project.config_file, flags=click.get_current_context().find_root().obj or ()).budget
    except AgentdError:
        return None  # `agentd config` says why
    return effective_budget(limits, state).per_change or None


def _waits_for(project: Project, found: LocatedChange) -> dict[str, str | None]:
    """Return the dependencies that are not archived yet, with their phases."""
    if found.archived:
        return {}
    from pathlib import Path  # deferred, see above

    from agentd.change import Change
    from agentd.engine import pending_dependencies

    change = Change(project, found.id, found.tree or "", Path(found.folder or ""))
    return {name: phase and str(phase) for name, phase in pending_dependencies(change).items()}


def _next(change_id: str, following: str | None, edited: list[str], waits_for: dict[str, str | None]) -> str | None:
    """Return the next command, replaced if it would be refused."""
    if following != f"agentd archive {change_id}":
        return following
    if any(name.startswith("specs/") for name in edited):
        return f"agentd impl {change_id} --review"
    return f"agentd status {next(iter(waits_for))}" if waits_for else following


def _edited_text(data: dict[str, Any]) -> str:
    names = data["edited"]
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"{', '.join(names[:3])}{more} since the review; run agentd impl {data['change_id']} --review to review again"
    )


def _verdict(data: dict[str, Any]) -> str:
    if not data["verdict"]:
        return "none yet"
    return f"{data['verdict']} in round {data['round']}" if data["round"] else data["verdict"]


def _rounds(rounds: Sequence[dict[str, Any]]) -> str:
    """Summarise the rounds of each judge, in order."""
    parts = []
    for kind in dict.fromkeys(record["kind"] for record in rounds):
        verdicts = [f"{record['round']} {record['verdict']}" for record in rounds if record["kind"] == kind]
        parts.append(f"{kind} {', '.join(verdicts)}")
    return "; ".join(parts)


def _by_step(change_id: str, steps: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Return the most expensive steps; the rest as a count and a command."""
    rows = sorted((step for step in steps if step["cost"]), key=lambda row: -row["cost"])
    if len(rows) < 2:
        return []
    shown, left = rows[:_STEPS], rows[_STEPS:]
    digits = usd_digits(step["cost"] for step in shown)
    cells = [(f"  {text_table.clean_line(step['step'])}", format_amount(step["cost"], digits)) for step in shown]
    bar_width = min(width - text_table.rows_width(cells) - 2, _BAR) if output.width() is not None else 0
    bars = [
        text_table.render_bar(step["cost"], rows[0]["cost"], bar_width) if bar_width >= _SHORT else "" for step in shown
    ]
    aligned = [text_table.shorten_end(line, width) for line in text_table.align_rows(cells)]
    lines = [output.charted(line, bar) for line, bar in zip(aligned, bars, strict=True)]
    more = f"  … and {len(left)} more"
    with_command = f"{more}: agentd cost {change_id}"
    return [*lines, with_command if len(with_command) <= width else more] if left else lines


def _where(data: dict[str, Any]) -> str:
    place = data["git"]
    branch = f"branch {place['branch']}, " if place["branch"] else ""
    tree = f"worktree {place['tree']}, " if place["setup"] == "worktree" else ""
    return f"{branch}{tree}{data['folder']}"


def _steps(data: dict[str, Any]) -> str:
    last = data["last_step"]
    if not last:
        return "none yet"
    counts = ", ".join(f"{count} {status}" for status, count in data["steps"].items())
    return f"{counts}; last {last['name']} (round {last['round']}), {output.format_age(last['at'])}"


def _cost(data: dict[str, Any]) -> str:
    if not data["calls"]:
        return "no call has reported its usage yet"
    unknown, of = data["calls_without_price"], f" of {format_usd(data['budget'])}" if data["budget"] else ""
    used = data["tokens"]
    tokens = f", {used['in']:,} tokens in, {used['out']:,} out" if used["in"] or used["out"] else ""
    if unknown == data["calls"]:
        return f"unknown, {pluralize(unknown, 'call')} without a known price{tokens}"
    return f"{format_usd(data['cost'])}{of} in {pluralize(data['calls'], 'call')}{tokens}" + (
        f"; {unknown} without a known price" if unknown else ""
    )

"""`agentd status`: where one change stands, or all of them."""

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

_BAR, _SHORT = 16, 4  # columns of the longest, and where there is little room
_STEPS = 5  # shown; the rest is in `agentd cost`
_INTERRUPTED = "interrupted"  # the cause in a step's row
_LABEL = 10  # columns of a label with its gap


@click.command("status")
@change_argument(required=False)
@output.json_option
def command(change_id: str | None, as_json: bool) -> int:
    """Show where the change ID stands, also one that has ended; without ID, every open change with what comes next."""
    project = find_project()
    if change_id is None:
        return _overview(project, as_json)
    from agentd.change import check_change_id  # late: the overview needs neither this nor what `_details` loads

    places = ChangeLocator(project)
    found = refresh_touched(find_anywhere(places, check_change_id(change_id)))
    among = build_overlap_index(places.open() if found.summary.touches else ())
    data = _details(project, found, among)
    return output.show_result(
        "status", as_json, data, lambda: _render(project, found, data, overlapping_changes(found, among))
    )


def _overview(project: Project, as_json: bool) -> int:
    places = ChangeLocator(project)
    found = places.open()
    among = build_overlap_index(found)
    data = {"changes": [change_row(project, one, among) for one in found]} if as_json else {}
    return output.show_result("status", as_json, data, lambda: _blocks(places, found, among))


def _blocks(places: ChangeLocator, found: list[LocatedChange], among: OverlapIndex) -> str:
    if not found:
        return no_changes_text(places)
    project, room = places.project, (output.width() or output.PIPE) - 2
    lines = [pluralize(len(found), "open change")]
    met: dict[str, list[Overlap]] = {}
    for meeting in among.meetings():
        for change_id in meeting.changes:
            met.setdefault(change_id, []).append(meeting)
    for one in found:
        summary = one.summary
        facts = [summary.verdict, output.findings(summary.high, summary.medium, summary.low)]
        facts += [output.money_cell(summary.cost), output.format_age(summary.updated_at)]
        told = [fact for fact in facts if fact and fact != "-"]
        lines += ["", *output.heading(one.id, phase_words(project, one))]
        lines += [f"  {text_table.shorten_line(text, room)}" for text in (summary.description, summary.problem) if text]
        lines += [f"  {line}" for line in text_table.join_facts(told, room)]
        lines += [
            f"  {line}"
            for line in text_table.wrap_text(text_table.clean_line(_meets(one.id, met.get(one.id, []))), room, "  ")
        ]
        if following := next_command(project, one):
            lines.append(f"  → {following}")
    return "\n".join(lines)


def _meets(change_id: str, met: Sequence[Overlap]) -> str:
    """In a line; how the others stand is in their own blocks."""
    told = [f"{format_names(one.changes, change_id)} in {format_names(one.requirements)}" for one in met[:NAMES_SHOWN]]
    return f"meets {_listed(told, len(met))}" if told else ""


def _listed(told: list[str], count: int) -> str:
    return "; ".join([*told, f"{count - len(told)} more"] if count > len(told) else told)


def _details(project: Project, found: LocatedChange, among: OverlapIndex) -> dict[str, Any]:
    """The row of a listing and all that STATE.yaml and the records know."""
    from pathlib import Path  # late: the overview reads no YAML

    from agentd.change import read_records, read_state
    from agentd.documents import count_open, current_findings
    from agentd.engine import group_costs

    assert found.folder
    state, rounds = read_state(Path(found.folder)), read_records(Path(found.folder))
    known = (*current_findings([one for one in rounds if one.kind == state.phase.judged_by]), *state.findings)
    open_ones = [finding for finding in known if finding.state.is_open]
    last = state.steps[-1] if state.steps else None
    row, edited, waits_for = (
        change_row(project, found, among),
        _edited(project, found),
        _waits_for(project, found),
    )
    return {
        **row,
        "next": _next(found.id, row["next"], edited, waits_for),
        "open": {str(severity): count for severity, count in count_open(open_ones).items()},
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
            for finding in open_ones
        ],
        "rounds": [
            {"kind": one.kind, "round": one.round, "verdict": one.verdict, "by": one.by, "at": one.at} for one in rounds
        ],
        "steps": _fates(state, row["running"]),
        "last_step": last and {"name": last.name, "round": last.round, "status": str(last.status), "at": last.at},
        "checks": [dict(check) for check in state.checks],
        "edited": edited,
        "waits_for": waits_for,
        "budget": _budget(project, state),
        "calls": len(state.llm_calls),
        "by_step": [
            {"step": step, **some.data()} for step, some in group_costs(state.llm_calls, lambda call: call.step).items()
        ],
        "calls_without_price": sum(call.cost is None for call in state.llm_calls),
        "tokens": {
            "in": sum(call.tokens_in or 0 for call in state.llm_calls),
            "out": sum(call.tokens_out or 0 for call in state.llm_calls),
            "cached": sum(call.tokens_cached or 0 for call in state.llm_calls),
        },
    }


def _fates(state: "ChangeState", is_running: bool) -> dict[str, int]:
    """How many steps are done, failed and so on, each by its last try. One that was cut off has not failed."""
    last = {step.key[:3]: step for step in state.steps}.values()
    return dict(Counter(_fate(step, is_running) for step in last))


def _fate(step: "StepRecord", is_running: bool) -> str:
    is_cut = step.status == StepStatus.RUNNING and not is_running
    return _INTERRUPTED if is_cut or step.extra.get("cause") == _INTERRUPTED else str(step.status)


def _render(project: Project, found: LocatedChange, data: dict[str, Any], rivals: Sequence[OverlappingChange]) -> str:
    width = output.width() or output.PIPE
    facts = [
        ("Verdict", _verdict(data)),
        ("Rounds", _rounds(data["rounds"])),
        ("Where", _where(data)),
        ("Findings", output.findings(**data["open"]).replace("-", "none open")),
        ("Steps", _steps(data)),
        ("Checks", ", ".join(f"{check.get('name')} {check.get('status')}" for check in data["checks"])),
        ("Edited", _since(data)),
        ("Meets", text_table.clean_line(_met(rivals))),
        ("Waits for", ", ".join(f"{name} ({phase or 'gone'})" for name, phase in data["waits_for"].items())),
        ("Cost", _cost(data)),
        ("Updated", output.format_age(data["updated_at"])),
    ]
    lines = output.heading(found.id, phase_words(project, found))
    lines += [*text_table.wrap_text(text_table.clean_line(data["description"]), width), ""]
    for name, words in facts:
        lines += output.label(name, words, width, _LABEL) if words else []
        if name == "Findings":
            lines += run_summary.finding_lines(data["findings"], width)
        if name == "Cost":
            lines += _by_step(found.id, data["by_step"], width)
    return "\n".join([*lines, *(output.following(data["next"], _LABEL) if data["next"] else ())])


def _met(rivals: Sequence[OverlappingChange]) -> str:
    """Other open changes with their phase, and what they change too."""
    told = [f"{one.id} ({one.phase}) in {format_names(one.requirements)}" for one in rivals[:NAMES_SHOWN]]
    return _listed(told, len(rivals))


def _edited(project: Project, found: LocatedChange) -> list[str]:
    """Of a complete change: code that nobody has judged as it is now."""
    if found.summary.phase != Phase.COMPLETE or not found.tree or not found.folder:
        return []
    from pathlib import Path  # late: see above

    from agentd.change import Change
    from agentd.engine import files_edited_since_review, specs_edited_since_review

    change = Change(project, found.id, found.tree, Path(found.folder))
    return [*specs_edited_since_review(change), *files_edited_since_review(change)]


def _budget(project: Project, state: "ChangeState") -> float | None:
    """What the change may cost, in USD; None: there is no limit, or the configuration cannot be read."""
    from agentd.domain import AgentdError
    from agentd.engine import effective_budget
    from agentd.project import load_config  # late: see above

    try:
        limits = load_config(project.config_file, flags=click.get_current_context().find_root().obj or ()).budget
    except AgentdError:
        return None  # `agentd config` says why
    return effective_budget(limits, state).per_change or None


def _waits_for(project: Project, found: LocatedChange) -> dict[str, str | None]:
    """What it depends on and is not archived yet."""
    if found.archived:
        return {}
    from pathlib import Path  # late: see above

    from agentd.change import Change
    from agentd.engine import pending_dependencies

    change = Change(project, found.id, found.tree or "", Path(found.folder or ""))
    return {name: phase and str(phase) for name, phase in pending_dependencies(change).items()}


def _next(change_id: str, following: str | None, edited: list[str], waits_for: dict[str, str | None]) -> str | None:
    """Not a command that would be refused."""
    if following != f"agentd archive {change_id}":
        return following
    if any(name.startswith("specs/") for name in edited):
        return f"agentd impl {change_id} --review"
    return f"agentd status {next(iter(waits_for))}" if waits_for else following


def _since(data: dict[str, Any]) -> str:
    names = data["edited"]
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} since the review; agentd impl {data['change_id']} --review judges it again"


def _verdict(data: dict[str, Any]) -> str:
    if not data["verdict"]:
        return "none yet"
    return f"{data['verdict']} in round {data['round']}" if data["round"] else data["verdict"]


def _rounds(rounds: Sequence[dict[str, Any]]) -> str:
    """Of each judge, in order: how often, and what it came to."""
    told = []
    for kind in dict.fromkeys(one["kind"] for one in rounds):
        verdicts = [f"{one['round']} {one['verdict']}" for one in rounds if one["kind"] == kind]
        told.append(f"{kind} {', '.join(verdicts)}")
    return "; ".join(told)


def _by_step(change_id: str, steps: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Where most was spent; the rest is a count and a command."""
    rows = sorted((one for one in steps if one["cost"]), key=lambda one: -one["cost"])
    if len(rows) < 2:
        return []
    shown, left = rows[:_STEPS], rows[_STEPS:]
    digits = usd_digits(one["cost"] for one in shown)
    names = [(f"  {text_table.clean_line(one['step'])}", format_amount(one["cost"], digits)) for one in shown]
    room = min(width - text_table.rows_width(names) - 2, _BAR) if output.width() is not None else 0
    bars = [text_table.render_bar(one["cost"], rows[0]["cost"], room) if room >= _SHORT else "" for one in shown]
    told = [text_table.shorten_end(line, width) for line in text_table.align_rows(names)]
    lines = [output.charted(line, bar) for line, bar in zip(told, bars, strict=True)]
    more = f"  … and {len(left)} more"
    whole = f"{more}: agentd cost {change_id}"
    return [*lines, whole if len(whole) <= width else more] if left else lines


def _where(data: dict[str, Any]) -> str:
    place = data["git"]
    branch = f"branch {place['branch']}, " if place["branch"] else ""
    tree = f"work tree {place['tree']}, " if place["setup"] == "worktree" else ""
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

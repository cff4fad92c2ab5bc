"""`agentd rebase`: bring a change onto the specs of today."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

import click

from agentd.change import Change, check_plan, open_change
from agentd.cli import archive, output
from agentd.cli.change_argument import change_argument
from agentd.domain import Phase, Severity
from agentd.engine import RebasedSpec, change_project, is_plan_edited, preview_rebase, rebase_change
from agentd.project import find_project, load_config


@click.command("rebase")
@change_argument()
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be written, as a diff, and write nothing.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str, dry: bool, as_json: bool) -> int:
    """Bring the specs of the change ID onto the project's specs as they are now.

    Where others changed the same, marks stand in the change's spec: solve them, or let the planner do it.
    Exit code 0 when nothing is left to solve.
    """
    change = open_change(find_project(), change_id)
    settings = load_config(change_project(change).config_file, flags=ctx.find_root().obj or ()).validation
    moved = (preview_rebase if dry else rebase_change)(change, re.compile(settings.requirement_pattern))
    found = () if dry else check_plan(change, settings)
    data = _data(change, moved, [one for one in found if one.severity is Severity.HIGH])
    left = any(one.conflicts for one in moved)
    return output.show_result("rebase", as_json, data, lambda: _text(change, moved, data, dry), int(left))


def _data(change: Change, moved: Sequence[RebasedSpec], faults: Sequence[Any]) -> dict[str, Any]:
    phase = change.read().phase
    return {
        "change_id": change.id,
        "phase": str(phase),
        "specs": [
            {
                "id": one.id,
                "touched": one.is_touched,
                "conflicts": archive.conflict_rows(one.conflicts),
            }
            for one in moved
        ],
        "approval_stale": any(one.is_touched for one in moved) and _is_stale(change, phase),
        "faults": [{"file": one.file, "line": one.line, "rule": one.rule, "message": one.message} for one in faults],
        "next": _next(change, phase, moved),
    }


def _is_stale(change: Change, phase: Phase) -> bool:
    return phase in (Phase.IMPLEMENTING, Phase.COMPLETE) or is_plan_edited(change)


def _next(change: Change, phase: Phase, moved: Sequence[RebasedSpec]) -> str:
    """The planner solves what it planned; once there is code, it is judged by the specs as they are then."""
    is_stale = any(one.is_touched for one in moved)
    if phase is Phase.COMPLETE:
        return f"agentd impl {change.id} --review" if is_stale else f"agentd archive {change.id}"
    if phase is Phase.IMPLEMENTING:
        return f"agentd impl {change.id}"
    if phase is Phase.CHALLENGED:
        return f"agentd plan {change.id} --rechallenge" if is_stale else f"agentd impl {change.id}"
    return f"agentd plan {change.id}"


def _text(change: Change, moved: Sequence[RebasedSpec], data: dict[str, Any], dry: bool) -> str:
    if not moved:
        return f"{change.id} stands on the specs of today."
    if dry:
        return "\n".join(_diff(change, one) for one in moved)
    found = [conflict for one in moved for conflict in one.conflicts]
    lines = [archive.conflicts_as_text(found)] if found else []
    for one in moved:
        lines.append(f"  {one.id}  {_said(one)}")
    others = [one for one in data["faults"] if not found or one["rule"] == "conflict-mark"]
    lines += [f"  {one['file']}:{one['line']} {one['message']}" for one in others]
    if found:
        lines += ["", *output.prose(f"Marks stand in agentd/changes/{change.id}/specs/. Solve them first.")]
    else:
        lines += ["", *output.prose(f"{change.id} stands on the specs of today.")]
    return "\n".join([*lines, *output.following(data["next"])])


def _said(one: RebasedSpec) -> str:
    if one.conflicts:
        return f"{len(one.conflicts)} to solve"
    return "others touched the same requirements; judge it again" if one.is_touched else "nothing of it was touched"


def _diff(change: Change, one: RebasedSpec) -> str:
    path = f"agentd/changes/{change.id}/specs/{one.id}.md"
    old, new = one.before.splitlines(keepends=True), one.after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")).removesuffix("\n")

"""`agentd rebase`: rebase a change onto the current specs."""

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

COMMANDS = {"rebase": (50, "Rebase a change onto the current specs.")}


@click.command("rebase")
@change_argument()
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be written as a diff, without writing anything.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str, dry: bool, as_json: bool) -> int:
    """Rebase the specs of the change ID onto the project's current specs.

    Conflicts are marked in the change's specs: resolve them, or let the planner do it.
    Exit code 0: no conflicts left.
    """
    change = open_change(find_project(), change_id)
    settings = load_config(change_project(change).config_file, flags=ctx.find_root().obj or ()).validation
    rebased = (preview_rebase if dry else rebase_change)(change, re.compile(settings.requirement_pattern))
    faults = () if dry else check_plan(change, settings)
    data = _data(change, rebased, [fault for fault in faults if fault.severity is Severity.HIGH])
    has_conflicts = any(spec.conflicts for spec in rebased)
    return output.show_result("rebase", as_json, data, lambda: _render(change, rebased, data, dry), int(has_conflicts))


def _data(change: Change, rebased: Sequence[RebasedSpec], faults: Sequence[Any]) -> dict[str, Any]:
    phase = change.read().phase
    return {
        "change_id": change.id,
        "phase": str(phase),
        "specs": [
            {
                "id": spec.id,
                "touched": spec.is_touched,
                "conflicts": archive.conflict_rows(spec.conflicts),
            }
            for spec in rebased
        ],
        "approval_stale": any(spec.is_touched for spec in rebased) and _is_approval_stale(change, phase),
        "faults": [
            {"file": fault.file, "line": fault.line, "rule": fault.rule, "message": fault.message} for fault in faults
        ],
        "next": _next_command(change, phase, rebased),
    }


def _is_approval_stale(change: Change, phase: Phase) -> bool:
    return phase in (Phase.IMPLEMENTING, Phase.COMPLETE) or is_plan_edited(change)


def _next_command(change: Change, phase: Phase, rebased: Sequence[RebasedSpec]) -> str:
    """Return the next command: conflicts go to the planner before there is code, to the implementer after."""
    is_stale = any(spec.is_touched for spec in rebased)
    if phase is Phase.COMPLETE:
        return f"agentd impl {change.id} --review" if is_stale else f"agentd archive {change.id}"
    if phase is Phase.IMPLEMENTING:
        return f"agentd impl {change.id}"
    if phase is Phase.CHALLENGED:
        return f"agentd plan {change.id} --rechallenge" if is_stale else f"agentd impl {change.id}"
    return f"agentd plan {change.id}"


def _render(change: Change, rebased: Sequence[RebasedSpec], data: dict[str, Any], dry: bool) -> str:
    if not rebased:
        return f"{change.id} is up to date with the current specs."
    if dry:
        return "\n".join(_diff(change, spec) for spec in rebased)
    conflicts = [conflict for spec in rebased for conflict in spec.conflicts]
    lines = [archive.conflicts_as_text(conflicts)] if conflicts else []
    for spec in rebased:
        lines.append(f"  {spec.id}  {_describe_spec(spec)}")
    faults = [fault for fault in data["faults"] if not conflicts or fault["rule"] == "conflict-mark"]
    lines += [f"  {fault['file']}:{fault['line']} {fault['message']}" for fault in faults]
    if conflicts:
        lines += ["", *output.prose(f"Conflicts are marked in agentd/changes/{change.id}/specs/. Resolve them first.")]
    else:
        lines += ["", *output.prose(f"{change.id} is up to date with the current specs.")]
    return "\n".join([*lines, *output.following(data["next"])])


def _describe_spec(spec: RebasedSpec) -> str:
    if spec.conflicts:
        return f"{len(spec.conflicts)} to resolve"
    return (
        "other changes touched the same requirements; review it again"
        if spec.is_touched
        else "no requirement of this change was touched"
    )


def _diff(change: Change, spec: RebasedSpec) -> str:
    path = f"agentd/changes/{change.id}/specs/{spec.id}.md"
    old, new = spec.before.splitlines(keepends=True), spec.after.splitlines(keepends=True)
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")).removesuffix("\n")

"""`agentd archive`: merge the specs of a complete change and move its folder to the archive."""

import difflib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from agentd.change import Change, open_change
from agentd.cli import output, text_table
from agentd.cli.change_argument import change_argument
from agentd.domain import UsageError
from agentd.engine import (
    CHANGELOG_FILE,
    ArchivePlan,
    GitCommands,
    MergeConflict,
    archive_change,
    change_project,
    describe_spec_change,
    prepare_archive,
    undo_archive,
)
from agentd.merge import SpecConflict
from agentd.project import find_project, load_config

COMMANDS = {"archive": (40, "Archive a complete change and merge its specs into the project's specs.")}


def conflicts_as_text(conflicts: Sequence[SpecConflict]) -> str:
    return "\n\n".join("\n".join(_lines(conflict)) for conflict in conflicts) + "\n"


def conflict_rows(conflicts: Sequence[SpecConflict]) -> list[dict[str, Any]]:
    return [
        {
            "kind": str(conflict.kind),
            "name": conflict.name,
            "why": conflict.why,
            "base": conflict.base,
            "theirs": conflict.theirs,
            "yours": conflict.yours,
        }
        for conflict in conflicts
    ]


def _lines(conflict: SpecConflict) -> list[str]:
    lines = [f"{output.paint(conflict.name, bold=True)}: {conflict.why}"]
    for name, text in (("base", conflict.base), ("theirs", conflict.theirs), ("yours", conflict.yours)):
        lines.append(output.paint(f"  {name}", dim=True) + ("" if text else " (absent)"))
        lines += [
            f"    {text_table.strip_control(line)}".rstrip() for line in (text or "").strip("\n").split("\n") if text
        ]
    return lines


@click.command("archive")
@change_argument()
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be written as a diff, without writing anything.")
@click.option("--undo", is_flag=True, help="Undo the archive of ID, byte for byte.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str, dry: bool, undo: bool, as_json: bool) -> int:
    """Archive the complete change ID: merge its specs into agentd/specs/, move its folder to agentd/archive/.

    Archives everything or nothing. Does not commit or merge; prints the git commands for that.
    """
    if dry and undo:
        raise UsageError("--dry-run and --undo cannot be used together", "give one of them")
    if undo:
        return _undo(change_id, as_json)
    change = open_change(find_project(), change_id)
    pattern = re.compile(
        load_config(change_project(change).config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    )
    try:
        archived = (prepare_archive if dry else archive_change)(change, pattern)
    except MergeConflict as error:
        return _report_conflicts(change, error, as_json)
    data = _data(archived, dry)
    for warning in archived.warnings:
        output.report(f"{output.paint('Warning:', fg='yellow')} {warning}")
    return output.show_result("archive", as_json, data, lambda: _diff(archived) if dry else _render(archived))


def _undo(change_id: str, as_json: bool) -> int:
    change = undo_archive(find_project(), change_id)
    folder = f"agentd/changes/{change_id}"
    data = _base_data(change_id, "complete") | {"folder": folder, "next": f"agentd archive {change_id}"}
    message = f"Undid the archive of {change_id}. The change is complete again, in {_path(change, folder)}."
    return output.show_result("archive", as_json, data, lambda: message)


def _report_conflicts(change: Change, error: MergeConflict, as_json: bool) -> int:
    if not as_json:
        output.stream([conflicts_as_text(error.conflicts)])
        raise error
    data = _base_data(change.id, "complete") | {"conflicts": conflict_rows(error.conflicts)}
    return output.show_result(
        "archive", as_json, data | {"next": f"agentd rebase {change.id}"}, str, error.exit_code, error
    )


def _base_data(change_id: str, phase: str) -> dict[str, Any]:
    """Return the keys of every result, in this order."""
    return {
        "change_id": change_id,
        "phase": phase,
        "folder": None,
        "specs": [],
        "changelog": f"agentd/specs/{CHANGELOG_FILE}",
        "conflicts": [],
        "warnings": [],
        "commands": {name: [] for name in GitCommands.__dataclass_fields__},
        "diff": None,
        "next": None,
    }


def _data(archived: ArchivePlan, dry: bool) -> dict[str, Any]:
    specs = [
        {
            "id": spec.id,
            "file": f"agentd/specs/{spec.id}.md",
            "version": spec.version,
            "new": spec.is_new,
            "changed": spec.after is not None,
            "touches": [{"kind": str(touch.kind), "name": touch.name, "how": str(touch.how)} for touch in spec.touches],
        }
        for spec in archived.specs
    ]
    return _base_data(archived.change.id, str(archived.state.phase) if dry else "archived") | {
        "folder": archived.folder,
        "specs": specs,
        "warnings": list(archived.warnings),
        "commands": {name: list(getattr(archived.commands, name)) for name in GitCommands.__dataclass_fields__},
        "diff": _diff(archived) if dry else None,
        "next": f"agentd archive {archived.change.id}" if dry else archived.commands.commit[0],
    }


def _render(archived: ArchivePlan) -> str:
    name = output.paint(archived.change.id, bold=True)
    lines = [*output.prose(f"Archived {name} to {_path(archived.change, archived.folder)}"), "", *_specs(archived)]
    lines += ["", "Nothing is committed yet:"]
    lines += [f"  {line}" for line in archived.commands.commit]
    if archived.commands.merge:
        lines += ["Then merge it:", *(f"  {line}" for line in archived.commands.merge)]
    if archived.commands.pull_request:
        lines += ["Or open a pull request:", *(f"  {line}" for line in archived.commands.pull_request)]
    if archived.commands.remove:
        title = "Once it is merged:" if archived.commands.merge else "Its branch is merged and can be deleted:"
        lines += [title, *(f"  {line}" for line in archived.commands.remove)]
    return "\n".join([*lines, "", *output.following(f"agentd archive {archived.change.id} --undo", name="Undo")])


def _specs(archived: ArchivePlan) -> list[str]:
    rows = [(f"  {spec.id}", describe_spec_change(spec)) for spec in archived.specs]
    if not rows:
        return ["  no spec changed"]
    if text_table.rows_width(rows) <= (output.width() or sys.maxsize):
        return text_table.align_rows(rows)
    return [line for name, text in rows for line in (name, *output.prose(text, "    "))]


def _path(change: Change, inside: str) -> str:
    """Return the path relative to the current folder; the change may be in another worktree."""
    return os.path.relpath(os.path.join(change.tree, change.project.prefix, inside))


def _diff(archived: ArchivePlan) -> str:
    """Return the diff of what would be written, and where the folder would move."""
    lines: list[str] = []
    for path, (before, after) in archived.texts().items():
        old, new = (before or "").splitlines(keepends=True), after.splitlines(keepends=True)
        labels = ("/dev/null" if before is None else f"a/{path}", f"b/{path}")
        for line in difflib.unified_diff(old, new, *labels):
            lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    lines.append(f"rename agentd/changes/{archived.change.id} => {archived.folder}\n")
    return "".join(lines).removesuffix("\n")

"""`agentd archive`: merge the specs of a complete change into those of the project, and put its folder away."""

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


def conflicts_as_text(conflicts: Sequence[SpecConflict]) -> str:
    return "\n\n".join("\n".join(_lines(one)) for one in conflicts) + "\n"


def conflict_rows(conflicts: Sequence[SpecConflict]) -> list[dict[str, Any]]:
    return [
        {
            "kind": str(one.kind),
            "name": one.name,
            "why": one.why,
            "base": one.base,
            "theirs": one.theirs,
            "yours": one.yours,
        }
        for one in conflicts
    ]


def _lines(one: SpecConflict) -> list[str]:
    lines = [f"{output.paint(one.name, bold=True)}: {one.why}"]
    for name, words in (("base", one.base), ("theirs", one.theirs), ("yours", one.yours)):
        lines.append(output.paint(f"  {name}", dim=True) + ("" if words else " (not there)"))
        lines += [
            f"    {text_table.strip_control(line)}".rstrip() for line in (words or "").strip("\n").split("\n") if words
        ]
    return lines


@click.command("archive")
@change_argument()
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be written, as a diff, and write nothing.")
@click.option("--undo", is_flag=True, help="Take the archive of ID back, byte for byte.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, change_id: str, dry: bool, undo: bool, as_json: bool) -> int:
    """Archive the complete change ID: merge its specs into agentd/specs/, move its folder to agentd/archive/.

    All of it or nothing. Nothing is committed or merged in git; what to type for that is printed.
    """
    if dry and undo:
        raise UsageError("--dry-run shows an archive, and --undo takes one back", "give one of them")
    if undo:
        return _undo(change_id, as_json)
    change = open_change(find_project(), change_id)
    pattern = re.compile(
        load_config(change_project(change).config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    )
    try:
        done = (prepare_archive if dry else archive_change)(change, pattern)
    except MergeConflict as error:
        return _refused(change, error, as_json)
    data = _data(done, dry)
    for words in done.warnings:
        output.report(f"{output.paint('Warning:', fg='yellow')} {words}")
    return output.show_result("archive", as_json, data, lambda: _diff(done) if dry else _told(done))


def _undo(change_id: str, as_json: bool) -> int:
    change = undo_archive(find_project(), change_id)
    folder = f"agentd/changes/{change_id}"
    data = _keys(change_id, "complete") | {"folder": folder, "next": f"agentd archive {change_id}"}
    words = f"The archive of {change_id} is taken back. The change is complete again, in {_path(change, folder)}."
    return output.show_result("archive", as_json, data, lambda: words)


def _refused(change: Change, error: MergeConflict, as_json: bool) -> int:
    if not as_json:
        output.stream([conflicts_as_text(error.conflicts)])
        raise error
    data = _keys(change.id, "complete") | {"conflicts": conflict_rows(error.conflicts)}
    return output.show_result(
        "archive", as_json, data | {"next": f"agentd rebase {change.id}"}, str, error.exit_code, error
    )


def _keys(change_id: str, phase: str) -> dict[str, Any]:
    """What a program finds in every result, in this order."""
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


def _data(done: ArchivePlan, dry: bool) -> dict[str, Any]:
    specs = [
        {
            "id": one.id,
            "file": f"agentd/specs/{one.id}.md",
            "version": one.version,
            "new": one.is_new,
            "changed": one.after is not None,
            "touches": [{"kind": str(t.kind), "name": t.name, "how": str(t.how)} for t in one.touches],
        }
        for one in done.specs
    ]
    return _keys(done.change.id, str(done.state.phase) if dry else "archived") | {
        "folder": done.folder,
        "specs": specs,
        "warnings": list(done.warnings),
        "commands": {name: list(getattr(done.commands, name)) for name in GitCommands.__dataclass_fields__},
        "diff": _diff(done) if dry else None,
        "next": f"agentd archive {done.change.id}" if dry else done.commands.commit[0],
    }


def _told(done: ArchivePlan) -> str:
    name = output.paint(done.change.id, bold=True)
    lines = [*output.prose(f"{name} is archived in {_path(done.change, done.folder)}"), "", *_specs(done)]
    lines += ["", "Nothing is committed yet:"]
    lines += [f"  {line}" for line in done.commands.commit]
    if done.commands.merge:
        lines += ["Then merge it:", *(f"  {line}" for line in done.commands.merge)]
    if done.commands.pull_request:
        lines += ["or open a pull request:", *(f"  {line}" for line in done.commands.pull_request)]
    if done.commands.remove:
        words = "Once it is merged:" if done.commands.merge else "Its branch is merged, so it can go:"
        lines += [words, *(f"  {line}" for line in done.commands.remove)]
    return "\n".join([*lines, "", *output.following(f"agentd archive {done.change.id} --undo", name="Undo")])


def _specs(done: ArchivePlan) -> list[str]:
    rows = [(f"  {one.id}", describe_spec_change(one)) for one in done.specs]
    if not rows:
        return ["  no spec changed"]
    if text_table.rows_width(rows) <= (output.width() or sys.maxsize):
        return text_table.align_rows(rows)
    return [line for name, words in rows for line in (name, *output.prose(words, "    "))]


def _path(change: Change, inside: str) -> str:
    """As seen from here: the change may live in another work tree."""
    return os.path.relpath(os.path.join(change.tree, change.project.prefix, inside))


def _diff(done: ArchivePlan) -> str:
    """What would be written, and where the folder would go."""
    lines: list[str] = []
    for path, (before, after) in done.texts().items():
        old, new = (before or "").splitlines(keepends=True), after.splitlines(keepends=True)
        named = ("/dev/null" if before is None else f"a/{path}", f"b/{path}")
        for line in difflib.unified_diff(old, new, *named):
            lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    lines.append(f"rename agentd/changes/{done.change.id} => {done.folder}\n")
    return "".join(lines).removesuffix("\n")

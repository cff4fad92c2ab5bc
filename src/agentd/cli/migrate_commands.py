"""`agentd import`: move the project of another tool in. Its files stay as they are."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agentd.change import format_names
from agentd.cli import output, text_table
from agentd.documents import REQUIREMENT_PATTERN
from agentd.domain import Refusal, clock, pluralize
from agentd.engine import CHANGELOG_FILE as CHANGELOG
from agentd.engine import read_optional
from agentd.migrate import (
    EXPORT_FOLDER,
    OPENSPEC_FOLDER,
    SPECKIT_FOLDERS,
    ImportedChange,
    ImportedProject,
    ImportNote,
    distinct_capabilities,
    export_spec,
    read_openspec,
    read_source_tree,
    read_speckit,
    refuse_existing,
    write_export,
    write_import,
)
from agentd.project import Project, find_project, load_config

_FEW = 3  # notes of one kind that are told one by one
_CHANGE = re.compile(r"(?:openspec/changes/(?:archive/)?|specs/)([^/]+)")


@click.command("import")
@click.argument("tool", type=click.Choice(["openspec", "speckit"]))
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be mapped, and write nothing.")
@output.json_option
@click.pass_context
def import_command(ctx: click.Context, tool: str, dry: bool, as_json: bool) -> int:
    """Read the OpenSpec or Spec Kit project at the project's root into agentd/.

    All of it or nothing, and over nothing that is there. The originals are not touched. What could not be mapped is
    told at the end, with file and line.
    """
    project = find_project()
    pattern = load_config(project.config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    if pattern.pattern != REQUIREMENT_PATTERN.pattern:
        hint = "take requirement_pattern out of agentd/config.toml for the import"
        raise Refusal("the import writes `### R1: Title`, and this project has a requirement_pattern of its own", hint)
    moving = _found(project, tool)
    (refuse_existing if dry else write_import)(project, moving)
    return output.show_result("import", as_json, _data(moving, dry), lambda: _report(moving, dry))


def _found(project: Project, tool: str) -> ImportedProject:
    if tool == "openspec":
        moving = read_openspec(read_source_tree(project.root, OPENSPEC_FOLDER), clock.now())
    else:
        moving = read_speckit(read_source_tree(project.root, *SPECKIT_FOLDERS), clock.now())
    if not (moving.specs or moving.changes or moving.archived):
        where = "openspec/specs/ and openspec/changes/" if tool == "openspec" else "specs/<number>-<name>/"
        hint = "; ".join(f"{one.where} {one.message}" for one in moving.notes[:2]) or f"it is looked for in {where}"
        raise Refusal(f"{project.root} has nothing of {moving.tool} to import", hint)
    return moving


def _data(moving: ImportedProject, dry: bool) -> dict[str, Any]:
    specs = [
        {
            "from": one.source,
            "to": f"agentd/specs/{one.id}.md",
            "requirements": one.requirements,
            "scenarios": one.scenarios,
        }
        for one in moving.specs
    ]
    archived = {f"agentd/archive/{folder}": one for folder, one in moving.archived.items()}
    return {
        "tool": moving.tool,
        "written": not dry,
        "specs": specs,
        "changes": [_row(one, f"agentd/changes/{one.id}") for one in moving.changes],
        "archived": [_row(one, folder) for folder, one in archived.items()],
        "notes": [{"file": one.file, "line": one.line, "message": one.message} for one in moving.notes],
        "next": _next(moving, dry),
    }


def _row(one: ImportedChange, folder: str) -> dict[str, Any]:
    return {
        "from": one.source,
        "to": folder,
        "change_id": one.id,
        "phase": str(one.phase),
        "specs": list(one.bases),
        **{name: one.counts[name] for name in ("requirements", "removed", "renamed", "scenarios")},
        "tasks": one.tasks,
    }


def _next(moving: ImportedProject, dry: bool) -> str:
    return f"agentd import {moving.tool.lower().replace(' ', '')}" if dry else "agentd list"


def _report(moving: ImportedProject, dry: bool) -> str:
    requirements, scenarios = (
        sum(getattr(one, name) for one in moving.specs) for name in ("requirements", "scenarios")
    )
    facts = [
        ("spec", len(moving.specs), f"{pluralize(requirements, 'requirement')}, {pluralize(scenarios, 'scenario')}"),
        ("change", len(moving.changes), _planned(moving.changes)),
        ("archived change", len(moving.archived), ""),
    ]
    tool = output.paint(moving.tool, bold=True)
    lines = [f"{tool}, as it would be imported:" if dry else f"{tool} is imported:"]
    for word, count, words in facts:
        if count:
            lines += output.prose(f"{pluralize(count, word)}: {words}" if words else pluralize(count, word), "  ", "  ")
    lines += notes_on(moving.notes, f"{_next(moving, dry)} --dry-run --verbose" if dry else "")
    lines += ["", "The originals are as they were."]
    return "\n".join([*lines, *output.following(_next(moving, dry))])


def _planned(changes: Sequence[ImportedChange]) -> str:
    counts = sum((one.counts for one in changes), Counter(tasks=sum(one.tasks for one in changes)))
    words = {
        "requirements": f"{pluralize(counts['requirements'], 'requirement')} added or changed",
        "removed": f"{counts['removed']} removed",
        "renamed": f"{counts['renamed']} renamed",
        "scenarios": pluralize(counts["scenarios"], "scenario"),
        "tasks": pluralize(counts["tasks"], "task"),
    }
    return ", ".join(words[kind] for kind in words if counts[kind])


def notes_on(notes: Sequence[ImportNote], whole: str = "") -> list[str]:
    """What could not be mapped, or not exactly. What is said of many is said once; `whole` is the command for each."""
    alike: dict[str, list[ImportNote]] = {}
    for one in notes:
        alike.setdefault(one.alike or one.message, []).append(one)
    told: list[str] = []
    is_short = False
    for words, group in alike.items():
        if len(group) <= _FEW or output.is_verbose():
            told += [line for one in group for line in _prose(f"{one.where}: {one.message}", "  ")]
        else:
            is_short = True
            places = list(dict.fromkeys(map(_owner, group)))
            what = "change" if all(_CHANGE.match(one.file) for one in group) else "place"
            told += [*_prose(f"{pluralize(len(places), what)}: {words}", "  "), *_prose(format_names(places), "    ")]
    if is_short and whole:
        told += _prose(f"Each with its line: {whole}", "  ")
    return ["", "Not mapped, or worth a look:", *told] if told else []


def _prose(words: str, indent: str) -> list[str]:
    return output.prose(text_table.clean_line(words), indent, indent)


def _owner(one: ImportNote) -> str:
    match = _CHANGE.match(one.file)
    return match[1] if match else one.where


@click.command("export")
@click.argument("tool", type=click.Choice(["openspec"]))
@click.option("--into", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Where the tree is made.")
@output.json_option
@click.pass_context
def export_command(ctx: click.Context, tool: str, into: Path, as_json: bool) -> int:
    """Write agentd/specs/ as openspec/specs/<capability>/spec.md below DIR.

    All of it or nothing; where DIR has openspec/specs already, nothing is written.
    """
    project = find_project()
    pattern = load_config(project.config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    folder = project.specs_in(project.tree)
    paths = [path for path in sorted(folder.glob("*.md")) if path.is_file() and path.name != CHANGELOG]
    if not paths:
        raise Refusal(f"{folder} has no spec to export", "agentd list")
    texts, notes = distinct_capabilities(
        (path.stem, export_spec(read_optional(path) or "", path.stem, pattern)) for path in paths
    )
    write_export(texts, into)
    data: dict[str, Any] = {
        "tool": tool,
        "folder": str(into / EXPORT_FOLDER),
        "specs": sorted(texts),
        "notes": [{"file": one.file, "line": one.line, "message": one.message} for one in notes],
    }

    def text() -> str:
        words = f"{pluralize(len(texts), 'spec')} {'is' if len(texts) == 1 else 'are'} in {into / EXPORT_FOLDER}"
        return "\n".join([*output.prose(words), *notes_on(notes)])

    return output.show_result("export", as_json, data, text)

"""`agentd import` and `agentd export`: exchange specs and changes with OpenSpec and Spec Kit."""

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

COMMANDS = {
    "import": (170, "Import a project from OpenSpec or Spec Kit."),
    "export": (180, "Export the specs to OpenSpec."),
}

_MAX_EACH = 3  # more notes of one kind are summarised
_CHANGE = re.compile(r"(?:openspec/changes/(?:archive/)?|specs/)([^/]+)")


@click.command("import")
@click.argument("tool", type=click.Choice(["openspec", "speckit"]))
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be imported, without writing anything.")
@output.json_option
@click.pass_context
def import_command(ctx: click.Context, tool: str, dry: bool, as_json: bool) -> int:
    """Read the OpenSpec or Spec Kit project at the project's root into agentd/.

    Imports everything or nothing, and never overwrites existing files. The originals are not changed. Anything that
    could not be mapped is listed at the end, with file and line.
    """
    project = find_project()
    pattern = load_config(project.config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    if pattern.pattern != REQUIREMENT_PATTERN.pattern:
        hint = "remove requirement_pattern from agentd/config.toml before importing"
        raise Refusal("the import writes `### R1: Title`, but this project sets its own requirement_pattern", hint)
    imported = _read_source(project, tool)
    (refuse_existing if dry else write_import)(project, imported)
    return output.show_result("import", as_json, _data(imported, dry), lambda: _render(imported, dry))


def _read_source(project: Project, tool: str) -> ImportedProject:
    if tool == "openspec":
        imported = read_openspec(read_source_tree(project.root, OPENSPEC_FOLDER), clock.now())
    else:
        imported = read_speckit(read_source_tree(project.root, *SPECKIT_FOLDERS), clock.now())
    if not (imported.specs or imported.changes or imported.archived):
        where = "openspec/specs/ and openspec/changes/" if tool == "openspec" else "specs/<number>-<name>/"
        hint = "; ".join(f"{note.where} {note.message}" for note in imported.notes[:2]) or f"agentd looks in {where}"
        raise Refusal(f"{project.root} contains nothing from {imported.tool} to import", hint)
    return imported


def _data(imported: ImportedProject, dry: bool) -> dict[str, Any]:
    specs = [
        {
            "from": spec.source,
            "to": f"agentd/specs/{spec.id}.md",
            "requirements": spec.requirements,
            "scenarios": spec.scenarios,
        }
        for spec in imported.specs
    ]
    archived = {f"agentd/archive/{folder}": change for folder, change in imported.archived.items()}
    return {
        "tool": imported.tool,
        "written": not dry,
        "specs": specs,
        "changes": [_change_data(change, f"agentd/changes/{change.id}") for change in imported.changes],
        "archived": [_change_data(change, folder) for folder, change in archived.items()],
        "notes": [{"file": note.file, "line": note.line, "message": note.message} for note in imported.notes],
        "next": _next_command(imported, dry),
    }


def _change_data(change: ImportedChange, folder: str) -> dict[str, Any]:
    return {
        "from": change.source,
        "to": folder,
        "change_id": change.id,
        "phase": str(change.phase),
        "specs": list(change.bases),
        **{name: change.counts[name] for name in ("requirements", "removed", "renamed", "scenarios")},
        "tasks": change.tasks,
    }


def _next_command(imported: ImportedProject, dry: bool) -> str:
    return f"agentd import {imported.tool.lower().replace(' ', '')}" if dry else "agentd list"


def _render(imported: ImportedProject, dry: bool) -> str:
    requirements, scenarios = (
        sum(getattr(spec, name) for spec in imported.specs) for name in ("requirements", "scenarios")
    )
    facts = [
        ("spec", len(imported.specs), f"{pluralize(requirements, 'requirement')}, {pluralize(scenarios, 'scenario')}"),
        ("change", len(imported.changes), _change_counts(imported.changes)),
        ("archived change", len(imported.archived), ""),
    ]
    tool = output.paint(imported.tool, bold=True)
    lines = [f"{tool}: would import" if dry else f"{tool}: imported"]
    for noun, count, details in facts:
        if count:
            lines += output.prose(
                f"{pluralize(count, noun)}: {details}" if details else pluralize(count, noun), "  ", "  "
            )
    lines += notes_on(imported.notes, f"{_next_command(imported, dry)} --dry-run --verbose" if dry else "")
    lines += ["", "The original files were not changed."]
    return "\n".join([*lines, *output.following(_next_command(imported, dry))])


def _change_counts(changes: Sequence[ImportedChange]) -> str:
    counts = sum((change.counts for change in changes), Counter(tasks=sum(change.tasks for change in changes)))
    texts = {
        "requirements": f"{pluralize(counts['requirements'], 'requirement')} added or changed",
        "removed": f"{counts['removed']} removed",
        "renamed": f"{counts['renamed']} renamed",
        "scenarios": pluralize(counts["scenarios"], "scenario"),
        "tasks": pluralize(counts["tasks"], "task"),
    }
    return ", ".join(texts[kind] for kind in texts if counts[kind])


def notes_on(notes: Sequence[ImportNote], whole: str = "") -> list[str]:
    """List what could not be mapped exactly. Repeated notes are summarised; `whole` is the command that lists each."""
    groups: dict[str, list[ImportNote]] = {}
    for note in notes:
        groups.setdefault(note.alike or note.message, []).append(note)
    lines: list[str] = []
    is_shortened = False
    for message, group in groups.items():
        if len(group) <= _MAX_EACH or output.is_verbose():
            lines += [line for note in group for line in _prose(f"{note.where}: {note.message}", "  ")]
        else:
            is_shortened = True
            places = list(dict.fromkeys(map(_change_or_place, group)))
            noun = "change" if all(_CHANGE.match(note.file) for note in group) else "place"
            lines += [
                *_prose(f"{pluralize(len(places), noun)}: {message}", "  "),
                *_prose(format_names(places), "    "),
            ]
    if is_shortened and whole:
        lines += _prose(f"For every line: {whole}", "  ")
    return ["", "Not mapped, or worth checking:", *lines] if lines else []


def _prose(text: str, indent: str) -> list[str]:
    return output.prose(text_table.clean_line(text), indent, indent)


def _change_or_place(note: ImportNote) -> str:
    match = _CHANGE.match(note.file)
    return match[1] if match else note.where


@click.command("export")
@click.argument("tool", type=click.Choice(["openspec"]))
@click.option(
    "--into", required=True, metavar="DIR", type=click.Path(path_type=Path), help="The folder to create the tree in."
)
@output.json_option
@click.pass_context
def export_command(ctx: click.Context, tool: str, into: Path, as_json: bool) -> int:
    """Write agentd/specs/ as openspec/specs/<capability>/spec.md below DIR.

    Exports everything or nothing; nothing is written if DIR already has openspec/specs.
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
        "notes": [{"file": note.file, "line": note.line, "message": note.message} for note in notes],
    }

    def text() -> str:
        summary = f"{pluralize(len(texts), 'spec')} exported to {into / EXPORT_FOLDER}"
        return "\n".join([*output.prose(summary), *notes_on(notes)])

    return output.show_result("export", as_json, data, text)

"""`agentd export`: give the project's specs to another tool."""

from pathlib import Path
from typing import Any

import click

from agentd.cli import output
from agentd.cli.import_command import notes_on
from agentd.domain.errors import Refusal
from agentd.domain.formatting import pluralize
from agentd.engine.archive.changelog import CHANGELOG_FILE as CHANGELOG
from agentd.engine.archive.preview import read_optional
from agentd.migrate import openspec_export
from agentd.project import config
from agentd.project.layout import find_project


@click.command("export")
@click.argument("tool", type=click.Choice(["openspec"]))
@click.option("--into", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Where the tree is made.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, tool: str, into: Path, as_json: bool) -> int:
    """Write agentd/specs/ as openspec/specs/<capability>/spec.md below DIR.

    All of it or nothing; where DIR has openspec/specs already, nothing is written.
    """
    project = find_project()
    pattern = config.load_config(project.config_file, flags=ctx.find_root().obj or ()).validation.requirement_pattern
    folder = project.specs_in(project.tree)
    paths = [path for path in sorted(folder.glob("*.md")) if path.is_file() and path.name != CHANGELOG]
    if not paths:
        raise Refusal(f"{folder} has no spec to export", "agentd list")
    texts, notes = openspec_export.distinct_capabilities(
        (path.stem, openspec_export.export_spec(read_optional(path) or "", path.stem, pattern)) for path in paths
    )
    openspec_export.write_export(texts, into)
    data: dict[str, Any] = {
        "tool": tool,
        "folder": str(into / openspec_export.EXPORT_FOLDER),
        "specs": sorted(texts),
        "notes": [{"file": one.file, "line": one.line, "message": one.message} for one in notes],
    }

    def text() -> str:
        words = f"{pluralize(len(texts), 'spec')} {'is' if len(texts) == 1 else 'are'} in {into / openspec_export.EXPORT_FOLDER}"
        return "\n".join([*output.prose(words), *notes_on(notes)])

    return output.show("export", as_json, data, text)

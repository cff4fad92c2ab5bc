"""`agentd config`: the effective configuration, and where each value comes from."""

import json
from typing import Any

import click

from agentd.cli import output, text_table
from agentd.domain import UsageError
from agentd.project import ConfigValue, find_project, load_config

COMMANDS = {"config": (210, "Show the effective configuration and where each value comes from.")}


@click.command("config")
@click.argument("key", required=False)
@output.json_option
@click.pass_context
def command(ctx: click.Context, key: str | None, as_json: bool) -> int:
    """Show the effective configuration and where each value comes from.

    KEY shows one value or one table, such as `budget` or `budget.per_change`.
    Precedence: --set, AGENTD_<TABLE>__<KEY>, your own ~/.config/agentd/config.toml,
    agentd/config.toml, then the default.
    """
    project = find_project()
    values = load_config(project.config_file, flags=ctx.find_root().obj or ()).values()
    if key:
        values = tuple(value for value in values if value.key == key or value.key.startswith((f"{key}.", f"{key}[")))
        if not values:
            raise UsageError(f"unknown configuration key '{key}'", "agentd config lists all keys")
    data = {"values": {value.key: {"value": value.value, "from": value.source} for value in values}}
    return output.show_result("config", as_json, data, lambda: _render(values, key))


def _render(values: tuple[ConfigValue, ...], key: str | None) -> str:
    if len(values) == 1 and values[0].key == key:
        return _toml(values[0].value)  # a single value, for scripts
    width = output.width() or 10_000
    rows = [(value.key, value.source, text_table.strip_control(_toml(value.value))) for value in values]
    if text_table.rows_width([row[:2] for row in rows]) + 20 <= width:
        blocks = [[line] for line in text_table.align_rows(rows)]
    else:
        blocks = [[f"{name} = {value}", f"  {source}"] for name, source, value in rows]
    return "\n".join(
        output.paint(text_table.shorten_end(line, width), dim=row[1] == "default")  # values that were set stand out
        for row, block in zip(rows, blocks, strict=True)
        for line in block
    )


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)

"""mcp-tools.md: the tools that agents act through, from the table that the server is made of."""

from collections.abc import Iterator
from typing import Any

from agentd.engine.tools.tool import Stage, Tool
from agentd.engine.tools.tool_table import TOOLS, tools_of
from reference.markdown import code, plain, table

_HEAD = """# MCP tools

`agentd mcp` serves these. A server that agentd starts for a call is bound to one change and one stage, and has the
tools of that stage only; the server of your own session (`agentd init --register`) is unbound and cannot approve
anything. A refusal says what to send instead. In a bound server `change_id` may be left out.

"""


def page() -> str:
    rows = [[str(stage), ", ".join(f"[{tool.name}](#{tool.name})" for tool in tools_of(stage))] for stage in Stage]
    stages = f"## By stage\n\n{table(('stage', 'tools'), rows)}\n"
    return _HEAD + stages + "\n".join(_tool(tool) for tool in TOOLS)


def _tool(tool: Tool) -> str:
    rows = [list(row) for row in _rows(tool.arguments.json_schema(), "")]
    arguments = table(("argument", "value", "", "meaning"), rows)
    return f"## {tool.name}\n\n{plain(tool.about)}\n\nStages: {', '.join(tool.stages)}.\n\n{arguments}"


def _rows(schema: dict[str, Any], inside: str) -> Iterator[tuple[str, str, str, str]]:
    for name, one in schema["properties"].items():
        required = "" if name in schema["required"] else "may be left out"
        yield code(inside + name), _value(one), required, plain(one.get("description", ""))
        for shape, mark in _objects(one, ""):
            yield from _rows(shape, f"{inside}{name}{mark}.")


def _objects(schema: dict[str, Any], mark: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects within, each with where it stands."""
    if schema.get("type") == "object":
        yield schema, mark
    elif schema.get("type") == "array":
        yield from _objects(schema["items"], f"{mark}[]")
    for one in schema.get("anyOf", ()):
        yield from _objects(one, mark)


def _value(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return ", or ".join(map(_value, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(map(code, schema["enum"]))
    if "pattern" in schema:
        return f"text like {code(schema['pattern'])}"
    low, high = (next((schema[key] for key in keys if key in schema), None) for keys in _LIMITS)
    range_ = f"{low or 0} to {high}"
    match schema["type"]:
        case "string":
            return f"text, {f'at most {high}' if not low else range_} characters"
        case "integer":
            return f"a whole number, {range_}"
        case "array":
            return f"{range_} of: {_value(schema['items'])}"
        case "boolean":
            return "`true`, `false`"
        case other:
            return f"an {other}"


_LIMITS = (("minLength", "minimum", "minItems"), ("maxLength", "maximum", "maxItems"))

"""One call of a tool: its rights, its arguments, its answer. Whatever happens, there is an answer."""

import importlib
import json
from typing import Any

from agentd.domain import AgentdError, BadId, Busy, ChangeNotFound, NotCheckedOut
from agentd.engine.tools.argument_shapes import text_size
from agentd.engine.tools.refusal import ToolRefusal, nearest_names
from agentd.engine.tools.tool_scope import ToolScope
from agentd.engine.tools.tool_table import TOOLS, tools_of

MAX_CALL_CHARACTERS = 1_000_000  # characters in one call
_CODES = {Busy: "busy", ChangeNotFound: "not-found", NotCheckedOut: "not-found", BadId: "bad-argument"}
_BY_NAME = {tool.name: tool for tool in TOOLS}


def call_tool(binding: ToolScope, name: str, arguments: dict[str, Any] | None) -> str:
    """The answer as text: JSON, or the text of a file. A refusal is raised."""
    tool = _BY_NAME.get(name)
    allowed = [one.name for one in tools_of(binding.stage)]
    if tool is None or binding.stage not in tool.stages:
        near = nearest_names(name, allowed, 1) or allowed
        raise ToolRefusal("not-found", f"there is no tool {name[:60]} here", f"use {', '.join(near)}")
    if text_size(arguments, MAX_CALL_CHARACTERS) > MAX_CALL_CHARACTERS:
        raise ToolRefusal("too-large", "the call has over a million characters", "send less, or split the document")
    checked = tool.arguments.check(arguments or {}, "")
    work = getattr(importlib.import_module(f"agentd.engine.tools.{tool.module}"), name)
    try:
        answer = work(binding, checked)
    except AgentdError as error:
        raise ToolRefusal(_CODES.get(type(error), "failed"), error.message, error.hint or "tell the person") from None
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, indent=2)

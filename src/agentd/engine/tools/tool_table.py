"""All tools, and how one is called: permission, arguments, answer."""

import json
from typing import Any

from agentd.domain import AgentdError, BadId, Busy, ChangeNotFound, NotCheckedOut
from agentd.engine.tools import judge_tools, planning_tools, question_tools, reading_tools, spec_tools
from agentd.engine.tools.tool import DECLARED, Stage, Tool, ToolRefusal, check_arguments, nearest_names
from agentd.engine.tools.tool_scope import ToolScope

# Modules whose tools are served.
_MODULES = (planning_tools, spec_tools, question_tools, reading_tools, judge_tools)
TOOLS = tuple(tool for module in _MODULES for tool in DECLARED if tool.run.__module__ == module.__name__)

MAX_CALL_CHARACTERS = 1_000_000  # characters in one call
_CODES = {Busy: "busy", ChangeNotFound: "not-found", NotCheckedOut: "not-found", BadId: "bad-argument"}


def tools_of(stage: Stage) -> tuple[Tool, ...]:
    return tuple(tool for tool in TOOLS if stage in tool.stages)


def call_tool(binding: ToolScope, name: str, arguments: dict[str, Any] | None) -> str:
    """Call a tool and return its answer as text: JSON, or the text of a file. Raise ToolRefusal if refused."""
    allowed = {tool.name: tool for tool in tools_of(binding.stage)}
    tool = allowed.get(name)
    if tool is None:
        near = nearest_names(name, allowed, 1) or allowed
        raise ToolRefusal("not-found", f"there is no tool {name[:60]} here", f"use {', '.join(near)}")
    if _text_size(arguments, MAX_CALL_CHARACTERS) > MAX_CALL_CHARACTERS:
        raise ToolRefusal("too-large", "the call has over a million characters", "send less, or split the document")
    checked = check_arguments(tool.arguments, arguments or {})
    try:
        answer = tool.run(binding, checked)
    except AgentdError as error:
        raise ToolRefusal(_CODES.get(type(error), "failed"), error.message, error.hint or "tell the person") from None
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, indent=2)


def _text_size(value: Any, most: int) -> int:
    """Return the number of characters in all strings and keys, counted up to `most`."""
    total, pending = 0, [value]
    while pending and total <= most:
        one = pending.pop()
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            pending.extend(one)
            pending.extend(one.values())
            total += len(one)
        elif isinstance(one, list):
            pending.extend(one)
            total += len(one)
        else:
            total += 8
    return total

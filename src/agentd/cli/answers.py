"""Clarifications from a file: questions with their answers, as the MCP tool takes them."""

import json
from functools import cache
from typing import Any

from agentd.documents.clarifications import Clarification
from agentd.domain.errors import UsageError
from agentd.engine.tools.question_tools import clarifications_from_rows
from agentd.engine.tools.refusal import ToolRefusal
from agentd.engine.tools.tool_table import TOOLS

_HINT = '[{"topic": "…", "question": "…", "answer": "…", "rationale": "…"}], at most 5'


@cache  # a pipe can be read once, and a command looks at the answers more often
def read(path: str) -> tuple[Clarification, ...]:
    """A list of questions, or an object that has one."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            data: Any = json.load(file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _HINT) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}", _HINT) from None
    rows = data.get("questions") if isinstance(data, dict) else data
    shape = next(tool.arguments for tool in TOOLS if tool.name == "create_clarifications").fields["questions"]
    try:
        checked = shape.check(rows, "questions")
    except ToolRefusal as error:
        raise UsageError(f"{path}: {error.what}; {error.instead}", _HINT) from None
    return clarifications_from_rows(checked)

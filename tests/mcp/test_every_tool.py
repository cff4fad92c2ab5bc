"""The official client lists and calls every tool of every stage, on every transport, in both protocol generations."""

import json
from typing import Any

import anyio
import pytest

from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_table import tools_of
from mcp_session import GENERATIONS, TRANSPORTS, Staged, connected, staged, text_of
from plans import example_calls
from scenario import Scenario

EXAMPLES = example_calls()
CONTRACT = {
    "clarify": "ask_questions read_file list_directory",
    "plan": "create_proposal create_spec write_spec create_tasks edit_file answer_finding validate_change read_file "
    "list_directory",
    "challenge": "append_review read_file list_directory",
    "implement": "answer_finding validate_change read_file list_directory",
    "review": "append_review get_diff read_file list_directory",
    "unbound": "create_clarifications list_changes get_change validate_change read_file list_directory",
}
# the order in which one session can call them all: an edit of tasks.md comes before it is written anew
ORDER = ["edit_file", "create_proposal", "create_spec", "create_tasks"]


def calls(stage: Stage) -> list[tuple[str, dict[str, Any]]]:
    names = [tool.name for tool in tools_of(stage)]
    names.sort(key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    found = [(name, dict(EXAMPLES[name])) for name in names]
    for name, arguments in found:
        if name == "create_clarifications":
            arguments["change_id"] = "something-new"
    return found


def test_stages_have_the_tools_of_the_contract() -> None:
    assert {str(stage): {tool.name for tool in tools_of(stage)} for stage in Stage} == {
        stage: set(names.split()) for stage, names in CONTRACT.items()
    }


@pytest.mark.parametrize("mode", GENERATIONS)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("stage", Stage)
def test_every_tool_can_be_listed_and_called(project: Scenario, stage: Stage, transport: str, mode: str) -> None:
    async def talk(on: Staged) -> None:
        async with connected(on, transport, mode) as client:
            listed = (await client.list_tools()).tools
            assert {tool.name for tool in listed} == set(CONTRACT[stage].split())
            assert all(tool.description and tool.input_schema["additionalProperties"] is False for tool in listed)
            for name, arguments in calls(stage):
                result = await client.call_tool(name, arguments)
                assert not result.is_error, f"{name}: {text_of(result)}"
                if name not in ("read_file", "get_diff"):
                    json.loads(text_of(result))

    with staged(project, stage) as on:
        anyio.run(talk, on)

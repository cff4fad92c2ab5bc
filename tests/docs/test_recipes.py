"""The recipes of CONTRIBUTING.md work: each test follows one in a copy of the source and uses the result."""

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from mcp_session import text_of
from scenario import Scenario
from source_tree import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def recipe(title: str) -> str:
    """Return the only code block below this heading."""
    (code,) = re.findall(r"```py\n(.*?)```", PAGE.partition(f"### {title}\n")[2].partition("\n### ")[0], re.DOTALL)
    return str(code)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the package, which `copied` runs."""
    copy = tmp_path / "copy" / "agentd"
    shutil.copytree(ROOT / "src" / "agentd", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def copied(box: Scenario, source: Path) -> Scenario:
    box.program = (sys.executable, "-P", "-m", "agentd")
    box.env["PYTHONPATH"] = str(source.parent)
    return box


def add_name(path: Path, before: str, name: str) -> None:
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, before + name))


PARROT = """\
#!/bin/sh
if [ "$1" = --version ]; then echo 3.1.4; exit; fi
cat > /dev/null
echo '{"say": "Hello"}'
echo '{"done": true}'
"""


def test_agent_recipe_adds_an_agent(box: Scenario, source: Path, tmp_path: Path) -> None:
    (source / "agents" / "parrot.py").write_text(recipe("Add an agent"))
    add_name(source / "agents" / "registry.py", "_MODULES = (", '"parrot", ')
    program = tmp_path / "bin" / "parrot"
    program.parent.mkdir()
    program.write_text(PARROT)
    program.chmod(0o755)
    copied(box, source).env |= {"PATH": f"{program.parent}:/usr/bin:/bin", "PARROT_KEY": "secret"}

    assert set(box.agentd("init", "--commit", "--json").json["roles"].values()) == {"parrot"}
    assert 'kind = "command"                # "parrot", "gemini"' in box.config_text

    rows = [row for row in box.agentd("doctor", "--json").json["rows"] if row["about"] == "agent parrot"]
    assert [row["words"] for row in rows] == [str(program), "3.1.4, known", "by PARROT_KEY", "its own default"]

    plan = box.agentd("plan", "greet", "Greet people", "--skip-clarify", "--json")
    assert "parrot" in plan.json["error"]["message"]
    assert 'out| {"say": "Hello"}' in box.agentd("log", "greet", "--transcript").out


def test_tool_recipe_adds_a_tool(project: Scenario, source: Path) -> None:
    (source / "engine" / "tools" / "count_tools.py").write_text(recipe("Add an MCP tool"))
    table = source / "engine" / "tools" / "tool_table.py"
    add_name(table, "_MODULES = (", "count_tools, ")
    add_name(table, "from agentd.engine.tools import ", "count_tools, ")
    project.write("poem.txt", "one\ntwo\n")
    env = {**copied(project, source).variables(), "PYTHONPATH": str(source.parent)}
    server = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "agentd", "mcp"], env=env, cwd=str(project.root)
    )

    async def session() -> tuple[dict[str, object], str, str]:
        async with Client(server) as client:
            (tool,) = [one for one in (await client.list_tools()).tools if one.name == "count_lines"]
            answer = await client.call_tool("count_lines", {"path": "poem.txt"})
            refusal = await client.call_tool("count_lines", {})
            return tool.input_schema, text_of(answer), text_of(refusal)

    schema, answer, refusal = asyncio.run(session())
    assert schema["required"] == ["path"]
    assert json.loads(answer) == {"lines": 2}
    assert refusal == "bad-argument: path is missing; add it"

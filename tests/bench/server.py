"""agentd's MCP server beside a bare server of the same SDK, in the same run, over stdio: ready time and 1,000 calls.

The bare server has one tool that reads a file. Each figure may be at most 1.3 times the bare one's.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
import anyio
from mcp import Client, StdioServerParameters

from agentd.engine.tools.tool_scope import run_folder
from agentd.project.layout import find_project
from mcp_session import lay_out
from program import AGENTD
from scenario import Scenario

CALLS = 1000
STARTS = 7
LIMIT = 1.3
BARE = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(name="read_file", description="Read a file.", input_schema={
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})

async def list_tools(context, parameters):
    return types.ListToolsResult(tools=[TOOL])

async def call_tool(context, parameters):
    with open(parameters.arguments["path"]) as file:
        return types.CallToolResult(content=[types.TextContent(type="text", text=file.read())])

async def main():
    server = Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


async def ready(parameters: StdioServerParameters) -> float:
    """From the start of the process to the answer with its tools."""
    start = time.perf_counter()
    async with Client(parameters) as client:
        await client.list_tools()
        return time.perf_counter() - start


async def calls(servers: dict[str, StdioServerParameters], path: str) -> dict[str, list[float]]:
    """In turns, so that a busy moment hits both alike."""
    times: dict[str, list[float]] = {name: [] for name in servers}
    async with Client(servers["bare"]) as bare, Client(servers["agentd"]) as ours:
        clients = {"bare": bare, "agentd": ours}
        for number in range(CALLS + 50):
            for name, client in clients.items():
                start = time.perf_counter()
                result = await client.call_tool("read_file", {"path": path})
                if number >= 50:  # the first ones load what is needed
                    times[name].append(time.perf_counter() - start)
                assert not result.is_error
    return times


def report(title: str, bare: float, ours: float) -> bool:
    ratio = ours / bare
    print(
        f"  {title:18} bare {bare * 1000:8.2f} ms   agentd {ours * 1000:8.2f} ms   {ratio:5.2f} x  (at most {LIMIT} x)"
    )
    return ratio <= LIMIT


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        box = Scenario(Path(folder) / "repo", Path(folder) / "home")
        box.write("agentd/config.toml", "schema_version = 1\n")
        box.commit("start")
        os.chdir(box.root)
        change = lay_out(box)
        with change.running("bench") as holder:
            run_folder(find_project(), holder.token).mkdir(parents=True)
            bound = ["mcp", "--change", change.id, "--stage", "plan", "--token", holder.token]
            servers = {
                "bare": StdioServerParameters(
                    command=sys.executable, args=["-c", BARE], env=box.env, cwd=str(box.root)
                ),
                "agentd": StdioServerParameters(command=AGENTD, args=bound, env=box.env, cwd=str(box.root)),
            }
            starts: dict[str, list[float]] = {name: [] for name in servers}
            for _ in range(STARTS):
                for name, parameters in servers.items():
                    starts[name].append(anyio.run(ready, parameters))
            times = anyio.run(calls, servers, "agentd/changes/add-oauth/specs/auth-flow.md")
    print(f"\nMCP over stdio (ready: best of {STARTS}; {CALLS} calls; alternating)")
    fine = report("ready", min(starts["bare"]), min(starts["agentd"]))
    fine &= report("call, median", *(statistics.median(times[name]) for name in ("bare", "agentd")))
    fine &= report("call, p99", *(statistics.quantiles(times[name], n=100)[98] for name in ("bare", "agentd")))
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()

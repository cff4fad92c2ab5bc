"""The server for any transport: which tools it lists, and how it answers a call."""

import signal
import sys
import traceback
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from agentd import __version__
from agentd.engine import ToolRefusal, ToolScope, call_tool, tools_of

NAME = "agentd"
_QUICK = ("read_file", "list_directory")  # faster than dispatching to a thread


def build_server(binding: ToolScope) -> Server[Any]:
    tools = [
        types.Tool(name=tool.name, description=tool.about, input_schema=tool.arguments.json_schema())
        for tool in tools_of(binding.stage)
    ]
    one_at_a_time = anyio.CapacityLimiter(1)  # a session's calls run one after another, as its writes must

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        binding.served()
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        name, arguments = parameters.name, parameters.arguments
        if name in _QUICK:
            return _answer(binding, name, arguments)
        return await anyio.to_thread.run_sync(_answer, binding, name, arguments, limiter=one_at_a_time)

    return Server(
        NAME,
        version=__version__,
        instructions=_instructions(binding),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _instructions(binding: ToolScope) -> str:
    if binding.change is None:
        return "agentd keeps this project's changes: specs, reviews and their state. These tools read them."
    return f"You work on the change {binding.change.id} (stage {binding.stage}). Use these tools for its documents."


def _answer(binding: ToolScope, name: str, arguments: dict[str, Any] | None) -> types.CallToolResult:
    """Call a tool. Errors and crashes are returned as results; the server keeps running."""
    try:
        return _result(call_tool(binding, name, arguments))
    except ToolRefusal as refusal:
        return _result(str(refusal), is_error=True)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        words = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return _result(f"failed: the tool has a bug ({words}); try another way, or tell the person", is_error=True)


def _result(text: str, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def serve_stdio(binding: ToolScope) -> None:
    """Serve until stdin or stdout closes. The SDK reserves stdout for the protocol; anything printed goes to stderr."""

    async def serve() -> None:
        server = build_server(binding)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    # The reading thread cannot be interrupted. Writes are atomic, so exiting immediately is safe.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(serve)
    except* BrokenPipeError:
        pass  # the client exited before it got its answer

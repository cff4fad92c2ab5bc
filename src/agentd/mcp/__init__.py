"""The MCP interface: agentd's tools over stdio and streamable HTTP."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.mcp.http_transport import serve_http
    from agentd.mcp.tool_server import serve_stdio
else:
    from agentd import lazy_exports

    __getattr__ = lazy_exports(__name__)

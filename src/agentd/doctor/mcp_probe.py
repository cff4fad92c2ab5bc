"""Start an MCP server and print the names of its tools: `python -P -m agentd.doctor.mcp_probe <server>`."""

import json
import sys

from agentd.agents import McpClient, PlaybookMismatch


def main(arguments: list[str]) -> int:
    try:
        server = McpClient(tuple(arguments))
        try:
            server.greet()
            names = server.tools()
        finally:
            server.close()
    except PlaybookMismatch as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    sys.stdout.buffer.write(json.dumps(names).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A home in which a person uses Claude Code: with settings, a server and an address of the model of their own."""

import json
import sys
from pathlib import Path
from typing import Any

from loopback.model import Conversation

KEY = "ANTHROPIC_API_KEY"

# A server as small as they come. Its arguments: a tool's name, a file it writes when it starts, seconds it takes to.
SERVER = """
import json, sys, time
name, mark, slow = sys.argv[1:]
open(mark, "w").close()
time.sleep(float(slow))
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": asked.get("params", {}).get("protocolVersion"),
                       "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}},
        "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "it ran"}]},
    }
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}
        print(json.dumps(answer), flush=True)
"""


def small_server(name: str, mark: Path, slow: float = 0) -> dict[str, Any]:
    return {"type": "stdio", "command": sys.executable, "args": ["-c", SERVER, name, str(mark), str(slow)]}


def claude_home(home: Path, conversation: Conversation, servers: dict[str, Any] | None = None, **settings: Any) -> None:
    """The person's settings.json and .claude.json."""
    own = {"env": {"ANTHROPIC_BASE_URL": conversation.base}, "cleanupPeriodDays": 99, **settings}
    write(home / ".claude" / "settings.json", own)
    write(home / ".claude.json", {**STATE, "mcpServers": servers or {}})


STATE = {
    "hasCompletedOnboarding": True,
    "oauthAccount": {"accountUuid": "00000000-0000-4000-8000-000000000001", "emailAddress": "dev@example.invalid"},
    "projects": {"/home/dev/other": {"allowedTools": ["Bash(ls)"], "mcpServers": {}, "hasTrustDialogAccepted": True}},
}


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n")

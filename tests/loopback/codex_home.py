"""A home in which a person uses Codex: with settings, a server and a provider of their own, the scripted model."""

import json
import sys
from pathlib import Path

from loopback.model import Conversation

KEY = "NOTES_MODEL_KEY"
CONFIG = """\
# mine
model_provider = "notes"
model = "gpt-5.5"
sandbox_mode = "danger-full-access"
approval_policy = "on-request"

[model_providers.notes]
name = "Notes Inc."
base_url = "{base}/v1"
wire_api = "responses"
env_key = "{key}"
request_max_retries = 0
stream_max_retries = {retries}
{more}"""

# As small as a server can be: its arguments are a file that it writes when it is called, and the name of its tool.
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method = asked["method"]
    if method == "tools/call":
        open(sys.argv[1], "w").close()
    answers = {
        "initialize": {"protocolVersion": asked.get("params", {}).get("protocolVersion"),
                       "capabilities": {"tools": {}}, "serverInfo": {"name": "own", "version": "1"}},
        "tools/list": {"tools": [{"name": sys.argv[2], "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "it ran"}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(method, {})}), flush=True)
"""


def codex_home(home: Path, conversation: Conversation, more: str = "", retries: int = 0) -> Path:
    """The person's config.toml."""
    path = home / ".codex" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG.format(base=conversation.base, key=KEY, retries=retries, more=more))
    return path


def entry_of(name: str, **values: object) -> str:
    """A server as it stands in config.toml."""
    return "\n".join(
        [f"\n[mcp_servers.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""]
    )


def own_server(mark: Path) -> str:
    """A server of the person's own, whose tool `look_up` may always be called."""
    start = entry_of("own", command=sys.executable, args=["-c", SERVER, str(mark), "look_up"], required=True)
    return start + entry_of("own.tools.look_up", approval_mode="approve")


def before_our_server(folder: Path, code: str) -> str:
    """An entry under our server's name that runs that code when it starts: the rest of the entry is agentd's."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(code)
    return entry_of("agentd", command="never-run") + entry_of("agentd.env", PYTHONPATH=str(folder))

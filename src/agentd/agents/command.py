"""Any program as an agent: prompt on stdin, answer as plain text on stdout."""

import json
import re
from collections.abc import Iterable

from agentd.agents import failures
from agentd.agents.protocol import (
    Adapter,
    AgentBrief,
    AgentCommand,
    AgentEnded,
    AgentEvent,
    AgentSettings,
    AgentText,
)
from agentd.domain import BadConfig

MCP_CONFIG = "mcp.json"
_PLACEHOLDER = re.compile(r"\{(model|session|tree|mcp_config)\}")
_LAST_LINES = 10  # of stderr; errors come last, after log output
_LAST_CHARS = 4000


class CommandAgent(Adapter):
    kind = "command"
    final_event = False
    install_hint = "install the program that its `command` names, or name another one in agentd/config.toml"

    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand:
        used = {name for text in agent.args for name in _PLACEHOLDER.findall(text)}
        if "model" in used and brief.model is None:
            raise BadConfig(
                f"the args of agents.{agent.name} use {{model}}, but no model is set for this complexity",
                f"add it to [[agents.{agent.name}.models]] in agentd/config.toml",
            )
        values = {
            "model": brief.model or "",
            # agentd does not manage this program's sessions, but gives it a unique id.
            "session": brief.session or brief.folder.name,
            "tree": str(brief.tree),
            "mcp_config": str(brief.folder / MCP_CONFIG),
        }
        return AgentCommand(
            # A single pass, so a value may contain a placeholder; other braces are left alone.
            argv=(agent.command, *(_PLACEHOLDER.sub(lambda match: values[match[1]], text) for text in agent.args)),
            stdin=brief.prompt,
            cwd=brief.tree,
            files={brief.folder / MCP_CONFIG: _mcp_config(brief.server)} if "mcp_config" in used else {},
        )

    def read(self, line: str) -> Iterable[AgentEvent]:
        return (AgentText(line.rstrip("\r\n") + "\n"),)

    def failure(self, exit_code: int, errors: str) -> AgentEnded | None:
        lines = [line.strip() for line in errors[-_LAST_CHARS:].splitlines() if line.strip()]
        text = "\n".join(lines[-_LAST_LINES:])
        cause = failures.cause_of_text(text) if exit_code else None
        if cause is None:
            return None
        return AgentEnded(cause=cause, message=text.rpartition("\n")[2], wait_secs=failures.requested_wait(text))


def _mcp_config(server: tuple[str, ...]) -> str:
    """Return the MCP configuration in the format that most programs accept."""
    program, *arguments = server
    return json.dumps({"mcpServers": {"agentd": {"command": program, "args": arguments}}}, indent=2) + "\n"


ADAPTER = CommandAgent()

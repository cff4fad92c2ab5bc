"""Which adapter serves which kind of agent."""

from agentd.agents.claude import Claude
from agentd.agents.codex import Codex
from agentd.agents.command import CommandAgent
from agentd.agents.gemini import Gemini
from agentd.agents.protocol import Adapter
from agentd.agents.scripted import ScriptedAgent
from agentd.project import AgentKind

_ADAPTERS: dict[AgentKind, Adapter] = {
    "claude": Claude(),
    "codex": Codex(),
    "command": CommandAgent(),
    "gemini": Gemini(),
    "scripted": ScriptedAgent(),
}


def get_adapter(kind: AgentKind) -> Adapter:
    return _ADAPTERS[kind]

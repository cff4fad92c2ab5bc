"""Which adapter speaks to which kind of agent."""

from agentd.agents.claude import Claude
from agentd.agents.codex import Codex
from agentd.agents.command import AnyProgram
from agentd.agents.gemini import Gemini
from agentd.agents.protocol import Adapter
from agentd.agents.scripted import Scripted
from agentd.project.config.settings import AgentKind

_ADAPTERS: dict[AgentKind, Adapter] = {
    "claude": Claude(),
    "codex": Codex(),
    "command": AnyProgram(),
    "gemini": Gemini(),
    "scripted": Scripted(),
}


def adapter_of(kind: AgentKind) -> Adapter:
    return _ADAPTERS[kind]

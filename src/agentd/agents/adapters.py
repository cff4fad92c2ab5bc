"""Which adapter speaks to which kind of agent."""

from agentd.agents.command import AnyProgram
from agentd.agents.protocol import Adapter
from agentd.agents.scripted import Scripted
from agentd.config.model import Kind
from agentd.errors import AgentMissing

_ADAPTERS: dict[Kind, Adapter] = {"command": AnyProgram(), "scripted": Scripted()}


def adapter_of(kind: Kind) -> Adapter:
    adapter = _ADAPTERS.get(kind)
    if adapter is None:
        known = " or ".join(f'"{known}"' for known in _ADAPTERS)
        raise AgentMissing(
            f"agents of kind {kind} are not available yet",
            f"put an agent of kind {known} in that role (`agentd config`)",
        )
    return adapter

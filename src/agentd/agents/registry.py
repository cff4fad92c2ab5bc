"""The agents that agentd knows: the list that everything else is derived from."""

from collections.abc import Mapping
from importlib import import_module

from agentd.agents.protocol import Adapter, CliProfile
from agentd.domain import Role

# One module each, in the order in which agents are offered.
_MODULES = ("gemini", "codex", "claude", "command", "scripted")

_found: list[Adapter] = [import_module(f"agentd.agents.{name}").ADAPTER for name in _MODULES]
ADAPTERS: Mapping[str, Adapter] = {adapter.kind: adapter for adapter in _found}
CLIS: Mapping[str, CliProfile] = {adapter.kind: adapter.cli for adapter in _found if adapter.cli}


def get_adapter(kind: str) -> Adapter:
    return ADAPTERS[kind]


def context_file_names() -> tuple[str, ...]:
    """Return the files with a project's instructions for these CLIs, the preferred implementer's first."""
    ranked = sorted(CLIS.values(), key=lambda cli: cli.role_ranks.get(Role.IMPLEMENTER, len(CLIS)))
    return tuple(dict.fromkeys(cli.context_file for cli in ranked if cli.context_file))

"""An agent and a brief as a call has them, with the parts that a test is about."""

from pathlib import Path
from typing import Any

from agentd.agents.protocol import AgentBrief, AgentSettings
from agentd.domain.terms import Role


def agent(**parts: Any) -> AgentSettings:
    usual: dict[str, Any] = {
        "name": "mine",
        "kind": "command",
        "command": "my-agent",
        "playbook": "",
        "args": (),
        "shell": (),
        "env": (),
        "resume": None,
        "models": (),
    }
    return AgentSettings(**{**usual, **parts})


def brief(tree: Path, **parts: Any) -> AgentBrief:
    usual: dict[str, Any] = {
        "prompt": "Write the proposal.\n",
        "step": "proposal-gen",
        "round": 1,
        "number": 1,
        "attempt": 1,
        "role": Role.PLANNER,
        "access": "write",
        "tree": tree,
        "folder": tree / "call-7",
        "station": tree / "station",
        "server": ("agentd", "mcp", "--change", "add-oauth"),
        "tools": ("create_proposal",),
    }
    return AgentBrief(**{**usual, **parts})

"""The scripted agent: plays a playbook instead of calling a model. For the demo and for tests."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from agentd.agents.failures import FailureCause
from agentd.agents.protocol import (
    Adapter,
    AgentAction,
    AgentBrief,
    AgentCommand,
    AgentEnded,
    AgentEvent,
    AgentSettings,
    AgentText,
    SessionStarted,
    TokenUsage,
    UsageUpdate,
    parse_json_object,
)

_MAX_NUMBER = 1e15  # larger values are implausible


class ScriptedAgent(Adapter):
    kind = "scripted"
    config_keys = ("playbook",)
    sessions = "preset"
    install_hint = "it comes with agentd"

    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand:
        call = {
            "playbook": str(brief.tree / agent.playbook),
            "step": brief.step,
            "round": brief.round,
            "number": brief.number,
            "attempt": brief.attempt,
            "session": brief.session,
            "resume": brief.resume,
            "server": brief.server,
        }
        # -P: the `agentd/` folder of a repository must never be imported.
        argv = (sys.executable, "-P", "-m", "agentd.agents.playbook_player", json.dumps(call))
        return AgentCommand(argv=argv, stdin=brief.prompt, cwd=brief.tree)

    def read(self, line: str) -> Iterable[AgentEvent]:
        data = parse_json_object(line)
        event = _parse_event(data) if data else None
        return (event,) if event else ()


def _parse_event(data: Mapping[str, Any]) -> AgentEvent | None:
    match data:
        case {"type": "session", "id": str(session)}:
            return SessionStarted(session)
        case {"type": "text", "text": str(text)}:
            return AgentText(text)
        case {"type": "tool", "text": str(text), "ok": bool() | None as ok}:
            return AgentAction("tool", text, ok)
        case {"type": "usage", "part": str(part)}:
            return UsageUpdate(_usage(data), part)
        case {"type": "end", "message": str(message)}:
            return AgentEnded(cause=_cause(data.get("cause")), message=message, wait_secs=_amount(data.get("wait")))
    return None


def _usage(data: Mapping[str, Any]) -> TokenUsage:
    tokens = [int(_amount(data.get(key)) or 0) for key in ("in", "out", "cached")]
    model = data.get("model")
    return TokenUsage(
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        tokens_cached=tokens[2],
        cost=_amount(data.get("cost")),
        model=model if isinstance(model, str) else None,
    )


def _amount(value: object) -> float | None:
    """Return a plausible number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _MAX_NUMBER else None  # NaN gives None too


def _cause(word: object) -> FailureCause | None:
    """Parse a cause. An unknown one counts as a crash."""
    if word is None:
        return None
    return next((cause for cause in FailureCause if cause == word), FailureCause.CRASHED)


ADAPTER = ScriptedAgent()

"""The scripted agent: plays a playbook instead of asking a model. For the demo and for tests."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from agentd.agents.causes import Cause
from agentd.agents.protocol import Brief, Command, Did, Ended, Heard, Said, SessionIs, Sessions, Usage, Used, object_of
from agentd.project.config import AgentSettings

_MOST = 1e15  # of anything: beyond it a figure means nothing


class Scripted:
    install_hint = "it comes with agentd"
    sessions: Sessions = "preset"
    final_event = True
    states_cost = False
    brings: tuple[str, ...] = ()
    cannot_write = False

    def command(self, agent: AgentSettings, brief: Brief) -> Command:
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
        argv = (sys.executable, "-P", "-m", "agentd.agents.player", json.dumps(call))
        return Command(argv=argv, stdin=brief.prompt, cwd=brief.tree)

    def tool_name(self, name: str) -> str:
        return name

    def read(self, line: str) -> Iterable[Heard]:
        data = object_of(line)
        heard = _heard(data) if data else None
        return (heard,) if heard else ()

    def failure(self, exit_code: int, errors: str) -> Ended | None:
        """A player that fails says so in its final event; without one there is nothing to read."""
        return None


def _heard(data: Mapping[str, Any]) -> Heard | None:
    match data:
        case {"type": "session", "id": str(session)}:
            return SessionIs(session)
        case {"type": "text", "text": str(text)}:
            return Said(text)
        case {"type": "tool", "text": str(text), "ok": bool() | None as ok}:
            return Did("tool", text, ok)
        case {"type": "usage", "part": str(part)}:
            return Used(_usage(data), part)
        case {"type": "end", "message": str(message)}:
            return Ended(cause=_cause(data.get("cause")), message=message, wait_secs=_amount(data.get("wait")))
    return None


def _usage(data: Mapping[str, Any]) -> Usage:
    tokens = [int(_amount(data.get(key)) or 0) for key in ("in", "out", "cached")]
    model = data.get("model")
    return Usage(
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        tokens_cached=tokens[2],
        cost=_amount(data.get("cost")),
        model=model if isinstance(model, str) else None,
    )


def _amount(value: object) -> float | None:
    """None for what is no amount."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _MOST else None  # false for what is no number, too


def _cause(word: object) -> Cause | None:
    """A word that we do not know is a failure all the same."""
    if word is None:
        return None
    return next((cause for cause in Cause if cause == word), Cause.CRASHED)

"""What a program that speaks like Codex tells of its sessions: whose tokens count, and a session that has no name."""

import json
import sys
from typing import Any

import pytest

from agent_calls import planner_request
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.domain.errors import AgentFailed, SessionLost
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallResult
from agentd.project.layout import find_project
from scenario import ROLES, Scenario, open_run

SESSION = "01a1e211-d2e4-76e1-8c64-955c84bcee39"
STARTED = {"type": "thread.started", "thread_id": SESSION}
AGENT = "schema_version = 1\n[workflow]\nscript_retries = 0\n[agents.codex]\ncommand = './speak'\n"

pytestmark = pytest.mark.usefixtures("forked_servers")


def speak(box: Scenario, *events: dict[str, Any]) -> None:
    """Codex is a program that prints these events."""
    lines = "".join(json.dumps(event) + "\n" for event in events)
    box.write("speak", f"#!{sys.executable}\nprint({lines!r}, end='')\n").chmod(0o755)
    box.configure(AGENT + ROLES.replace("play", "codex"))


def begin(box: Scenario, *events: dict[str, Any]) -> Change:
    speak(box, *events)
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


def used(tokens_in: int, cached: int, tokens_out: int) -> dict[str, Any]:
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    return {"type": "turn.completed", "usage": dict(zip(names, (tokens_in, cached, tokens_out), strict=True))}


def perform(change: Change, **other: Any) -> CallResult:
    with open_run(change) as run:
        return retries.perform_call(run, planner_request(run, effect=None, **other))


def counted(change: Change) -> list[tuple[int | None, int | None, int | None]]:
    return [(call.tokens_in, call.tokens_cached, call.tokens_out) for call in change.read().llm_calls]


def test_call_counts_only_its_part_of_the_session_total(project: Scenario) -> None:
    change = begin(project, STARTED, used(3448, 1664, 8))
    perform(change)
    speak(project, STARTED, {"type": "turn.failed", "error": {"message": "no"}})
    with pytest.raises(AgentFailed):
        perform(change, number=2, resume=SESSION)
    speak(project, STARTED, used(10344, 4992, 24))
    perform(change, number=3, resume=SESSION)
    assert counted(change) == [(3448, 1664, 8), (None, None, None), (6896, 3328, 16)]  # and what the failed turn used


def test_session_total_below_the_counted_sum_counts_in_full(project: Scenario) -> None:
    change = begin(project, STARTED, used(3448, 1664, 8))
    perform(change)
    speak(project, STARTED, used(1000, 0, 80))
    perform(change, number=2, resume=SESSION)
    assert counted(change) == [(3448, 1664, 8), (1000, 0, 80)]


def test_new_session_counts_in_full(project: Scenario) -> None:
    change = begin(project, STARTED, used(3448, 1664, 8))
    perform(change)
    perform(change, number=2)
    assert counted(change) == [(3448, 1664, 8)] * 2


def test_missing_session_id_raises_session_lost(project: Scenario) -> None:
    change = begin(project, used(1, 0, 1))
    with pytest.raises(SessionLost, match="Failed to capture session ID"):
        perform(change, on_session=lambda session: None)
    assert perform(change, number=2).session is None  # nobody asked for it

"""The real Claude Code, run by agentd, on a model that plays a script."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_calls import planner_request
from agentd.change import lifecycle
from agentd.domain import events
from agentd.domain.errors import AgentFailed, SessionLost
from agentd.domain.terms import Role
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallResult
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_table import tools_of
from agentd.project.layout import find_project
from loopback import clis, recording
from loopback.claude_api import ClaudeApi
from loopback.claude_home import KEY, claude_home, small_server
from loopback.model import Call, Conversation, Model, Turn
from plans import example_calls
from program import PATIENCE
from scenario import Scenario, journal_of, open_run

PROPOSE = Turn(text="Writing.", calls=(Call("create_proposal", example_calls()["create_proposal"]),))
DONE = Turn(text="Done.")
MODEL = "claude-sonnet-4-5"
ONCE = "script_retries = 0\nretry_delay_secs = 0.05\n"


class Desk:
    """A change whose every role is Claude, at a home that is a person's own."""

    def __init__(self, box: Scenario, conversation: Conversation, more: str = "", args: tuple[str, ...] = ()) -> None:
        self.box = box
        self.conversation = conversation
        levels = json.dumps(["low", "medium", "high", "critical"])
        roles = "\n".join(f'{role} = "claude"' for role in Role)
        box.configure(
            f"schema_version = 1\n[workflow]\n{ONCE}[roles]\n{roles}\n"
            f'[agents.claude]\ncommand = "{clis.need("claude")}"\nargs = {json.dumps(args)}\nenv = ["{KEY}"]\n'
            f'[[agents.claude.models]]\nid = "only"\nmodel = "{MODEL}"\ncomplexity = {levels}\n{more}'
        )
        self.change = lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")

    def plan(self, **other: Any) -> CallResult:
        with open_run(self.change) as run:
            return retries.perform_call(run, planner_request(run, **other))

    def implement(self, **other: Any) -> CallResult:
        parts = {"step": "implement", "role": Role.IMPLEMENTER, "stage": Stage.IMPLEMENT, "effect": None}
        return self.plan(**parts, **other)

    def failure(self) -> AgentFailed:
        with pytest.raises(AgentFailed) as caught:
            self.plan(effect=None)
        return caught.value

    def record(self, name: str) -> None:
        recording.keep("claude", name, self.change, self.box)

    def answers(self, request: int = -1) -> list[str]:
        """What the model was told of its tools, up to that request."""
        return [str(block["content"]) for block in self._blocks(request) if block["type"] == "tool_result"]

    def words(self, request: int = 0) -> str:
        return "\n".join(str(block.get("text", "")) for block in self._blocks(request))

    def _blocks(self, request: int) -> list[Any]:
        found: list[Any] = []
        for message in self.conversation.asked[request].body["messages"]:
            content = message["content"]
            found += [{"type": "text", "text": content}] if isinstance(content, str) else content
        return found

    @property
    def tools(self) -> set[str]:
        return {tool["name"] for tool in self.conversation.asked[0].body["tools"]}


Sit = Callable[..., Desk]


@pytest.fixture
def sit(project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch) -> Sit:
    """A desk whose model plays these turns."""

    def seated(*turns: Turn, more: str = "", args: tuple[str, ...] = (), **home: Any) -> Desk:
        monkeypatch.setenv(KEY, "a-key-for-the-loopback")
        conversation = model.conversation(ClaudeApi(), *turns)
        claude_home(project.home, conversation, **home)
        return Desk(project, conversation, more, args)

    return seated


def calls(*pairs: tuple[str, dict[str, Any]]) -> tuple[Turn, ...]:
    return (*(Turn(calls=(Call(tool, arguments),)) for tool, arguments in pairs), DONE)


def refused(words: str) -> bool:
    return "has been denied" in words or "No such tool available" in words


def test_planner_writes_its_document_through_mcp(sit: Sit) -> None:
    first = replace(PROPOSE, tokens_in=21016, cached=14269, tokens_out=72)
    desk = sit(first, replace(DONE, tokens_in=21500, cached=21016, tokens_out=8))
    done = desk.plan()
    assert (desk.change.folder / "proposal.md").is_file()
    assert done.text == "Writing.\nDone.\n"
    asked = desk.conversation.asked[0]
    assert (asked.body["model"], asked.headers["x-api-key"]) == (MODEL, "a-key-for-the-loopback")
    did = [(one.kind, one.text, one.ok) for one in journal_of(desk.change, events.AgentActivity)]
    assert ("tool", "create_proposal", None) in did
    (call,) = desk.change.read().llm_calls
    assert (call.tokens_in, call.tokens_cached, call.tokens_out) == (21016 + 21500, 14269 + 21016, 80)
    assert call.cost and call.model == MODEL
    desk.record("planning")


def test_read_only_agent_has_stage_tools_and_can_read_but_not_write(sit: Sit) -> None:
    """Also not what its own person allows to everybody."""
    tries = calls(
        ("append_review", {"verdict": "APPROVED", "summary": "Fine.", "findings": [], "previous": []}),
        ("Write", {"file_path": "notes.txt", "content": "x"}),
        ("Bash", {"command": "touch notes.txt"}),
        ("Read", {"file_path": "/etc/hostname"}),
        ("Read", {"file_path": "README.md"}),
        ("Grep", {"pattern": "notes", "output_mode": "content"}),
    )
    desk = sit(*tries, permissions={"allow": ["Bash", "Write"], "defaultMode": "bypassPermissions"})
    desk.plan(effect=None)
    assert {name for name in desk.tools if "__" not in name} == {"Read", "Grep", "Glob"}
    ours = {name.removeprefix("mcp__agentd__") for name in desk.tools if "__" in name}
    assert ours == {tool.name for tool in tools_of(Stage.PLAN)}
    *no, read, found = desk.answers()
    assert all(map(refused, no))
    assert "notes" in read and "notes" in found
    assert desk.box.git("status", "--porcelain", "--", ".", ":!agentd") == ""
    failed = [one.text for one in journal_of(desk.change, events.AgentActivity) if one.ok is False]
    assert any("append_review" in words for words in failed)
    desk.record("refused-tools")


def test_implementer_edits_the_tree_and_runs_only_allowed_commands(sit: Sit) -> None:
    commands = ("python3 -m notes", "git diff", "git hash-object", "echo-all (a|b) && true")
    runs = {
        "python3 -m notes": True,
        "python3 -m notes --all": True,
        "python3 -m notes2": False,
        "python3 -m notes; touch evil": False,
        "python3 -m notes $(touch evil)": False,
        "git status --short && git log --oneline -1": True,
        "git diff --output=evil": False,
        "git hash-object README.md": True,
        "git commit -am x": False,
        "touch evil": False,
    }
    edits = [("Write", {"file_path": name, "content": "x\n"}) for name in ("new.py", "../evil.py", ".git/hooks/x")]
    desk = sit(*calls(*edits, *(("Bash", {"command": command}) for command in runs)))
    desk.box.write("notes/__main__.py", "print('it ran')\n")
    desk.implement(commands=commands)
    made, outside, hook, *ran = desk.answers()
    assert not refused(made) and refused(outside) and refused(hook)
    assert (desk.box.root / "new.py").read_text() == "x\n"
    assert {command: not refused(words) for command, words in zip(runs, ran, strict=True)} == runs
    assert "it ran" in ran[0]
    assert not (desk.box.root / "evil").exists()
    desk.record("implementing")


def test_resumed_session_continues(sit: Sit) -> None:
    desk = sit(PROPOSE, Turn(text="The first answer."), Turn(text="The second answer."))
    seen: list[str] = []
    first = desk.plan(on_session=seen.append)
    second = desk.plan(step="reproposal", prompt="Once more.", resume=first.session, effect=None)
    assert second.session == first.session == seen[0]
    assert [call.tokens_in for call in desk.change.read().llm_calls] == [200, 100]
    last = desk.words(request=-1)
    assert "Write the proposal." in last and "The first answer." in last and "Once more." in last
    desk.record("resumed")


def test_unknown_session_is_lost(sit: Sit) -> None:
    desk = sit(DONE)
    with pytest.raises(SessionLost, match="Session not found, please re-run proposal"):
        desk.plan(resume="11111111-2222-4333-8444-555555555555")
    assert not desk.conversation.asked
    desk.record("session-lost")


def other_server(folder: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """Our server as agentd starts it, with something before it."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\ncase "$*" in *" mcp "*) {first};; esac\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_slow_mcp_server_is_waited_for(sit: Sit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than Claude waits by itself, which is five seconds and a little."""
    other_server(tmp_path, monkeypatch, "sleep 9")
    desk = sit(PROPOSE, DONE)
    desk.plan()
    assert "mcp__agentd__create_proposal" in desk.tools
    assert (desk.change.folder / "proposal.md").is_file()


def test_failed_mcp_server_ends_the_call(sit: Sit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_server(tmp_path, monkeypatch, "exit 1")
    desk = sit(Turn(hang=True), more=f"[limits.wall_secs]\nplanner = {PATIENCE}\n")
    error = desk.failure()
    assert (error.code, "MCP server agentd is failed" in error.message) == ("tools-missing", True)
    desk.record("tools-missing")


@pytest.mark.parametrize(
    ("turn", "code", "words"),
    [
        (Turn(status=401, text="invalid x-api-key"), "key-refused", "invalid x-api-key|Invalid API key"),
        (Turn(status=404, text="model: nope"), "model-unknown", "selected model"),
        (Turn(status=429, text="Slow down", headers={"retry-after": "1"}), "rate-limited", "Slow down"),
        (Turn(status=429, text="Slow down", headers={"retry-after": "3600"}), "rate-limited", "Slow down"),
        (Turn(status=500, text="Oh no"), "server-error", "Oh no"),
        (Turn(text="Half an ans", cut=True), "network-down", "Connection closed"),
    ],
    ids=["401", "404", "429", "429-long", "500", "cut"],
)
def test_model_failure_is_reported_with_its_cause(
    sit: Sit, turn: Turn, code: str, words: str, request: pytest.FixtureRequest
) -> None:
    desk = sit(turn)
    error = desk.failure()
    assert error.code == code
    assert re.search(words, error.message)
    assert len(desk.conversation.asked) <= 2
    if turn.headers.get("retry-after") == "1":
        assert error.hint == "wait 1 s, then run the command again"
    desk.record(request.node.callspec.id)


def test_refused_connection_and_missing_login_are_reported(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = sit(DONE, env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    assert desk.failure().code == "network-down"
    desk.record("no-connection")
    monkeypatch.delenv(KEY)
    assert desk.failure().code == "not-logged-in"
    desk.record("not-logged-in")


def test_silent_agent_is_ended_by_the_idle_limit(sit: Sit) -> None:
    desk = sit(Turn(hang=True), more="[limits.idle_secs]\nplanner = 5\n")
    assert desk.failure().code == "idle"


def test_empty_answer_is_reminded_and_then_fails(sit: Sit) -> None:
    desk = sit(Turn())
    with pytest.raises(AgentFailed) as caught:
        desk.plan()
    assert caught.value.code == "did-nothing"
    assert "There is no proposal yet" in desk.words(request=-1)
    desk.record("empty")


def test_users_settings_and_servers_apply_and_stay_unchanged(sit: Sit, tmp_path: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hooked"}]}
    servers = {
        "mine": small_server("look_up", tmp_path / "mine"),
        "slow": small_server("never", tmp_path / "slow", slow=60),
        "agentd": small_server("create_proposal", tmp_path / "false"),
    }
    turns = (*calls(("mcp__mine__look_up", {}))[:-1], PROPOSE, DONE)
    desk = sit(*turns, servers=servers, hooks={"SessionStart": [hook]}, includeCoAuthoredBy=False)
    files = [desk.box.home / ".claude" / "settings.json", desk.box.home / ".claude.json"]
    before = [json.loads(path.read_text()) for path in files]
    desk.plan()
    assert (tmp_path / "hooked").exists()
    assert (tmp_path / "mine").exists() and not (tmp_path / "false").exists()
    assert "mcp__mine__look_up" in desk.tools
    assert refused(desk.answers()[0])
    after = [json.loads(path.read_text()) for path in files]
    assert after[0] == before[0]
    assert {key: after[1][key] for key in ("oauthAccount", "mcpServers")} == {
        key: before[1][key] for key in ("oauthAccount", "mcpServers")
    }
    assert before[1]["projects"].items() <= after[1]["projects"].items()


def test_hooks_and_servers_of_the_repository_are_not_run(sit: Sit, tmp_path: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hooked"}]}
    desk = sit(PROPOSE, DONE)
    for name in ("settings.json", "settings.local.json"):
        desk.box.write(f".claude/{name}", json.dumps({"hooks": {"SessionStart": [hook]}}))
    desk.box.write(".mcp.json", json.dumps({"mcpServers": {"evil": small_server("evil", tmp_path / "served")}}))
    desk.plan()
    assert not (tmp_path / "hooked").exists()
    assert not (tmp_path / "served").exists()


def test_long_prompt_with_file_names_works_inside_claude_code(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.setenv(name, "1")
    desk = sit(PROPOSE, DONE)
    prompt = "Plan.\n" + "See @README.md and user@example.com.\n" * 5000
    desk.plan(prompt=prompt)
    assert prompt.strip() in desk.words()
    assert "notes\n" not in desk.words().replace(prompt.strip(), "")

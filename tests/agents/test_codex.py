"""Codex's command line, and its streams as the real program wrote them (tests/real_cli records them)."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from briefs import agent, brief

from agentd.agents.codex import INSTRUCTIONS, Codex
from agentd.agents.failures import FailureCause
from agentd.agents.protocol import AgentAction, AgentEnded, AgentEvent, AgentText, SessionStarted, TokenUsage
from agentd.domain.errors import SessionLost

STREAMS = Path(__file__).parent.parent / "data" / "streams" / "codex"
SESSION = "00000000-0000-4000-8000-000000000001"
ADAPTER = Codex()


def replay(name: str) -> list[AgentEvent]:
    lines = (STREAMS / f"{name}.jsonl").read_text().splitlines()
    return [event for line in lines for event in ADAPTER.read(line)]


def settings(argv: tuple[str, ...]) -> dict[str, Any]:
    """What the `-c` options say, read as Codex reads them."""
    pairs = [argv[place + 1] for place, word in enumerate(argv) if word == "-c"]
    return {
        key: tomllib.loads(f"value = {value}")["value"] for key, _, value in (pair.partition("=") for pair in pairs)
    }


def plain(argv: tuple[str, ...]) -> list[str]:
    """The command line without the `-c` options."""
    return [word for place, word in enumerate(argv) if word != "-c" and (not place or argv[place - 1] != "-c")]


CODEX = agent(name="codex", kind="codex", command="codex")
START = ["codex", "exec", "--json", "--skip-git-repo-check", "-s"]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"access": "read"}, ["read-only", "-"]),
        ({"access": "write"}, ["workspace-write", "-"]),
        ({"access": "read", "model": "gpt-5.5"}, ["read-only", "-m", "gpt-5.5", "-"]),
        (
            {"access": "read", "model": "gpt-5.5", "resume": SESSION},
            ["read-only", "-m", "gpt-5.5", "resume", SESSION, "-"],
        ),
    ],
    ids=["reader", "maker", "model", "resumed"],
)
def test_command_line_matches_access_and_session(tmp_path: Path, parts: dict[str, Any], words: list[str]) -> None:
    command = ADAPTER.command(CODEX, brief(tmp_path, prompt="Plan it.", **parts))
    assert plain(command.argv) == [*START, *words]
    assert (command.stdin, command.cwd, dict(command.env)) == ("Plan it.", tmp_path, {})


def test_configured_args_come_before_the_resume_argument(tmp_path: Path) -> None:
    mine = agent(name="codex", kind="codex", command="codex", args=("--add-dir", "/data"))
    argv = ADAPTER.command(mine, brief(tmp_path, resume=SESSION)).argv
    assert argv[-5:] == ("--add-dir", "/data", "resume", SESSION, "-")


def test_mcp_server_is_required_and_limited_to_the_stage_tools(tmp_path: Path) -> None:
    server = ("/opt/py thon", "-c", 'print("ü\\n")')
    told = settings(ADAPTER.command(CODEX, brief(tmp_path, server=server, tools=("create_spec", "read_file"))).argv)
    ours = {key.removeprefix("mcp_servers.agentd."): value for key, value in told.items() if "mcp_servers" in key}
    assert (ours["command"], *ours["args"]) == server
    assert ours["cwd"] == str(tmp_path)
    assert ours["required"] and ours["enabled"]
    assert ours["enabled_tools"] == ["create_spec", "read_file"]
    assert ours["tools.create_spec.approval_mode"] == ours["tools.read_file.approval_mode"] == "approve"


def test_approval_policy_is_never_and_retries_are_bounded(tmp_path: Path) -> None:
    told = settings(ADAPTER.command(CODEX, brief(tmp_path, reasoning="xhigh")).argv)
    assert told["approval_policy"] == "never"
    assert told["features.unbounded_connection_retries"] is False
    assert told["model_reasoning_effort"] == "xhigh"
    assert "model_reasoning_effort" not in settings(ADAPTER.command(CODEX, brief(tmp_path)).argv)


def test_user_configuration_is_not_overridden(tmp_path: Path) -> None:
    command = ADAPTER.command(CODEX, brief(tmp_path))
    assert not {"--ignore-user-config", "--ignore-rules"} & set(command.argv)
    assert not any(key.startswith(("model_provider", "projects", "profile")) for key in settings(command.argv))


@pytest.mark.parametrize(("access", "word"), [("read", "only read"), ("write", "apply_patch")])
def test_short_instructions_replace_the_built_in_codex_instructions(tmp_path: Path, access: str, word: str) -> None:
    command = ADAPTER.command(CODEX, brief(tmp_path, access=access))
    path = brief(tmp_path).folder / INSTRUCTIONS
    assert list(command.files) == [path] and len(command.files[path]) < 800 and word in command.files[path]
    assert settings(command.argv)["model_instructions_file"] == str(path)
    is_left_out = settings(command.argv).get("project_doc_max_bytes") == 0
    assert is_left_out is (access == "read"), "a maker of code gets the project's AGENTS.md by Codex itself"


@pytest.mark.parametrize("session", ["", "yesterday", "--last", f"{SESSION}x"])
def test_invalid_session_id_is_never_resumed(tmp_path: Path, session: str) -> None:
    if not session:
        assert "resume" not in ADAPTER.command(CODEX, brief(tmp_path, resume=session)).argv
        return
    with pytest.raises(SessionLost):
        ADAPTER.command(CODEX, brief(tmp_path, resume=session))


def test_successful_stream_yields_expected_events() -> None:
    assert replay("propose") == [
        SessionStarted(SESSION),
        AgentText("I begin.\n"),
        AgentAction("tool", "create_proposal", None),
        AgentAction("tool", "create_proposal", True),
        AgentText("Done.\n"),
        AgentEnded(usage=TokenUsage(tokens_in=7448, tokens_cached=5112, tokens_out=13, of_session=True)),
    ]


def test_cached_tokens_are_included_in_input_tokens() -> None:
    usage = '{"input_tokens":3448,"cached_input_tokens":1664,"output_tokens":8,"reasoning_output_tokens":2}'
    (ended,) = ADAPTER.read(f'{{"type":"turn.completed","usage":{usage}}}')
    assert ended == AgentEnded(usage=TokenUsage(tokens_in=3448, tokens_cached=1664, tokens_out=8, of_session=True))


def test_resumed_session_reports_tokens_of_all_turns() -> None:
    usage = TokenUsage(tokens_in=3 * 3448, tokens_cached=3 * 1664, tokens_out=3 * 8, of_session=True)
    assert replay("resumed")[-1] == AgentEnded(usage=usage)


def test_refused_tool_calls_are_reported_as_failed() -> None:
    oks = [event.ok for event in replay("refusals") if isinstance(event, AgentAction)]
    assert oks == [None, False, None, True]


def test_shell_commands_and_edits_are_reported() -> None:
    shell = "/bin/bash -lc 'echo x > made.txt; ls made.txt'"
    assert [event for event in replay("implement") if isinstance(event, AgentAction)] == [
        AgentAction("shell", shell, None),
        AgentAction("shell", shell, True),
    ]
    assert [event for event in replay("edit") if isinstance(event, AgentAction)] == [
        AgentAction("tool", "edit /home/dev/project", None),
        AgentAction("tool", "edit /home/dev/project", True),
    ]


def test_reconnect_is_not_a_failure() -> None:
    (ended,) = [event for event in replay("reconnected") if isinstance(event, AgentEnded)]
    assert ended.cause is None


def test_empty_answer_ends_normally_without_text() -> None:
    assert [type(event) for event in replay("empty")] == [SessionStarted, AgentEnded]


def test_hanging_stream_has_no_end_event() -> None:
    assert replay("hang") == [SessionStarted(SESSION)]


@pytest.mark.parametrize(
    ("name", "cause", "message"),
    [
        ("401", FailureCause.KEY_REFUSED, "unexpected status 401 Unauthorized: Incorrect API key provided."),
        ("401-retried", FailureCause.KEY_REFUSED, "unexpected status 401 Unauthorized: Incorrect API key provided"),
        (
            "404",
            FailureCause.MODEL_UNKNOWN,
            "unexpected status 404 Not Found: The model `gpt-0` does not exist or you do not have access to it.",
        ),
        ("429", FailureCause.RATE_LIMITED, "exceeded retry limit, last status: 429 Too Many Requests"),
        (
            "500",
            FailureCause.SERVER_ERROR,
            "We\N{RIGHT SINGLE QUOTATION MARK}re currently experiencing high demand, which may cause temporary errors.",
        ),
        (
            "cut",
            FailureCause.NETWORK_DOWN,
            "stream disconnected before completion: Transport error: network error: error decoding response body",
        ),
        ("refused", FailureCause.NETWORK_DOWN, "Connection failed: error sending request"),
        ("no-key", FailureCause.NOT_LOGGED_IN, "Missing environment variable: `NOTES_MODEL_KEY`."),
    ],
)
def test_recorded_failed_turn_has_expected_cause_and_message(name: str, cause: FailureCause, message: str) -> None:
    *_, last = replay(name)
    assert last == AgentEnded(cause=cause, message=message)


@pytest.mark.parametrize(
    ("words", "cause", "wait"),
    [
        (
            "unexpected status 403 Forbidden: no, url: https://x.invalid/v1, request id: 7",
            FailureCause.KEY_REFUSED,
            None,
        ),
        (
            "unexpected status 401 Unauthorized: Missing bearer or basic authentication",
            FailureCause.NOT_LOGGED_IN,
            None,
        ),
        ("unexpected status 404 Not Found: nothing here", FailureCause.MODEL_UNKNOWN, None),
        ("unexpected status 507 Insufficient Storage: full", FailureCause.SERVER_ERROR, None),
        ("unexpected status 400 Bad Request: Unsupported value", FailureCause.CRASHED, None),
        (
            "The 'gpt-0' model is not supported when using Codex with a ChatGPT account.",
            FailureCause.MODEL_UNKNOWN,
            None,
        ),
        ("You've hit your usage limit. Try again in 3 hours 12 minutes.", FailureCause.RATE_LIMITED, 11520.0),
        (
            "stream disconnected before completion: Rate limit reached. Try again in 1.5s.",
            FailureCause.RATE_LIMITED,
            1.5,
        ),
        ("Quota exceeded. Check your plan and billing details.", FailureCause.KEY_REFUSED, None),
        ("Selected model is at capacity. Please try a different model.", FailureCause.SERVER_ERROR, None),
        (
            "Your access token could not be refreshed. Please log out and sign in again.",
            FailureCause.NOT_LOGGED_IN,
            None,
        ),
        ("Codex ran out of room in the model's context window.", FailureCause.CRASHED, None),
    ],
)
def test_turn_failed_message_is_classified(words: str, cause: FailureCause, wait: float | None) -> None:
    (ended,) = ADAPTER.read(json.dumps({"type": "turn.failed", "error": {"message": words}}))
    assert isinstance(ended, AgentEnded)
    assert (ended.cause, ended.wait_secs) == (cause, wait)
    assert ended.message == words.partition(", url:")[0]


NOT_STARTED = (
    "Error: thread/start: thread/start failed: error creating thread: Fatal error: Failed to initialize session: "
)
MCP = "required MCP servers failed to initialize: "


@pytest.mark.parametrize(
    ("errors", "cause", "message"),
    [
        (
            "Error: thread/resume: thread/resume failed: no rollout found for thread id 01a1 (code -32600)\n",
            FailureCause.SESSION_LOST,
            "no rollout found for thread id 01a1",
        ),
        (
            f"{NOT_STARTED}{MCP}agentd: timed out after 2s (code -32603)\n",
            FailureCause.TOOLS_MISSING,
            "agentd: timed out after 2s",
        ),
        (f"{NOT_STARTED}{MCP}own: gone; agentd: gone (code -32603)\n", FailureCause.TOOLS_MISSING, "agentd: gone"),
        (
            f"{NOT_STARTED}{MCP}own: gone (code -32603)\n",
            FailureCause.CRASHED,
            f"Failed to initialize session: {MCP}own: gone",
        ),
        (
            "a warning\nError loading config.toml:\nconfig.toml:1:16: unclosed array\n  |\n",
            FailureCause.CRASHED,
            "Error loading config.toml: config.toml:1:16: unclosed array |",
        ),
    ],
    ids=["session", "server", "two servers", "another server", "configuration"],
)
def test_stderr_explains_why_no_turn_started(errors: str, cause: FailureCause, message: str) -> None:
    assert ADAPTER.failure(1, errors) == AgentEnded(cause=cause, message=message)


def test_unrelated_stderr_is_not_a_failure_cause() -> None:
    assert ADAPTER.failure(1, "WARNING: proceeding\nNo prompt provided via stdin.\n") is None


def test_long_error_message_is_truncated() -> None:
    (ended,) = ADAPTER.read(json.dumps({"type": "turn.failed", "error": {"message": "x" * 10_000}}))
    assert isinstance(ended, AgentEnded) and len(ended.message) == 300


@pytest.mark.parametrize(
    "line",
    [
        "",
        "plain text",
        "[1, 2]",
        "null",
        "[" * 100_000,
        '{"type":"thread.started"}',
        '{"type":"thread.started","thread_id":""}',
        '{"type":"thread.started","thread_id":7}',
        '{"type":["turn.completed"]}',
        '{"type":"turn.begun","usage":{}}',
        '{"type":"item.completed"}',
        '{"type":"item.completed","item":[]}',
        '{"type":"item.completed","item":{"type":"agent_message","text":null}}',
        '{"type":"item.completed","item":{"type":"mcp_tool_call","server":"agentd"}}',
        '{"type":"item.completed","item":{"type":"file_change","changes":{}}}',
        '{"type":"item.completed","item":{"type":"new_thing"}}',
        '{"type":"error","message":"Reconnecting... 1/5 (unexpected status 401 Unauthorized)"}',
    ],
    ids=lambda line: line[:40],
)
def test_unknown_stream_lines_are_ignored(line: str) -> None:
    assert list(ADAPTER.read(line)) == []


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('{"type":"turn.completed"}', AgentEnded()),
        ('{"type":"turn.completed","usage":[]}', AgentEnded()),
        (
            '{"type":"turn.completed","usage":{"input_tokens":true,"output_tokens":-1,"cached_input_tokens":"7"}}',
            AgentEnded(usage=TokenUsage(of_session=True)),
        ),
        ('{"type":"turn.failed"}', AgentEnded(cause=FailureCause.CRASHED, message="the turn failed")),
        ('{"type":"turn.failed","error":"x"}', AgentEnded(cause=FailureCause.CRASHED, message="the turn failed")),
        (
            '{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a"},3,{}]}}',
            AgentAction("tool", "edit a", False),
        ),
    ],
)
def test_incomplete_event_is_still_recognized(line: str, event: AgentEvent) -> None:
    assert list(ADAPTER.read(line)) == [event]


def test_tool_names_use_the_codex_mcp_prefix() -> None:
    assert ADAPTER.tool_name("create_proposal") == "mcp__agentd__create_proposal"


def test_codex_captures_sessions_and_states_no_cost() -> None:
    assert (ADAPTER.sessions, ADAPTER.final_event, ADAPTER.states_cost) == ("captured", True, False)

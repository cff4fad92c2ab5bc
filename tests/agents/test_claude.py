"""Claude Code's command line, and its streams as the real program wrote them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from briefs import agent, brief

from agentd.agents.claude import Claude
from agentd.agents.failures import FailureCause
from agentd.agents.protocol import AgentAction, AgentEnded, AgentText, SessionStarted, TokenUsage, UsageUpdate
from agentd.engine.calls.stream_accumulator import StreamAccumulator

CLAUDE = Claude()
STREAMS = Path(__file__).parent.parent / "data" / "streams" / "claude"
SESSION = "00000000-0000-4000-8000-000000000001"


def lines(name: str) -> list[str]:
    return (STREAMS / f"{name}.jsonl").read_text().splitlines()


def heard(*told: str) -> StreamAccumulator:
    listener = StreamAccumulator(CLAUDE.read, lambda *did: None, lambda session: None, lambda usage: None)
    for line in told:
        listener.add(line.encode())
    return listener


def option(argv: tuple[str, ...], name: str) -> list[str]:
    """All the values of an option."""
    start = argv.index(name) + 1
    end = next((at for at in range(start, len(argv)) if argv[at].startswith("--")), len(argv))
    return list(argv[start:end])


def test_read_only_agent_runs_headless_with_read_tools_and_stage_tools(tmp_path: Path) -> None:
    command = CLAUDE.command(
        agent(kind="claude", command="claude", args=("--max-turns", "9")),
        brief(tmp_path, access="read", model="sonnet", session=SESSION, tools=("create_proposal", "read_file")),
    )
    argv = command.argv
    assert argv[:2] == ("claude", "-p")
    assert argv[-4:] == ("--session-id", SESSION, "--max-turns", "9")
    assert option(argv, "--model") == ["sonnet"]
    assert option(argv, "--tools") == ["Read,Grep,Glob"]
    assert option(argv, "--allowedTools") == ["mcp__agentd__create_proposal", "mcp__agentd__read_file"]
    assert option(argv, "--permission-mode") == ["dontAsk"]
    assert option(argv, "--setting-sources") == ["user"]
    assert str(tmp_path) in option(argv, "--system-prompt")[0]
    assert not {"--resume", "--strict-mcp-config", "--dangerously-skip-permissions"} & set(argv)
    assert (command.stdin, command.cwd) == ("Write the proposal.\n", tmp_path)
    assert not {"HOME", "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY"} & command.env.keys()


def test_mcp_server_is_configured_in_a_per_call_file_and_always_loaded(tmp_path: Path) -> None:
    command = CLAUDE.command(agent(kind="claude"), brief(tmp_path))
    ((path, text),) = command.files.items()
    assert option(command.argv, "--mcp-config") == [str(path)]
    assert path == tmp_path / "call-7" / "mcp.json"
    entry = {"type": "stdio", "command": "agentd", "args": ["mcp", "--change", "add-oauth"], "alwaysLoad": True}
    assert json.loads(text) == {"mcpServers": {"agentd": entry}}


def test_implementer_may_edit_and_run_allowed_commands(tmp_path: Path) -> None:
    commands = ("python -m pytest -q", "git diff", "git push", "make (a)")
    command = CLAUDE.command(agent(kind="claude"), brief(tmp_path, access="write", tools=(), commands=commands))
    assert option(command.argv, "--tools") == ["Read,Grep,Glob,Edit,Write,Bash"]
    assert option(command.argv, "--allowedTools") == [
        "Edit(./**)",
        "Bash(python -m pytest -q)",
        "Bash(python -m pytest -q *)",
        "Bash(git push)",
        "Bash(git push *)",
        r"Bash(make \(a\))",
        r"Bash(make \(a\) *)",
    ]
    assert "`git push`" in option(command.argv, "--system-prompt")[0]


def test_session_is_resumed_by_id_and_model_is_optional(tmp_path: Path) -> None:
    argv = CLAUDE.command(agent(kind="claude"), brief(tmp_path, resume=SESSION)).argv
    assert argv[-2:] == ("--resume", SESSION)
    assert "--session-id" not in argv and "--model" not in argv


def test_tool_names_use_the_claude_mcp_prefix() -> None:
    assert CLAUDE.tool_name("create_proposal") == "mcp__agentd__create_proposal"


def test_successful_stream_yields_session_text_and_usage() -> None:
    events = [event for line in lines("planning") for event in CLAUDE.read(line)]
    assert [event.id for event in events if isinstance(event, SessionStarted)] == [SESSION]
    assert [event.text for event in events if isinstance(event, AgentText)] == ["Writing.\n", "Done.\n"]
    assert [event for event in events if isinstance(event, AgentAction)] == [AgentAction("tool", "create_proposal")]
    (ended,) = [event for event in events if isinstance(event, AgentEnded)]
    assert ended.cause is None
    assert ended.usage and ended.usage.cost
    assert (ended.usage.tokens_in, ended.usage.tokens_cached) == (21016 + 21500, 14269 + 21016)
    assert (ended.usage.tokens_out, ended.usage.model) == (80, "claude-sonnet-4-5")


def test_token_usage_is_complete_before_the_final_event() -> None:
    """For the budget, and for a call that is ended."""
    *before, last = lines("planning")
    assert '"type":"result"' in last
    cut, whole = heard(*before), heard(*before, last)
    counted = [(one.usage.tokens_in, one.usage.tokens_out, one.usage.tokens_cached) for one in (cut, whole)]
    assert counted[0] == counted[1] == (42516, 80, 35285)
    assert {part.model for part in cut.parts} == {"claude-sonnet-4-5"}  # each has its price


def result(**parts: Any) -> str:
    return json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Done.", **parts})


def test_cached_tokens_are_counted_once_and_usage_sums_all_models() -> None:
    main = {"inputTokens": 2, "cacheCreationInputTokens": 6745, "cacheReadInputTokens": 14269, "outputTokens": 72}
    aside = {"inputTokens": 40, "outputTokens": 4, "costUSD": 0.001}
    one = heard(result(modelUsage={"claude-opus-4-5": {**main, "costUSD": 0.04}}, total_cost_usd=0.04))
    assert one.usage == TokenUsage(
        tokens_in=21016, tokens_out=72, tokens_cached=14269, cost=0.04, model="claude-opus-4-5"
    )
    models = {"claude-haiku-4-5": aside, "claude-opus-4-5": {**main, "costUSD": 0.04}}
    two = heard(result(modelUsage=models, total_cost_usd=0.041))
    assert two.usage == TokenUsage(
        tokens_in=21056, tokens_out=76, tokens_cached=14269, cost=0.041, model="claude-opus-4-5"
    )


def test_usage_is_kept_without_model_breakdown_and_invalid_cost_is_unknown() -> None:
    *before, _ = lines("planning")
    assert heard(*before, result()).usage.tokens_in == 42516
    assert heard(result(modelUsage={}, total_cost_usd="much")).usage.cost is None


@pytest.mark.parametrize(
    ("name", "cause", "words", "wait"),
    [
        ("401", FailureCause.KEY_REFUSED, "Invalid API key", None),
        ("404", FailureCause.MODEL_UNKNOWN, "There's an issue with the selected model", None),
        ("429", FailureCause.RATE_LIMITED, "API Error: Request rejected (429) · Slow down", 1.0),
        ("429-long", FailureCause.RATE_LIMITED, "API Error: Request rejected (429) · Slow down", None),
        ("500", FailureCause.SERVER_ERROR, "API Error: 500 Oh no.", None),
        ("cut", FailureCause.NETWORK_DOWN, "API Error: Connection closed mid-response.", None),
        ("no-connection", FailureCause.NETWORK_DOWN, "API Error: Unable to connect to API", None),
        ("not-logged-in", FailureCause.NOT_LOGGED_IN, "Not logged in", None),
        ("session-lost", FailureCause.SESSION_LOST, "No conversation found with session ID", None),
        ("tools-missing", FailureCause.TOOLS_MISSING, "its MCP server agentd is failed", None),
        ("empty", None, "", None),
        ("resumed", None, "", None),
    ],
)
def test_recorded_failure_has_expected_cause_message_and_wait(
    name: str, cause: FailureCause | None, words: str, wait: float | None
) -> None:
    ended = heard(*lines(name)).ended
    assert ended
    assert (ended.cause, ended.wait_secs) == (cause, wait)
    assert ended.message.startswith(words)
    assert len(ended.message) <= 300


def test_rate_limit_recovered_by_claudes_own_retry_is_not_a_failure() -> None:
    retry = next(line for line in lines("429") if "api_retry" in line)
    first, *rest = lines("planning")
    on_hold, went_on = heard(first, retry).ended, heard(first, retry, *rest[:-1])
    assert on_hold and (on_hold.cause, on_hold.wait_secs) == (FailureCause.RATE_LIMITED, 1.0)
    assert went_on.ended is None  # so that its budget is still looked at
    assert heard(first, retry, *rest).ended == heard(*lines("planning")).ended


@pytest.mark.parametrize(
    ("status", "words", "cause"),
    [
        (401, "OAuth token has expired · Please run /login", FailureCause.NOT_LOGGED_IN),
        (403, "Failed to authenticate. API Error: 403 refused", FailureCause.KEY_REFUSED),
        (400, "Credit balance is too low", FailureCause.KEY_REFUSED),
        (400, "Prompt is too long", FailureCause.CRASHED),
        (529, "API Error: 529 Overloaded", FailureCause.SERVER_ERROR),
        (None, "Request timed out", FailureCause.NETWORK_DOWN),
        ("odd", "something new", FailureCause.CRASHED),
    ],
)
def test_result_error_maps_to_expected_cause(status: object, words: str, cause: FailureCause) -> None:
    ended = heard(result(is_error=True, api_error_status=status, result=words)).ended
    assert ended and (ended.cause, ended.message) == (cause, words)


def test_reaching_claudes_turn_limit_is_a_failure() -> None:
    ended = heard(result(subtype="error_max_turns", errors=["Reached maximum number of turns (9)"], result=None)).ended
    assert ended and (ended.cause, ended.message) == (FailureCause.CRASHED, "Reached maximum number of turns (9)")


def test_refused_tool_calls_are_reported_and_error_text_is_not_agent_output() -> None:
    failed = [event for line in lines("refused-tools") for event in CLAUDE.read(line) if isinstance(event, AgentAction)]
    texts = [event.text for event in failed if event.ok is False]
    assert len(texts) == 4
    assert texts[0].startswith("Error: No such tool available: mcp__agentd__append_review")
    assert AgentAction("tool", "Read README.md") in failed
    assert heard(*lines("401")).text == ""
    assert heard(*lines("cut")).text == "Half an ans\n"


def test_shell_command_is_reported_as_shell_action() -> None:
    did = [event for line in lines("implementing") for event in CLAUDE.read(line)]
    assert AgentAction("shell", "python3 -m notes --all") in did
    assert AgentAction("tool", "Write new.py") in did


def test_subagent_text_is_ignored_but_its_tokens_count() -> None:
    message = {"id": "m", "model": "x", "usage": {"input_tokens": 5}, "content": [{"type": "text", "text": "psst"}]}
    events = list(CLAUDE.read(json.dumps({"type": "assistant", "parent_tool_use_id": "t", "message": message})))
    assert events == [UsageUpdate(TokenUsage(tokens_in=5, model="x"), "m")]


@pytest.mark.parametrize("words", ["", "No conversation found with session ID: x", "Error: Session ID x is in use."])
def test_stderr_before_the_first_event_maps_to_failure_cause(words: str) -> None:
    ended = CLAUDE.failure(1, f"a warning\n{words}\n\n")
    assert (ended and ended.cause) == (FailureCause.SESSION_LOST if "conversation" in words else None)


ODD: tuple[Any, ...] = (None, True, -1, 10**400, "x", [], {}, [None], [{}], {"type": 3})


def variants(value: Any) -> Iterator[Any]:
    """The same with one part of it changed or gone."""
    yield from ODD
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {other: kept for other, kept in value.items() if other != key}
            yield from ({**value, key: odd} for odd in variants(inner))
    elif isinstance(value, list):
        for at, inner in enumerate(value[:2]):
            yield from ([*value[:at], odd, *value[at + 1 :]] for odd in variants(inner))


def test_unexpected_stream_content_does_not_crash_the_reader() -> None:
    kinds: dict[str, Any] = {}
    for path in sorted(STREAMS.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            data = json.loads(line)
            kinds.setdefault(f"{data['type']} {data.get('subtype')} {data.get('event', {}).get('type')}", data)
    assert len(kinds) >= 10
    for data in kinds.values():
        for odd in variants(data):
            list(heard(json.dumps(odd)).parts)
    for line in ("", "not json", "[" * 100_000, '"text"', "3"):
        assert not list(CLAUDE.read(line))

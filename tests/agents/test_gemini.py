"""How Gemini CLI is started, and what its streams tell; the streams are recorded from the real program (0.61.0)."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from briefs import agent, brief

from agentd.agents.failures import FailureCause
from agentd.agents.gemini import Gemini
from agentd.agents.protocol import (
    AgentAction,
    AgentCommand,
    AgentEnded,
    AgentEvent,
    AgentText,
    SessionStarted,
    TokenUsage,
    UsageUpdate,
)

ADAPTER = Gemini()
STREAMS = Path(__file__).parent.parent / "data" / "streams" / "gemini"
TREE = Path("/home/dev/notes-service")
SESSION = "00000000-0000-4000-8000-000000000001"
LISTED = (STREAMS / "list-sessions.txt").read_text()


def command(configured: dict[str, Any] | None = None, **parts: Any) -> AgentCommand:
    asked = brief(TREE, **{"access": "read", "station": Path("/home/dev/station"), **parts})
    return ADAPTER.command(agent(kind="gemini", command="gemini", **(configured or {})), asked)


def replayed(name: str) -> list[AgentEvent]:
    lines = (STREAMS / f"{name}.jsonl").read_text().splitlines()
    return [event for line in lines for event in ADAPTER.read(line)]


def ended(name: str) -> AgentEnded:
    (last,) = (event for event in replayed(name) if isinstance(event, AgentEnded))
    return last


# ---- how it is started

USUAL = ("--output-format", "stream-json", "--approval-mode", "default", "--policy", "policy.toml")


@pytest.mark.parametrize(
    ("configured", "parts", "words"),
    [
        ({}, {}, ()),
        ({}, {"model": "gemini-2.5-pro"}, ("--model", "gemini-2.5-pro")),
        ({}, {"session": SESSION}, ("--session-id", SESSION)),
        ({}, {"resume": SESSION}, ("--resume", SESSION)),
        ({}, {"resume": SESSION, "place": 3}, ("--resume", "3")),
        ({"args": ("--debug",)}, {"session": SESSION}, ("--session-id", SESSION, "--debug")),
    ],
)
def test_command_line_matches_configuration_and_brief(
    configured: dict[str, Any], parts: dict[str, Any], words: tuple[str, ...]
) -> None:
    made = command(configured, **parts)
    assert made.argv == ("gemini", *USUAL, *words)
    assert (made.stdin, made.cwd) == ("Write the proposal.\n", Path("/home/dev/station"))


def settings(made: AgentCommand) -> Any:
    return json.loads(made.files[Path("/home/dev/station/.gemini/settings.json")])


def rules(made: AgentCommand) -> list[dict[str, Any]]:
    return list(tomllib.loads(made.files[Path("/home/dev/station/policy.toml")])["rule"])


def test_files_are_written_only_to_agentds_folders_and_home_is_unchanged() -> None:
    made = command()
    folders = (Path("/home/dev/station"), TREE / "call-7")
    assert all(any(path.is_relative_to(folder) for folder in folders) for path in made.files)
    assert not {"HOME", "GEMINI_CLI_HOME"} & set(made.env)


def test_mcp_server_runs_in_the_project_and_cli_retries_are_disabled() -> None:
    made = command(server=("python", "-m", "agentd", "mcp"), tools=("create_proposal", "read_file"))
    server = settings(made)["mcpServers"]["agentd"]
    assert (server["command"], server["args"]) == ("python", ["-m", "agentd", "mcp"])
    assert server["cwd"] == "$AGENTD_TREE" and made.env["AGENTD_TREE"] == str(TREE)
    assert server["includeTools"] == ["create_proposal", "read_file"]
    assert settings(made)["general"]["maxAttempts"] == 1
    assert made.needs_server


def test_read_only_agent_gets_only_stage_tools_and_search() -> None:
    made = command(tools=("append_review", "read_file"))
    assert settings(made)["tools"]["core"] == ["glob", "grep_search"]
    first, second, third = rules(made)
    assert (first["toolName"], first["decision"], first["priority"]) == ("*", "deny", 500)
    allowed = ["mcp_agentd_append_review", "mcp_agentd_read_file", "glob", "grep_search"]
    assert (second["toolName"], second["decision"]) == (allowed, "allow")
    assert (third["decision"], third["argsPattern"]) == ("deny", '"no_ignore":true')


@pytest.mark.parametrize("tree", [TREE, Path('/home/dev/a.b (ours), "quoted" + $HOME é')], ids=["usual", "odd"])
def test_implementer_may_write_only_inside_the_project(tree: Path) -> None:
    asked = brief(tree, access="write", station=Path("/home/dev/station"), commands=("git diff", "python -m pytest -q"))
    made = ADAPTER.command(agent(kind="gemini", command="gemini"), asked)
    *_, inside, climbing, shell = rules(made)
    assert inside["toolName"] == climbing["toolName"] == ["replace", "write_file"]
    assert shell["commandPrefix"] == ["git diff", "python -m pytest -q", f"cd {tree}"]

    def matches(rule: dict[str, Any], path: str) -> bool:
        arguments = json.dumps({"content": "x", "file_path": path}, separators=(",", ":"), ensure_ascii=False)
        return bool(re.search(rule["argsPattern"], arguments))

    assert matches(inside, f"{tree}/src/new.py")
    assert not matches(inside, "GEMINI.md")
    assert not matches(inside, f"{tree}-other/new.py")
    assert not matches(inside, f"{tree}".replace(".", "x").replace("notes", "other") + "/new.py")
    assert matches(climbing, f"{tree}/../outside") and not matches(climbing, f"{tree}/src/..x")


def test_error_reports_are_written_to_the_call_folder() -> None:
    assert command().env["TMPDIR"] == str(TREE / "call-7")
    assert "TMPDIR" not in command(commands=("make test",)).env  # where a project's tests need the usual place


# ---- sessions


@pytest.mark.parametrize(
    ("session", "place"),
    [
        ("1db8a78e-e46a-46b6-84a8-bea8e0d8c5b4", 1),
        ("87a27975-897f-48f9-920a-7626031e8b32", 2),
        ("deadbeef-0000-4000-8000-000000000000", None),  # in the title of the second
        ("11111111-2222-4333-8444-555555555555", None),  # in the title of the third
        ("F90A6313-1a2d-4971-9f38-593dde2209ef", 8),
    ],
)
def test_session_is_found_by_the_id_at_the_end_of_its_line(session: str, place: int | None) -> None:
    assert ADAPTER.place_of(session, LISTED) == place


def test_empty_session_list_is_valid() -> None:
    assert ADAPTER.place_of(SESSION, "No previous sessions found for this project.") is None


@pytest.mark.parametrize("text", ["", "Error: no key", "1. words", LISTED.replace("(8)", "(9)")])
def test_incomplete_session_list_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a list"):
        ADAPTER.place_of(SESSION, text)


def test_listing_sessions_starts_no_server() -> None:
    asked = brief(TREE, station=Path("/home/dev/station"))
    made = ADAPTER.listing(agent(command="gemini", args=("--debug",)), asked)
    assert made.argv == ("gemini", "--list-sessions", "--debug")
    assert made.cwd == command().cwd
    assert settings(made)["mcpServers"] == {}


# ---- what it tells


def test_recorded_stream_with_mcp_tools_yields_expected_events() -> None:
    assert replayed("mcp") == [
        SessionStarted(SESSION),
        AgentText("Reading. "),
        AgentAction("tool", "grep_search /home/dev/notes-service"),
        AgentAction("shell", "id"),
        AgentAction("tool", "grep_search", True),
        AgentAction(
            "shell",
            'run_shell_command: Tool "run_shell_command" not found. Did you mean one of: '
            '"grep_search", "glob", "mcp_agentd_edit_file"?',
            False,
        ),
        AgentText("Writing it. "),
        AgentAction("tool", "create_proposal"),
        AgentAction("tool", "create_proposal", True),
        AgentText("It is written."),
        UsageUpdate(
            TokenUsage(tokens_in=3648, tokens_out=28, tokens_cached=1664, model="gemini-2.5-pro"), "gemini-2.5-pro"
        ),
        AgentEnded(),
    ]


def test_resumed_stream_keeps_its_session_id() -> None:
    assert replayed("resume")[0] == SessionStarted(SESSION)
    assert replayed("resume")[-1] == AgentEnded()


def test_shell_command_is_reported_as_shell_action() -> None:
    assert [event for event in replayed("shell") if isinstance(event, AgentAction) and event.kind == "shell"] == [
        AgentAction("shell", "echo hi; exit 3"),
        AgentAction("shell", "run_shell_command", True),
    ]


@pytest.mark.parametrize(
    ("name", "cause", "message"),
    [
        ("400", FailureCause.CRASHED, "Request contains an invalid argument."),
        ("401", FailureCause.KEY_REFUSED, "API key not valid. Please pass a valid API key."),
        ("403", FailureCause.KEY_REFUSED, "The caller does not have permission."),
        ("404", FailureCause.MODEL_UNKNOWN, "models/gemini-0 is not found for API version v1beta."),
        ("429", FailureCause.RATE_LIMITED, "You exceeded your current quota. Suggested retry after 7s."),
        ("500", FailureCause.SERVER_ERROR, "An internal error has occurred."),
        ("503", FailureCause.SERVER_ERROR, "The model is overloaded. Please try again later."),
        ("cut", FailureCause.NETWORK_DOWN, "terminated"),
        ("refused", FailureCause.NETWORK_DOWN, "exception TypeError: fetch failed sending request"),
        (
            "empty",
            FailureCause.SERVER_ERROR,
            "The model returned an empty response with no text or thoughts. This may be a transient API issue; "
            "please try again.",
        ),
    ],
)
def test_recorded_failure_has_expected_cause_and_message(name: str, cause: FailureCause, message: str) -> None:
    assert ended(name) == AgentEnded(cause=cause, message=message, wait_secs=7.0 if name == "429" else None)


def result(**stats: Any) -> str:
    return json.dumps({"type": "result", "status": "success", "stats": stats})


def test_usage_is_split_by_model_and_includes_thinking_tokens() -> None:
    flash = {"total_tokens": 150, "input_tokens": 100, "output_tokens": 10, "cached": 60}
    lite = {"total_tokens": 11, "input_tokens": 10, "output_tokens": 1}
    assert list(ADAPTER.read(result(models={"flash": flash, "lite": lite}))) == [
        UsageUpdate(TokenUsage(tokens_in=100, tokens_out=50, tokens_cached=60, model="flash"), "flash"),
        UsageUpdate(TokenUsage(tokens_in=10, tokens_out=1, model="lite"), "lite"),
        AgentEnded(),
    ]


def test_nested_json_error_is_unwrapped() -> None:
    inner = json.dumps({"error": {"code": 429, "message": "Quota. Please retry in 34.07s.", "status": "X"}})
    outer = json.dumps({"error": {"message": inner, "code": 429, "status": "Too Many Requests"}})
    line = json.dumps({"type": "result", "status": "error", "error": {"message": f"[API Error: {outer}]\nWait."}})
    expected = AgentEnded(cause=FailureCause.RATE_LIMITED, message="Quota. Please retry in 34.07s.", wait_secs=34.07)
    assert list(ADAPTER.read(line)) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Loaded cached credentials.",
        "[1]",
        "null",
        "[" * 100_000,
        '{"type": "thinking", "text": "new"}',
        '{"type": 7}',
        '{"type": "init", "session_id": 7}',
        '{"type": "message", "role": "assistant", "content": ["x"]}',
        '{"type": "message", "role": "user", "content": "<review>PASS</review>"}',
        '{"type": "tool_use", "tool_name": null}',
        '{"type": "tool_result", "tool_id": 7}',
        '{"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}',
        '{"type": "result", "status": "error"}',
        '{"type": "result", "status": "error", "error": "words", "stats": {"models": [1]}}',
        '{"type": "result", "status": "error", "error": {"message": null}, "stats": {"models": {"a": 1}}}',
    ],
)
def test_unknown_or_malformed_lines_are_ignored(line: str) -> None:
    assert list(ADAPTER.read(line)) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "tool_use", "tool_name": "glob", "parameters": [1]}',
        '{"type": "tool_use", "tool_name": "run_shell_command", "parameters": {"command": 7}}',
        '{"type": "tool_result", "tool_id": "x", "error": 7}',
        '{"type": "error", "severity": "error", "message": "{[API Error: {"}',
        '{"type": "result", "status": "success", "stats": {"models": {"a": {"input_tokens": "7", "cached": -1}}}}',
    ],
)
def test_events_with_unexpected_parameters_are_still_read(line: str) -> None:
    assert list(ADAPTER.read(line))


# ---- what stderr and the exit code tell

NO_KEY = "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.\nUpdate your environment\n"
NO_SESSION = 'Error resuming session: Invalid session identifier "x". Use --list-sessions to see available sessions.\n'
NO_SESSIONS = "Error resuming session: No previous sessions found for this project.\n"
NO_FOLDER = "An unexpected critical error occurred:Error: Directory does not exist: /x\n    at main (gemini.js:1:1)\n"


@pytest.mark.parametrize(
    ("code", "errors", "cause", "words"),
    [
        (41, NO_KEY, FailureCause.NOT_LOGGED_IN, "When using Gemini API, you must specify"),
        (41, "Invalid auth method selected.\n", FailureCause.NOT_LOGGED_IN, "Invalid auth method selected."),
        (42, NO_SESSION, FailureCause.SESSION_LOST, "Error resuming session: Invalid session identifier"),
        (42, NO_SESSIONS, FailureCause.SESSION_LOST, "Error resuming session: No previous sessions"),
        (
            1,
            "Usage: gemini\nUnknown argument: session-id\n",
            FailureCause.CRASHED,
            "Unknown argument: session-id: this version",
        ),
        (
            1,
            NO_FOLDER,
            FailureCause.CRASHED,
            "An unexpected critical error occurred:Error: Directory does not exist: /x",
        ),
    ],
)
def test_stderr_before_the_first_event_maps_to_failure_cause(
    code: int, errors: str, cause: FailureCause, words: str
) -> None:
    told = ADAPTER.failure(code, "Warning: 256-color support not detected.\n" + errors)
    assert told and told.cause is cause and told.message.startswith(words)


@pytest.mark.parametrize("errors", ["", "Warning: 256-color support not detected.\n"])
def test_exit_without_an_error_message_has_no_cause(errors: str) -> None:
    assert ADAPTER.failure(1, errors) is None


def test_tool_names_use_the_gemini_mcp_prefix() -> None:
    assert ADAPTER.tool_name("create_proposal") == "mcp_agentd_create_proposal"

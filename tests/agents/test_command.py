"""Any program as an agent: what it is given, what is heard of it, and what its last words tell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from briefs import agent, brief

from agentd.agents.command import CommandAgent
from agentd.agents.failures import FailureCause
from agentd.agents.protocol import AgentEnded, AgentText
from agentd.agents.registry import ADAPTERS, get_adapter
from agentd.domain.errors import BadConfig
from program import PATIENCE

ADAPTER = CommandAgent()


def test_program_gets_its_arguments_and_the_prompt_on_stdin(tmp_path: Path) -> None:
    command = ADAPTER.command(agent(args=("--quiet", "")), brief(tmp_path, prompt="Plan it."))
    assert command.argv == ("my-agent", "--quiet", "")
    assert (command.stdin, command.cwd, dict(command.env), dict(command.files)) == ("Plan it.", tmp_path, {}, {})


def test_placeholders_in_args_are_substituted(tmp_path: Path) -> None:
    args = ("--model={model}", "{session}", "-C", "{tree}", "{model}{model}")
    command = ADAPTER.command(agent(args=args), brief(tmp_path, model="m-1", session="s-1"))
    assert command.argv[1:] == ("--model=m-1", "s-1", "-C", str(tmp_path), "m-1m-1")


@pytest.mark.parametrize(
    "text", ["{", "{}", "{{x}}", "{model", "{Model}", "{ model }", "{a: 1}", "%s {0} $HOME", "{env}"]
)
def test_other_braces_are_left_unchanged(tmp_path: Path, text: str) -> None:
    assert ADAPTER.command(agent(args=(text,)), brief(tmp_path)).argv == ("my-agent", text)


def test_substituted_values_are_not_expanded_again(tmp_path: Path) -> None:
    command = ADAPTER.command(agent(args=("{model}",)), brief(tmp_path, model="{tree}"))
    assert command.argv == ("my-agent", "{tree}")


def test_session_placeholder_defaults_to_the_call_folder_name(tmp_path: Path) -> None:
    command = ADAPTER.command(agent(args=("{session}",)), brief(tmp_path, folder=tmp_path / "call-7"))
    assert command.argv == ("my-agent", "call-7")


def test_model_placeholder_without_a_configured_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadConfig) as caught:
        ADAPTER.command(agent(args=("-m", "{model}")), brief(tmp_path))
    assert caught.value.message == ("the args of agents.mine use {model}, but no model is set for this complexity")
    assert "[[agents.mine.models]]" in caught.value.hint


def test_mcp_config_placeholder_points_to_a_written_config_file(tmp_path: Path) -> None:
    call = brief(tmp_path, folder=tmp_path / "call-7")
    command = ADAPTER.command(agent(args=("--mcp-config", "{mcp_config}")), call)
    assert command.argv[-1] == str(tmp_path / "call-7" / "mcp.json")
    assert json.loads(command.files[tmp_path / "call-7" / "mcp.json"]) == {
        "mcpServers": {"agentd": {"command": "agentd", "args": ["mcp", "--change", "add-oauth"]}}
    }


def test_every_stdout_line_is_assistant_text() -> None:
    lines = ["# Plan\n", "\n", '{"type": "end"}\n', "last, without a break", "dos\r\n"]
    heard = [event for line in lines for event in ADAPTER.read(line)]
    assert heard == [
        AgentText(text) for text in ("# Plan\n", "\n", '{"type": "end"}\n', "last, without a break\n", "dos\n")
    ]


def test_real_program_reads_the_prompt_and_its_output_is_captured(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1], sys.stdin.read().upper())"
    mine = agent(command=sys.executable, args=("-c", code, "{model}:"))
    command = ADAPTER.command(mine, brief(tmp_path, prompt="plan it", model="m-1"))
    ran = subprocess.run(
        command.argv, cwd=command.cwd, input=command.stdin, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert [event for line in ran.stdout.splitlines() for event in ADAPTER.read(line)] == [AgentText("m-1: PLAN IT\n")]


def test_last_stderr_lines_give_the_cause_and_the_wait() -> None:
    errors = "starting\nloading\nError: 429 Too Many Requests\nPlease try again in 20 seconds.\n\n"
    assert ADAPTER.failure(1, errors) == AgentEnded(
        cause=FailureCause.RATE_LIMITED, message="Please try again in 20 seconds.", wait_secs=20
    )


@pytest.mark.parametrize("errors", ["", "\n\n", "Traceback (most recent call last):\nKeyError: 'x'\n"])
def test_unrecognized_stderr_gives_no_cause(errors: str) -> None:
    assert ADAPTER.failure(1, errors) is None


def test_exit_code_zero_is_not_a_failure_regardless_of_stderr() -> None:
    assert ADAPTER.failure(0, "warning: rate limit reached, tried again\n") is None


def test_errors_earlier_in_the_log_are_not_the_cause() -> None:
    log = "error: rate limit reached, trying again\n" + "working\n" * 20 + "KeyError: 'x'\n"
    assert ADAPTER.failure(1, log) is None


def test_command_agent_has_no_sessions_final_event_or_cost() -> None:
    assert (ADAPTER.sessions, ADAPTER.final_event, ADAPTER.states_cost) == ("none", False, False)


def test_every_agent_kind_has_an_adapter() -> None:
    assert isinstance(get_adapter("command"), CommandAgent)
    assert {get_adapter(kind).sessions for kind in ADAPTERS} == {"none", "preset", "captured"}

"""What an agent gets of our environment: what it needs, what its configuration names, and no caller's session."""

import pytest
from briefs import agent

from agentd.agents.environment import allowed_environment


def test_basic_variables_are_passed_to_the_agent() -> None:
    ours = {
        "PATH": "/usr/bin",
        "HOME": "/home/dev",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "LC_CTYPE": "UTF-8",
        "TERM": "xterm",
        "TMPDIR": "/var/tmp",
        "USER": "dev",
        "LOGNAME": "dev",
        "SHELL": "/bin/sh",
        "TZ": "UTC",
    }
    assert allowed_environment(agent(), ours) == ours


def test_proxy_and_certificate_variables_are_passed_in_both_cases() -> None:
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    ours = dict.fromkeys((*names, *map(str.lower, names)), "http://127.0.0.1:3128")
    ours |= dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"), "/etc/ca.pem")
    assert allowed_environment(agent(), ours) == ours


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_PRELOAD", "GIT_DIR", "NODE_OPTIONS", "ANTHROPIC_API_KEY", "LC"]
)
def test_other_variables_are_not_passed_to_the_agent(name: str) -> None:
    assert allowed_environment(agent(), {name: "x"}) == {}


def test_configured_variables_are_passed_to_the_agent() -> None:
    ours = {"MY_AGENT_KEY": "k-1", "CLAUDE_CODE_OAUTH_TOKEN": "t-1", "GEMINI_CLI_HOME": "/g", "OTHER_KEY": "o"}
    named = agent(env=("MY_AGENT_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "GEMINI_CLI_HOME", "NOT_SET"))
    assert allowed_environment(named, ours) == {name: ours[name] for name in list(ours)[:3]}


@pytest.mark.parametrize(
    "name",
    [
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_REMOTE_SESSION_ID",
        "GEMINI_CLI",
        "GEMINI_SESSION_ID",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_THREAD_ID",
    ],
)
def test_session_variables_of_the_calling_cli_are_never_passed(name: str) -> None:
    assert allowed_environment(agent(env=(name,)), {name: "1"}) == {}


@pytest.mark.parametrize(
    "name",
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CONFIG_DIR", "GEMINI_SANDBOX", "CODEX_HOME"],
)
def test_cli_settings_variables_can_be_passed(name: str) -> None:
    assert allowed_environment(agent(env=(name,)), {name: "1"}) == {name: "1"}


def test_relative_path_entries_are_removed_from_path() -> None:
    path = "bin:/usr/local/bin::.:./node_modules/.bin:/usr/bin:"
    assert allowed_environment(agent(), {"PATH": path}) == {"PATH": "/usr/local/bin:/usr/bin"}

"""What an agent gets of our environment: what it needs, what its configuration names, and no caller's session."""

import pytest
from briefs import agent

from agentd.agents.environment import allowed


def test_what_every_program_needs_is_passed_on() -> None:
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
    assert allowed(agent(), ours) == ours


def test_the_way_through_a_proxy_is_passed_on_in_both_cases() -> None:
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    ours = dict.fromkeys((*names, *map(str.lower, names)), "http://127.0.0.1:3128")
    ours |= dict.fromkeys(("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"), "/etc/ca.pem")
    assert allowed(agent(), ours) == ours


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_PRELOAD", "GIT_DIR", "NODE_OPTIONS", "ANTHROPIC_API_KEY", "LC"]
)
def test_nothing_else_is(name: str) -> None:
    assert allowed(agent(), {name: "x"}) == {}


def test_what_the_configuration_names_is_passed_on() -> None:
    ours = {"MY_AGENT_KEY": "k-1", "CLAUDE_CODE_OAUTH_TOKEN": "t-1", "GEMINI_CLI_HOME": "/g", "OTHER_KEY": "o"}
    named = agent(env=("MY_AGENT_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "GEMINI_CLI_HOME", "NOT_SET"))
    assert allowed(named, ours) == {name: ours[name] for name in list(ours)[:3]}


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
def test_a_calling_clis_session_is_not_passed_on_even_if_it_is_named(name: str) -> None:
    assert allowed(agent(env=(name,)), {name: "1"}) == {}


@pytest.mark.parametrize(
    "name",
    ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CONFIG_DIR", "GEMINI_SANDBOX", "CODEX_HOME"],
)
def test_a_setting_of_a_cli_is_no_session(name: str) -> None:
    assert allowed(agent(env=(name,)), {name: "1"}) == {name: "1"}


def test_the_repository_cannot_put_its_own_programs_on_the_path() -> None:
    path = "bin:/usr/local/bin::.:./node_modules/.bin:/usr/bin:"
    assert allowed(agent(), {"PATH": path}) == {"PATH": "/usr/local/bin:/usr/bin"}

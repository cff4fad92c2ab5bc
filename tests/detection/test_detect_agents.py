"""Which agents are found, and who gets which seat."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentd.agents.detection import (
    DetectedAgent,
    LoginStatus,
    assign_roles,
    detect_agents,
    detect_login,
    role_notes,
)
from agentd.agents.registry import CLIS
from agentd.domain.terms import Role
from agentd.project.config.loader import load_config

VENDORS = {"gemini": "Google", "codex": "OpenAI", "claude": "Anthropic"}


@pytest.fixture
def programs(tmp_path: Path) -> Callable[[str], bool]:
    """A PATH of one folder, with gemini and codex in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("gemini", "codex"):
        (folder / name).write_text("#!/bin/sh\nexit 99\n")
        (folder / name).chmod(0o755)
    (folder / "claude").write_text("not a program\n")
    return lambda program: shutil.which(program, path=str(folder)) is not None


def logins(environ: dict[str, str], home: Path, platform: str = "linux") -> dict[str, str]:
    found = detect_agents(environ, home, lambda program: True, platform)
    return {agent.name: str(agent.login) for agent in found if agent.login is not LoginStatus.NO}


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0)  # existence is enough: it cannot even be read


def agents(**logins: str) -> tuple[DetectedAgent, ...]:
    """gemini="yes" is installed and logged in; what is not named is not installed."""
    found = detect_agents({}, Path("/nowhere"), lambda program: program in logins, "linux")
    return tuple(
        DetectedAgent(one.name, one.cli, one.installed, LoginStatus(logins.get(one.name, "no"))) for one in found
    )


def seats(found: tuple[DetectedAgent, ...]) -> list[str]:
    """Planner, challenger, implementer, reviewer."""
    roles = assign_roles(found)
    assert list(roles) == list(Role)
    return list(roles.values())


def test_agent_is_installed_when_its_program_is_on_path(tmp_path: Path, programs: Callable[[str], bool]) -> None:
    found = detect_agents({}, tmp_path / "home", programs)
    assert {agent.name: agent.installed for agent in found} == {"gemini": True, "codex": True, "claude": False}
    assert {agent.name: agent.cli.vendor for agent in found} == VENDORS
    assert [agent.cli.to_install.split()[-1] for agent in found] == [
        "@google/gemini-cli",
        "@openai/codex",
        "@anthropic-ai/claude-code",
    ]


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("GEMINI_API_KEY", "gemini"),
        ("CODEX_API_KEY", "codex"),
        ("ANTHROPIC_API_KEY", "claude"),
        ("ANTHROPIC_AUTH_TOKEN", "claude"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "claude"),
    ],
)
def test_api_key_variable_counts_as_login(tmp_path: Path, variable: str, name: str) -> None:
    assert logins({variable: "set"}, tmp_path) == {name: "yes"}
    assert logins({variable: ""}, tmp_path) == {}


def test_api_key_that_the_cli_does_not_use_is_ignored(tmp_path: Path) -> None:
    """Codex sends CODEX_API_KEY only; Gemini takes GOOGLE_API_KEY only for Vertex AI."""
    assert logins({"OPENAI_API_KEY": "set", "GOOGLE_API_KEY": "set"}, tmp_path) == {}


@pytest.mark.parametrize(
    ("file", "name"),
    [(".gemini/oauth_creds.json", "gemini"), (".codex/auth.json", "codex"), (".claude/.credentials.json", "claude")],
)
def test_login_file_counts_as_login(tmp_path: Path, file: str, name: str) -> None:
    touch(tmp_path / file)
    assert logins({}, tmp_path) == {name: "yes"}


@pytest.mark.parametrize(
    ("variable", "file", "name"),
    [
        ("GEMINI_CLI_HOME", ".gemini/oauth_creds.json", "gemini"),
        ("CODEX_HOME", "auth.json", "codex"),
        ("CLAUDE_CONFIG_DIR", ".credentials.json", "claude"),
    ],
)
def test_relocated_cli_home_is_used(tmp_path: Path, variable: str, file: str, name: str) -> None:
    home, moved = tmp_path / "home", tmp_path / "moved"
    for left in (".gemini/oauth_creds.json", ".codex/auth.json", ".claude/.credentials.json"):
        touch(home / left)
    assert name not in logins({variable: str(moved)}, home)
    touch(moved / file)
    assert logins({variable: str(moved)}, tmp_path / "empty") == {name: "yes"}


def test_login_that_cannot_be_checked_is_unknown(tmp_path: Path) -> None:
    assert logins({}, tmp_path, "darwin") == {"claude": "unknown"}  # it may lie in the keychain
    assert logins({"ANTHROPIC_API_KEY": "set"}, tmp_path, "darwin") == {"claude": "yes"}
    assert logins({"GOOGLE_GENAI_USE_VERTEXAI": "true"}, tmp_path) == {"gemini": "unknown"}
    touch(tmp_path / ".gemini/.env")
    assert logins({}, tmp_path) == {"gemini": "unknown"}


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        (".codex/config.toml", 'model_provider = "mine"\n', "codex"),
        (".codex/config.toml", 'cli_auth_credentials_store = "keyring"\n', "codex"),
        (".gemini/settings.json", '{"security": {"auth": {"selectedType": "vertex-ai"}}}', "gemini"),
        (".claude/settings.json", '{"apiKeyHelper": "vault read"}', "claude"),
        (".claude/settings.json", '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}', "claude"),
        (".claude.json", '{"primaryApiKey": "x"}', "claude"),
    ],
)
def test_custom_provider_in_settings_makes_the_login_unknown(tmp_path: Path, file: str, text: str, name: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    assert logins({}, tmp_path) == {}
    path.write_text(text)
    assert logins({}, tmp_path) == {name: "unknown"}
    path.unlink()
    os.mkfifo(path)
    assert logins({}, tmp_path) == {}, "a named pipe keeps nobody waiting"


def test_login_source_is_reported(tmp_path: Path) -> None:
    codex = CLIS["codex"]
    assert detect_login(codex, {"CODEX_API_KEY": "secret"}, tmp_path).by == "CODEX_API_KEY"
    assert (
        detect_login(codex, {}, tmp_path, ("-c", 'model_provider="mine"')).by == "model_provider in its args may be one"
    )
    touch(tmp_path / ".codex/auth.json")
    assert detect_login(codex, {}, tmp_path).by == str(tmp_path / ".codex/auth.json")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (agents(gemini="yes", codex="yes", claude="yes"), "gemini codex claude codex"),
        (agents(codex="yes", claude="yes"), "claude codex claude codex"),
        (agents(gemini="yes", claude="yes"), "gemini claude claude gemini"),
        (agents(gemini="yes", codex="yes"), "gemini codex codex gemini"),
        (agents(gemini="yes"), "gemini gemini gemini gemini"),
        (agents(codex="no"), "codex codex codex codex"),
        (agents(claude="unknown"), "claude claude claude claude"),
        (agents(gemini="no", codex="no", claude="no"), "gemini codex claude codex"),
        # logged in beats not logged in, even if judge and maker are then of one vendor
        (agents(gemini="no", codex="no", claude="yes"), "claude claude claude claude"),
        (agents(gemini="no", codex="yes", claude="yes"), "claude codex claude codex"),
        # unknown beats no
        (agents(gemini="no", codex="unknown", claude="no"), "codex codex codex codex"),
        # a login that cannot be seen is as good as one that can
        (agents(codex="yes", claude="unknown"), "claude codex claude codex"),
        (agents(gemini="yes", codex="yes", claude="unknown"), "gemini codex claude codex"),
        (agents(), "gemini codex claude codex"),
        ((), "gemini codex claude codex"),
    ],
)
def test_roles_are_assigned_to_available_agents(found: tuple[DetectedAgent, ...], expected: str) -> None:
    assert seats(found) == expected.split()


def test_author_and_judge_are_from_different_vendors_when_possible() -> None:
    states = ("yes", "unknown", "no", None)
    for combination in ((a, b, c) for a in states for b in states for c in states):
        named = {name: state for name, state in zip(VENDORS, combination, strict=True) if state}
        best = [name for name, state in named.items() if state != "no"] or list(named) or list(VENDORS)
        planner, challenger, implementer, reviewer = seats(agents(**named))
        assert {planner, challenger, implementer, reviewer} <= set(best), named
        assert (planner == challenger) == (implementer == reviewer) == (len(best) == 1), named


def test_roles_without_agents_are_the_configured_defaults(tmp_path: Path) -> None:
    defaults = load_config(None, environ={}, user_file=tmp_path / "missing.toml")
    assert dict(assign_roles(())) == dict(defaults.roles)


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        (agents(gemini="yes", codex="yes", claude="yes"), []),
        (
            agents(),
            [
                "No agents found. Install at least one, preferably two from different vendors: "
                "`npm install -g @google/gemini-cli`, `npm install -g @openai/codex`, "
                "`npm install -g @anthropic-ai/claude-code`. Then run agentd init again."
            ],
        ),
        (
            agents(claude="yes"),
            [
                "Judge and maker are both from Anthropic; only the session differs. "
                "To get a second vendor's opinion: `npm install -g @openai/codex`."
            ],
        ),
        (
            agents(claude="yes", codex="no"),
            [
                "Judge and maker are both from Anthropic; only the session differs.",
                "codex is installed but not logged in. Run `codex login`.",
            ],
        ),
        (
            agents(codex="yes", claude="unknown"),
            ["Could not determine whether claude is logged in. If it is not, run `claude`."],
        ),
    ],
)
def test_notes_explain_missing_agents_and_shared_vendors(
    found: tuple[DetectedAgent, ...], sentences: list[str]
) -> None:
    assert list(role_notes(found)) == sentences


def test_notes_also_apply_to_roles_chosen_by_the_user() -> None:
    found = agents(gemini="yes", codex="yes", claude="yes")
    mine = {Role.PLANNER: "mine", Role.CHALLENGER: "codex", Role.IMPLEMENTER: "codex", Role.REVIEWER: "codex"}
    assert role_notes(found, mine) == ("Judge and maker are both from OpenAI; only the session differs.",)

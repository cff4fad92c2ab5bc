"""Which CLIs are installed and logged in, and which role each gets. Only looks for logins; never reads a key."""

import os.path
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from agentd.domain import Role
from agentd.project import ProjectScan, is_installed


class LoginStatus(StrEnum):
    """Best first."""

    YES = "yes"
    UNKNOWN = "unknown"
    NO = "no"


@dataclass(frozen=True, slots=True)
class DetectedAgent:
    """`to_install` and `to_log_in` are the commands to type."""

    name: str
    vendor: str
    installed: bool
    login: LoginStatus
    to_install: str
    to_log_in: str


@dataclass(frozen=True, slots=True)
class DetectedLogin:
    """`by` is the evidence, or why the login cannot be determined."""

    login: LoginStatus
    by: str = ""


@dataclass(frozen=True, slots=True)
class KnownCli:
    """Everything agentd knows about a CLI besides its adapter."""

    name: str  # also the name of its program
    vendor: str
    tested: str  # the versions that tests/real_cli runs
    to_install: str
    to_log_in: str
    keys: tuple[str, ...]  # variables; any of them is a login
    home: str  # the variable that overrides its folder
    folder: str
    file: str  # in its folder, written at login
    not_keys: tuple[str, ...] = ()  # variables that look like a login, but that the CLI ignores
    in_moved_home: bool = False  # the variable names the parent of the folder, not the folder itself
    hints: tuple[str, ...] = ()  # variables and files in its folder that may be a login
    settings: tuple[str, ...] = ()  # files in its folder that may configure another kind of login
    mentions: tuple[str, ...] = ()  # the words in those files that suggest one
    keychain: tuple[str, ...] = ()  # platforms where the login may be in the keychain


_ALL = (
    KnownCli(
        "gemini",
        "Google",
        "0.61",
        "npm install -g @google/gemini-cli",
        "gemini",
        keys=("GEMINI_API_KEY",),
        home="GEMINI_CLI_HOME",
        folder=".gemini",
        file="oauth_creds.json",
        not_keys=("GOOGLE_API_KEY",),  # only with GOOGLE_GENAI_USE_VERTEXAI
        in_moved_home=True,
        hints=("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", ".env", "gemini-credentials.json"),
        settings=("settings.json",),
        mentions=("vertex-ai", "compute-default-credentials", "cloud-shell", "gateway"),
    ),
    KnownCli(
        "codex",
        "OpenAI",
        "0.166",
        "npm install -g @openai/codex",
        "codex login",
        keys=("CODEX_API_KEY",),
        home="CODEX_HOME",
        folder=".codex",
        file="auth.json",
        not_keys=("OPENAI_API_KEY",),
        settings=("config.toml",),
        mentions=("model_provider", "cli_auth_credentials_store"),
    ),
    KnownCli(
        "claude",
        "Anthropic",
        "2.1",
        "npm install -g @anthropic-ai/claude-code",
        "claude",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        home="CLAUDE_CONFIG_DIR",
        folder=".claude",
        file=".credentials.json",
        hints=("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        settings=("settings.json", ".claude.json", "../.claude.json"),
        mentions=("apiKeyHelper", "primaryApiKey", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_"),
        keychain=("darwin",),
    ),
)
KNOWN_CLIS: Mapping[str, KnownCli] = MappingProxyType({known.name: known for known in _ALL})

# The preferred agents for each role. A judge reviews the work of the role in VENDOR_OF.
_PREFERRED = {
    Role.PLANNER: ("gemini", "claude", "codex"),
    Role.CHALLENGER: ("codex", "claude", "gemini"),
    Role.IMPLEMENTER: ("claude", "codex", "gemini"),
    Role.REVIEWER: ("codex", "claude", "gemini"),
}
VENDOR_OF = {Role.CHALLENGER: Role.PLANNER, Role.REVIEWER: Role.IMPLEMENTER}


def detect_agents(
    environ: Mapping[str, str],
    home: Path,
    on_path: Callable[[str], bool] = is_installed,
    platform: str = sys.platform,
) -> tuple[DetectedAgent, ...]:
    return tuple(
        DetectedAgent(
            known.name,
            known.vendor,
            on_path(known.name),
            detect_login(known, environ, home, platform=platform).login,
            known.to_install,
            known.to_log_in,
        )
        for known in _ALL
    )


def detect_login(
    known: KnownCli, environ: Mapping[str, str], home: Path, args: Sequence[str] = (), platform: str = sys.platform
) -> DetectedLogin:
    """Look for a login: variables and files that exist, then settings and arguments that suggest one."""
    moved = environ.get(known.home)
    folder = Path(moved or home, known.folder if known.in_moved_home or not moved else "")
    if key := next((key for key in known.keys if environ.get(key)), None):
        return DetectedLogin(LoginStatus.YES, key)
    if os.path.isfile(folder / known.file):
        return DetectedLogin(LoginStatus.YES, str(folder / known.file))
    if hint := next((hint for hint in known.hints if environ.get(hint) or os.path.isfile(folder / hint)), None):
        return DetectedLogin(LoginStatus.UNKNOWN, f"{hint} may be one")
    scan = ProjectScan(folder, ())
    paths = [os.path.normpath(folder / name) for name in known.settings]
    texts = {"its args": " ".join(args)} | {path: scan.text(path) for path in paths}
    for place, text in texts.items():
        if word := next((word for word in known.mentions if word in text), None):
            return DetectedLogin(LoginStatus.UNKNOWN, f"{word} in {place} may be one")
    if platform in known.keychain:
        return DetectedLogin(LoginStatus.UNKNOWN, "it may be in the keychain")
    return DetectedLogin(LoginStatus.NO)


def assign_roles(found: Sequence[DetectedAgent]) -> Mapping[Role, str]:
    """Assign installed agents to roles; with nothing installed, as if everything were.

    Agents that are not logged in come last, even if they are the only judge of another vendor. An unknown login counts
    as logged in; otherwise Claude on a Mac, whose login is in the keychain, would never be chosen.
    """
    installed = [agent for agent in found if agent.installed]
    agents = installed or [
        DetectedAgent(known.name, known.vendor, False, LoginStatus.UNKNOWN, known.to_install, known.to_log_in)
        for known in _ALL
    ]
    roles = {role: min(agents, key=_preference(role)) for role in Role if not role.is_judge}
    for judge, maker in VENDOR_OF.items():
        roles[judge] = min(agents, key=_preference(judge, roles[maker].vendor))
    return MappingProxyType({role: roles[role].name for role in Role})


def _preference(role: Role, maker: str = "") -> Callable[[DetectedAgent], tuple[bool, bool, int]]:
    """Return a sort key, best agent first; for a judge, `maker` is the vendor whose work it reviews."""

    def order(agent: DetectedAgent) -> tuple[bool, bool, int]:
        return agent.login is LoginStatus.NO, agent.vendor == maker, _PREFERRED[role].index(agent.name)

    return order


def role_notes(found: Sequence[DetectedAgent], roles: Mapping[Role, str] | None = None) -> tuple[str, ...]:
    """Return what a person should know about these roles (by default those of `assign_roles`), one sentence each."""
    installed = [agent for agent in found if agent.installed]
    if not installed:
        commands = ", ".join(f"`{agent.to_install}`" for agent in found)
        note = f"No agents found. Install at least one, preferably two from different vendors: {commands}"
        return (f"{note}. Then run agentd init again.",)
    return (*_shared_vendor_note(found, roles or assign_roles(found)), *filter(None, map(_login_note, installed)))


def suggest_alternative(kind: str, on_path: Callable[[str], bool]) -> str:
    """Return a hint to use another installed CLI instead of a missing one, or an empty string."""
    other = next((name for name in KNOWN_CLIS if name != kind and on_path(name)), None)
    return f"; or use {other}, which is installed: agentd init" if other and kind in KNOWN_CLIS else ""


def _shared_vendor_note(found: Sequence[DetectedAgent], roles: Mapping[Role, str]) -> tuple[str, ...]:
    vendor = {agent.name: agent.vendor for agent in found}
    vendors = {role: vendor.get(name, name) for role, name in roles.items()}
    shared = {vendors[judge] for judge, maker in VENDOR_OF.items() if vendors[judge] == vendors[maker]}
    if not shared:
        return ()
    names = " and ".join(sorted(shared))
    sentence = f"Judge and maker are both from {names}; only the session differs"
    others = [agent for agent in found if agent.vendor not in shared]
    if any(agent.installed for agent in others):
        return (f"{sentence}.",)  # the note about its login says what is missing
    other = min(others, key=lambda agent: _PREFERRED[Role.REVIEWER].index(agent.name))
    return (f"{sentence}. To get a second vendor's opinion: `{other.to_install}`.",)


def _login_note(agent: DetectedAgent) -> str | None:
    match agent.login:
        case LoginStatus.YES:
            return None
        case LoginStatus.NO:
            return f"{agent.name} is installed but not logged in. Run `{agent.to_log_in}`."
        case LoginStatus.UNKNOWN:
            return f"Could not determine whether {agent.name} is logged in. If it is not, run `{agent.to_log_in}`."

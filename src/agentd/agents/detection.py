"""Which agents are here and who sits where. A login is judged by what exists and is mentioned; no key is ever taken."""

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
    """The best first."""

    YES = "yes"
    UNKNOWN = "unknown"
    NO = "no"


@dataclass(frozen=True, slots=True)
class DetectedAgent:
    """`to_install` and `to_log_in` are what to type."""

    name: str
    vendor: str
    installed: bool
    login: LoginStatus
    to_install: str
    to_log_in: str


@dataclass(frozen=True, slots=True)
class DetectedLogin:
    """`by` is what shows it, or why it cannot be seen."""

    login: LoginStatus
    by: str = ""


@dataclass(frozen=True, slots=True)
class KnownCli:
    """What we know about a CLI: all of it is here and in its adapter."""

    name: str  # also the name of its program
    vendor: str
    tested: str  # the versions that tests/real_cli runs
    to_install: str
    to_log_in: str
    keys: tuple[str, ...]  # variables, each of which is a login
    home: str  # the variable that moves its folder
    folder: str
    file: str  # in its folder, written at login
    not_keys: tuple[str, ...] = ()  # variables that look like a login, but it does not take them for one
    in_moved_home: bool = False  # the variable names a home with the folder in it, not the folder itself
    hints: tuple[str, ...] = ()  # variables and files in its folder that may be a login
    settings: tuple[str, ...] = ()  # files in its folder that may name a login of another kind
    mentions: tuple[str, ...] = ()  # the words by which they do
    keychain: tuple[str, ...] = ()  # platforms where the login may lie out of sight


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

# Who is asked first for a seat. Judges look at the work of the maker beside them.
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
    """By what exists. What its settings or arguments mention may be a login of another kind."""
    moved = environ.get(known.home)
    folder = Path(moved or home, known.folder if known.in_moved_home or not moved else "")
    if key := next((key for key in known.keys if environ.get(key)), None):
        return DetectedLogin(LoginStatus.YES, key)
    if os.path.isfile(folder / known.file):
        return DetectedLogin(LoginStatus.YES, str(folder / known.file))
    if hint := next((hint for hint in known.hints if environ.get(hint) or os.path.isfile(folder / hint)), None):
        return DetectedLogin(LoginStatus.UNKNOWN, f"{hint} may be one")
    look = ProjectScan(folder, ())
    paths = [os.path.normpath(folder / name) for name in known.settings]
    texts = {"its args": " ".join(args)} | {path: look.text(path) for path in paths}
    for place, text in texts.items():
        if word := next((word for word in known.mentions if word in text), None):
            return DetectedLogin(LoginStatus.UNKNOWN, f"{word} in {place} may name one")
    if platform in known.keychain:
        return DetectedLogin(LoginStatus.UNKNOWN, "it may lie in the keychain")
    return DetectedLogin(LoginStatus.NO)


def assign_roles(found: Sequence[DetectedAgent]) -> Mapping[Role, str]:
    """Who sits where, by what is installed; with nothing installed, as if everything were.

    One that is not logged in comes last, also as the only judge of another vendor: a judge that cannot speak is no
    judge. A login that cannot be seen counts as one, or Claude on a Mac would never get its seat.
    """
    here = [agent for agent in found if agent.installed]
    agents = here or [
        DetectedAgent(known.name, known.vendor, False, LoginStatus.UNKNOWN, known.to_install, known.to_log_in)
        for known in _ALL
    ]
    seats = {role: min(agents, key=_wish(role)) for role in Role if not role.is_judge}
    for judge, maker in VENDOR_OF.items():
        seats[judge] = min(agents, key=_wish(judge, seats[maker].vendor))
    return MappingProxyType({role: seats[role].name for role in Role})


def _wish(role: Role, maker: str = "") -> Callable[[DetectedAgent], tuple[bool, bool, int]]:
    """The smaller, the better in that seat; for a judge, `maker` is the vendor of whose work it judges."""

    def order(agent: DetectedAgent) -> tuple[bool, bool, int]:
        return agent.login is LoginStatus.NO, agent.vendor == maker, _PREFERRED[role].index(agent.name)

    return order


def role_notes(found: Sequence[DetectedAgent], roles: Mapping[Role, str] | None = None) -> tuple[str, ...]:
    """What a person should know about these seats, those of `map_roles` if none are given: one sentence each."""
    here = [agent for agent in found if agent.installed]
    if not here:
        ways = ", ".join(f"`{agent.to_install}`" for agent in found)
        words = f"No agent was found; install at least one, better two of different vendors: {ways}"
        return (f"{words}. Then run agentd init again.",)
    return (*_shared(found, roles or assign_roles(found)), *filter(None, map(_about_login, here)))


def suggest_alternative(kind: str, on_path: Callable[[str], bool]) -> str:
    """For who misses that CLI: which other one is here, and the command that seats it or tells how."""
    here = next((name for name in KNOWN_CLIS if name != kind and on_path(name)), None)
    return f"; or seat {here}, which is here: agentd init" if here and kind in KNOWN_CLIS else ""


def _shared(found: Sequence[DetectedAgent], roles: Mapping[Role, str]) -> tuple[str, ...]:
    vendor = {agent.name: agent.vendor for agent in found}
    seated = {role: vendor.get(name, name) for role, name in roles.items()}
    shared = {seated[judge] for judge, maker in VENDOR_OF.items() if seated[judge] == seated[maker]}
    if not shared:
        return ()
    sentence = f"Judge and maker are both of {' and of '.join(sorted(shared))}, so the judge only has a fresh session"
    others = [agent for agent in found if agent.vendor not in shared]
    if any(agent.installed for agent in others):
        return (f"{sentence}.",)  # what that one needs is said in its own sentence
    other = min(others, key=lambda agent: _PREFERRED[Role.REVIEWER].index(agent.name))
    return (f"{sentence}; for a second vendor's opinion: `{other.to_install}`.",)


def _about_login(agent: DetectedAgent) -> str | None:
    match agent.login:
        case LoginStatus.YES:
            return None
        case LoginStatus.NO:
            return f"{agent.name} is installed but not logged in: type `{agent.to_log_in}`."
        case LoginStatus.UNKNOWN:
            return f"Whether {agent.name} is logged in cannot be seen from here; if not: type `{agent.to_log_in}`."

"""Which CLIs are installed and logged in, and which role each one gets. Looks for logins but never reads a key."""

import os.path
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agentd.agents.protocol import CliProfile
from agentd.agents.registry import CLIS
from agentd.domain import Role

_MAX_BYTES = 500_000  # most bytes of a settings file


class LoginStatus(StrEnum):
    """Whether a CLI is logged in; best first."""

    YES = "yes"
    UNKNOWN = "unknown"
    NO = "no"


@dataclass(frozen=True, slots=True)
class DetectedAgent:
    name: str
    cli: CliProfile
    installed: bool
    login: LoginStatus


@dataclass(frozen=True, slots=True)
class DetectedLogin:
    """`by` is the evidence, or why the login cannot be determined."""

    login: LoginStatus
    by: str = ""


# Whose work each judge reviews.
VENDOR_OF = {Role.CHALLENGER: Role.PLANNER, Role.REVIEWER: Role.IMPLEMENTER}


def detect_agents(
    environ: Mapping[str, str],
    home: Path,
    on_path: Callable[[str], object] = shutil.which,
    platform: str = sys.platform,
) -> tuple[DetectedAgent, ...]:
    return tuple(
        DetectedAgent(name, cli, bool(on_path(name)), detect_login(cli, environ, home, platform=platform).login)
        for name, cli in CLIS.items()
    )


def detect_login(
    cli: CliProfile, environ: Mapping[str, str], home: Path, args: Sequence[str] = (), platform: str = sys.platform
) -> DetectedLogin:
    """Look for a login: first existing variables and files, then settings and arguments that suggest one."""
    evidence = cli.login
    moved = environ.get(evidence.home)
    folder = Path(moved or home, evidence.folder if evidence.in_moved_home or not moved else "")
    if key := next((key for key in evidence.keys if environ.get(key)), None):
        return DetectedLogin(LoginStatus.YES, key)
    if os.path.isfile(folder / evidence.file):
        return DetectedLogin(LoginStatus.YES, str(folder / evidence.file))
    if hint := next((hint for hint in evidence.hints if environ.get(hint) or os.path.isfile(folder / hint)), None):
        return DetectedLogin(LoginStatus.UNKNOWN, f"{hint} may be one")
    paths = [os.path.normpath(folder / name) for name in evidence.settings]
    texts = {"its args": " ".join(args)} | {path: _read_text(path) for path in paths}
    for source, text in texts.items():
        if word := next((word for word in evidence.mentions if word in text), None):
            return DetectedLogin(LoginStatus.UNKNOWN, f"{word} in {source} may be one")
    if platform in evidence.keychain:
        return DetectedLogin(LoginStatus.UNKNOWN, "it may be in the keychain")
    return DetectedLogin(LoginStatus.NO)


def _read_text(path: str) -> str:
    """Return a file's text; empty if it is missing, unreadable, too long or not a regular file (a pipe would block)."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError:
        return ""
    return "" if len(data) > _MAX_BYTES else data.decode("utf-8", "replace")


def assign_roles(found: Sequence[DetectedAgent]) -> Mapping[Role, str]:
    """Assign installed agents to roles; if none is installed, pretend that all are.

    Agents that are not logged in come last, even if they are the only judge from another vendor. An unknown login
    counts as logged in; otherwise Claude on a Mac, whose login is in the keychain, would never be chosen.
    """
    installed = [agent for agent in found if agent.installed]
    agents = installed or [DetectedAgent(name, cli, False, LoginStatus.UNKNOWN) for name, cli in CLIS.items()]

    def best(role: Role, maker: str = "") -> DetectedAgent:
        """Return the best agent for a role. For a judge, `maker` is the vendor whose work it reviews."""
        return min(agents, key=lambda one: (one.login is LoginStatus.NO, one.cli.vendor == maker, _rank(one, role)))

    roles = {role: best(role) for role in Role if not role.is_judge}
    for judge, maker in VENDOR_OF.items():
        roles[judge] = best(judge, roles[maker].cli.vendor)
    return {role: roles[role].name for role in Role}


def _rank(agent: DetectedAgent, role: Role) -> int:
    return agent.cli.role_ranks.get(role, len(CLIS))


def role_notes(found: Sequence[DetectedAgent], roles: Mapping[Role, str] | None = None) -> tuple[str, ...]:
    """Return what a person should know about these roles (by default from `assign_roles`), one sentence each."""
    installed = [agent for agent in found if agent.installed]
    if not installed:
        commands = ", ".join(f"`{agent.cli.to_install}`" for agent in found)
        note = f"No agents found. Install at least one, preferably two from different vendors: {commands}"
        return (f"{note}. Then run agentd init again.",)
    return (*_shared_vendor_note(found, roles or assign_roles(found)), *filter(None, map(_login_note, installed)))


def suggest_alternative(kind: str, on_path: Callable[[str], object]) -> str:
    """Return a hint to use another installed CLI instead of a missing one, or an empty string."""
    other = next((name for name in CLIS if name != kind and on_path(name)), None)
    return f"; or use {other}, which is installed: agentd init" if other and kind in CLIS else ""


def _shared_vendor_note(found: Sequence[DetectedAgent], roles: Mapping[Role, str]) -> tuple[str, ...]:
    vendor = {agent.name: agent.cli.vendor for agent in found}
    vendors = {role: vendor.get(name, name) for role, name in roles.items()}
    shared = {vendors[judge] for judge, maker in VENDOR_OF.items() if vendors[judge] == vendors[maker]}
    if not shared:
        return ()
    names = " and ".join(sorted(shared))
    sentence = f"Judge and maker are both from {names}; only the session differs"
    others = [agent for agent in found if agent.cli.vendor not in shared]
    if any(agent.installed for agent in others):
        return (f"{sentence}.",)  # the login note says what is missing
    other = min(others, key=lambda agent: _rank(agent, Role.REVIEWER))
    return (f"{sentence}. To get a second vendor's opinion: `{other.cli.to_install}`.",)


def _login_note(agent: DetectedAgent) -> str | None:
    match agent.login:
        case LoginStatus.YES:
            return None
        case LoginStatus.NO:
            return f"{agent.name} is installed but not logged in. Run `{agent.cli.to_log_in}`."
        case LoginStatus.UNKNOWN:
            return f"Could not determine whether {agent.name} is logged in. If it is not, run `{agent.cli.to_log_in}`."

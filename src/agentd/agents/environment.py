"""The environment variables passed to an agent: an allow-list plus those named in its configuration (pure)."""

import os.path
import re
from collections.abc import Collection, Mapping

from agentd.project import AgentSettings

_BASICS = ("PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
_ALWAYS = frozenset((*_BASICS, *_PROXIES, *map(str.lower, _PROXIES), *_CERTIFICATES))

# Variables that a CLI sets for its child processes. With them set, it refuses to start or joins the caller's session.
_SESSION = re.compile(
    r"CLAUDECODE"
    r"|CLAUDE_CODE_(?:ENTRYPOINT|SSE_PORT|EXECPATH|\w*SESSION\w*|REMOTE\w*|AGENT_\w+|TEAM_\w+)"
    r"|GEMINI_CLI|GEMINI_(?:CLI_)?SESSION\w*"
    r"|CODEX_(?:SANDBOX\w*|THREAD\w*|SESSION\w*|CI|INTERNAL_ORIGINATOR_OVERRIDE)"
)


def allowed_environment(agent: AgentSettings, environ: Mapping[str, str]) -> dict[str, str]:
    return basic_environment(environ, agent.env)


def basic_environment(environ: Mapping[str, str], named: Collection[str] = ()) -> dict[str, str]:
    """Return the variables every program gets, plus the named ones."""
    passed = {
        name: value
        for name, value in environ.items()
        if (name in _ALWAYS or name.startswith("LC_") or name in named) and not is_session_variable(name)
    }
    if "PATH" in passed:
        passed["PATH"] = _absolute_entries(passed["PATH"])
    return passed


def is_session_variable(name: str) -> bool:
    """Return whether a CLI sets this variable for its child processes."""
    return _SESSION.fullmatch(name) is not None


def _absolute_entries(path: str) -> str:
    """Remove relative and empty entries from PATH: they would let the repository choose which program runs."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))

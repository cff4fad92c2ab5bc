"""The environment variables passed to an agent: an allow-list plus those named in its configuration (pure)."""

import os.path
import re
from collections.abc import Collection, Mapping
from functools import cache

from agentd.agents.protocol import AgentSettings
from agentd.agents.registry import CLIS

_BASICS = ("PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
_ALWAYS = frozenset((*_BASICS, *_PROXIES, *map(str.lower, _PROXIES), *_CERTIFICATES))


def allowed_environment(agent: AgentSettings, environ: Mapping[str, str]) -> dict[str, str]:
    return basic_environment(environ, agent.env)


def basic_environment(environ: Mapping[str, str], named: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that every program gets, plus the named ones."""
    passed = {
        name: value
        for name, value in environ.items()
        if (name in _ALWAYS or name.startswith("LC_") or name in named) and not is_session_variable(name)
    }
    if "PATH" in passed:
        # Relative and empty entries would let the repository choose which program runs.
        entries = passed["PATH"].split(os.pathsep)
        passed["PATH"] = os.pathsep.join(entry for entry in entries if os.path.isabs(entry))
    return passed


def is_session_variable(name: str) -> bool:
    """Return whether a CLI sets this variable for its child processes.

    If such a variable is set, the CLI refuses to start or joins the caller's session.
    """
    return _session_pattern().fullmatch(name) is not None


@cache
def _session_pattern() -> re.Pattern[str]:
    return re.compile("|".join(cli.session_variables for cli in CLIS.values() if cli.session_variables))

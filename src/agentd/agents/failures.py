"""Why a call failed: the cause, whether retrying can help, and what to do next (pure)."""

import re
from enum import StrEnum


class FailureCause(StrEnum):
    NOT_INSTALLED = "not-installed"
    NOT_LOGGED_IN = "not-logged-in"
    KEY_REFUSED = "key-refused"
    MODEL_UNKNOWN = "model-unknown"
    RATE_LIMITED = "rate-limited"
    SERVER_ERROR = "server-error"
    NETWORK_DOWN = "network-down"
    WALL_CLOCK = "wall-clock"
    IDLE = "idle"
    TOO_MUCH_OUTPUT = "too-much-output"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    GARBAGE = "garbage"  # exit code 0, but no final event
    DID_NOTHING = "did-nothing"
    CHANGED_FILES = "changed-files"  # by a judge, which must not change any
    SESSION_LOST = "session-lost"
    TOOLS_MISSING = "tools-missing"  # agentd's MCP server did not start
    CRASHED = "crashed"  # anything else

    @property
    def can_pass(self) -> bool:
        """Return whether retrying may help."""
        return self in (FailureCause.RATE_LIMITED, FailureCause.SERVER_ERROR, FailureCause.NETWORK_DOWN)


def failure_hint(cause: FailureCause, agent: str, role: str, change_id: str) -> str:
    """Return what a person can do. Running the command again resumes where it stopped."""
    limit = "in agentd/config.toml, then run the command again"
    transcript = f"agentd log {change_id} --transcript shows its output"
    return {
        FailureCause.NOT_LOGGED_IN: f"log in to {agent} or pass its key ([agents.{agent}] env), then run it again",
        FailureCause.KEY_REFUSED: f"check the key that {agent} uses, then run the command again",
        FailureCause.MODEL_UNKNOWN: f"set another model under [[agents.{agent}.models]] {limit}",
        FailureCause.RATE_LIMITED: "wait, then run the command again",
        FailureCause.SERVER_ERROR: "the vendor's API has a problem: run the command again later",
        FailureCause.NETWORK_DOWN: "check the network and proxy settings, then run the command again",
        FailureCause.WALL_CLOCK: f"raise limits.wall_secs.{role} {limit}",
        FailureCause.IDLE: f"raise limits.idle_secs.{role} {limit}",
        FailureCause.TOO_MUCH_OUTPUT: f"raise limits.output_mb {limit}",
        FailureCause.GARBAGE: f"{transcript}; this version may use an unsupported output format",
        FailureCause.DID_NOTHING: f"{transcript}; run the command again, or assign another agent to the role",
        FailureCause.CHANGED_FILES: "if that was you, run the command again; if not, give the judge no write access",
        FailureCause.TOOLS_MISSING: "run agentd doctor to see why, then run the command again",
    }.get(cause, f"{transcript}; run the command again to resume")


_STATUS = {
    401: FailureCause.KEY_REFUSED,
    403: FailureCause.KEY_REFUSED,
    404: FailureCause.MODEL_UNKNOWN,
    429: FailureCause.RATE_LIMITED,
}


def cause_of_status(status: int) -> FailureCause | None:
    """Return the cause for an HTTP status of a vendor's API."""
    return FailureCause.SERVER_ERROR if 500 <= status <= 599 else _STATUS.get(status)


def _status_pattern(numbers: str) -> str:
    """Return a pattern for an HTTP status labelled as such; a bare number could be anything."""
    return (
        rf"(?:\b(?:status|code|http(?:/[\d.]+)?|error|failed with)\b[\"']?(?: code)?\s?[:=(]?\s?(?:{numbers})\b"
        rf"|^(?:{numbers}) [A-Z{{])"
    )


_KEY = r"\b(?:api.?key|(?:access|auth\w*|oauth|bearer|refresh) token|credentials?)\b"  # "token" alone is ambiguous

# The first match wins. Only for error messages from programs, never for an agent's prose.
_PATTERNS = (
    (FailureCause.NOT_LOGGED_IN, r"\bnot logged in|please (?:re-?)?(?:log|sign) ?in|(?:login|sign-?in) required"),
    (
        FailureCause.NOT_LOGGED_IN,
        r"log ?out and (?:log|sign) in|not authenticated|(?:set|select|choose) an auth method",
    ),
    (FailureCause.NOT_LOGGED_IN, r"\brun [`'\"]?(?:[\w-]+ )?/?(?:login|auth)\b|must specify the \w+_api_key"),
    (
        FailureCause.NOT_LOGGED_IN,
        r"no api key|(?:missing|without an?) api key|api[ _]key\b.{0,30}(?:is missing|not set|not found)",
    ),
    (FailureCause.KEY_REFUSED, r"credit balance is too low|insufficient_quota|payment required"),
    (
        FailureCause.RATE_LIMITED,
        r"rate[ _-]?limit(?:ed|s?\b|_\w)|too many requests|resource[ _]?(?:has been )?exhausted",
    ),
    (FailureCause.RATE_LIMITED, r"(?:exceeded|exhausted|out of)\b.{0,40}\b(?:quota|capacity)"),
    (FailureCause.RATE_LIMITED, r"\bquota\b.{0,40}\b(?:exceeded|exhausted|reached|resets?)\b"),
    (
        FailureCause.RATE_LIMITED,
        r"\b(?:usage|hour|hourly|daily|weekly|session|request) limit (?:reached|exceeded)|hit your .{0,20}limit",
    ),
    (FailureCause.RATE_LIMITED, _status_pattern("429")),
    (FailureCause.KEY_REFUSED, r"(?:invalid|incorrect|expired|revoked|wrong)\b.{0,20}\b" + _KEY),
    (FailureCause.KEY_REFUSED, _KEY + r".{0,20}\b(?:not valid|invalid|expired|revoked|incorrect)"),
    (FailureCause.KEY_REFUSED, r"\bunauthenticated\b|authentication_error|permission_(?:error|denied)"),
    (FailureCause.KEY_REFUSED, _status_pattern("401|402|403")),
    (FailureCause.MODEL_UNKNOWN, r"\bmodels?\b.{0,80}\b(?:not found|does not exist|not supported|not available)"),
    (FailureCause.MODEL_UNKNOWN, r"\b(?:unknown|no such|invalid) model\b"),
    (FailureCause.SESSION_LOST, r"no (?:conversation|rollout|session) found|\bsession (?:id )?.{0,60}not found"),
    (FailureCause.SESSION_LOST, r"invalid session (?:id|identifier)"),
    (
        FailureCause.NETWORK_DOWN,
        r"\b(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b",
    ),
    (
        FailureCause.NETWORK_DOWN,
        r"\bconnection (?:was )?(?:refused|reset|error|timed out)|could not resolve (?:host|proxy)",
    ),
    (FailureCause.NETWORK_DOWN, r"network (?:error|is unreachable)|\bfetch failed|getaddrinfo|socket hang up"),
    (FailureCause.NETWORK_DOWN, r"name or service not known|name resolution|error sending request|\brequest timed out"),
    (FailureCause.NETWORK_DOWN, r"stream disconnected|stream closed before"),
    (
        FailureCause.SERVER_ERROR,
        r"internal server error|\boverloaded(?:_error)?\b|service (?:is )?(?:currently )?unavailable",
    ),
    (FailureCause.SERVER_ERROR, r"bad gateway|gateway time-?out|" + _status_pattern("5(?:00|02|03|04|29)")),
)

_AMOUNT = r"(\d{1,9}(?:\.\d{1,9})?)"
_SPAN = (
    rf"(?:{_AMOUNT}\s?d(?:ays?)?[\s,]{{0,3}})?(?:{_AMOUNT}\s?h(?:(?:ou)?rs?)?[\s,]{{0,3}})?"
    rf"(?:{_AMOUNT}\s?m(?:in(?:ute)?s?)?\b[\s,]{{0,3}}|{_AMOUNT}\s?m(?=\d))?"
    rf"(?:{_AMOUNT}\s?s(?:ec(?:ond)?s?)?\b)?(?:{_AMOUNT}\s?m(?:illi)?s(?:ec(?:ond)?s?)?\b)?"
)
# "try again in 3 hours 12 minutes", "reset after 2h13m5s", "retryDelay": "34s", "please wait 20 seconds"
_WAIT = (
    r"\b(?:(?:retry|retrying|try again|resets?|available)(?: again)?(?: in| after)|wait(?: for)?|retry_?delay)"
    rf"[\"':=\s]{{1,6}}{_SPAN}"
)
# Headers without a unit: "Retry-After: 30", "retry-after-ms: 1500", "retry_delay_ms": 542
_HEADER = r"\bretry[-_](?:after|delay)(?:[-_](ms|secs?|seconds))?[\"']?\s?[:=]\s?[\"']?(\d{1,9}(?:\.\d{1,9})?)\b"
_SECONDS = (86400, 3600, 60, 60, 1, 0.001)


def cause_of_text(text: str) -> FailureCause | None:
    # Compiled on first use and cached by `re`, so importing this module stays fast.
    flags = re.IGNORECASE | re.MULTILINE
    return next((cause for cause, pattern in _PATTERNS if re.search(pattern, text, flags)), None)


def requested_wait(text: str) -> float | None:
    """Return how many seconds the rate limit asks us to wait, or None if the text does not say."""
    if header := re.search(_HEADER, text, re.IGNORECASE):
        return float(header[2]) * (0.001 if header[1] and header[1].lower() == "ms" else 1)
    for match in re.finditer(_WAIT, text, re.IGNORECASE):
        if any(match.groups()):
            return sum(float(amount or 0) * unit for amount, unit in zip(match.groups(), _SECONDS, strict=True))
    return None

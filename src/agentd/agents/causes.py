"""Why a call failed: the cause, whether trying again can help, and what to type next (pure)."""

import re
from enum import StrEnum


class Cause(StrEnum):
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
    GARBAGE = "garbage"  # it ended well by its exit code, but without the events that say so
    DID_NOTHING = "did-nothing"
    CHANGED_FILES = "changed-files"  # a judge may not
    SESSION_LOST = "session-lost"
    CRASHED = "crashed"  # anything else

    @property
    def can_pass(self) -> bool:
        """Trying the same again may help."""
        return self in (Cause.RATE_LIMITED, Cause.SERVER_ERROR, Cause.NETWORK_DOWN)


def hint(cause: Cause, agent: str, role: str) -> str:
    """What a person can do; then the same command goes on where it stopped."""
    limit = "in agentd/config.toml, then run the command again"
    return {
        Cause.NOT_LOGGED_IN: f"log {agent} in, or pass its key on ([agents.{agent}] env), then run the command again",
        Cause.KEY_REFUSED: f"check the key that {agent} uses, then run the command again",
        Cause.MODEL_UNKNOWN: f"name another model under [[agents.{agent}.models]] {limit}",
        Cause.RATE_LIMITED: "wait, then run the command again",
        Cause.SERVER_ERROR: "the vendor has a problem: run the command again later",
        Cause.NETWORK_DOWN: "check the network and its proxy settings, then run the command again",
        Cause.WALL_CLOCK: f"raise limits.wall_secs.{role} {limit}",
        Cause.IDLE: f"raise limits.idle_secs.{role} {limit}",
        Cause.TOO_MUCH_OUTPUT: f"raise limits.output_mb {limit}",
        Cause.GARBAGE: "agentd log shows what it said; another version of it may speak another dialect",
        Cause.DID_NOTHING: "agentd log shows what it said; run the command again, or put another agent in its role",
        Cause.CHANGED_FILES: "judges only read: give it no rights to write, then run the command again",
        Cause.SESSION_LOST: "run the command again with --new-session",
    }.get(cause, "agentd log shows what it said; run the command again to go on")


_STATUS = {401: Cause.KEY_REFUSED, 403: Cause.KEY_REFUSED, 404: Cause.MODEL_UNKNOWN, 429: Cause.RATE_LIMITED}


def of_status(status: int) -> Cause | None:
    """An HTTP status of a vendor's API."""
    return Cause.SERVER_ERROR if 500 <= status <= 599 else _STATUS.get(status)


# The first that fits counts. Only for what a program says about its own failure, never for an agent's prose.
_WORDS = (
    (Cause.RATE_LIMITED, r"rate.?limit|too many requests|quota|resource.?exhausted|usage limit|\b429\b"),
    (Cause.NOT_LOGGED_IN, r"not logged in|please (?:log|sign) ?in|login required|no api key|api key (?:is )?missing"),
    (Cause.NOT_LOGGED_IN, r"not authenticated|auth method|run `?[\w-]+ (?:/?login|auth)"),
    (Cause.KEY_REFUSED, r"(?:invalid|incorrect|expired|revoked)\b.{0,20}\b(?:key|token|credential)|\b40[13]\b"),
    (Cause.KEY_REFUSED, r"unauthori[sz]ed|forbidden|permission.?denied.{0,20}api|(?:key|token).{0,20}not valid"),
    (
        Cause.MODEL_UNKNOWN,
        r"model\b.{0,80}(?:not found|does not exist|not supported|unknown)|unknown model|no such model",
    ),
    (Cause.SESSION_LOST, r"no (?:conversation|rollout|session) found|session not found|invalid session"),
    (Cause.NETWORK_DOWN, r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET|ETIMEDOUT|ENETUNREACH|getaddrinfo"),
    (Cause.NETWORK_DOWN, r"connection (?:refused|reset|error|timed out)|could not resolve|network (?:error|is unre)"),
    (Cause.NETWORK_DOWN, r"name or service not known|fetch failed|name resolution"),
    (Cause.SERVER_ERROR, r"\b5(?:00|02|03|04|29)\b|internal server error|overloaded|service unavailable|bad gateway"),
)
_PATTERNS = tuple((cause, re.compile(words, re.IGNORECASE)) for cause, words in _WORDS)
_WAIT = re.compile(
    r"(?:retry|try again|reset|wait)[\w\s:\-\"']{0,40}?(?:in|after|:|-after|delay)\D{0,12}?"
    r"(?:(\d+(?:\.\d+)?)\s*h(?:ours?)?\s*)?(?:(\d+(?:\.\d+)?)\s*m(?:in(?:ute)?s?)?\b\s*)?(?:(\d+(?:\.\d+)?)\s*(ms|s\b|sec\w*)?)?",
    re.IGNORECASE,
)


def of_words(text: str) -> Cause | None:
    return next((cause for cause, pattern in _PATTERNS if pattern.search(text)), None)


def stated_wait(text: str) -> float | None:
    """The seconds a rate limit asks to wait, where its words say so."""
    for match in _WAIT.finditer(text):
        hours, minutes, seconds, unit = match.groups()
        if hours or minutes or seconds:
            last = float(seconds or 0) / (1000 if unit == "ms" else 1)
            return float(hours or 0) * 3600 + float(minutes or 0) * 60 + last
    return None

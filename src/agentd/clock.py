"""Times as agentd writes them: UTC, to the second; in the journal to the millisecond."""

import os
from datetime import UTC, datetime


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_ms() -> str:
    moment = datetime.now(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def run_id() -> str:
    """Sorts by time and does not meet another one: `20260119T103000Z-5f1c`."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}"


def seconds_since(time: str, at: datetime | None = None) -> float | None:
    """None for a time that cannot be read, as older or hand-written files may have."""
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return ((at or datetime.now(UTC)) - moment).total_seconds()

"""Timestamps as agentd writes them: UTC, in seconds; in the journal, in milliseconds."""

import os
from datetime import UTC, datetime


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_ms() -> str:
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03}Z"


def new_run_id() -> str:
    """Return a unique id that sorts by time: `20260119T103000Z-5f1c`."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}"


def utc_now() -> datetime:
    return datetime.now(UTC)


def seconds_since(time: str, at: datetime) -> float | None:
    """Return the seconds from `time` to `at`; None for an invalid time, as in older or hand-written files."""
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (at - then).total_seconds()

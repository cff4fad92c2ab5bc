"""The outcome of a change's last run; stopping a run from another process."""

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentd.change.folder import Change
from agentd.domain import Busy, SetupError
from agentd.storage import LockHolder, files


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """`pid` is the run's process; `updated_at` is from STATE.yaml, to detect later changes."""

    pid: int
    updated_at: str
    result: dict[str, Any]


def save_outcome(change: Change, pid: int, result: dict[str, Any]) -> None:
    """Save the result of a run. It has been reported already, so a failure to write is ignored."""
    data = {"pid": pid, "updated_at": change.read().updated_at, "result": result}
    with suppress(OSError, files.CannotWrite):
        files.write(_outcome_path(change), json.dumps(data, ensure_ascii=False).encode())


def last_outcome(change: Change) -> RunOutcome | None:
    return read_outcome(_outcome_path(change))


def read_outcome(path: Path) -> RunOutcome | None:
    """Return the saved outcome, or None if it is missing or invalid."""
    try:
        data = json.loads(path.read_bytes())
        return RunOutcome(int(data["pid"]), str(data["updated_at"]), dict(data["result"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _outcome_path(change: Change) -> Path:
    return Path(change.project.local_state_path("outcomes", f"{change.id}.json"))


_STOP_TIMEOUT = 30.0  # seconds
_LOCK_TIMEOUT = 1.0  # seconds; a run that starts or ends briefly has no holder in its lock


def stop_run(change: Change) -> LockHolder | None:
    """Stop the active run and return its lock holder, or None if nothing was running."""
    holder = _known_holder(change)
    if holder:
        _terminate(change, holder)
    return holder


def _known_holder(change: Change) -> LockHolder | None:
    end = time.monotonic() + _LOCK_TIMEOUT
    while (holder := change.active_run()) and not holder.is_known:
        if time.monotonic() > end:
            message = f"{change.id} has an active run, but its lock does not name the process"
            raise Busy(message, "press Ctrl-C in the terminal where it was started")
        time.sleep(0.05)
    return holder


def _terminate(change: Change, holder: LockHolder) -> None:
    """Ask the run to end and wait until its lock is free; by then its agent's processes have ended too."""
    hint = f"kill it with kill -9 {holder.pid}; no work is lost"
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:  # already killed; its processes are being ended
        hint = "processes started by its agent cannot be ended; find them with ps"
    except PermissionError:
        raise SetupError(f"{holder} belongs to another user", "ask that user to stop it") from None
    end = time.monotonic() + _STOP_TIMEOUT
    while (now := change.active_run()) and now.token == holder.token:
        if time.monotonic() > end:
            raise Busy(f"{holder} has not stopped", hint)
        time.sleep(0.05)

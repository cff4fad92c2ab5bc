"""The run of a change, ended cleanly from elsewhere."""

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
    """`pid` is the process that ran; `updated_at` is STATE.yaml's, to tell whether anything happened since."""

    pid: int
    updated_at: str
    result: dict[str, Any]


def save_outcome(change: Change, pid: int, result: dict[str, Any]) -> None:
    """Told to the person already: where it cannot be kept, nothing is lost."""
    data = {"pid": pid, "updated_at": change.read().updated_at, "result": result}
    with suppress(OSError, files.CannotWrite):
        files.write(_file(change), json.dumps(data, ensure_ascii=False).encode())


def last_outcome(change: Change) -> RunOutcome | None:
    return read_outcome(_file(change))


def read_outcome(path: Path) -> RunOutcome | None:
    """None: there is none, or it says nothing."""
    try:
        data = json.loads(path.read_bytes())
        return RunOutcome(int(data["pid"]), str(data["updated_at"]), dict(data["result"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _file(change: Change) -> Path:
    return Path(change.project.in_room("outcomes", f"{change.id}.json"))


_PATIENCE = 30.0  # seconds; an agent's processes are given one to end by themselves
_MOMENT = 1.0  # seconds; a run that begins or ends has no name in its lock for an instant


def stop_run(change: Change) -> LockHolder | None:
    """Whose run it was that has ended now; None: nothing was running."""
    holder = _holder(change)
    if holder:
        _end(change, holder)
    return holder


def _holder(change: Change) -> LockHolder | None:
    end = time.monotonic() + _MOMENT
    while (holder := change.active_run()) and not holder.is_known:
        if time.monotonic() > end:
            words = f"{change.id} is being worked on, but its lock does not say by whom"
            raise Busy(words, "end it where it was started, with Ctrl-C")
        time.sleep(0.05)
    return holder


def _end(change: Change, holder: LockHolder) -> None:
    """Ask the run to end and wait until its lock is free, which is when its agent's processes are gone too."""
    hint = f"kill -9 {holder.pid} ends it at once; nothing is lost by that"
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:  # killed already; what is left of it is being ended
        hint = "what its agent has started cannot be ended; ps shows it"
    except PermissionError:
        raise SetupError(f"{holder} belongs to another user", "ask that user to stop it") from None
    end = time.monotonic() + _PATIENCE
    while (now := change.active_run()) and now.token == holder.token:
        if time.monotonic() > end:
            raise Busy(f"{holder} has not ended", hint)
        time.sleep(0.05)

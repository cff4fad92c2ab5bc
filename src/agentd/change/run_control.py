"""The run of a change, ended cleanly from elsewhere."""

import os
import signal
import time

from agentd.change.folder import Change
from agentd.domain import Busy, SetupError
from agentd.storage import LockHolder

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

"""What is seen of a run while it happens."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from agentd.cli.progress_view import JournalView, LineView, RunView
from agentd.engine import StepSource

__all__ = ["Mode", "RunView", "watch_run"]

Mode = Literal["live", "lines", "events", "quiet"]


def watch_run(title: str, ahead: StepSource, mode: Mode, is_verbose: bool = False) -> AbstractContextManager[RunView]:
    """A view of one run; `live` without a terminal to draw on is `lines`. Verbose: with every action of an agent."""
    if mode == "live" and _can_draw():
        from agentd.cli.live_display import LiveDisplay  # late: rich is heavy

        return LiveDisplay(title, ahead, is_verbose).showing()
    if mode in ("live", "lines"):
        return nullcontext(LineView(ahead, is_verbose))
    return nullcontext(JournalView() if mode == "events" else RunView())


def _can_draw() -> bool:
    """On a terminal that can move its cursor, and is ours: in the background we would draw over a prompt."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:  # a terminal without jobs
        return True

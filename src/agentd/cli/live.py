"""What is seen of a run while it happens."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from agentd.cli.view import Journal, Lines, View
from agentd.engine.workflows.progress import StepSource

__all__ = ["Mode", "View", "watching"]

Mode = Literal["live", "lines", "events", "quiet"]


def watching(title: str, ahead: StepSource, mode: Mode, is_verbose: bool = False) -> AbstractContextManager[View]:
    """A view of one run; `live` without a terminal to draw on is `lines`. Verbose: with every action of an agent."""
    if mode == "live" and _can_draw():
        from agentd.cli.drawing import Drawing  # late: rich is heavy

        return Drawing(title, ahead, is_verbose).showing()
    if mode in ("live", "lines"):
        return nullcontext(Lines(ahead, is_verbose))
    return nullcontext(Journal() if mode == "events" else View())


def _can_draw() -> bool:
    """On a terminal that can move its cursor, and is ours: in the background we would draw over a prompt."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:  # a terminal without jobs
        return True

"""Time in proportion to size, shown as a ratio of processor times: no clock on the wall, no fixed limit."""

import contextlib
import time
from collections.abc import Callable

from agentd.errors import AgentdError

TIMES = 8
# Linear work takes 8 times as long, quadratic work 64 times; the limit stands well between.
LIMIT = 24
FEWEST, MOST = 3, 30  # measurements of each


def assert_linear(work: Callable[[str], object], small: str, large: str) -> None:
    """`large` is `TIMES` times as much of the same.

    Another load can only make a measurement longer, so the shortest of each comes closer to the truth with every new
    one: as long as the ratio is too large, both are measured again, in turn.
    """
    short = long = float("inf")
    for count in range(1, MOST + 1):
        short = min(short, _seconds(work, small))
        long = min(long, _seconds(work, large))
        ratio = long / max(short, 0.0001)  # a shorter time cannot be compared
        if count >= FEWEST and ratio < LIMIT:
            return
    raise AssertionError(f"{TIMES} times as much takes {ratio:.0f} times as long")


def assert_grows_linearly(
    work: Callable[[str], object], start: str, unit: str, end: str = "", count: int = 500
) -> None:
    assert_linear(work, start + unit * count + end, start + unit * count * TIMES + end)


def _seconds(work: Callable[[str], object], text: str) -> float:
    """Processor time: that of other programs does not count."""
    start = time.process_time()
    with contextlib.suppress(AgentdError):
        work(text)
    return time.process_time() - start

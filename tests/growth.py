"""Time in proportion to size, shown as a ratio of processor times: no clock on the wall, no fixed limit."""

import contextlib
import time
from collections.abc import Callable

from agentd.errors import AgentdError

TIMES = 8
# Linear work takes 8 times as long, quadratic work 64 times; the limit stands well between.
LIMIT = 24


def assert_linear(work: Callable[[str], object], small: str, large: str) -> None:
    """`large` is `TIMES` times as much of the same."""
    before = max(_seconds(work, small), 0.001)  # a thousandth of a second is too short to compare
    assert _seconds(work, large) < LIMIT * before


def assert_grows_linearly(
    work: Callable[[str], object], start: str, unit: str, end: str = "", count: int = 500
) -> None:
    assert_linear(work, start + unit * count + end, start + unit * count * TIMES + end)


def _seconds(work: Callable[[str], object], text: str) -> float:
    """Processor time, the best of three: other programs do not count."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        with contextlib.suppress(AgentdError):
            work(text)
        best = min(best, time.process_time() - start)
    return best

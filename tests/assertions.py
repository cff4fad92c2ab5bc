"""What several tests assert: growth in proportion to size, texts kept as files, files of a folder, programs needed."""

import contextlib
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from agentd.domain.errors import AgentdError

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
    """Processor time without garbage collection: neither other programs nor the heap of this one count."""
    gc.disable()
    try:
        start = time.process_time()
        with contextlib.suppress(AgentdError):
            work(text)
        return time.process_time() - start
    finally:
        gc.enable()


# ---- texts kept as files

DATA = Path(__file__).parent / "data"


def assert_recorded(name: str, text: str) -> None:
    """AGENTD_TEST_RECORD=1 writes the file anew; one that is not there fails."""
    file = DATA / name
    if os.environ.get("AGENTD_TEST_RECORD") == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert file.is_file(), f"{name} is not there: look at the text, and keep it with AGENTD_TEST_RECORD=1"
    assert text == file.read_text(), f"{name} has changed: if that is intended, keep it with AGENTD_TEST_RECORD=1"


# ---- files

Contents = dict[bytes, tuple[int, bytes]]


def folder_contents(folder: Path) -> Contents:
    """Every file, link and folder below it: kind and rights, and its bytes."""
    found: Contents = {}
    top = os.fsencode(folder)
    for above, folders, names in os.walk(top):
        for name in folders + names:
            path = os.path.join(above, name)
            mode = os.lstat(path).st_mode
            data = os.readlink(path) if os.path.islink(path) else b""
            if name in names and not data:
                data = Path(os.fsdecode(path)).read_bytes()
            found[os.path.relpath(path, top)] = mode, data
    return found


# ---- what the tests need of a machine: without it a test is skipped, and in CI, which has all of it, it fails

CLIS = "AGENTD_TEST_CLIS_REQUIRED"
BROWSER = "AGENTD_TEST_BROWSER_REQUIRED"


def is_required(*names: str) -> bool:
    """By one of these variables."""
    return any(os.environ.get(name) == "1" for name in names)


def missing(message: str, *names: str) -> NoReturn:
    if is_required(*names):
        pytest.fail(message)
    pytest.skip(message)

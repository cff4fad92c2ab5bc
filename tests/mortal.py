"""A process that is killed with -9 at a chosen operation on files: the crash itself, not a picture of it.

Or one that has another blow dealt to it there.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

Tell = Callable[[Any], None]
Strike = Callable[[], None]
OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_just_after() -> None:
    """The operation is done, and not one line of Python or call of C after it."""

    def end(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename != __file__:  # what is at work here comes before the operation
            kill()

    sys.setprofile(end)


def run_mortal(
    work: Callable[[Tell], None], root: Path, dies_at: int | None, after: Any = None, strike: Strike = kill
) -> tuple[bool, list[Any]]:
    """Did it live to the end, and what did it tell?

    It dies before its dies_at-th operation on a file below root, or whatever `strike` does to it then; they are
    counted from the words `after` on.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _live(work, str(root), dies_at, after, strike, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = [json.loads(line) for line in pipe]
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), "the work failed; its words are on stderr"
    return code == 0, told


def _live(
    work: Callable[[Tell], None], root: str, dies_at: int | None, after: Any, strike: Strike, writing: int
) -> None:
    seen = 0
    counting = after is None

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if counting and event in OPERATIONS and str(arguments[0]).startswith(root):
            seen += 1
            if seen == dies_at:
                strike()

    def tell(words: Any) -> None:
        nonlocal counting
        os.write(writing, json.dumps(words).encode() + b"\n")
        counting = counting or words == after

    code = 1
    try:
        sys.addaudithook(watch)
        work(tell)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)

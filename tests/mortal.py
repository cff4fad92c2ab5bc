"""A process that is killed with -9 at a chosen operation on files: the crash itself, not a picture of it."""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Tell = Callable[[Any], None]
_OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def run_mortal(
    work: Callable[[Tell], None], root: Path, dies_at: int | None, after: Any = None
) -> tuple[bool, list[Any]]:
    """Did it live to the end, and what did it tell?

    It dies before its dies_at-th operation on a file below root; they are counted from the words `after` on.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _live(work, str(root), dies_at, after, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = [json.loads(line) for line in pipe]
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), "the work failed; its words are on stderr"
    return code == 0, told


def _live(work: Callable[[Tell], None], root: str, dies_at: int | None, after: Any, writing: int) -> None:
    seen = 0
    counting = after is None

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if counting and event in _OPERATIONS and str(arguments[0]).startswith(root):
            seen += 1
            if seen == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

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

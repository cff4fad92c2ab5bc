"""A command of `impl` that is cut off: by a signal at something it tells, or with -9 at a write."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentd.change import locks
from built import TESTS, home
from felling import until
from program import AGENTD, CrashPoint, Program
from running import wait_until
from support import Box

COMMAND = ("impl", "greet", "--events")
HOLD = "hold"  # beside the project: while it is there, the check does not end
CHECK = (
    '[[checks]]\nname = "tests"\n'
    f"command = '''if test -e ../{HOLD}; then echo held; sleep 600; fi; {TESTS}'''\nrequired = true\ntimeout = 900\n"
)


@contextmanager
def held(box: Box) -> Iterator[None]:
    """Checks do not end in this block."""
    mark = box.root.with_name(HOLD)
    mark.touch()
    yield
    mark.unlink()


@contextmanager
def begun(box: Box, command: Sequence[str] = COMMAND) -> Iterator[subprocess.Popen[str]]:
    """At work, as a terminal starts it: in a process group of its own."""
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with Program(
        [AGENTD, *command],
        cwd=box.root,
        env=box.env,
        stdin=quiet,
        stdout=pipe,
        stderr=quiet,
        text=True,
        process_group=0,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def cut(box: Box, number: signal.Signals, command: Sequence[str] = COMMAND, **wanted: Any) -> int:
    """Send the signal at that event; its exit code, when all that it started has ended."""
    with begun(box, command) as program:
        until(program, **wanted)
        os.kill(program.pid, number)
        assert program.stdout
        program.stdout.read()
        code = program.wait()
    alone(box)
    return code


def cut_at_write(
    box: Box,
    moment: str,
    number: int,
    below: Path | None = None,
    command: Sequence[str] = COMMAND,
    codes: Sequence[int] = (0,),
) -> bool:
    """Kill it with -9 at the number-th write below the change's folder; False: it ended by itself."""
    done = box.agentd(*command, crash=CrashPoint(moment, number, str(below or home(box))))
    assert done.code in (*codes, -9), done.out + done.err
    alone(box)
    return done.code == -9


def alone(box: Box) -> None:
    """The lock is free, and whoever was at work on the project has gone by then."""
    lock = box.root / ".git/agentd/locks/greet.run"
    wait_until(lambda: locks.active_run(lock) is None, "the lock is free")
    found = left(box)
    assert not found, f"left behind: {found}"


def left(box: Box) -> list[str]:
    """Processes of that box's home: agents, checks, agentd itself. A git command of a killed agentd ends by itself."""
    mark = f"HOME={box.home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [one for one in found if one and not one.startswith("git ")]

"""The real program as a child process: what it prints is shown as it comes, or kept."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from agentd.domain import DEMO_PART

_PATIENCE = (2.0, 10.0, 10.0)  # seconds for a child that was interrupted with us, was asked to end, was killed


@dataclass(frozen=True)
class ChildResult:
    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        return (self.out + self.err).strip()


def show_command(*arguments: str, folder: Path | None = None) -> ChildResult:
    """A command of agentd before the person's eyes. It has no stdin, so it asks nothing; its live view is as ever."""
    child = subprocess.Popen(
        _command(arguments), stdin=subprocess.DEVNULL, cwd=folder, env={**os.environ, DEMO_PART: "1"}
    )
    try:
        return ChildResult(child.wait(), "", "")
    except BaseException:
        _end(child)
        raise


def capture_command(*arguments: str) -> ChildResult:
    """The same, unseen."""
    return _kept(_command(arguments))


def run_python(*arguments: str) -> ChildResult:
    """This Python in the project, as the person would call it."""
    return _kept((sys.executable, *arguments))


def _command(arguments: tuple[str, ...]) -> tuple[str, ...]:
    # -P: the `agentd/` folder of the project must not be imported.
    return sys.executable, "-P", "-m", "agentd", *arguments


def _kept(command: tuple[str, ...]) -> ChildResult:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    return ChildResult(done.returncode, done.stdout, done.stderr)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ctrl-C reaches it as well; a signal to us alone does not."""
    for ask, patience in zip((None, child.terminate, child.kill), _PATIENCE, strict=True):
        if ask:
            ask()
        try:
            child.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue

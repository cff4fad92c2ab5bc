"""The real program on a pseudo-terminal of a given width, with somebody typing."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from dataclasses import dataclass
from pathlib import Path

from support import AGENTD, Box


@dataclass(frozen=True)
class Seen:
    code: int
    screen: str

    @property
    def lines(self) -> list[str]:
        return self.screen.splitlines()


def on_terminal(box: Box, *arguments: str, width: int = 100, typed: str = "", cwd: Path | None = None) -> Seen:
    """Run agentd with terminal as stdin, stdout and stderr; `typed` is sent when it has asked something."""
    pid, handle = pty.fork()
    if pid == 0:
        os.chdir(cwd or box.root)
        os.execve(AGENTD, ["agentd", *arguments], {**box.env, "TERM": "xterm-256color"})
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    seen = b""
    left = typed.encode()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([handle], [], [], 1)
        if not ready:
            continue
        try:
            chunk = os.read(handle, 65536)
        except OSError:
            break  # the program has gone
        if not chunk:
            break
        seen += chunk
        if left and seen.rstrip().endswith((b"]:", b"]: ", b"?")):
            line, _, left = left.partition(b"\n")
            os.write(handle, line + b"\n")
    else:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(handle)
    return Seen(os.waitstatus_to_exitcode(status), seen.decode().replace("\r\n", "\n"))

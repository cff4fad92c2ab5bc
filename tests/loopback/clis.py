"""The real CLIs, where `make test` has put them, in a world of their own: only loopback, no login, own home."""

import ctypes
import fcntl
import os
import socket
import struct
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FOLDER = Path(os.environ.get("AGENTD_TEST_CLIS") or ROOT / ".cache" / "clis") / "node_modules" / ".bin"
MISSING = "REAL CLI MISSING"
REQUIRED = "AGENTD_TEST_CLIS_REQUIRED"  # set in CI: there a missing CLI is a failure


def need(name: str) -> str:
    """The program. Without it the test is skipped, loudly."""
    program = FOLDER / name
    if not program.exists():
        words = f"{MISSING}: {name} is not in {FOLDER}; make test installs it with npm"
        if os.environ.get(REQUIRED):
            pytest.fail(words)
        pytest.skip(words)
    return str(program)


@cache
def isolate() -> bool:
    """Put this test process, and so all it starts, into a network namespace with only loopback, if we may."""
    new_network = 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare") or libc.unshare(new_network) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        up = struct.pack("16sh14x", b"lo", 1 | 64)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(control, 0x8914, up)  # SIOCSIFFLAGS
    return True

"""The real CLIs, where `make test` has put them, in a world of their own: only loopback, no login, own home."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from assertions import CLIS, missing

ROOT = Path(__file__).parent.parent.parent
FOLDER = Path(os.environ.get("AGENTD_TEST_CLIS") or ROOT / ".cache" / "clis") / "node_modules" / ".bin"
MISSING = "REAL CLI MISSING"
_NETWORK = 0x40000000  # CLONE_NEWNET
_OUTSIDE: list[int] = []
BESIDE = "10.89.0.1"  # an address of the isolated world that is not the loopback's


def need(name: str) -> str:
    """The program. Without it the test is skipped, loudly."""
    program = FOLDER / name
    if not program.exists():
        missing(f"{MISSING}: {name} is not in {FOLDER}; make test installs it with npm", CLIS)
    return str(program)


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Where this process was before it was isolated: for what asks the machine's own package index."""
    inside = _world() if _OUTSIDE else None
    if inside is None:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.setns(_OUTSIDE[0], _NETWORK) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        assert libc.setns(inside, _NETWORK) == 0, os.strerror(ctypes.get_errno())
        os.close(inside)


def _world() -> int | None:
    """A handle of the network that we are in."""
    try:
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


@cache
def isolate() -> bool:
    """Put this test process, and so all it starts, into a network namespace with only loopback, if we may."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = _world()
    if before is None or not hasattr(libc, "unshare") or libc.unshare(_NETWORK) != 0:
        return False
    _OUTSIDE.append(before)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        up = struct.pack("16sh14x", b"lo", 1 | 64)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(control, 0x8914, up)  # SIOCSIFFLAGS
        for request, number in ((0x8916, BESIDE), (0x891C, "255.255.255.255")):  # SIOCSIFADDR, SIOCSIFNETMASK
            fcntl.ioctl(control, request, struct.pack("16sH2x4s8x", b"lo:1", socket.AF_INET, socket.inet_aton(number)))
    return True

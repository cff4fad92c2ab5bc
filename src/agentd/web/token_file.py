"""The token in a file: for its owner only, and made where there is none."""

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from agentd.domain import SetupError

SHORTEST = 32
_LONGEST = 512
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


def read_or_create_token(path: Path) -> str:
    with contextlib.suppress(FileExistsError):
        _make(path)
    token = _read(path).strip()
    if not SHORTEST <= len(token) <= _LONGEST or not _TOKEN.fullmatch(token):
        words = f"{path} holds no token: {SHORTEST} to {_LONGEST} letters, digits and . _ ~ + / = -"
        raise SetupError(words, f"rm {path}, and a random one is made")
    return token


def _make(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(f"{secrets.token_urlsafe(32)}\n")


def _read(path: Path) -> str:
    """What is looked at is what is read: one handle for both."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode):
            raise SetupError(f"{path} is no file", "name another with --token-file")
        if seen.st_uid != os.getuid():
            raise SetupError(f"{path} belongs to another user", "name another with --token-file")
        if seen.st_mode & 0o077:
            raise SetupError(f"others can read {path}, so its token is no secret", f"rm {path}, and a new one is made")
        return file.read(_LONGEST + 3).decode("latin-1")

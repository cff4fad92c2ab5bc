"""Earlier versions of a change's documents, by hash, in local state: used to show what changed.

It is only a cache, so failing to write or read it is not an error.
"""

import re
from contextlib import suppress
from pathlib import Path

from agentd.change.folder import Change, document_bytes, plan_files
from agentd.storage import files

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


def cache_text(change: Change, data: bytes) -> str:
    """Store data under its hash, unless it is stored already, and return the hash."""
    digest = files.hash_bytes(data)
    path = _file(change, digest.removeprefix("sha256:"))
    with suppress(OSError, files.CannotWrite):
        if not path.is_file():
            files.write(path, data)
    return digest


def cache_plan(change: Change) -> None:
    """Store proposal, specs and tasks, under the same hashes as `Change.hashes`."""
    for path in plan_files(change.folder):
        with suppress(OSError, files.CannotRead):
            cache_text(change, document_bytes(path))


def cached_text(change: Change, digest: str) -> str | None:
    """Return the text with this hash, or None if it is missing or damaged."""
    name = _DIGEST.fullmatch(digest)
    if name is None:
        return None
    try:
        data = _file(change, name[1]).read_bytes()
    except OSError:
        return None
    return data.decode("utf-8", "replace") if files.hash_bytes(data) == digest else None


def _file(change: Change, name: str) -> Path:
    return Path(change.project.local_state_path("texts", change.id, name))

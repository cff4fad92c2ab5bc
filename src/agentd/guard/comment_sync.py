"""Comments that people make during an agent's call: what agentd wrote for them is how it is to be."""

import contextlib
import os
import stat
from collections.abc import Iterator

from agentd.change import Change, comments_lock, frozen_comments
from agentd.documents import COMMENTS_FILE
from agentd.domain import AgentdError
from agentd.guard.protected_paths import TREE, worktree_path
from agentd.guard.scan import FileStamp, stat_path
from agentd.guard.snapshot import Snapshot
from agentd.storage import files

_RIGHTS = stat.S_IFREG | 0o644  # where there was no file whose rights would count


@contextlib.contextmanager
def comments_settled(change: Change, mirror: Snapshot, root: str) -> Iterator[None]:
    """In here the copy is the version that counts, and nobody writes another one."""
    with contextlib.ExitStack() as lock:
        with contextlib.suppress(OSError, AgentdError):  # an agent made havoc of the room: the older copy counts
            lock.enter_context(comments_lock(change))
            _lay(change, mirror, root)
        yield


def _lay(change: Change, mirror: Snapshot, root: str) -> None:
    path = frozen_comments(change)
    data = files.read(path) if path else b""
    if not data:
        return
    name = os.path.normpath(worktree_path(change, f"agentd/changes/{change.id}/{COMMENTS_FILE}"))
    now = stat_path(root, name)
    mirror.lay(TREE, name, data, now if now and stat.S_ISREG(now.mode) else FileStamp(_RIGHTS, 0, 0, 0, 0))

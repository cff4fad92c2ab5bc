"""What the guard reports about a call, and the record it keeps on disk until that is processed: `call.json`."""

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from agentd.change import Change, comments_lock, frozen_comments
from agentd.documents import COMMENTS_FILE, Finding
from agentd.domain import AgentdError, FindingState, Severity, printable
from agentd.guard.protected_paths import TREE, ProtectedPaths, worktree_path
from agentd.guard.scan import FileStamp, ProtectedArea, stat_path
from agentd.guard.snapshot import Row, Snapshot
from agentd.storage import files

What = Literal["changed", "deleted", "created"]

CALL = "call.json"  # exists until the call's result is recorded, so that a later run can find an interrupted call


class Violation(NamedTuple):
    """A protected path that an agent changed, as printable text for findings.

    `kept` is where the agent's version was saved, relative to the main worktree (empty: not saved). `note` says what
    was done if the path was not simply restored.
    """

    path: str
    what: What
    kept: str
    note: str = ""


@dataclass(frozen=True)
class GuardResult:
    """The result of a comparison.

    `changed` is set after a judge's call: every file that differs, restored or not, and "HEAD" if it moved.
    """

    put_back: tuple[Violation, ...] = ()
    changed: tuple[str, ...] = ()


class HeadState(NamedTuple):
    """The branch (empty: detached), the commit and the id of its agentd/ tree (empty if missing)."""

    branch: str
    commit: str
    listing: str


@dataclass(frozen=True)
class CallStart:
    """The state when the call began and what has been restored so far, so that another process can continue."""

    since: int
    head: HeadState
    listing: str  # id of HEAD's agentd/ tree in the project's worktree, if that is a different worktree
    snapshot: str  # empty: not a judge's call
    running: tuple[str, ...]
    editable: tuple[str, ...]
    protected: ProtectedPaths
    as_found: Mapping[str, Mapping[str, Row | None]]  # by area and path: our own copies replaced by another guard's
    found: tuple[Violation, ...] = ()
    changed: tuple[str, ...] = field(default=())
    is_done: bool = False

    @property
    def watched(self) -> GuardResult:
        return GuardResult(self.found, self.changed)


def encode_call(begun: CallStart) -> bytes:
    what = {"areas": begun.protected.areas, "sections": begun.protected.sections}
    return json.dumps({**vars(begun), "protected": what}).encode()


def read_call_record(path: Path) -> CallStart | None:
    """Return the record, or None if it cannot be read."""
    try:
        data = json.loads(path.read_bytes())
        what = data["protected"]
        areas = {
            name: ProtectedArea(root, tuple(paths), tuple(out)) for name, (root, paths, out) in what["areas"].items()
        }
        data["protected"] = ProtectedPaths(areas, what["sections"])
        data |= {name: tuple(data[name]) for name in ("running", "editable", "changed")}
        data |= {"head": HeadState(*data["head"]), "found": tuple(Violation(*one) for one in data["found"])}
        return CallStart(**data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def printable_name(name: str) -> str:
    """Escape undecodable bytes and control characters, so that a file name can be written and shown."""
    return "".join(f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else printable(c) for c in name)


def violation_finding(trespass: Violation, agent: str) -> Finding:
    kept = f" What was found there is kept as {trespass.kept}." if trespass.kept else ""
    became = trespass.note or "It has been put back as it was."
    return Finding(
        id="",
        severity=Severity.HIGH,
        title=f"{trespass.path} was {trespass.what} by {agent}, which may not do that",
        what=f"During its call {trespass.path} was {trespass.what}. {became}{kept}",
        suggestion="Leave it as it is. If it has to change, a person changes it, or a task of the plan names it.",
        requirement=None,
        where=trespass.path,
        evidence=None,
        verified=True,
        by="agentd:guard",
        state=FindingState.OPEN,
    )


_RIGHTS = stat.S_IFREG | 0o644  # permissions to use if there was no regular file


@contextlib.contextmanager
def comments_settled(change: Change, mirror: Snapshot, root: str) -> Iterator[None]:
    """Hold the comments lock, with the authoritative comments as the snapshot's copy of the file."""
    with contextlib.ExitStack() as lock:
        with contextlib.suppress(OSError, AgentdError):  # an agent damaged the local state: keep the older copy
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


def folder_identity(folder: Path) -> tuple[int, int] | None:
    """Return the folder's device and inode, or None if it does not exist."""
    try:
        found = os.lstat(folder)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def clear_folder(top: Path, folder: Path) -> None:
    """Create an empty folder. Anything at its path, or blocking the way to it, is renamed."""
    clear_path(top, folder)
    if os.path.lexists(folder):
        _aside(folder)
    folder.mkdir(parents=True)


def clear_path(top: Path, folder: Path) -> None:
    """Rename every link or other non-folder on the path from `top` to `folder`."""
    while in_the_way := find_obstacle(top, folder):
        _aside(in_the_way)


def find_obstacle(top: Path, folder: Path) -> Path | None:
    """Return the first path between `top` and `folder` that exists and is not a folder."""
    ways = [folder, *folder.parents]
    below = reversed(ways[: ways.index(top)] if top in ways else [])
    return next((one for one in below if os.path.lexists(one) and folder_identity(one) is None), None)


def _aside(path: Path) -> None:
    os.rename(path, path.with_name(f"{path.name}.{os.urandom(4).hex()}"))

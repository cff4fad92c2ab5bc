"""What the guard tells, and what it keeps on disk of a call until that is told: `call.json` in its folder."""

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

CALL = "call.json"  # there while a call is under way or not yet told: a later run finds by it what was cut off


class Violation(NamedTuple):
    """Printable text, for findings. `kept` is the version that was found, seen from the main worktree ("": none).

    `note` says what became of it where it was not simply put back.
    """

    path: str
    what: What
    kept: str
    note: str = ""


@dataclass(frozen=True)
class GuardResult:
    """`changed`: after a judge's call every file that differs, put back or not, and "HEAD" if that moved."""

    put_back: tuple[Violation, ...] = ()
    changed: tuple[str, ...] = ()


class HeadState(NamedTuple):
    """The branch ("": detached), the commit, and what that has of agentd/; "" if there is none."""

    branch: str
    commit: str
    listing: str


@dataclass(frozen=True)
class CallStart:
    """What was so when the call began, and what was put back so far: another process can go on from here."""

    since: int
    head: HeadState
    listing: str  # what HEAD has of agentd/ in the project's worktree, where that is another one
    snapshot: str  # "": no judge
    running: tuple[str, ...]
    editable: tuple[str, ...]
    protected: ProtectedPaths
    as_found: Mapping[str, Mapping[str, Row | None]]  # area, path: what is not as another guard has it
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
    """None if it cannot be read."""
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
    """A file's name as text that can be written and shown: undecodable bytes and control characters escaped."""
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


def folder_identity(folder: Path) -> tuple[int, int] | None:
    """None: there is no such folder."""
    try:
        found = os.lstat(folder)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def clear_folder(top: Path, folder: Path) -> None:
    """An empty folder. What stands in its place, or in the way to it, is moved aside."""
    clear_path(top, folder)
    if os.path.lexists(folder):
        _aside(folder)
    folder.mkdir(parents=True)


def clear_path(top: Path, folder: Path) -> None:
    """No link, nor anything else that is no folder, is left on the way from `top`."""
    while in_the_way := find_obstacle(top, folder):
        _aside(in_the_way)


def find_obstacle(top: Path, folder: Path) -> Path | None:
    """The first thing on the way from `top` that is no folder."""
    ways = [folder, *folder.parents]
    below = reversed(ways[: ways.index(top)] if top in ways else [])
    return next((one for one in below if os.path.lexists(one) and folder_identity(one) is None), None)


def _aside(path: Path) -> None:
    os.rename(path, path.with_name(f"{path.name}.{os.urandom(4).hex()}"))

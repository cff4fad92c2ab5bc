"""The guard around an agent call: what an agent may not change is put back, and becomes a finding.

It detects; it does not sandbox. Whatever is put back, the version found is kept in the local room: it may be a
person's, made at the same moment.
"""

import contextlib
import json
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from agentd import clock, files, git
from agentd.change.folder import Change
from agentd.config import Check
from agentd.documents.records import Finding
from agentd.errors import StateError
from agentd.guard import neighbours
from agentd.guard.definitions import section
from agentd.guard.mirror import Area, Difference, Mirror, Seen, folder, look, opened
from agentd.guard.protected import GIT, POINTER, TREE, USER, Protected, protected, shown
from agentd.guard.putback import put_back
from agentd.terms import FindingState, Severity

What = Literal["changed", "deleted", "created"]

_CALL = "call.json"  # there while a call is under way: a later run finds by it what was cut off
_WRITING = "writing"  # the file that agentd itself is writing
_PLAN = ("proposal.md", "tasks.md", "clarifications.md", "specs")
_LEFTOVER = re.compile(r"\.(?:.+\.)?\d+-[0-9a-f]{8,16}\.tmp")  # of a writer of ours that was killed
_BYPRODUCTS = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store"}
_MANY = 100  # files; more are brought to disk at once
_CLOCK = 50_000_000  # ns by which a file's time may lag behind the clock


class Trespass(NamedTuple):
    """`kept` is the version that was found, seen from the main work tree; "" if there was none."""

    path: str
    what: What
    kept: str


@dataclass(frozen=True)
class Watched:
    """`changed`: after a judge's call every file that differs, put back or not."""

    put_back: tuple[Trespass, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Call:
    """What was so when the call began; on disk, so that another process can finish the comparison."""

    since: int
    branch: str  # "": detached
    listing: str  # what HEAD has of agentd/
    snapshot: str  # "": no judge
    running: tuple[str, ...]
    editable: tuple[str, ...]
    protected: Protected


def nothing(path: str) -> bool:
    return False


def plan_rule(change_id: str) -> Callable[[str], bool]:
    """What the plan stage may write: the documents of its own change."""
    own = f"agentd/changes/{change_id}"
    plain = {f"{own}/{name}" for name in _PLAN}
    return lambda path: path in plain or (os.path.dirname(path) == f"{own}/specs" and path.endswith(".md"))


class Guard:
    """`folder` is the run's own, so that copies are made once a run. Paths are told from the project's root."""

    def __init__(
        self,
        change: Change,
        folder: Path,
        checks: Sequence[Check] = (),
        judge: bool = False,
        may_edit: Callable[[str], bool] = nothing,
    ) -> None:
        self._change = change
        self._folder = folder
        self._checks = checks
        self._judge = judge
        self._may_edit = may_edit
        self._mirror = Mirror(folder)
        self._call: _Call | None = None
        self._kept = Path(change.project.in_room("kept", change.id, clock.run_id()))
        self._early: list[Trespass] = []  # found before agentd's own writes

    def before(self) -> None:
        """Remember how everything is."""
        since = time.time_ns() - _CLOCK
        if self._call is None:
            self._mirror.load()
        working = neighbours.running(self._change.project, self._change.id)
        what = protected(self._change, self._checks)
        self._mirror.take(what.areas)
        snapshot = git.snapshot(self._change.tree) if self._judge else ""
        branch, listing = self._head()
        self._call = _Call(since, branch, listing, snapshot, tuple(working), self._editable(what), what)
        self._early = []
        files.write(self._folder / _CALL, json.dumps(_plain(self._call)).encode())

    @property
    def is_open(self) -> bool:
        """A call began whose comparison has not come to its end."""
        return (self._folder / _CALL).exists()

    def after(self) -> Watched:
        """Compare, put back, tell. A StateError leaves the call open, for `finish_cut` to go on."""
        assert self._call is not None, "before() comes first"
        return self._finish(self._call, lambda one: True)

    def finish_cut(self, mark: Path | None) -> Watched:
        """The comparison that a killed agentd did not come to; before anything of the change is written.

        `mark` was made when the agent's processes were gone: what changed later is a person's and stays. Without
        it everything counts as the agent's.
        """
        if not (self._folder / _CALL).exists():
            return Watched()
        call = _read_call(self._folder / _CALL)
        if call is None or not self._mirror.load():
            hint = f"look at git diff -- agentd, then remove {self._folder}"
            raise StateError(f"the copies of a cut-off call cannot be read ({self._folder})", hint)
        writing = _read_text(self._folder / _WRITING)
        end = _time(mark)
        if end is not None and end < call.since:
            end = None  # of an earlier call
        self._may_edit = lambda path: path in call.editable or os.path.dirname(path) in call.editable
        roots = {name: area.root for name, area in call.protected.areas.items()}

        def is_agents(one: Difference) -> bool:
            if one.area == TREE and one.path == writing:
                return False
            return end is None or _moved_at(roots[one.area], one.path, one.after) <= end

        return self._finish(call, is_agents)

    @contextlib.contextmanager
    def own_write(self, path: Path) -> Iterator[None]:
        """agentd itself writes this file during a call: an agent's edit of it goes back first, the copy follows."""
        if self._call is None:
            yield
            return
        root = self._call.protected.areas[TREE].root
        name = os.path.relpath(os.path.realpath(path.parent), root) + f"/{path.name}"
        found = self._mirror.differences(TREE, Area(root, (name,)))
        self._early += self._put_back(self._call, found)
        files.write(self._folder / _WRITING, name.encode("utf-8", "surrogateescape"))
        try:
            yield
        finally:
            self._mirror.follow(TREE, root, name)
            (self._folder / _WRITING).unlink(missing_ok=True)

    def _finish(self, call: _Call, is_agents: Callable[[Difference], bool]) -> Watched:
        """git's own first: its settings and hooks must be ours again before git is asked anything."""
        put_back = [*self._early]
        for name in (GIT, POINTER, USER):
            found = self._differences(call, name)
            put_back += self._put_back(call, _without(found, [one for one in found if not is_agents(one)]))
        branch, listing = self._head()
        is_moved = branch != call.branch and is_agents(self._head_file())
        if not is_moved or listing == call.listing:  # another branch may have another agentd/ by right
            found = self._differences(call, TREE)
            rightful = [one for one in found if not is_agents(one)] + self._rightful(call, found)
            put_back += self._put_back(call, _without(found, rightful))
        if is_moved:
            raise _elsewhere(call.branch, branch, put_back)
        changed = self._changed(call, put_back, is_agents) if call.snapshot else ()
        (self._folder / _CALL).unlink(missing_ok=True)
        return Watched(tuple(put_back), changed)

    def _differences(self, call: _Call, name: str) -> list[Difference]:
        area = call.protected.areas.get(name)
        return self._mirror.differences(name, area) if area else []

    def _rightful(self, call: _Call, found: list[Difference]) -> list[Difference]:
        """What this stage may edit, what other changes' work moved, and files whose section is the same."""
        names = [shown(self._change, TREE, "", one.path) for one in found]
        others = neighbours.Neighbours(self._change.project, self._change.id, call.running, call.since, names)
        own = f"agentd/changes/{self._change.id}/"

        def may(one: Difference, name: str) -> bool:
            if name.startswith(own) and _LEFTOVER.fullmatch(os.path.basename(name)):
                return True
            if one.after is None or stat.S_ISREG(one.after.mode) or one.is_folder:
                return self._may_edit(name) or self._same_section(call, one)
            return False  # a link in the place of a document

        return [one for one, name in zip(found, names, strict=True) if may(one, name) or others.made(name)]

    def _same_section(self, call: _Call, one: Difference) -> bool:
        name = call.protected.sections.get(one.path)
        if name is None or one.is_folder or one.was_folder:
            return False
        root = call.protected.areas[TREE].root
        try:
            before = b"".join(self._mirror.pieces(one.before)) if one.before else None
            now = _bytes(root, one.path) if one.after else None
        except OSError:
            return False
        return section(name, one.path, before) == section(name, one.path, now)

    def _put_back(self, call: _Call, found: list[Difference]) -> list[Trespass]:
        """A folder that came, went or became something else is told once, with all that is in it."""
        told: list[Trespass] = []
        failed: list[str] = []
        covered = ""
        for one in found:
            root = call.protected.areas[one.area].root
            inside = bool(covered) and one.path.startswith(covered)
            if inside and one.before is None:
                continue  # it went with its folder
            kept = _free(self._kept / one.area / one.path)
            name = shown(self._change, one.area, root, one.path)
            try:
                put_back(self._mirror, root, one, kept, flush=len(found) <= _MANY)
            except (OSError, RecursionError) as error:
                failed.append(f"{name} ({getattr(error, 'strerror', None) or error})")
                continue
            if not inside:
                told.append(self._trespass(one, name, kept))
                covered = f"{one.path}/" if one.was_folder != one.is_folder else ""
        if len(found) > _MANY:
            os.sync()
        if failed:
            more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
            what = f"an agent changed what it may not, and it could not be put back: {', '.join(failed[:5])}{more}"
            raise StateError(what, "mend the rights or the space there, then run the command again")
        return told

    def _trespass(self, one: Difference, name: str, kept: Path) -> Trespass:
        what: What = "created" if one.before is None else "deleted" if one.after is None else "changed"
        place = os.path.relpath(kept, self._change.project.repo.main) if os.path.lexists(kept) else ""
        return Trespass(name, what, place)

    def _head(self) -> tuple[str, str]:
        """The branch ("" if detached) and what the commit has of agentd/ ("" if nothing)."""
        tree, inside = self._change.tree, os.path.join(self._change.project.prefix, "agentd")
        branch = git.run(tree, "symbolic-ref", "--quiet", "HEAD", failing="")
        return branch, git.run(tree, "rev-parse", "--verify", "--quiet", f"HEAD:{inside}", failing="")

    def _head_file(self) -> Difference:
        """HEAD as something that differs, to ask whose work that is."""
        common = self._change.project.repo.common
        own = git.run(self._change.tree, "rev-parse", "--absolute-git-dir", failing=common)
        path = os.path.relpath(os.path.join(os.path.realpath(own), "HEAD"), common)
        return Difference(GIT, path, None, _look(common, path))

    def _changed(
        self, call: _Call, put_back: list[Trespass], is_agents: Callable[[Difference], bool]
    ) -> tuple[str, ...]:
        """Of agentd/ the copies have told already whose work it is."""
        tree, root = self._change.tree, call.protected.areas[TREE].root
        now = git.snapshot(tree)
        told = git.run(tree, "diff-tree", "-r", "--no-renames", "--name-only", "-z", call.snapshot, now)
        names = {one.path for one in put_back}
        for path in filter(None, told.split("\0")):
            name = shown(self._change, TREE, root, path)
            if name.startswith("agentd/") or _BYPRODUCTS & set(path.split("/")):
                continue
            if is_agents(Difference(TREE, path, None, _look(root, path))):
                names.add(name)
        return tuple(sorted(names))

    def _editable(self, what: Protected) -> tuple[str, ...]:
        """The rule as names, for a process that does not have it."""
        ours = os.path.join(self._change.project.prefix, "agentd/")
        own = f"{ours}changes/{self._change.id}/"
        paths = {f"{own}{name}" for name in _PLAN}
        for path in (*what.areas[TREE].paths, *self._mirror.paths(TREE)):
            if path.startswith(own) or not path.startswith(ours):
                paths.add(path)
        names = {shown(self._change, TREE, "", path) for path in paths}
        return tuple(sorted(name for name in names if self._may_edit(name)))


def finding_of(trespass: Trespass, agent: str) -> Finding:
    kept = f" What was found there is kept as {trespass.kept}." if trespass.kept else ""
    return Finding(
        id="",
        severity=Severity.HIGH,
        title=f"{trespass.path} was {trespass.what} by {agent}, which may not do that",
        what=f"During its call {trespass.path} was {trespass.what}. It has been put back as it was.{kept}",
        suggestion="Leave it as it is. If it has to change, a person changes it, or a task of the plan names it.",
        requirement=None,
        where=trespass.path,
        evidence=None,
        verified=True,
        by="agentd:guard",
        state=FindingState.OPEN,
    )


def _without(found: list[Difference], rightful: list[Difference]) -> list[Difference]:
    """What is left; a new folder that holds something rightful is rightful too."""
    paths = {one.path for one in rightful}
    holders = {above for path in paths for above in _above(path)}
    paths |= {one.path for one in found if one.before is None and one.is_folder and one.path in holders}
    return [one for one in found if one.path not in paths]


def _elsewhere(before: str, after: str, put_back: list[Trespass]) -> StateError:
    was, now = (f"on the branch {name.removeprefix('refs/heads/')}" if name else "detached" for name in (before, after))
    also = f" (put back: {', '.join(one.path for one in put_back[:5])})" if put_back else ""
    back = f"git switch {shlex.quote(before.removeprefix('refs/heads/'))}" if before else "git switch --detach"
    hint = f"{back}, look at git diff -- agentd, then run the command again"
    return StateError(f"HEAD was {was} before an agent's call and is {now} after it{also}", hint)


def _free(kept: Path) -> Path:
    number, place = 1, kept
    while os.path.lexists(place):
        number += 1
        place = kept.with_name(f"{kept.name}.{number}")
    return place


def _plain(call: _Call) -> dict[str, object]:
    return {**vars(call), "protected": {"areas": call.protected.areas, "sections": call.protected.sections}}


def _read_call(path: Path) -> _Call | None:
    """None if it cannot be read."""
    try:
        data = json.loads(path.read_bytes())
        what = data["protected"]
        areas = {name: Area(root, tuple(paths), tuple(out)) for name, (root, paths, out) in what["areas"].items()}
        data["protected"] = Protected(areas, what["sections"])
        data |= {name: tuple(data[name]) for name in ("running", "editable")}
        return _Call(**data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def _time(mark: Path | None) -> int | None:
    try:
        return mark.stat().st_mtime_ns if mark else None
    except FileNotFoundError:
        return None


def _moved_at(root: str, path: str, after: Seen | None) -> int:
    """When it became what it is; of what is gone, when the folder it was in last changed."""
    if after is not None and not stat.S_ISDIR(after.mode):
        return after.ctime
    for above in (path, *_above(path), ""):
        if (seen := _look(root, above)) and stat.S_ISDIR(seen.mode):
            return seen.ctime if above == path else seen.mtime
    return 0


def _look(root: str, path: str) -> Seen | None:
    above, _, leaf = path.rpartition("/")
    try:
        with folder(root, above) as handle:
            return look(leaf or ".", handle)
    except OSError:
        return None


def _bytes(root: str, path: str) -> bytes:
    above, _, leaf = path.rpartition("/")
    with folder(root, above) as handle, opened(leaf, handle) as file, open(file, "rb", closefd=False) as reader:
        return reader.read()


def _above(path: str) -> list[str]:
    """The folders a path lies in, the nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(len(parts) - 1, 0, -1)]

"""The guard around an agent call: restore what an agent may not change, and report it as a finding.

It detects changes; it is not a sandbox. Before a file is restored, its current version is saved in the local state: a
person may have made the change at the same moment.
"""

import contextlib
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agentd.change import Change, freeze_comments, unfreeze_comments
from agentd.domain import StateError, clock
from agentd.guard import call_record, concurrent_runs, restore
from agentd.guard.allowed import is_allowed
from agentd.guard.call_record import CALL, CallStart, GuardResult, HeadState, Violation, printable_name
from agentd.guard.protected_paths import (
    GIT,
    POINTER,
    PROJECT,
    TREE,
    USER,
    ProtectedPaths,
    display_path,
    protected_paths,
    worktree_path,
)
from agentd.guard.scan import FileStamp, ProtectedArea, parent_folders, stamp_of, stat_path
from agentd.guard.snapshot import FileDifference, Snapshot
from agentd.project import CheckSettings, git
from agentd.storage import files

_WRITING = "writing"  # names the file that agentd itself is writing
_PLAN = ("proposal.md", "tasks.md", "clarifications.md", "specs")
_LEFTOVER = re.compile(r"\.(?:.+\.)?\d+-[0-9a-f]{8,16}\.tmp")  # temporary files of a killed agentd writer
_BYPRODUCTS = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".DS_Store"}
_CLOCK = 50_000_000  # ns that a file's timestamp may lag behind the clock

_Whose = Callable[[FileDifference], bool]


def allow_nothing(path: str) -> bool:
    return False


def plan_write_rule(change_id: str) -> Callable[[str], bool]:
    """Return the rule for what the plan stage may write: the documents of its own change."""
    own = f"agentd/changes/{change_id}"
    plain = {f"{own}/{name}" for name in _PLAN}
    return lambda path: path in plain or (os.path.dirname(path) == f"{own}/specs" and path.endswith(".md"))


class Guard:
    """Compare protected files before and after each call of a run, and restore them.

    `folder` belongs to the run, so files are copied only once per run. Reported paths are relative to the project's
    root. Call `before`, then `after`, and `close` once the result is recorded. A run killed in between leaves
    everything that `finish_cut` needs in another process. While this process is alive, it relies on its memory, not on
    the disk.
    """

    def __init__(
        self,
        change: Change,
        folder: Path,
        checks: Sequence[CheckSettings] = (),
        judge: bool = False,
        may_edit: Callable[[str], bool] = allow_nothing,
    ) -> None:
        self._change = change
        self._folder = folder
        self._checks = checks
        self._judge = judge
        self._may_edit = may_edit
        self._mirror = Snapshot(folder)
        self._kept = Path(change.project.local_state_path("kept", change.id, clock.new_run_id()))
        self._common = change.project.repo.common
        self._begun: CallStart | None = None
        self._left: FileStamp | None = None  # of call.json, when we last wrote it
        self._is_touched = False  # whether someone modified our files on disk
        self._own = ".."  # the change's folder relative to its worktree, resolved before an agent can replace it
        self._room: tuple[int, int] | None = None  # identity of the local state folder

    def before(self) -> None:
        """Record the current state of everything that is guarded."""
        since = time.time_ns() - _CLOCK
        if self._begun is None:
            self._mirror.load()
        working = concurrent_runs.running_changes(self._change.project, self._change.id)
        freeze_comments(self._change)
        what = protected_paths(self._change, self._checks)
        self._mirror.take(what.areas)
        as_found = concurrent_runs.adopt_older_copies(self._change, self._mirror, what, self._folder)
        snapshot = git.snapshot(self._change.tree) if self._judge else ""
        elsewhere = git.resolve(what.areas[PROJECT].root, self._listed)[0] if PROJECT in what.areas else ""
        editable = self._editable(what)
        self._own = os.path.relpath(os.path.realpath(self._change.folder), what.areas[TREE].root)
        self._room = call_record.folder_identity(Path(self._common, "agentd"))
        self._begun = CallStart(since, self._head(), elsewhere, snapshot, tuple(working), editable, what, as_found)
        self._save()

    @property
    def is_open(self) -> bool:
        """Whether a call has begun whose result is not recorded yet."""
        return self._begun is not None or (self._folder / CALL).exists()

    def after(self) -> GuardResult:
        """Compare and restore. Returns the same result until `close`. After a StateError, `finish_cut` can continue."""
        assert self._begun is not None, "before() comes first"
        if not self._begun.is_done:
            self._secure()
            self._finish(lambda one: True)
        return self._begun.watched

    def finish_cut(self, mark: Path | None) -> GuardResult:
        """Do the comparison that a killed agentd did not get to, before anything in the change is written.

        `mark` was created when the agent's processes had ended: later changes are a person's and are kept. Without it,
        every change counts as the agent's.
        """
        if not (self._folder / CALL).exists():
            return GuardResult()
        begun = call_record.read_call_record(self._folder / CALL)
        if begun is None or not (begun.is_done or self._mirror.load()):
            hint = f"look at git diff -- agentd, then remove {self._folder}"
            raise StateError(f"the copies of a cut-off call cannot be read ({self._folder})", hint)
        self._begun = begun
        if not begun.is_done:
            self._may_edit = lambda path: path in begun.editable or os.path.dirname(path) in begun.editable
            self._finish(self._by_time(begun, _time(mark)))
        return self._begun.watched

    def close(self) -> None:
        """Remove the call record. Call this once the result of `after` or `finish_cut` is recorded."""
        (self._folder / CALL).unlink(missing_ok=True)
        unfreeze_comments(self._change)
        if self._is_touched:
            self._mirror.remove()  # the copies cannot be trusted for another call
        self._mirror.close()
        self._begun, self._is_touched = None, False

    @contextlib.contextmanager
    def own_write(self, path: Path) -> Iterator[None]:
        """Wrap a write by agentd itself during a call: first restore an agent's edit, afterwards update the copy."""
        if self._begun is None or self._own.startswith(".."):
            yield
            return
        self._secure()
        root = self._begun.protected.areas[TREE].root
        name = f"{self._own}/{path.relative_to(self._change.folder)}"
        self._put_back(self._mirror.differences(TREE, ProtectedArea(root, (name,))))
        files.write(self._folder / _WRITING, name.encode("utf-8", "surrogateescape"), mode=0o600)
        try:
            yield
        finally:
            self._mirror.follow(TREE, root, name)
            (self._folder / _WRITING).unlink(missing_ok=True)

    def _secure(self) -> None:
        """Undo an agent's tampering with our own files on disk, from memory, so that no other process is misled."""
        assert self._begun is not None
        place = Path(self._common, "agentd")
        is_gone = self._room is not None and call_record.folder_identity(place) != self._room
        is_moved = is_gone or call_record.find_obstacle(Path(self._common), self._folder) is not None
        if not is_moved and self._mirror.is_untouched() and _seen(self._folder / CALL) == self._left:
            return
        is_deleted = is_gone or _seen(self._folder / CALL) is None
        call_record.clear_folder(Path(self._common), self._folder)
        self._mirror.rewrite()
        self._is_touched = True
        self._room = call_record.folder_identity(place)
        name = display_path(self._change, GIT, self._common, "agentd")
        if not is_gone:
            name = os.path.relpath(self._folder, self._change.project.repo.main)
        note = "agentd had its copies in memory; what else was there, such as journal and transcripts, is not back."
        trespass = Violation(printable_name(name), "deleted" if is_deleted else "changed", "", note)
        self._note(self._begun.found, [trespass])

    def _finish(self, is_agents: _Whose) -> None:
        """Compare and restore, git's own files first: its settings and hooks must be ours before git runs."""
        assert self._begun is not None
        for name in (GIT, POINTER, USER):
            self._put_back(self._without(name, is_agents, lambda found: []))
        begun, head = self._begun, self._head()
        is_moved = head.branch != begun.head.branch and is_agents(self._head_file("HEAD"))
        if not is_moved or head.listing == begun.head.listing:  # another branch may have a different agentd/
            with call_record.comments_settled(self._change, self._mirror, begun.protected.areas[TREE].root):
                self._put_back(self._without(TREE, is_agents, self._rightful))
        self._put_back(self._without(PROJECT, is_agents, self._rightful_elsewhere))
        if is_moved:
            raise _elsewhere(begun.head.branch, head.branch, self._begun.found)
        changed = self._changed(head, is_agents) if begun.snapshot else ()
        self._begun = replace(self._begun, changed=changed, is_done=True)
        self._save()

    def _without(
        self, name: str, is_agents: _Whose, rightful: Callable[[list[FileDifference]], list[FileDifference]]
    ) -> list[FileDifference]:
        """Return the violations in an area. A new folder that contains something allowed is allowed too."""
        assert self._begun is not None
        what = self._begun.protected
        area = what.areas.get(name)
        if area is None:
            return []
        found = self._mirror.differences(name, area)
        as_found = self._begun.as_found.get(name, {})
        common = os.path.realpath(self._common)

        def is_right(one: FileDifference) -> bool:
            if one.path in as_found and self._mirror.is_as(as_found[one.path], one, area.root):
                return True
            return not is_agents(one) or is_allowed(self._mirror, area.root, one, what, common)

        right = [one for one in found if is_right(one)] + rightful(found)
        paths = {one.path for one in right}
        holders = {folder for path in paths for folder in parent_folders(path)}
        paths |= {one.path for one in found if one.before is None and one.is_folder and one.path in holders}
        return [one for one in found if one.path not in paths]

    def _rightful(self, found: list[FileDifference]) -> list[FileDifference]:
        """Return what this stage may edit, and what work on other changes changed."""
        names = [display_path(self._change, TREE, "", one.path) for one in found]
        made = self._neighbours(names)
        own = f"agentd/changes/{self._change.id}/"

        def may(one: FileDifference, name: str) -> bool:
            if name.startswith(own) and _LEFTOVER.fullmatch(os.path.basename(name)):
                return True
            # a document must not be replaced with a link
            return (one.after is None or stat.S_ISREG(one.after.mode) or one.is_folder) and self._may_edit(name)

        return [one for one, name in zip(found, names, strict=True) if may(one, name) or made(name)]

    def _rightful_elsewhere(self, found: list[FileDifference]) -> list[FileDifference]:
        """Return what work on other changes changed, and what a person checked out there during the call."""
        assert self._begun is not None
        root = self._begun.protected.areas[PROJECT].root
        names = [display_path(self._change, TREE, "", one.path) for one in found]
        made = self._neighbours(names)
        right = [one for one, name in zip(found, names, strict=True) if made(name)]
        if git.resolve(root, self._listed) == [self._begun.listing]:
            return right
        words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored", "--")
        dirty = {row[3:] for row in git.run(root, *words, worktree_path(self._change, "agentd")).split("\0")}
        return right + [one for one in found if one.path not in dirty]

    def _neighbours(self, names: list[str]) -> Callable[[str], bool]:
        assert self._begun is not None
        begun = self._begun
        return concurrent_runs.ConcurrentRuns(
            self._change.project, self._change.id, begun.running, begun.since, names
        ).made

    def _put_back(self, found: list[FileDifference]) -> None:
        """Restore the paths. They are recorded first, so that they are reported even if this is interrupted."""
        assert self._begun is not None
        planned = restore.plan_restore(self._change, self._begun.protected.areas, self._kept, found)
        if not planned:
            return
        call_record.clear_path(Path(self._common), self._kept)
        earlier = self._begun.found
        self._note(earlier, [one.trespass for one in planned if one.is_told])
        done, failed = restore.carry_out_restore(self._change, self._mirror, self._begun.head.commit, planned)
        self._note(earlier, done)
        if failed:
            more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
            what = f"an agent changed what it may not, and it could not be put back: {', '.join(failed[:5])}{more}"
            raise StateError(what, "fix the permissions or free some space, then run the command again")

    def _note(self, earlier: Sequence[Violation], new: Sequence[Violation]) -> None:
        """Record violations. A new one replaces an earlier one for its path, unless that one's kept copy exists."""
        assert self._begun is not None
        paths = {one.path for one in new}
        stay = [one for one in earlier if one.path not in paths or restore.is_copy_kept(self._change, one)]
        self._begun = replace(self._begun, found=(*stay, *new))
        with contextlib.suppress(files.CannotWrite):  # a full disk must not stop the restore; the final save reports it
            self._save()

    def _save(self) -> None:
        assert self._begun is not None
        files.write(self._folder / CALL, call_record.encode_call(self._begun), mode=0o600)
        self._left = _seen(self._folder / CALL)

    def _head(self) -> HeadState:
        tree = self._change.tree
        commit, listing = git.resolve(tree, "HEAD^{commit}", self._listed)
        return HeadState(git.head_ref(tree), commit, listing)

    @property
    def _listed(self) -> str:
        """The revision of agentd/ in HEAD."""
        return f"HEAD:{worktree_path(self._change, 'agentd')}"

    def _head_file(self, name: str) -> FileDifference:
        """Return a file of the worktree's git directory as a difference, to ask whether the agent changed it."""
        path = os.path.relpath(os.path.join(git.git_folder(self._change.tree), name), self._common)
        return FileDifference(GIT, path, None, stat_path(self._common, path))

    def _changed(self, head: HeadState, is_agents: _Whose) -> tuple[str, ...]:
        """Return what differs after a judge's call. Files in agentd/ were compared with the copies already."""
        assert self._begun is not None
        tree, root = self._change.tree, self._begun.protected.areas[TREE].root
        names = {one.path for one in self._begun.found}
        if head.commit != self._begun.head.commit and is_agents(self._head_file("logs/HEAD")):
            names.add("HEAD")
        try:
            now = git.snapshot(tree)
        except git.NestedRepository as error:  # it did not exist before the call
            return tuple(sorted({*names, printable_name(error.folder)}))
        words = ("diff-tree", "-r", "--no-renames", "--name-only", "-z")
        for path in filter(None, git.run(tree, *words, self._begun.snapshot, now).split("\0")):
            name = display_path(self._change, TREE, root, path)
            if name.startswith("agentd/") or _BYPRODUCTS & set(path.split("/")):
                continue
            if is_agents(FileDifference(TREE, path, None, stat_path(root, path))):
                names.add(printable_name(name))
        return tuple(sorted(names))

    def _editable(self, what: ProtectedPaths) -> tuple[str, ...]:
        """Return the paths this stage may edit, for a process that does not have the rule itself."""
        ours = worktree_path(self._change, "agentd/")
        own = f"{ours}changes/{self._change.id}/"
        paths = {f"{own}{name}" for name in _PLAN}
        for path in (*what.areas[TREE].paths, *self._mirror.paths(TREE)):
            if path.startswith(own) or not path.startswith(ours):
                paths.add(path)
        names = {display_path(self._change, TREE, "", path) for path in paths}
        return tuple(sorted(name for name in names if self._may_edit(name)))

    def _by_time(self, begun: CallStart, end: int | None) -> _Whose:
        """Return a function that attributes differences by their time, excluding the file that agentd was writing."""
        writing = _read_text(self._folder / _WRITING)
        if end is not None and end < begun.since:
            end = None  # from an earlier call
        roots = {name: area.root for name, area in begun.protected.areas.items()}

        def is_agents(one: FileDifference) -> bool:
            if one.area == TREE and one.path == writing:
                return False
            return end is None or _moved_at(roots[one.area], one.path, one.after) <= end

        return is_agents


def _elsewhere(before: str, after: str, put_back: Sequence[Violation]) -> StateError:
    was, now = (f"on the branch {name.removeprefix('refs/heads/')}" if name else "detached" for name in (before, after))
    also = f" (put back: {', '.join(one.path for one in put_back[:5])})" if put_back else ""
    back = f"git switch {shlex.quote(before.removeprefix('refs/heads/'))}" if before else "git switch --detach"
    hint = f"{back}, look at git diff -- agentd, then run the command again"
    return StateError(f"HEAD was {was} before an agent's call and is {now} after it{also}", hint)


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def _seen(path: Path) -> FileStamp | None:
    try:
        return stamp_of(os.lstat(path))
    except OSError:
        return None


def _time(mark: Path | None) -> int | None:
    try:
        return mark.stat().st_mtime_ns if mark else None
    except FileNotFoundError:
        return None


def _moved_at(root: str, path: str, after: FileStamp | None) -> int:
    """Return when the path got its current state; for a deleted path, when its folder last changed."""
    if after is not None and not stat.S_ISDIR(after.mode):
        return after.ctime
    for folder in (path, *parent_folders(path), ""):
        if (seen := stat_path(root, folder)) and stat.S_ISDIR(seen.mode):
            return seen.ctime if folder == path else seen.mtime
    return 0

"""`agentd archive` and its undoing, cut off anywhere: the next command leaves the old tree or the new one, whole."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentd.change import lifecycle
from agentd.change.folder import read_state
from agentd.cli import app
from agentd.documents.spec_parts import REQUIREMENT_PATTERN
from agentd.domain.terms import Phase
from agentd.engine.archive import archive
from agentd.project.layout import find_project
from agentd.storage import locks
from assertions import Contents, folder_contents
from crash import OPERATIONS, Strike, Tell, kill, kill_just_after, run_in_fork
from exhaustive import Exhaustive
from plans import SHORT_TITLES, SHORT_TITLES_ID, TAGS, delta_text, requirement_text
from program import CrashPoint, Program
from scenario import Scenario, tree_files

MOMENTS = pytest.mark.parametrize("strike", [kill, kill_just_after])
WORKS = pytest.mark.parametrize("is_undo", [False, True], ids=["archive", "undo"])
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_TEMPORARY = re.compile(rb"\.\d+-[0-9a-f]{8}\.tmp")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Ground:
    """A project with a complete change, or an archived one, that can be laid out again and again."""

    box: Scenario
    kept: Path

    @property
    def room(self) -> Path:
        return self.box.root / ".git/agentd"

    def keep(self) -> None:
        for name in ("agentd", ".git/agentd"):
            shutil.copytree(self.box.root / name, self.kept / name, symlinks=True)

    def restore(self) -> None:
        for name in ("agentd", ".git/agentd"):
            shutil.rmtree(self.box.root / name)
            shutil.copytree(self.kept / name, self.box.root / name, symlinks=True)

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """All files, whatever the time was."""
        return {name: (mode, _TIME.sub(b"T", data)) for name, (mode, data) in tree_files(self.box.root).items()}

    def rest(self) -> Contents:
        """What is left in tree and local room, but for whose it was."""
        found = {b"tree/" + name: one for name, one in folder_contents(self.box.root / "agentd").items()}
        found |= {
            b"room/" + name: one for name, one in folder_contents(self.room).items() if not name.startswith(b"locks/")
        }
        return {_TEMPORARY.sub(b".tmp", name): (mode, _TIME.sub(b"T", data)) for name, (mode, data) in found.items()}


@pytest.fixture
def notes(project: Scenario) -> Scenario:
    project.with_notes()
    return project


@pytest.fixture
def ground(notes: Scenario, tmp_path: Path, is_undo: bool) -> Ground:
    change = notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES, "tags": TAGS})
    (change.folder / "GEMINI.md").write_text("context")
    notes.commit("the change")
    if is_undo:
        work(False)
    ground = Ground(notes, tmp_path / "kept")
    ground.keep()
    return ground


def work(is_undo: bool) -> None:
    """What the command does, from looking for the change on."""
    project = find_project()
    if is_undo:
        archive.undo_archive(project, SHORT_TITLES_ID)
    else:
        archive.archive_change(lifecycle.open_change(project, SHORT_TITLES_ID), REQUIREMENT_PATTERN)


def writes(ground: Ground, is_undo: bool) -> list[int]:
    """Which of the operations, as run_mortal counts them, leave something else on disk."""

    def watched(tell: Tell) -> None:
        root, count = str(ground.box.root), 0

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            if event not in OPERATIONS or not str(arguments[0]).startswith(root):
                return
            count += 1
            is_idle = os.path.isdir(arguments[0]) if event == "os.mkdir" else "/locks/" in str(arguments[0])
            if not is_idle and (event != "open" or arguments[2] & _WRITING):
                tell(count)

        sys.addaudithook(watch)
        work(is_undo)

    _, numbers = run_in_fork(watched, ground.box.root, None)
    ground.restore()
    return numbers


def agentd(*arguments: str) -> int:
    """The command, in a process of its own that has everything loaded."""

    def run(tell: Tell) -> None:
        for handle in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), handle)
        tell(app.run(list(arguments)))

    _, (code,) = run_in_fork(run, Path("/nowhere"), None)
    return int(code)


def is_tidy(ground: Ground, is_archived: bool) -> bool:
    """STATE.yaml can be read, nothing is under way, nobody holds a lock."""
    (folder,) = (ground.box.root / "agentd").glob(
        f"archive/*-{SHORT_TITLES_ID}" if is_archived else f"changes/{SHORT_TITLES_ID}"
    )
    assert read_state(folder).phase is (Phase.ARCHIVED if is_archived else Phase.COMPLETE)
    assert len(list((ground.room / "archived").glob("*"))) == is_archived, "what can be undone, and nothing else"
    under_way = ground.room / "archiving"
    return not (under_way.is_dir() and os.listdir(under_way)) and not locks.active_run(
        ground.room / f"locks/{SHORT_TITLES_ID}.run"
    )


# ---- killed


@MOMENTS
@WORKS
def test_archive_killed_at_any_write_leaves_the_old_or_the_new_tree(
    ground: Ground, strike: Strike, is_undo: bool, exhaustive: Exhaustive
) -> None:
    old = ground.tree()
    numbers = writes(ground, is_undo)
    work(is_undo)
    ends = [old, ground.tree()]
    assert len(numbers) > 25 and ends[0] != ends[1] and is_tidy(ground, is_archived=not is_undo)
    again = ("archive", SHORT_TITLES_ID, "--undo") if is_undo else ("archive", SHORT_TITLES_ID)
    next_ones = [("list",), ("status",), ("status", SHORT_TITLES_ID), again]
    reached: list[bool] = []
    before: Contents = {}
    for turn, number in exhaustive.points(enumerate(numbers)):
        ground.restore()
        lived, _ = run_in_fork(lambda tell: work(is_undo), ground.box.root, number, strike=strike)
        assert not lived or number in numbers[-4:], "only the index has sometimes more to write, and sometimes less"
        rest = ground.rest()
        if rest == before:
            continue
        before = rest
        command = next_ones[turn % len(next_ones)]
        code = agentd(*command)
        now = ground.tree()
        assert now in ends, (number, command)
        is_new = now == ends[1]
        assert is_tidy(ground, is_archived=is_new is not is_undo), (number, command)
        if command != again:
            reached.append(is_new)
        else:
            assert is_new and code in (0, 1), (number, code)
        if turn % 3 == 0:
            assert goes_on(ground, is_undo, is_new, ends), number
    assert reached == sorted(reached), "from some write on it is the new one"
    if exhaustive.is_long:
        assert 3 < sum(reached) < len(reached) - 3


def goes_on(ground: Ground, is_undo: bool, is_new: bool, ends: list[dict[str, tuple[int, bytes]]]) -> bool:
    """What was not done is done, and what was is taken back."""
    is_back = is_undo is not is_new
    assert agentd("archive", SHORT_TITLES_ID, *(["--undo"] if is_back else [])) == 0
    return ground.tree() == ends[not is_new]


@pytest.mark.parametrize(("command", "moment"), [("list", "before"), ("status", "after"), ("archive", "before")])
@WORKS
def test_real_archive_command_killed_is_recovered_by_the_next_command(
    ground: Ground, is_undo: bool, command: str, moment: str
) -> None:
    box, old = ground.box, ground.tree()
    work(is_undo)
    ends = [old, ground.tree()]
    first = ("archive", SHORT_TITLES_ID, "--undo") if is_undo else ("archive", SHORT_TITLES_ID)
    reached = set()
    for number in (2, 10):  # a text is laid down; the list stands, and the first file is being written
        ground.restore()
        killed = box.agentd(*first, crash=CrashPoint(moment, number, str(box.root)))
        assert killed.code == -signal.SIGKILL, killed
        ran = box.agentd(*(first if command == "archive" else (command,)))
        assert ran.code in (0, 1) and ground.tree() in ends, ran.err
        reached.add(ground.tree() == ends[1])
        assert is_tidy(ground, is_archived=(ground.tree() == ends[1]) is not is_undo)
    assert reached == ({True} if command == "archive" else {False, True})


def test_removing_a_worktree_with_a_partial_archive_does_not_block_commands(notes: Scenario) -> None:
    change = notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES}, notes.in_worktree(SHORT_TITLES_ID))
    lived, _ = run_in_fork(lambda tell: work(False), Path(change.tree, "agentd/archive"), 1)  # before the folder moves
    under_way = notes.root / ".git/agentd/archiving"
    assert not lived and len(list(under_way.glob("*/plan.json"))) == 1
    notes.git("worktree", "remove", "--force", change.tree)
    assert notes.agentd("list").code == 0 and not os.listdir(under_way)


# ---- interrupted, and without room


@pytest.mark.parametrize("is_undo", [False, True], ids=["archive", "undo"])
def test_ctrl_c_during_archive_is_recovered_by_the_next_command(ground: Ground, is_undo: bool) -> None:
    old = ground.tree()
    numbers = writes(ground, is_undo)
    work(is_undo)
    ends = [old, ground.tree()]
    arguments = ["archive", SHORT_TITLES_ID, *(["--undo"] if is_undo else [])]

    def interrupted(tell: Tell) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        tell(app.run(arguments))

    for number in numbers[5::6]:
        ground.restore()
        _, told = run_in_fork(interrupted, ground.box.root, number, strike=lambda: os.kill(os.getpid(), signal.SIGINT))
        assert told in ([130], [0]), (number, told)
        assert agentd("list") == 0 and ground.tree() in ends, number
        assert is_tidy(ground, is_archived=(ground.tree() == ends[1]) is not is_undo)


@WORKS
def test_full_disk_is_reported_and_the_archive_is_completed_later(ground: Ground, is_undo: bool) -> None:
    old = ground.tree()
    numbers = writes(ground, is_undo)
    work(is_undo)
    ends = [old, ground.tree()]
    arguments = ["archive", SHORT_TITLES_ID, *(["--undo"] if is_undo else []), "--json"]

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    def cramped(tell: Tell) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        tell(app.run(arguments))

    codes = []
    for number in numbers[:-4:4]:
        ground.restore()
        _, (code,) = run_in_fork(cramped, ground.box.root, number, strike=fill)
        codes.append(code)
        is_begun = bool(list((ground.room / "archiving").glob("*/**/plan.json"))) and ground.tree() != old
        assert agentd("list") == 0 and ground.tree() in ends, number
        assert (ground.tree() == ends[1]) or not is_begun, "what was begun is completed"
        assert is_tidy(ground, is_archived=(ground.tree() == ends[1]) is not is_undo)
    assert set(codes) == {3}, codes


# ---- two at once


def test_two_concurrent_archives_are_both_merged(notes: Scenario) -> None:
    longer = delta_text("notes", requirement_text("R1", "Notes are kept", "A note is kept for ever."))
    for _ in range(4):
        notes.notes_complete("one", {"notes": SHORT_TITLES})
        notes.notes_complete("two", {"notes": longer})
        with notes.start_at_once(("archive", "one"), ("archive", "two")) as both:
            ends = [(one.communicate()[1], one.returncode) for one in both]
        assert [code for _, code in ends] == [0, 0], ends
        text = (notes.root / "agentd/specs/notes.md").read_text()
        assert "at most 40" in text and "for ever" in text and "version: 3" in text
        assert (notes.root / "agentd/specs/CHANGELOG.md").read_text().count("\n## ") == 2
        shutil.rmtree(notes.root / "agentd")
        notes.git("checkout", "--", "agentd")


def test_one_of_two_concurrent_conflicting_archives_is_refused(notes: Scenario) -> None:
    other = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 20 characters."))
    for _ in range(3):
        notes.notes_complete("one", {"notes": SHORT_TITLES})
        notes.notes_complete("two", {"notes": other})
        with notes.start_at_once(("archive", "one"), ("archive", "two")) as both:
            codes = [one.wait() for one in both]
        assert sorted(codes) == [0, 1]
        text = (notes.root / "agentd/specs/notes.md").read_text()
        assert ("at most 40" in text, "at most 20" in text) == (codes[0] == 0, codes[1] == 0)
        assert "version: 2" in text and (notes.root / f"agentd/changes/{['one', 'two'][codes[0] == 0]}").is_dir()
        shutil.rmtree(notes.root / "agentd")
        notes.git("checkout", "--", "agentd")


def test_one_of_two_concurrent_archives_of_the_same_change_succeeds(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    with notes.start_at_once(("archive", SHORT_TITLES_ID), ("archive", SHORT_TITLES_ID)) as both:
        ends = [(one.communicate()[1], one.returncode) for one in both]
    assert sorted(code for _, code in ends) in ([0, 1], [0, 5]), ends
    (loser,) = (words for words, code in ends if code)
    assert f"{SHORT_TITLES_ID} is archived" in loser or f"{SHORT_TITLES_ID} is being worked on" in loser
    assert len(list((notes.root / "agentd/archive").iterdir())) == 1


def test_list_waits_for_an_archive_in_progress(notes: Scenario) -> None:
    notes.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES, "tags": TAGS})
    lock = str(notes.root / ".git/agentd/locks/@specs.write")
    argv = [*notes.program, "list", "--all", "--json"]
    listings: list[subprocess.Popen[str]] = []

    def look() -> None:
        """In the midst of it: somebody lists, and is seen to wait."""
        listing = Program(argv, cwd=notes.root, env=notes.env, stdout=subprocess.PIPE, text=True)
        listings.append(listing)
        while listing.poll() is None and lock not in opened(listing.pid):
            pass

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and str(arguments[1]).startswith(str(notes.root / "agentd/specs")) and not listings:
            look()

    def slow(tell: Tell) -> None:
        sys.addaudithook(watch)
        work(False)
        tell(listings[0].communicate()[0])

    lived, told = run_in_fork(slow, notes.root, None)
    rows = json.loads(told[0])["changes"]
    assert lived and [(one["change_id"], one["phase"]) for one in rows] == [(SHORT_TITLES_ID, "archived")], "it waited"


def opened(pid: int) -> list[str]:
    """The files that a process has open."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return found

"""Several files changed as one: what comes of it, what is refused, what others do meanwhile, and the way back."""

import contextlib
import functools
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest
from transaction_project import (
    ARCHIVED,
    BACK,
    CHANGE,
    CONTEXT,
    NEW_SPEC,
    SPEC,
    STATE,
    TITLE,
    Ground,
    bound_by_rights,
    laid_out,
)

from agentd.domain.errors import Bug, Refusal, StateError
from agentd.storage import files
from agentd.storage.transaction import run_transaction, undo_transaction
from agentd.storage.transaction_record import (
    MovePath,
    Operation,
    RemoveFile,
    WriteFile,
    pending_transactions,
    read_transaction,
)
from assertions import folder_contents
from crash import Tell, kill, run_in_fork

P = PurePath


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return laid_out(tmp_path / "ground")


def meanwhile(ground: Ground, at: PurePath, happens: Callable[[], object]) -> bool:
    """Does it live, if this happens when a file is about to get its new text, or a folder its new place?"""

    def work(tell: Tell) -> None:
        def watch(event: str, arguments: tuple[object, ...]) -> None:
            if event == "os.rename" and str(arguments[1]) == str(ground.root / at):
                happens()

        sys.addaudithook(watch)
        with contextlib.suppress(StateError):
            ground.carry_out()

    return run_in_fork(work, ground.top, None)[0]


def cut_off(ground: Ground, at: PurePath) -> None:
    assert not meanwhile(ground, at, kill)
    assert [record.title for record in pending_transactions(ground.records)] == [TITLE]


# ---- there and back


def test_transaction_is_applied_and_undone_byte_for_byte(ground: Ground) -> None:
    before = folder_contents(ground.root)
    ground.carry_out()
    after = folder_contents(ground.root)
    at_home = {name for name in before if name.startswith(os.fsencode(CHANGE) + b"/")} - {os.fsencode(CONTEXT)}
    for name in at_home - {os.fsencode(STATE)}:
        assert after[name.replace(os.fsencode(CHANGE), os.fsencode(ARCHIVED))] == before[name]
    assert not any(name.startswith(os.fsencode(CHANGE)) for name in after)
    assert after[os.fsencode(SPEC)] == (stat.S_IFREG | 0o640, b"# Auth flow\n\nmerged\n")
    assert after[os.fsencode(ARCHIVED / "STATE.yaml")][1] == b"phase: archived\n"
    assert (ground.root / NEW_SPEC).stat().st_mode == (ground.root / ARCHIVED / "proposal.md").stat().st_mode
    assert os.fsencode(ARCHIVED / "GEMINI.md") not in after
    ground.undo()
    assert folder_contents(ground.root) == before
    assert folder_contents(ground.records) == {}


def test_record_keeps_its_metadata_and_only_what_undo_needs(ground: Ground) -> None:
    ground.carry_out()
    record = ground.done()
    assert (record.title, record.facts, record.root) == (TITLE, {"change": "add-oauth"}, ground.root)
    assert sorted(os.listdir(record.folder)) == ["done", "old-0", "old-2", "old-3", "plan.json"]
    assert stat.S_IMODE((record.folder / "old-3").stat().st_mode) == 0o600, "no more people may read it than before"
    assert pending_transactions(ground.records) == []
    assert read_transaction(ground.records / "other") is None


def test_recovery_ignores_the_umask_of_the_recovering_process(ground: Ground) -> None:
    cut_off(ground, NEW_SPEC)
    old = os.umask(0o077)
    try:
        ground.recover()
    finally:
        os.umask(old)
    assert (ground.root / NEW_SPEC).stat().st_mode == (ground.root / ARCHIVED / "proposal.md").stat().st_mode


def test_undo_keeps_created_folders_that_hold_other_files(ground: Ground) -> None:
    ground.carry_out()
    (ground.root / ARCHIVED.parent / "20260120-other").mkdir()
    (ground.root / NEW_SPEC.parent / "other.md").write_text("other")
    ground.undo()
    assert os.listdir(ground.root / ARCHIVED.parent) == ["20260120-other"]
    assert os.listdir(ground.root / NEW_SPEC.parent) == ["other.md"]


def test_single_file_can_be_written_and_moved(ground: Ground) -> None:
    before = folder_contents(ground.root)
    ground.carry_out(WriteFile(SPEC, b"x"), MovePath(SPEC, P("agentd/old specs/auth.md")))
    assert (ground.root / "agentd/old specs/auth.md").read_bytes() == b"x"
    assert not (ground.root / SPEC).exists()
    ground.undo()
    assert folder_contents(ground.root) == before


def test_undo_reverts_the_last_transaction_of_the_same_name(ground: Ground) -> None:
    ground.carry_out(WriteFile(SPEC, b"one"))
    ground.carry_out(WriteFile(SPEC, b"two"))
    ground.undo()
    assert (ground.root / SPEC).read_bytes() == b"one"
    assert read_transaction(ground.record) is None


def test_interrupted_transaction_replaces_a_finished_one_of_the_same_name(ground: Ground) -> None:
    ground.carry_out(WriteFile(CHANGE / "proposal.md", b"one"))
    cut_off(ground, SPEC)
    ground.recover()
    assert (ground.root / ARCHIVED / "STATE.yaml").read_bytes() == b"phase: archived\n"


def test_recovery_does_not_rewrite_finished_files(ground: Ground) -> None:
    cut_off(ground, STATE)
    before = (ground.root / SPEC).stat()
    ground.recover()
    assert (ground.root / SPEC).stat() == before


def test_recovery_and_undo_work_in_a_moved_repository(tmp_path: Path, ground: Ground) -> None:
    before = folder_contents(ground.root)
    cut_off(ground, ARCHIVED)
    ground.top.rename(tmp_path / "moved")
    moved = Ground(tmp_path / "moved")
    moved.recover()
    assert (moved.root / ARCHIVED).is_dir() and not ground.top.exists()
    moved.undo()
    assert folder_contents(moved.root) == before and not ground.top.exists()


# ---- refused before anything is touched


def link(path: PurePath, to: str) -> Callable[[Path], None]:
    def made(root: Path) -> None:
        if (root / path).exists():
            (root / path).rename(root / "aside")
        (root / path).symlink_to(to)

    return made


def nothing(root: Path) -> None:
    pass


ELSEWHERE = P("agentd/elsewhere")


@pytest.mark.parametrize(
    ("prepare", "operation", "words"),
    [
        (lambda root: (root / ARCHIVED).mkdir(parents=True), MovePath(CHANGE, ARCHIVED), "already exists"),
        (lambda root: (root / "x").write_text(""), MovePath(CHANGE, P("x")), "x already exists"),
        (link(P("x"), "nowhere"), MovePath(CHANGE, P("x")), "symbolic link"),
        (nothing, MovePath(P("agentd/changes/other"), ARCHIVED), "agentd/changes/other does not exist"),
        (link(P("x"), "agentd"), MovePath(P("x"), ARCHIVED), "symbolic link"),
        (nothing, RemoveFile(CHANGE / "AGENTS.md"), "AGENTS.md does not exist"),
        (nothing, RemoveFile(CHANGE), "is not a file"),
        (nothing, WriteFile(CHANGE, b""), "is not a file"),
        (nothing, WriteFile(SPEC / "x.md", b""), "auth-flow.md is not a folder"),
        (nothing, MovePath(CHANGE, SPEC / "x"), "auth-flow.md is not a folder"),
        (nothing, WriteFile(P("../x"), b""), "is not inside"),
        (nothing, WriteFile(P("agentd/../../x"), b""), "is not inside"),
        (nothing, WriteFile(P("/tmp/x"), b""), "is not inside"),
        (nothing, MovePath(CHANGE, P("../x")), "is not inside"),
        (nothing, MovePath(P("../room"), ARCHIVED), "is not inside"),
        (link(SPEC, "proposal.md"), WriteFile(SPEC, b"x"), "symbolic link"),
        (link(SPEC.parent, "/tmp"), WriteFile(SPEC, b"x"), "specs is a symbolic link"),
        (link(SPEC.parent, "aside"), WriteFile(NEW_SPEC, b"x"), "specs is a symbolic link"),
        (link(P("agentd/archive"), "/tmp"), MovePath(CHANGE, ARCHIVED), "archive is a symbolic link"),
        (link(CHANGE.parent, "../aside"), MovePath(CHANGE, ARCHIVED), "changes is a symbolic link"),
        (lambda root: os.mkfifo(root / "x"), WriteFile(P("x"), b""), "x is not a file"),
        (nothing, WriteFile(P("line\nbreak/../../x"), b""), r"'line\\nbreak/../../x' is not inside"),
    ],
)
def test_invalid_operation_is_refused_without_any_write(
    ground: Ground, prepare: Callable[[Path], object], operation: Operation, words: str
) -> None:
    prepare(ground.root)
    first = P("agentd/specs/first.md") if "specs" not in words else P("first.md")
    before = set(map(str, ground.top.rglob("*")))
    with pytest.raises(Refusal, match=words) as caught:
        ground.carry_out(WriteFile(first, b"fine by itself"), operation)
    assert caught.value.hint
    assert set(map(str, ground.top.rglob("*"))) == before, "neither the tree nor a record"


def test_root_folder_cannot_be_an_operand(ground: Ground) -> None:
    for operation in (RemoveFile(P("")), MovePath(P("."), P("x"))):
        with pytest.raises((Refusal, Bug)):
            ground.carry_out(operation)
    assert not ground.records.exists()


def test_move_to_another_file_system_is_refused(ground: Ground) -> None:
    source = P(*(ground.root / CHANGE).parts[1:])
    with pytest.raises(Refusal, match="different file systems"):
        run_transaction(ground.record, Path("/"), TITLE, [MovePath(source, P("proc/moved"))])
    assert not ground.records.exists()


@pytest.mark.parametrize(
    "operations",
    [
        (WriteFile(SPEC, b"1"), WriteFile(SPEC, b"2")),
        (WriteFile(SPEC, b"1"), RemoveFile(SPEC)),
        (WriteFile(P("a"), b"1"), WriteFile(P("a/b"), b"2")),
        (MovePath(CHANGE, ARCHIVED), WriteFile(ARCHIVED / "x", b"")),
        (MovePath(CHANGE, ARCHIVED), WriteFile(ARCHIVED.parent, b"")),
        (WriteFile(CHANGE.parent, b""), MovePath(CHANGE, ARCHIVED)),
        (MovePath(CHANGE, CHANGE / "x"),),
        (MovePath(CHANGE, ARCHIVED), MovePath(SPEC, ARCHIVED / "x")),
        (MovePath(CHANGE, ARCHIVED), MovePath(CHANGE / "specs", P("x"))),
        (MovePath(CHANGE, P("x")), MovePath(P("agentd/specs"), P("x"))),
    ],
)
def test_operations_that_depend_on_order_are_refused(ground: Ground, operations: tuple[Operation, ...]) -> None:
    before = folder_contents(ground.top)
    with pytest.raises(Bug, match="in one transaction"):
        ground.carry_out(*operations)
    assert folder_contents(ground.top) == before


def test_unfinished_record_is_not_overwritten(ground: Ground) -> None:
    cut_off(ground, SPEC)
    before = folder_contents(ground.top)
    with pytest.raises(Bug, match="must be finished"):
        ground.carry_out(WriteFile(SPEC, b"x"))
    [record] = pending_transactions(ground.records)
    with pytest.raises(Bug, match="must be finished"):
        undo_transaction(record, BACK)
    assert folder_contents(ground.top) == before


# ---- somebody else was there, while it was cut off


@pytest.mark.parametrize("at", [SPEC, STATE, ARCHIVED])
@pytest.mark.parametrize("path", [SPEC, NEW_SPEC, STATE, CONTEXT])
def test_edited_file_stops_recovery_and_the_hint_keeps_the_edit(ground: Ground, at: PurePath, path: PurePath) -> None:
    cut_off(ground, at)
    (ground.root / path).parent.mkdir(parents=True, exist_ok=True)
    (ground.root / path).write_text("mine")
    before = folder_contents(ground.top)
    with pytest.raises(StateError, match=f"^{TITLE} is half done, .*{path} ") as caught:
        ground.recover()
    assert folder_contents(ground.top) == before, "nothing is overwritten, and nothing else goes on"
    for side in ("old", "new"):
        for kept in ground.record.glob(f"{side}-{[SPEC, NEW_SPEC, STATE, CONTEXT].index(path)}"):
            assert str(kept) in caught.value.message
    typed, _, then = caught.value.hint.partition("; ")
    assert then == "then run the command again"
    subprocess.run(["sh", "-c", typed], check=True)
    ground.recover()
    kept_at = str(path).replace(str(CHANGE), str(ARCHIVED)) + ".yours-1"
    assert (ground.root / kept_at).read_text() == "mine"
    (ground.root / kept_at).unlink()
    now = folder_contents(ground.root)
    laid_out(ground.top).carry_out()
    assert now == folder_contents(ground.root)


def test_file_edited_during_the_transaction_is_kept(ground: Ground) -> None:
    assert meanwhile(ground, SPEC, lambda: (ground.root / STATE).write_text("mine"))
    assert (ground.root / STATE).read_text() == "mine"
    assert (ground.root / SPEC).read_bytes() == b"# Auth flow\n\nmerged\n", "that far it had come"
    with pytest.raises(StateError, match=str(STATE)):
        ground.recover()


def test_folder_created_during_the_transaction_is_not_replaced(ground: Ground) -> None:
    assert meanwhile(ground, STATE, lambda: (ground.root / ARCHIVED).mkdir(parents=True))
    assert os.listdir(ground.root / ARCHIVED) == [], "rename would have taken its place"
    with pytest.raises(StateError, match="both exist"):
        ground.recover()


def test_all_edited_files_are_reported_at_once(ground: Ground) -> None:
    cut_off(ground, SPEC)
    (ground.root / SPEC).unlink()
    (ground.root / STATE).unlink()
    (ground.root / STATE).mkdir()
    with pytest.raises(StateError, match=f"{SPEC} .*; {STATE} ") as caught:
        ground.recover()
    subprocess.run(["sh", "-c", caught.value.hint.partition("; ")[0]], check=True)
    ground.recover()
    assert (ground.root / ARCHIVED / "STATE.yaml").read_bytes() == b"phase: archived\n"


def test_other_edits_in_a_moved_folder_move_with_it(ground: Ground) -> None:
    cut_off(ground, ARCHIVED)
    (ground.root / CHANGE / "proposal.md").write_text("mine")
    ground.recover()
    assert (ground.root / ARCHIVED / "proposal.md").read_text() == "mine"


@pytest.mark.parametrize("is_moved", [False, True])
def test_both_source_and_target_folder_stop_recovery(ground: Ground, is_moved: bool) -> None:
    cut_off(ground, ARCHIVED)
    if is_moved:
        (ground.root / CHANGE).rename(ground.root / ARCHIVED)
    foreign = ground.root / (CHANGE if is_moved else ARCHIVED)
    foreign.mkdir()
    (foreign / "mine").write_text("mine")
    before = folder_contents(ground.top)
    with pytest.raises(StateError, match="both exist") as caught:
        ground.recover()
    assert folder_contents(ground.top) == before
    subprocess.run(["sh", "-c", caught.value.hint.partition("; ")[0]], check=True)
    ground.recover()
    assert (ground.root / ARCHIVED / "STATE.yaml").read_bytes() == b"phase: archived\n"
    assert foreign.with_name(f"{foreign.name}.yours-1").joinpath("mine").read_text() == "mine"


def test_missing_folder_stops_recovery(ground: Ground) -> None:
    cut_off(ground, ARCHIVED)
    (ground.root / CHANGE).rename(ground.top / "away")
    with pytest.raises(StateError, match="both are missing"):
        ground.recover()
    (ground.top / "away").rename(ground.root / CHANGE)
    ground.root.rename(ground.top / "away")
    with pytest.raises(StateError, match="is missing, and agentd archive add-oauth is half done there"):
        ground.recover()
    assert not ground.root.exists()
    (ground.top / "away").rename(ground.root)
    ground.recover()
    assert (ground.root / ARCHIVED).is_dir()


def test_symlink_in_the_path_is_not_followed(ground: Ground, tmp_path: Path) -> None:
    cut_off(ground, SPEC)
    (ground.root / "agentd/specs").rename(tmp_path / "outside")
    (ground.root / "agentd/specs").symlink_to(tmp_path / "outside")
    before = folder_contents(tmp_path)
    with pytest.raises(Refusal, match="symbolic link"):
        ground.recover()
    assert folder_contents(tmp_path) == before


# ---- the record cannot be trusted


def test_unreadable_plan_file_is_named(ground: Ground) -> None:
    cut_off(ground, SPEC)
    for data in (b"", b"{", b"[]", b'{"root": 1}', b"\xff", b'{"root": "x", "title": "t", "files": [{"path": []}]}'):
        (ground.record / "plan.json").write_bytes(data)
        with pytest.raises(StateError, match=r"plan\.json cannot be read"):
            ground.recover()


def test_plan_path_outside_the_root_is_refused(ground: Ground, tmp_path: Path) -> None:
    cut_off(ground, SPEC)
    plan = ground.record / "plan.json"
    plan.write_text(plan.read_text().replace(str(SPEC), "../outside.md"))
    with pytest.raises(Refusal, match="is not inside"):
        ground.recover()
    assert not (ground.top / "outside.md").exists()


@pytest.mark.parametrize("ruin", [lambda path: path.write_text("x"), lambda path: path.unlink()])
def test_staged_text_that_was_changed_is_not_written(ground: Ground, ruin: Callable[[Path], object]) -> None:
    before = folder_contents(ground.root)
    cut_off(ground, SPEC)
    ruin(ground.record / "new-0")
    with pytest.raises(StateError, match="new-0 is missing or was changed"):
        ground.recover()
    assert (ground.root / SPEC).read_bytes() == before[os.fsencode(SPEC)][1]


# ---- undo is refused when somebody built on it


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda root: (root / SPEC).write_text("more"), f"{SPEC} was changed$"),
        (lambda root: (root / NEW_SPEC).unlink(), f"{NEW_SPEC} was removed$"),
        (lambda root: (root / ARCHIVED / "STATE.yaml").write_text("more"), f"{ARCHIVED}/STATE.yaml was changed$"),
        (lambda root: (root / ARCHIVED / "proposal.md").write_text("more"), f"{ARCHIVED}/proposal.md was changed$"),
        (lambda root: (root / ARCHIVED / "specs/deep/with space.md").unlink(), "specs/deep/with space.md was removed$"),
        (lambda root: (root / ARCHIVED / "specs/new.md").write_text(""), f"{ARCHIVED}/specs/new.md was added$"),
        (lambda root: (root / ARCHIVED / "GEMINI.md").write_text(""), f"{ARCHIVED}/GEMINI.md was added$"),
        (lambda root: (root / ARCHIVED / "a\nb").symlink_to("x"), "a.nb' was added$"),
        (
            lambda root: ((root / ARCHIVED / "link").unlink(), (root / ARCHIVED / "link").symlink_to("y")),
            "was changed$",
        ),
        (lambda root: (root / CHANGE).mkdir(), f"{CHANGE} was created$"),
        (lambda root: (root / ARCHIVED).rename(root / "away"), f"{ARCHIVED} was removed$"),
    ],
)
def test_undo_names_later_changes(ground: Ground, build: Callable[[Path], object], words: str) -> None:
    ground.carry_out()
    build(ground.root)
    before = folder_contents(ground.top)
    with pytest.raises(Refusal, match=f"{TITLE} cannot be undone: since then .*{words}"):
        ground.undo()
    assert folder_contents(ground.top) == before


def test_undo_names_all_later_changes_and_works_once_they_are_reverted(ground: Ground) -> None:
    before = folder_contents(ground.root)
    ground.carry_out()
    (ground.root / SPEC).write_text("more")
    (ground.root / ARCHIVED / "added.md").write_text("more")
    with pytest.raises(Refusal, match=f"{SPEC} was changed, {ARCHIVED}/added.md was added$"):
        ground.undo()
    (ground.root / SPEC).write_bytes(b"# Auth flow\n\nmerged\n")
    (ground.root / ARCHIVED / "added.md").unlink()
    ground.undo()
    assert folder_contents(ground.root) == before


def test_undo_does_not_overwrite_a_recreated_file(ground: Ground) -> None:
    ground.carry_out(RemoveFile(SPEC))
    (ground.root / SPEC).write_text("another")
    with pytest.raises(Refusal, match=f"{SPEC} was added"):
        ground.undo()
    assert (ground.root / SPEC).read_text() == "another"


def test_changed_file_mode_does_not_prevent_undo(ground: Ground) -> None:
    """git gives files other rights when it checks them out."""
    before = folder_contents(ground.root)
    ground.carry_out()
    (ground.root / SPEC).chmod(0o644)
    ground.undo()
    assert folder_contents(ground.root) == before


# ---- a disk that is full, a right that is missing: the real ones


def with_little_room(work: Callable[[], None], bytes_: int) -> Callable[[Tell], None]:
    def worked(tell: Tell) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, resource.RLIM_INFINITY))
        with pytest.raises(files.CannotWrite) as caught:
            work()
        tell(caught.value.message)

    return worked


def test_full_disk_while_staging_leaves_everything_unchanged(ground: Ground) -> None:
    before = folder_contents(ground.root)
    short = functools.partial(ground.carry_out, WriteFile(SPEC, b"short"))
    for work, bytes_, lacking in (
        (ground.carry_out, 10, "old-0"),
        (ground.carry_out, 5000, "new-1"),
        (short, 200, "plan.json"),
    ):
        _, told = run_in_fork(with_little_room(work, bytes_), ground.top, None)
        assert f"cannot write {ground.record / lacking}: File too large" in told
        assert folder_contents(ground.root) == before
        assert folder_contents(ground.records) == {}


def test_full_disk_during_recovery_is_completed_by_the_next_command(ground: Ground) -> None:
    ground.carry_out()
    after = folder_contents(ground.root)
    laid_out(ground.top)
    cut_off(ground, SPEC)
    _, told = run_in_fork(with_little_room(ground.recover, 5000), ground.top, None)
    assert f"cannot write {ground.root / NEW_SPEC}: File too large" in told
    assert (ground.root / SPEC).read_bytes() == b"# Auth flow\n\nmerged\n" and (ground.root / CHANGE).exists()
    ground.recover()
    assert folder_contents(ground.root) == after


@pytest.mark.parametrize("is_undo", [False, True], ids=["carry_out", "undo"])
@pytest.mark.parametrize("folder", ["agentd/specs", "agentd/changes", "agentd", str(CHANGE)])
def test_missing_permission_is_reported_and_recovery_continues_later(
    ground: Ground, folder: str, is_undo: bool
) -> None:
    before = folder_contents(ground.root)
    ground.carry_out()
    after = folder_contents(ground.root)
    if not is_undo:
        laid_out(ground.top)
    closed = ground.root / (folder.replace(str(CHANGE), str(ARCHIVED)) if is_undo else folder)
    mode = closed.stat().st_mode

    def work(tell: Tell) -> None:
        bound_by_rights()
        with pytest.raises(files.CannotWrite, match="Permission denied") as caught:
            ground.undo() if is_undo else ground.carry_out()
        tell(caught.value.hint)

    closed.chmod(0o555)
    _, told = run_in_fork(work, ground.top, None)
    closed.chmod(mode)
    assert told == ["check the disk space and the permissions of that folder, then run the command again"]
    assert [record.title for record in pending_transactions(ground.records)] == [BACK if is_undo else TITLE]
    ground.recover()
    assert folder_contents(ground.root) == (before if is_undo else after)


# ---- what it was made from


def test_write_is_refused_when_the_file_changed_since_it_was_read(ground: Ground) -> None:
    was = files.hash_bytes((ground.root / SPEC).read_bytes())
    before = folder_contents(ground.root)
    (ground.root / SPEC).write_text("somebody else's\n")
    for operation in (WriteFile(P(SPEC), b"mine\n", seen=was), WriteFile(P(SPEC), b"mine\n", seen="")):
        with pytest.raises(Refusal, match="was just changed by someone else"):
            run_transaction(ground.records / "one", ground.root, TITLE, [operation])
    assert (ground.root / SPEC).read_text() == "somebody else's\n" and not pending_transactions(ground.records)
    (ground.root / SPEC).unlink()
    with pytest.raises(Refusal, match="was just changed"):
        run_transaction(ground.records / "one", ground.root, TITLE, [WriteFile(P(SPEC), b"mine\n", seen=was)])
    run_transaction(ground.records / "one", ground.root, TITLE, [WriteFile(P(SPEC), b"mine\n", seen="")])
    assert (ground.root / SPEC).read_text() == "mine\n" and set(folder_contents(ground.root)) == set(before)

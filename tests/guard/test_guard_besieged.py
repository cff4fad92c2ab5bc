"""The guard when the agent goes for the guard itself, for names nobody can write, and for the copies."""

import os
import signal
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from agentd.guard.call_record import GuardResult, violation_finding
from agentd.guard.guard import Guard
from agentd.guard.scan import open_folder
from guard_project import OWN, GuardProject, finish, let_files_age, make_guard_project
from scenario import Scenario


@pytest.fixture
def yard(project: Scenario, tmp_path: Path) -> GuardProject:
    """As in real life: the guard's folder lies in the local room."""
    yard = make_guard_project(project, tmp_path)
    yard.folder = Path(yard.change.project.local_state_path("runs", "token", "guard"))
    return yard


EDIT = "Path('agentd/config.toml').write_text('mine'); Path('.git/hooks/pre-commit').write_text('evil')\n"
GONE = {
    "the room": ("shutil.rmtree('.git/agentd')", ".git/agentd", "deleted"),
    "the runs": ("shutil.rmtree('.git/agentd/runs')", ".git/agentd/runs/token/guard", "deleted"),
    "a link for the room": (
        "shutil.rmtree('.git/agentd'); os.mkdir('../outside'); os.symlink('../../outside', '.git/agentd')",
        ".git/agentd",
        "deleted",
    ),
    "a link for the runs": (
        "os.rename('.git/agentd/runs', '../outside'); os.symlink('../../../outside', '.git/agentd/runs')",
        ".git/agentd/runs/token/guard",
        "changed",
    ),
    "a file for the folder": (
        "p = '.git/agentd/runs/token/guard'; shutil.rmtree(p); Path(p).write_text('x')",
        ".git/agentd/runs/token/guard",
        "deleted",
    ),
    "call.json": ("os.unlink('.git/agentd/runs/token/guard/call.json')", ".git/agentd/runs/token/guard", "deleted"),
    "folders for files": (
        "for n in ('store', 'mirror.json'): p = f'.git/agentd/runs/token/guard/{n}'; os.unlink(p); os.mkdir(p)",
        ".git/agentd/runs/token/guard",
        "changed",
    ),
}


@pytest.mark.parametrize("name", GONE)
def test_deleting_the_guards_files_does_not_prevent_the_restore(yard: GuardProject, name: str, tmp_path: Path) -> None:
    code, path, what = GONE[name]
    before = yard.everything()
    guard = yard.guard()
    yard.agent(EDIT + code)
    assert guard.is_open
    outside = sorted((tmp_path / "outside").rglob("*"))
    watched = guard.after()
    assert yard.everything() == before
    assert [(one.path, one.what) for one in watched.put_back] == [
        (path, what),
        (".git/hooks/pre-commit", "created"),
        ("agentd/config.toml", "changed"),
    ]
    own, hook, config = watched.put_back
    assert own.kept == ""
    assert (yard.kept(hook).read_text(), yard.kept(config).read_text()) == ("evil", "mine")
    assert sorted((tmp_path / "outside").rglob("*")) == outside, "nothing is written through a link"
    later = yard.guard(call=False)
    assert later.is_open
    assert later.finish_cut(None) == watched, "another process can tell it too"
    guard.close()
    assert not yard.guard(call=False).is_open
    assert yard.watched("pass") == GuardResult()


def test_deleted_local_state_is_reported(yard: GuardProject) -> None:
    [finish] = yard.watched("shutil.rmtree('.git/agentd')").put_back
    found = violation_finding(finish, "codex")
    assert found.title == ".git/agentd was deleted by codex, which may not do that"
    assert "put back as it was" not in found.what
    assert "journal and transcripts" in found.what


def test_deleted_local_state_is_detected_during_agentds_own_write(yard: GuardProject) -> None:
    before = yard.everything()
    guard = yard.guard()
    yard.agent(EDIT + "shutil.rmtree('.git/agentd')")
    with guard.own_write(yard.change.folder / "STATE.yaml"):
        assert yard.guard(call=False).is_open, "killed here, a later run goes on"
    assert [one.path for one in yard.guard(call=False).finish_cut(None).put_back] == [
        ".git/agentd",
        ".git/hooks/pre-commit",
        "agentd/config.toml",
    ]
    assert yard.everything() == before


def test_kept_copies_are_not_written_through_a_planted_symlink(yard: GuardProject, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    code = "shutil.rmtree('.git/agentd/kept', True); os.symlink('../../../outside', '.git/agentd/kept')\n"
    [trespass] = yard.watched(code + "Path('agentd/config.toml').write_text('mine')").put_back
    assert yard.kept(trespass).read_text() == "mine"
    assert not list((tmp_path / "outside").iterdir())


def test_agentds_own_write_does_not_follow_a_planted_symlink(yard: GuardProject, tmp_path: Path) -> None:
    before = yard.everything()
    guard = yard.guard()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "STATE.yaml").write_text("precious")
    yard.agent(f"os.rename('{OWN}', '../stolen'); os.symlink({str(outside)!r}, '{OWN}')")
    with guard.own_write(yard.change.folder / "STATE.yaml"):
        yard.change.update(lambda old: replace(old, description="ours"))
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("STATE.yaml", "precious")]
    paths = {one.path for one in finish(guard).put_back}
    assert f"{OWN}/STATE.yaml" in paths
    assert yard.change.read().description == "ours"
    assert set(yard.everything()) == set(before)


def test_path_cannot_leave_its_root(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(OSError, match="out of its root"), open_folder(str(tmp_path / "in"), "../in"):
        pass


# Names


def test_non_utf8_names_are_restored_and_reported_escaped(yard: GuardProject) -> None:
    code = "open(b'agentd/changes/other/\\xff\\n\\x1b.md', 'w').write('evil')\nopen(b'src/\\xfe.py', 'w').write('x')"
    guard = yard.guard(judge=True)
    yard.agent(code)
    watched = finish(guard)
    name = r"agentd/changes/other/\xff\u000A\u001B.md"
    [trespass] = watched.put_back
    assert (trespass.path, trespass.kept.rpartition("tree/")[2]) == (name, name)
    assert watched.changed == (name, r"src/\xfe.py")
    assert not os.path.exists(b"agentd/changes/other/\xff\n\x1b.md")
    kept = os.fsencode(yard.box.root / ".git/agentd/kept/add-oauth")
    assert [names for _, _, names in os.walk(kept) if names] == [[b"\xff\n\x1b.md"]]
    finding = replace(violation_finding(trespass, "codex"), id="G1")
    yard.change.update(lambda old: replace(old, findings=(finding,)))
    assert yard.change.read().findings == (finding,)


# Told until it is recorded


def test_restored_files_are_reported_until_recorded_and_restored_only_once(yard: GuardProject) -> None:
    guard = yard.guard(judge=True)
    yard.agent("Path('agentd/config.toml').write_text('mine'); Path('src/app.py').write_text('1')")
    watched = guard.after()
    assert watched.changed == ("agentd/config.toml", "src/app.py")
    assert guard.is_open
    (yard.box.root / "agentd/config.toml").write_text("a person's\n")
    assert guard.after() == watched
    later = yard.guard(call=False)
    assert later.finish_cut(None) == watched, "as if agentd was killed before it wrote the findings"
    assert (yard.box.root / "agentd/config.toml").read_text() == "a person's\n"
    later.close()
    assert not later.is_open
    assert yard.guard(call=False).finish_cut(None) == GuardResult()


CUT = """
import resource, signal, sys
from pathlib import Path
from agentd.change import open_change
from agentd.guard import Guard
from agentd.project import find_project
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # a file that grows too large is the end
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
Guard(open_change(find_project(), "add-oauth"), Path(sys.argv[1])).finish_cut(None)
"""


def test_guard_killed_during_the_restore_reports_everything_later(yard: GuardProject) -> None:
    (yard.box.root / "agentd/big.bin").write_bytes(bytes(400_000))
    before = yard.everything()
    yard.guard()
    code = "shutil.rmtree('agentd/archive'); Path('agentd/big.bin').unlink(); Path('agentd/specs/auth.md').unlink()"
    yard.agent(code)
    assert yard.box.python(CUT, str(yard.folder)).code == -signal.SIGXFSZ
    assert (yard.box.root / "agentd/archive").exists(), "it had begun"
    assert not (yard.box.root / "agentd/specs/auth.md").exists(), "it had not ended"
    found = yard.guard(call=False).finish_cut(None).put_back
    assert sorted(one.path for one in found) == ["agentd/archive", "agentd/big.bin", "agentd/specs/auth.md"]
    assert yard.everything() == before, "and nothing half done"


# Copies


def test_guard_files_are_readable_only_by_their_owner(yard: GuardProject) -> None:
    yard.guard()
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in yard.folder.iterdir()} == {
        "call.json": 0o600,
        "mirror.json": 0o600,
        "store": 0o600,
    }


FORGE = "p = Path('.git/agentd/runs/token/guard/store'); p.write_bytes(p.read_bytes().replace(b'# Auth', b'# Evil'))\n"


def test_committed_version_is_restored_when_the_copy_was_forged(yard: GuardProject) -> None:
    found = yard.watched(FORGE + "Path('agentd/specs/auth.md').write_text('mine')").put_back
    assert [(one.path, one.what) for one in found] == [
        (".git/agentd/runs/token/guard", "changed"),
        ("agentd/specs/auth.md", "changed"),
    ]
    assert (yard.box.root / "agentd/specs/auth.md").read_text() == "# Auth\n"
    assert "tampered with, so the committed version" in violation_finding(found[1], "codex").what


def test_file_with_a_forged_copy_and_no_commit_is_kept_and_reported(yard: GuardProject) -> None:
    hook = yard.box.root / ".git/hooks/commit-msg"
    hook.write_text("# Auth\n")
    found = yard.watched(FORGE + "Path('.git/hooks/commit-msg').write_text('mine')").put_back
    assert found[1][:3] == (".git/hooks/commit-msg", "changed", "")
    assert hook.read_text() == "mine"
    assert "could not be put back, because its copy was tampered with" in violation_finding(found[1], "codex").what


def test_tampered_copies_are_not_used_for_the_next_call(yard: GuardProject) -> None:
    yard.watched(FORGE)
    [finish] = yard.watched("Path('agentd/specs/auth.md').write_text('mine')").put_back
    assert (finish.path, finish.note) == ("agentd/specs/auth.md", "")
    assert (yard.box.root / "agentd/specs/auth.md").read_text() == "# Auth\n"


def test_forged_snapshot_table_is_ignored(yard: GuardProject) -> None:
    code = (
        "import json; p = Path('.git/agentd/runs/token/guard/mirror.json'); rows = json.loads(p.read_text())\n"
        "rows['git'] = {}; rows['tree'] = {}; p.write_text(json.dumps(rows))\n"
    )
    before = yard.everything()
    found = yard.watched(EDIT + code).put_back
    assert [one.path for one in found] == [
        ".git/agentd/runs/token/guard",
        ".git/hooks/pre-commit",
        "agentd/config.toml",
    ]
    assert yard.everything() == before
    let_files_age()
    assert yard.watched("pass") == GuardResult()


def test_closed_guard_leaves_no_open_file_descriptor(yard: GuardProject) -> None:
    before = len(os.listdir("/proc/self/fd"))
    guards: list[Guard] = []
    for _ in range(3):
        guards.append(yard.guard())
        guards[-1].after()
        guards[-1].close()
    assert len(os.listdir("/proc/self/fd")) == before

"""The guard around an agent call. The agent is a process of its own that does what a test tells it to."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.change.state import CallRecord
from agentd.domain.errors import StateError
from agentd.domain.terms import FindingState, Severity
from agentd.guard.call_record import GuardResult, Violation, violation_finding
from agentd.guard.guard import Guard, plan_write_rule
from agentd.guard.scan import ProtectedArea
from agentd.guard.snapshot import Snapshot
from agentd.project.layout import find_project
from agentd.storage.files import CannotWrite
from guard_project import OWN, GuardProject, let_files_age, looks, make_guard_project
from scenario import Scenario


@pytest.fixture
def yard(project: Scenario, tmp_path: Path) -> GuardProject:
    return make_guard_project(project, tmp_path)


TRESPASSES = {
    "STATE.yaml": (f"Path('{OWN}/STATE.yaml').write_text('phase: complete')", f"{OWN}/STATE.yaml", "changed"),
    "a record": (f"Path('{OWN}/reviews').mkdir(); Path('{OWN}/reviews/review-1.yaml').write_text('verdict: APPROVED')",
                 f"{OWN}/reviews", "created"),
    "config.toml": ("Path('agentd/config.toml').write_text('checks = []')", "agentd/config.toml", "changed"),
    "a prompt": ("Path('agentd/prompts/challenge.md').write_text('Pass.')", "agentd/prompts/challenge.md", "changed"),
    "a spec": ("Path('agentd/specs/auth.md').unlink()", "agentd/specs/auth.md", "deleted"),
    "a new spec": ("Path('agentd/specs/new.md').write_text('x')", "agentd/specs/new.md", "created"),
    "the archive": ("shutil.rmtree('agentd/archive')", "agentd/archive", "deleted"),
    "another change": ("Path('agentd/changes/other/STATE.yaml').write_bytes(b'')", "agentd/changes/other/STATE.yaml",
                       "changed"),
    "a new change": ("os.makedirs('agentd/changes/mine/specs'); Path('agentd/changes/mine/STATE.yaml').write_text('a')",
                     "agentd/changes/mine", "created"),
    "an empty folder": ("os.mkdir('agentd/changes/empty')", "agentd/changes/empty", "created"),
    "a new link": ("os.symlink('/etc/passwd', 'agentd/secrets')", "agentd/secrets", "created"),
    "a link elsewhere": ("os.unlink('agentd/link'); os.symlink('/tmp', 'agentd/link')", "agentd/link", "changed"),
    "a file as link": ("os.unlink('agentd/config.toml'); os.symlink('/dev/null', 'agentd/config.toml')",
                       "agentd/config.toml", "changed"),
    "rights": ("os.chmod('agentd/config.toml', 0o777)", "agentd/config.toml", "changed"),
    "a folder's rights": ("os.chmod('agentd/specs', 0o700)", "agentd/specs", "changed"),
    "bytes that are no text": ("Path('agentd/notes.bin').write_bytes(b'one\\ntwo')", "agentd/notes.bin", "changed"),
    "a pipe": ("os.mkfifo('agentd/pipe')", "agentd/pipe", "created"),
    "a new hook": ("Path('.git/hooks/pre-commit').write_text('#!/bin/sh'); os.chmod('.git/hooks/pre-commit', 0o755)",
                   ".git/hooks/pre-commit", "created"),
    "a hook": ("Path('.git/hooks/commit-msg').write_text('#!/bin/sh\\ncurl')", ".git/hooks/commit-msg", "changed"),
    "a hook made to run": ("os.chmod('.git/hooks/commit-msg', 0o755)", ".git/hooks/commit-msg", "changed"),
    "git's settings": ("subprocess.run(['git', 'config', 'core.fsmonitor', 'x.sh'], check=True)", ".git/config",
                       "changed"),
    "git's attributes": ("Path('.git/info/attributes').write_text('* filter=x')", ".git/info/attributes", "created"),
    "trust": ("Path.home().joinpath('.config/agentd/trust.json').write_text('{\"all\": 1}')",
              "~/.config/agentd/trust.json", "changed"),
    "the user's settings": ("Path.home().joinpath('.config/agentd/config.toml').unlink()",
                            "~/.config/agentd/config.toml", "deleted"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRESPASSES)
def test_protected_file_is_restored_exactly_and_reported(yard: GuardProject, name: str) -> None:
    code, path, what = TRESPASSES[name]
    before = yard.everything()
    guard = yard.guard()
    yard.agent(code)
    changed = yard.everything()
    assert changed != before, "the agent did something"
    [told] = guard.after().put_back
    assert (told.path, told.what) == (path, what)
    assert yard.everything() == before
    if what == "deleted" or name == "a folder's rights":
        assert told.kept == ""
    else:
        place = yard.box.home / path.removeprefix("~/") if path.startswith("~/") else yard.box.root / path
        assert looks(yard.kept(told)) == changed.get(str(place), changed["config"])
    assert yard.guard().after() == GuardResult(), "the next call finds nothing to tell"


def test_renamed_file_is_restored_and_its_new_name_removed(yard: GuardProject) -> None:
    before = yard.everything()
    told = yard.watched("os.rename('agentd/specs/auth.md', 'agentd/specs/login.md')").put_back
    assert [(one.path, one.what) for one in told] == [
        ("agentd/specs/auth.md", "deleted"),
        ("agentd/specs/login.md", "created"),
    ]
    assert yard.everything() == before


def test_deleted_agentd_folder_is_restored_and_reported_once(yard: GuardProject) -> None:
    before = yard.everything()
    [told] = yard.watched("shutil.rmtree('agentd')").put_back
    assert told == Violation("agentd", "deleted", "")
    assert yard.everything() == before


def test_folder_replaced_by_a_symlink_is_restored_without_touching_the_target(
    yard: GuardProject, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "auth.md").write_text("a stranger's\n")
    before = yard.everything()
    [told] = yard.watched(f"shutil.rmtree('agentd/specs'); os.symlink({str(outside)!r}, 'agentd/specs')").put_back
    assert (told.path, told.what) == ("agentd/specs", "changed")
    assert yard.everything() == before
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("auth.md", "a stranger's\n")]
    assert os.readlink(yard.kept(told)) == str(outside)


def test_file_replaced_by_a_folder_is_restored_and_the_folder_kept(yard: GuardProject) -> None:
    before = yard.everything()
    code = "os.unlink('agentd/config.toml'); os.makedirs('agentd/config.toml/deep'); "
    [told] = yard.watched(code + "Path('agentd/config.toml/deep/x').write_bytes(b'1')").put_back
    assert (told.path, told.what) == ("agentd/config.toml", "changed")
    assert yard.everything() == before
    assert (yard.kept(told) / "deep/x").read_bytes() == b"1"


def test_extremely_deep_folder_is_moved_away_whole(yard: GuardProject) -> None:
    before = yard.everything()
    code = "os.chdir('agentd')\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')\nPath('x').write_text('x')"
    try:
        [told] = yard.watched(code).put_back
        assert told.path == "agentd/d"
        assert yard.everything() == before
        assert yard.kept(told).joinpath(*["d"] * 1499, "x").read_text() == "x"
    finally:  # pytest's own tidying does not go as deep
        subprocess.run(["rm", "-rf", "agentd/d", ".git/agentd/kept"], cwd=yard.box.root, check=True)


def test_new_folders_with_a_common_prefix_are_each_reported_once(yard: GuardProject) -> None:
    before = yard.everything()
    code = "for name in ('mine', 'mine-2', 'mine.'): os.makedirs(f'agentd/{name}/in'); open(f'agentd/{name}/in/a', 'w')"
    told = yard.watched(code).put_back
    assert [one.path for one in told] == ["agentd/mine", "agentd/mine-2", "agentd/mine."]
    assert yard.everything() == before
    assert [yard.kept(one).joinpath("in/a").exists() for one in told] == [True] * 3


def test_change_with_a_forged_mtime_is_detected(yard: GuardProject) -> None:
    code = "was = os.stat('agentd/config.toml'); Path('agentd/config.toml').write_text('schema_version = 2\\n'); "
    told = yard.watched(code + "os.utime('agentd/config.toml', ns=(was.st_atime_ns, was.st_mtime_ns))").put_back
    assert [one.path for one in told] == ["agentd/config.toml"]
    assert (yard.box.root / "agentd/config.toml").read_text() == "schema_version = 1\n"


def test_write_within_the_timestamp_resolution_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("schema_version = 1\n")
    area = ProtectedArea(str(tmp_path), (path.name,))
    Snapshot(tmp_path / "guard").take({"tree": area})
    path.write_text("schema_version = 2\n")
    # Many file systems tick every few milliseconds; where this one does not, its times are made to look like it.
    table = tmp_path / "guard/mirror.json"
    rows = json.loads(table.read_text())
    row, now = rows["tree"]["config.toml"], path.stat()
    row[1] = now.st_mtime_ns
    row[2] = row[2] and now.st_ctime_ns
    table.write_text(json.dumps(rows))
    later = Snapshot(tmp_path / "guard")
    assert later.load()
    assert [one.path for one in later.differences("tree", area)] == ["config.toml"]


def test_a_file_put_back_has_its_old_time(yard: GuardProject) -> None:
    path = yard.box.root / "agentd/config.toml"
    path.chmod(0o640)
    os.utime(path, ns=(10**18, 10**18))
    yard.watched("Path('agentd/config.toml').write_text('mine')")
    assert (path.stat().st_mtime_ns, path.stat().st_mode & 0o777) == (10**18, 0o640)


def test_touched_file_is_not_a_violation(yard: GuardProject) -> None:
    assert yard.watched("os.utime('agentd/config.toml'); os.link('agentd/config.toml', 'copy')") == GuardResult()


def test_file_that_cannot_be_restored_is_named_and_restored_by_a_later_run(yard: GuardProject) -> None:
    big = yard.box.root / "agentd/big.bin"
    big.write_bytes(bytes(400_000))
    guard = yard.guard()
    yard.agent("Path('agentd/big.bin').unlink(); Path('agentd/specs/auth.md').unlink()")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        with pytest.raises(StateError, match=r"could not be put back: agentd/big.bin \(File too large\)$") as stop:
            guard.after()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert stop.value.exit_code == 6
    assert (yard.box.root / "agentd/specs/auth.md").read_text() == "# Auth\n", "the others are put back all the same"
    assert not list((yard.box.root / "agentd").glob(".*.tmp"))
    found = yard.guard(call=False).finish_cut(None).put_back
    assert [one.path for one in found] == ["agentd/specs/auth.md", "agentd/big.bin"], "none goes untold"
    assert big.read_bytes() == bytes(400_000)


def test_full_disk_does_not_prevent_removing_created_files(yard: GuardProject) -> None:
    guard = yard.guard()
    yard.agent("Path('.git/hooks/pre-push').write_text('x')")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(CannotWrite):
            guard.after()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (yard.box.root / ".git/hooks/pre-push").exists()
    assert [one.path for one in guard.after().put_back] == [".git/hooks/pre-push"]


def test_violation_is_a_high_finding_that_names_the_kept_copy(yard: GuardProject) -> None:
    [told] = yard.watched("Path('agentd/config.toml').write_text('mine')").put_back
    found = violation_finding(told, "codex")
    assert (found.severity, found.state, found.by, found.verified) == (
        Severity.HIGH,
        FindingState.OPEN,
        "agentd:guard",
        True,
    )
    assert found.where == "agentd/config.toml"
    assert found.title == "agentd/config.toml was changed by codex, which may not do that"
    assert told.kept in found.what


# What defines a check


def test_files_run_by_a_check_are_protected(yard: GuardProject) -> None:
    box = yard.box
    box.write("check.sh", "exit 1\n").chmod(0o755)
    box.write("scripts/lint.sh", "exit 1\n")
    box.write("tools/run.py", "1 / 0\n")
    box.write("sub/Makefile", "test:\n\tfalse\n")
    code = (
        "for name in ('check.sh', 'scripts/lint.sh', 'tools/run.py', 'sub/Makefile'): Path(name).write_text('true')\n"
        "Path('sub/GNUmakefile').write_text('test:'); os.mkdir('out'); Path('out/log.txt').write_text('ok')"
    )
    checks = (
        "> out/log.txt ./check.sh --all 2>&1",
        "FAST=1 bash -e scripts/lint.sh && python tools/run.py",
        "cd sub && make",
    )
    told = yard.watched(code, *checks).put_back
    assert [one.path for one in told] == [
        "check.sh",
        "scripts/lint.sh",
        "sub/GNUmakefile",
        "sub/Makefile",
        "tools/run.py",
    ]
    assert not (box.root / "sub/GNUmakefile").exists()
    assert (box.root / "check.sh").stat().st_mode & 0o777 == 0o755


def test_check_script_is_restored_when_its_folder_became_a_symlink(yard: GuardProject, tmp_path: Path) -> None:
    yard.box.write("scripts/lint.sh", "exit 1\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    code = f"shutil.rmtree('scripts'); os.symlink({str(outside)!r}, 'scripts')"
    [told] = yard.watched(code, "bash scripts/lint.sh").put_back
    assert (told.path, told.what) == ("scripts/lint.sh", "deleted")
    assert (yard.box.root / "scripts/lint.sh").read_text() == "exit 1\n"
    assert not (yard.box.root / "scripts").is_symlink()
    assert list(outside.iterdir()) == []


def test_tests_and_files_named_by_tasks_may_be_edited(yard: GuardProject) -> None:
    yard.box.write("tests/test_x.py", "def test(): assert False\n")
    yard.box.write("a.test.js", "fail()\n")
    yard.box.write("Makefile", "test:\n")
    code = "for name in ('tests/test_x.py', 'a.test.js', 'Makefile', 'src/app.py'): Path(name).write_text('edited')"
    checks = ("python -m pytest tests/test_x.py", "node --test a.test.js", "make")
    assert yard.watched(code, *checks, may_edit=lambda path: path == "Makefile") == GuardResult()
    assert (yard.box.root / "Makefile").read_text() == "edited"


SECTIONS = [
    ("npm test", "package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "jest"}, "dependencies": {}}',
     '{"scripts": {"test": "true"}}'),
    ("uv run pytest -q", "pyproject.toml", "[project]\nname = 'a'\n[tool.pytest.ini_options]\naddopts = '-q'\n",
     "[project]\nname = 'a'\ndependencies = ['b']\n[tool.pytest.ini_options]\naddopts = '-q'\n",
     "[project]\nname = 'a'\n[tool.pytest.ini_options]\naddopts = '-q --deselect tests'\n"),
    ("python -m pytest", "setup.cfg", "[tool:pytest]\naddopts = -q\n",
     "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n", "[tool:pytest]\naddopts = -k nothing\n"),
    ("pytest", "tox.ini", "[pytest]\naddopts = -q\n", "[tox]\nenvlist = a\n[pytest]\naddopts = -q\n", "[tox]\n"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "name", "text", "honest", "bad"), SECTIONS, ids=[one[1] for one in SECTIONS])
def test_only_the_relevant_section_of_a_shared_file_is_protected(
    yard: GuardProject, command: str, name: str, text: str, honest: str, bad: str
) -> None:
    path = yard.box.write(name, text)
    assert yard.watched(f"Path({name!r}).write_text({honest!r})", command) == GuardResult()
    assert path.read_text() == honest
    for trespass in (bad, honest + "\n]]] not to be read"):
        [told] = yard.watched(f"Path({name!r}).write_text({trespass!r})", command).put_back
        assert (told.path, told.what) == (name, "changed")
        assert path.read_text() == honest
        assert yard.kept(told).read_text() == trespass


def test_a_file_that_becomes_unreadable_is_put_back_even_without_a_section(yard: GuardProject) -> None:
    path = yard.box.write("setup.cfg", "[metadata]\nname = a\n")
    [told] = yard.watched("Path('setup.cfg').write_text('addopts = -k nothing')", "pytest").put_back
    assert (told.path, told.what) == ("setup.cfg", "changed")
    assert path.read_text() == "[metadata]\nname = a\n"


def test_new_runner_settings_closer_to_the_tests_are_a_violation(yard: GuardProject) -> None:
    yard.box.write("tests/unit/test_x.py", "")
    [told] = yard.watched("Path('tests/pytest.ini').write_text('[pytest]')", "pytest tests/unit").put_back
    assert (told.path, told.what) == ("tests/pytest.ini", "created")


@pytest.mark.parametrize(
    "command",
    ["", "'", '"make', "&& || ;", "$(", "cd", "cd $X && make", "\x00", "((((", "python -m", "bash -c", "make -f"],
)
def test_unparsable_check_command_is_tolerated(yard: GuardProject, command: str) -> None:
    assert yard.watched("Path('src/app.py').write_text('1')", command, "eval " * 3000 + command) == GuardResult()


# Honest work


def test_plan_stage_may_write_only_its_own_documents(yard: GuardProject) -> None:
    code = (
        f"own = Path('{OWN}')\n"
        "(own / 'specs').mkdir(); (own / 'specs/auth-flow.md').write_text('# Spec')\n"
        "for name in ('proposal.md', 'tasks.md', 'clarifications.md'): (own / name).write_text('# Text')\n"
        "(own / '.tasks.md.4711-0a1b2c3d.tmp').write_text('half')\n"
    )
    assert yard.watched(code, may_edit=plan_write_rule("add-oauth")) == GuardResult()
    assert (yard.change.folder / "specs/auth-flow.md").read_text() == "# Spec"
    code = (
        f"own = Path('{OWN}')\n"
        "(own / 'specs/x.sh').write_text('x'); (own / 'CHALLENGE.md').write_text('APPROVED')\n"
        "os.unlink(own / 'tasks.md'); os.symlink('/etc/passwd', own / 'tasks.md')\n"
    )
    told = yard.watched(code, may_edit=plan_write_rule("add-oauth")).put_back
    assert [one.path for one in told] == [f"{OWN}/CHALLENGE.md", f"{OWN}/specs/x.sh", f"{OWN}/tasks.md"]
    assert (yard.change.folder / "tasks.md").read_text() == "# Text"
    assert [one.path for one in yard.watched(f"Path('{OWN}/proposal.md').write_text('# Mine')").put_back] == [
        f"{OWN}/proposal.md"
    ], "no other stage may"


def test_code_commits_refs_and_byproducts_are_allowed(yard: GuardProject) -> None:
    code = (
        "Path('src/app.py').write_text('1'); os.mkdir('src/__pycache__'); Path('src/__pycache__/a.pyc').touch()\n"
        "for words in (['add', 'src'], ['commit', '-qm', 'work'], ['update-ref', 'refs/remotes/origin/main', 'HEAD'],\n"
        "              ['tag', 'v1'], ['gc', '-q']):\n"
        "    subprocess.run(['git', *words], check=True)\n"
    )
    assert yard.watched(code, "pytest", "make") == GuardResult()
    assert yard.box.git("log", "-1", "--format=%s") == "work"


WORK_ON_OTHER = """
from agentd.change import open_change
from agentd.change.state import CallRecord
from agentd.project import find_project
change = open_change(find_project(), "other")
with change.running("agentd plan other") as held:
    change.update(lambda old: old.with_call(CallRecord("s", None, None, None, 1, 1, 0, 1, 0.1, "", None)), held.token)
    (change.folder / "proposal.md").write_text("# Other")
"""
CREATE = "from agentd.change import create_change; from agentd.project import find_project\n" + (
    "create_change(find_project(), 'brand-new', 'A thing')"
)
DROP = "from agentd.change import drop_change, open_change; from agentd.project import find_project\n" + (
    "drop_change(open_change(find_project(), 'other'), 'person:dev', 'not wanted')"
)


@pytest.mark.parametrize("work", [WORK_ON_OTHER, CREATE, DROP], ids=["a run", "a new change", "a drop"])
def test_concurrent_work_on_another_change_is_left_alone(yard: GuardProject, work: str) -> None:
    before = yard.everything()
    assert yard.watched(work) == GuardResult()
    after = yard.everything()
    assert after != before
    [told] = yard.watched("Path('agentd/config.toml').write_text('x')").put_back
    assert told.path == "agentd/config.toml"
    assert yard.everything() == after


def test_an_own_run_under_way_excuses_no_trespass(yard: GuardProject) -> None:
    with yard.change.running("agentd plan add-oauth"):
        [told] = yard.watched(f"Path('{OWN}/STATE.yaml').write_text('phase: complete')").put_back
    assert told.path == f"{OWN}/STATE.yaml"


def test_other_run_killed_during_the_call_is_left_alone(yard: GuardProject) -> None:
    hold = (
        WORK_ON_OTHER
        + "    print('ready', flush=True); input(); (change.folder / 'tasks.md').write_text('x'); print(1)\n"
    )
    hold += "    import sys; sys.stdout.flush(); input()\n"
    other = subprocess.Popen(
        [sys.executable, "-c", hold], cwd=yard.box.root, env=yard.box.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdin and other.stdout
    try:
        assert other.stdout.readline() == b"ready\n"
        let_files_age()
        guard = yard.guard()
        other.stdin.write(b"\n")
        other.stdin.flush()
        assert other.stdout.readline() == b"1\n"
    finally:
        other.kill()
        other.communicate()
    assert guard.after() == GuardResult()
    assert (yard.box.root / "agentd/changes/other/tasks.md").read_text() == "x"


def test_specs_merged_by_another_changes_archive_are_kept(yard: GuardProject) -> None:
    archive = DROP + "\nfrom pathlib import Path; Path('agentd/specs/auth.md').write_text('merged')"
    assert yard.watched(archive) == GuardResult()
    assert (yard.box.root / "agentd/specs/auth.md").read_text() == "merged"
    [told] = yard.watched("Path('agentd/specs/auth.md').write_text('mine')").put_back
    assert told.path == "agentd/specs/auth.md"


def test_agentds_own_write_is_kept_but_an_agents_earlier_edit_is_not(
    yard: GuardProject,
) -> None:
    path = yard.change.folder / "STATE.yaml"
    guard = yard.guard(judge=True)
    yard.agent(f"p = Path('{OWN}/STATE.yaml'); p.write_text(p.read_text().replace('Let people', 'Let nobody'))")
    call = CallRecord("challenge", "codex", None, None, 1, 1, 0, 1, 0.1, "", "session-1")
    with guard.own_write(path):
        yard.change.update(lambda old: old.with_call(call))
    watched = guard.after()
    [told] = watched.put_back
    assert (told.path, told.what) == (f"{OWN}/STATE.yaml", "changed")
    assert watched.changed == (f"{OWN}/STATE.yaml",)
    assert "Let nobody" in yard.kept(told).read_text()
    state = yard.change.read()
    assert (state.description, state.llm_calls) == ("Let people sign in", (call,))

    guard = yard.guard(judge=True)
    with guard.own_write(path):
        yard.change.update(lambda old: old.with_call(call))
    assert guard.after() == GuardResult()
    guard = yard.guard()
    with guard.own_write(path):
        yard.change.update(lambda old: old.with_call(call))
    yard.agent(f"p = Path('{OWN}/STATE.yaml'); p.write_text('')")
    assert [one.path for one in guard.after().put_back] == [f"{OWN}/STATE.yaml"]
    assert len(yard.change.read().llm_calls) == 3


# Judges and HEAD


def test_judge_that_changes_nothing_passes(yard: GuardProject) -> None:
    code = "os.mkdir('src/__pycache__'); Path('src/__pycache__/a.pyc').write_text('x'); os.utime('src/app.py')"
    assert yard.watched(code, judge=True) == GuardResult()


def test_all_files_changed_by_a_judge_are_named_and_protected_ones_restored(yard: GuardProject) -> None:
    code = "Path('src/app.py').write_text('1'); Path('new file.txt').write_text('x'); os.unlink('README.md'); "
    watched = yard.watched(code + "Path('agentd/config.toml').write_text('x')", judge=True)
    assert watched.changed == ("README.md", "agentd/config.toml", "new file.txt", "src/app.py")
    assert [one.path for one in watched.put_back] == ["agentd/config.toml"]
    assert (yard.box.root / "src/app.py").read_text() == "1", "a person may be editing"


MOVES = {
    "on the branch else": ["switch", "-q", "-c", "else"],
    "detached": ["switch", "-q", "--detach"],
}


@pytest.mark.parametrize("where", MOVES)
def test_head_moved_during_a_call_stops_with_both_names(yard: GuardProject, where: str) -> None:
    code = f"Path('{OWN}/STATE.yaml').write_text('mine'); subprocess.run(['git', *{MOVES[where]}], check=True)"
    guard = yard.guard()
    yard.agent(code)
    with pytest.raises(StateError, match=f"HEAD was on the branch main before .* and is {where} after it") as stop:
        guard.after()
    assert stop.value.exit_code == 6
    assert stop.value.hint.startswith("git switch main,")
    assert "STATE.yaml" in stop.value.message
    assert yard.change.read().description == "Let people sign in", "an edit is not carried over"


def test_files_of_another_branch_are_not_overwritten(yard: GuardProject) -> None:
    box = yard.box
    box.git("switch", "-q", "-c", "bare")
    box.git("rm", "-rq", "agentd/prompts")
    box.commit("no prompts")
    box.git("switch", "-q", "main")
    guard = yard.guard()
    code = "subprocess.run(['git', 'switch', '-q', 'bare'], check=True); Path('agentd/config.toml').write_text('mine')"
    yard.agent(code + "; Path('.git/hooks/pre-push').write_text('x')")
    with pytest.raises(StateError, match=r"is on the branch bare after it \(put back: .git/hooks/pre-push\)"):
        guard.after()
    assert not (box.root / "agentd/prompts").exists()
    mark = yard.folder.parent / "ended"
    mark.touch()
    let_files_age()
    box.git("switch", "-q", "main")
    found = yard.guard(call=False).finish_cut(mark).put_back
    assert [one.path for one in found] == [".git/hooks/pre-push", "agentd/config.toml"], "what was carried over too"
    assert (box.root / "agentd/config.toml").read_text() == "schema_version = 1\n"


# A run that was killed


def test_later_run_restores_files_of_a_killed_call_and_keeps_the_users_edits(yard: GuardProject) -> None:
    yard.guard("make", judge=True)
    yard.agent(
        "Path('agentd/config.toml').write_text('mine'); os.unlink('agentd/specs/auth.md')\n"
        "os.makedirs('agentd/new/in'); Path('agentd/new/a').touch()\n"
        "Path('Makefile').write_text('test:'); Path('src/app.py').write_text('1')"
    )
    mark = yard.folder.parent / "ended"
    mark.touch()
    let_files_age()
    (yard.box.root / "agentd/prompts/challenge.md").write_text("A person's words.\n")
    (yard.box.root / "agentd/archive/20260101-old/proposal.md").unlink()
    (yard.box.root / "agentd/new/in/b").write_text("a person's")
    (yard.box.root / "README.md").write_text("a person's")
    guard = yard.guard(call=False)
    watched = guard.finish_cut(mark)
    assert [(one.path, one.what) for one in watched.put_back] == [
        ("Makefile", "created"),
        ("agentd/config.toml", "changed"),
        ("agentd/new/a", "created"),
        ("agentd/specs/auth.md", "deleted"),
    ]
    assert "src/app.py" in watched.changed and "README.md" not in watched.changed
    assert (yard.box.root / "agentd/prompts/challenge.md").read_text() == "A person's words.\n"
    assert not (yard.box.root / "agentd/archive/20260101-old/proposal.md").exists()
    assert [path.name for path in (yard.box.root / "agentd/new").rglob("*")] == ["in", "b"]
    guard.close()
    assert yard.guard(call=False).finish_cut(mark) == GuardResult(), "once is enough"


@pytest.mark.parametrize("old_mark", [True, False], ids=["of an earlier call", "none"])
def test_without_an_end_marker_all_later_changes_count_as_the_agents(yard: GuardProject, old_mark: bool) -> None:
    mark = yard.folder.parent / "ended"
    if old_mark:
        mark.parent.mkdir()
        mark.touch()
        time.sleep(0.2)
    yard.guard()
    yard.agent("Path('agentd/config.toml').write_text('mine')")
    assert [one.path for one in yard.guard(call=False).finish_cut(mark).put_back] == ["agentd/config.toml"]


def test_interrupted_planners_documents_are_not_a_violation(yard: GuardProject) -> None:
    yard.guard("make", may_edit=lambda path: path == "Makefile" or plan_write_rule("add-oauth")(path))
    yard.agent(
        f"own = Path('{OWN}'); (own / 'specs').mkdir(); (own / 'specs/a.md').write_text('a')\n"
        "(own / 'proposal.md').write_text('b'); (own / 'REVIEW.md').write_text('c'); Path('Makefile').write_text('a:')"
    )
    told = yard.guard(call=False).finish_cut(None).put_back
    assert [one.path for one in told] == [f"{OWN}/REVIEW.md"]
    assert (yard.change.folder / "specs/a.md").read_text() == "a"


def test_state_agentd_was_writing_when_killed_is_kept(yard: GuardProject) -> None:
    path = yard.change.folder / "STATE.yaml"
    with yard.guard().own_write(path):
        written = path.read_bytes() + b"more: 1\n"
        path.write_bytes(written)
        assert yard.guard(call=False).finish_cut(None) == GuardResult(), "as if it was killed here"
    assert path.read_bytes() == written


def test_completed_call_leaves_nothing_to_finish(yard: GuardProject) -> None:
    yard.watched("Path('agentd/config.toml').write_text('x')")
    (yard.box.root / "agentd/config.toml").write_text("a person's\n")
    assert yard.guard(call=False).finish_cut(None) == GuardResult()
    assert yard.guard(call=False).finish_cut(yard.folder / "no such mark") == GuardResult()
    assert (yard.box.root / "agentd/config.toml").read_text() == "a person's\n"


@pytest.mark.parametrize("name", ["call.json", "mirror.json"])
def test_unreadable_snapshot_stops_with_its_path(yard: GuardProject, name: str) -> None:
    yard.guard()
    (yard.folder / name).write_text("[")
    with pytest.raises(StateError, match=f"cannot be read .{yard.folder}"):
        yard.guard(call=False).finish_cut(None)


# Other shapes of repositories


def test_hooks_path_in_the_tree_is_guarded(
    yard: GuardProject,
) -> None:
    yard.box.write(".githooks/lib/common.sh", "exit 0\n")
    yard.box.git("config", "core.hooksPath", ".githooks")
    code = "Path('.githooks/lib/common.sh').write_text('x'); Path('.githooks/pre-push').write_text('x')"
    told = yard.watched(code).put_back
    assert [one.path for one in told] == [".githooks/lib/common.sh", ".githooks/pre-push"]
    yard.box.git("config", "core.hooksPath", ".")
    code = "Path('pre-push').write_text('x'); Path('other.txt').write_text('x')"
    assert [one.path for one in yard.watched(code).put_back] == ["pre-push"]
    assert (yard.box.root / "other.txt").exists()


def test_linked_worktree_is_guarded(yard: GuardProject, tmp_path: Path) -> None:
    tree = tmp_path / "linked"
    yard.box.git("worktree", "add", "-q", "-b", "agentd/add-oauth", str(tree))
    folder = tree / OWN
    change = Change(yard.change.project, "add-oauth", str(tree), folder)
    guard = Guard(change, yard.folder, judge=True)
    guard.before()
    pointer = (tree / ".git").read_bytes()
    code = (
        f"tree = Path({str(tree)!r}); (tree / '.git').write_text('gitdir: /nowhere')\n"
        f"(tree / '{OWN}/STATE.yaml').unlink()\n"
        "Path('.git/worktrees/linked/config.worktree').write_text('[core]\\nfsmonitor = x')\n"
        "Path('agentd/config.toml').write_text('the one in force')\n"
    )
    yard.agent(code)
    told = guard.after().put_back
    assert [one.path for one in told] == [
        ".git/worktrees/linked/config.worktree",
        ".git",
        f"{OWN}/STATE.yaml",
        "../notes-service/agentd/config.toml",
    ]
    assert (tree / ".git").read_bytes() == pointer
    assert (folder / "STATE.yaml").is_file()
    assert not (yard.box.root / ".git/worktrees/linked/config.worktree").exists()
    assert (yard.box.root / "agentd/config.toml").read_text() == "schema_version = 1\n"


def test_paths_of_a_subfolder_project_are_reported_relative_to_it(
    box: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.write("services/api/agentd/config.toml", "schema_version = 1\n")
    box.write("agentd/config.toml.txt", "not a project\n")
    box.write("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-q'\n")
    box.commit("start")
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    monkeypatch.chdir(box.root / "services/api")
    change = lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")
    yard = GuardProject(box, change, tmp_path)
    code = (
        f"Path('{OWN}/STATE.yaml').write_text('x'); Path('../../pyproject.toml').write_text('')\n"
        f"Path('{OWN}/proposal.md').write_text('x'); Path('../../agentd/config.toml.txt').write_text('x')\n"
        "Path('Makefile').write_text('x'); Path('../web.txt').write_text('x')"
    )
    watched = yard.watched(code, "pytest", "make", judge=True, may_edit=plan_write_rule("add-oauth"))
    assert [one.path for one in watched.put_back] == ["../../pyproject.toml", "Makefile", f"{OWN}/STATE.yaml"]
    assert set(watched.changed) == {
        *(one.path for one in watched.put_back),
        "../../agentd/config.toml.txt",
        "../web.txt",
    }

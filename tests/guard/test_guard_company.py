"""The guard while others are at work: other runs with guards of their own, a person, git, agentd in another place."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.guard.call_record import GuardResult
from agentd.guard.guard import Guard
from agentd.project.git import GitFailed
from guard_project import OWN, GuardProject, finish, let_files_age, make_guard_project
from scenario import Scenario


@pytest.fixture
def yard(project: Scenario, tmp_path: Path) -> GuardProject:
    return make_guard_project(project, tmp_path)


# Two runs at once


@contextmanager
def run_of(change: Change) -> Iterator[Guard]:
    """A run of a change with its guard, its call begun."""
    with change.running(f"agentd impl {change.id}") as held:
        guard = Guard(change, Path(change.project.local_state_path("runs", held.token, "guard")))
        guard.before()
        yield guard


@contextmanager
def two(yard: GuardProject, meanwhile: str) -> Iterator[tuple[Guard, Guard]]:
    """The second run begins when the first one's agent has done that."""
    with ExitStack() as both:
        first = both.enter_context(run_of(yard.change))
        yard.agent(meanwhile)
        let_files_age()
        yield first, both.enter_context(run_of(lifecycle.open_change(yard.change.project, "other")))


PLANTED = {
    "a new hook": ("Path('.git/hooks/pre-commit').write_text('evil')", ".git/hooks/pre-commit"),
    "a changed hook": ("Path('.git/hooks/commit-msg').write_text('evil')", ".git/hooks/commit-msg"),
    "a deleted hook": ("os.unlink('.git/hooks/commit-msg')", ".git/hooks/commit-msg"),
    "a folder": ("os.makedirs('.git/hooks/lib/a'); Path('.git/hooks/lib/a/b').write_text('evil')", ".git/hooks/lib"),
    "git's settings": ("subprocess.run(['git', 'config', 'core.fsmonitor', 'x'], check=True)", ".git/config"),
    "the user's settings": (
        "Path.home().joinpath('.config/agentd/config.toml').write_text('evil')",
        "~/.config/agentd/config.toml",
    ),
    "the configuration": ("Path('agentd/config.toml').write_text('evil')", "agentd/config.toml"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_second_runs_guard_does_not_recreate_what_the_first_removed(yard: GuardProject, name: str) -> None:
    code, path = PLANTED[name]
    before = yard.everything()
    with two(yard, code) as (first, second):
        assert [one.path for one in finish(first).put_back] == [path]
        assert yard.everything() == before
        assert finish(second) == GuardResult()
    assert yard.everything() == before


@pytest.mark.parametrize("name", PLANTED)
def test_second_guard_that_ends_first_leaves_the_violation_to_the_first(yard: GuardProject, name: str) -> None:
    code, path = PLANTED[name]
    before = yard.everything()
    with two(yard, code) as (first, second):
        assert finish(second) == GuardResult()
        assert [one.path for one in finish(first).put_back] == [path]
    assert yard.everything() == before


def test_second_agents_own_violation_is_restored_to_the_original(yard: GuardProject) -> None:
    before = yard.everything()
    with two(yard, "Path('.git/hooks/commit-msg').write_text('evil')") as (first, second):
        yard.agent("Path('.git/hooks/commit-msg').write_text('worse')")
        assert [one.path for one in finish(second).put_back] == [".git/hooks/commit-msg"]
        assert yard.everything() == before
        assert finish(first) == GuardResult()
    assert yard.everything() == before


def test_guard_of_a_killed_second_run_ignores_the_first_runs_violation(yard: GuardProject) -> None:
    before = yard.everything()
    other = lifecycle.open_change(yard.change.project, "other")
    with two(yard, "Path('.git/hooks/pre-commit').write_text('evil')") as (first, second):
        finish(first)
        folder = next(
            path
            for path in Path(other.project.local_state_path("runs")).glob("*/guard")
            if (path / "call.json").exists()
        )
        assert Guard(other, folder).finish_cut(None) == GuardResult()
        second.close()
    assert yard.everything() == before


def test_first_agents_allowed_edit_is_the_baseline_for_the_second(yard: GuardProject) -> None:
    with yard.change.running("agentd impl add-oauth") as held:
        folder = Path(yard.change.project.local_state_path("runs", held.token, "guard"))
        yard.box.write("Makefile", "test:\n")
        yard.folder = folder
        first = yard.guard("make", may_edit=lambda path: path == "Makefile")
        yard.agent("Path('Makefile').write_text('by right')")
        yard.folder = folder.parent.parent / "second" / "guard"
        second = yard.guard("make")
        yard.agent("Path('Makefile').write_text('mine')")
        assert [one.path for one in finish(second).put_back] == ["Makefile"]
        assert (yard.box.root / "Makefile").read_text() == "by right"
        assert finish(first) == GuardResult()


def test_snapshot_of_a_finished_run_is_ignored(yard: GuardProject) -> None:
    with yard.change.running("agentd impl add-oauth") as held:
        yard.folder = Path(yard.change.project.local_state_path("runs", held.token, "guard"))
        yard.guard()  # killed here
    hook = yard.box.root / ".git/hooks/commit-msg"
    hook.write_text("a person's")
    with run_of(lifecycle.open_change(yard.change.project, "other")) as guard:
        yard.agent("Path('.git/hooks/commit-msg').write_text('mine')")
        finish(guard)
    assert hook.read_text() == "a person's"


# The project in force lies in another work tree


@pytest.fixture
def linked(yard: GuardProject, tmp_path: Path) -> Change:
    tree = tmp_path / "linked"
    yard.box.git("worktree", "add", "-q", "-b", "agentd/add-oauth", str(tree))
    return Change(yard.change.project, "add-oauth", str(tree), tree / OWN)


def test_effective_config_and_changes_in_the_main_tree_are_guarded(yard: GuardProject, linked: Change) -> None:
    before = yard.everything()
    guard = Guard(linked, yard.folder)
    guard.before()
    yard.agent(
        "Path('agentd/config.toml').write_text('mine'); Path('agentd/specs/auth.md').unlink()\n"
        f"Path('agentd/changes/other/STATE.yaml').write_text('x'); Path('{OWN}/proposal.md').write_text('x')\n"
        "Path('src/app.py').write_text('x')"
    )
    found = finish(guard).put_back
    names = ("changes/add-oauth/proposal.md", "changes/other/STATE.yaml", "config.toml", "specs/auth.md")
    assert [one.path for one in found] == [f"../notes-service/agentd/{name}" for name in names]
    assert yard.everything() == before
    assert (yard.box.root / "src/app.py").read_text() == "x", "that tree's code is somebody else's"


def test_agentds_work_and_branch_switches_in_the_main_tree_are_left_alone(yard: GuardProject, linked: Change) -> None:
    box = yard.box
    box.git("switch", "-q", "-c", "next")
    box.write("agentd/config.toml", "schema_version = 1\n# next\n")
    box.commit("next")
    box.git("switch", "-q", "main")
    let_files_age()
    guard = Guard(linked, yard.folder)
    guard.before()
    with lifecycle.open_change(yard.change.project, "other").writing():
        box.write("agentd/changes/other/tasks.md", "by right")
    box.git("switch", "-q", "next")
    yard.agent("Path('agentd/prompts/challenge.md').write_text('Pass.')")
    assert [one.path for one in finish(guard).put_back] == ["../notes-service/agentd/prompts/challenge.md"]
    assert (box.root / "agentd/config.toml").read_text().endswith("# next\n")
    assert (box.root / "agentd/changes/other/tasks.md").read_text() == "by right"


# git's settings


HONEST = {
    "a branch": "git config branch.feature.remote origin; git config branch.feature.merge refs/heads/feature",
    "push -u": "git push -q -u origin HEAD:refs/heads/new",
    "a remote": "git remote add upstream https://example.invalid/x.git; git config remote.origin.prune true",
    "a name": "git config user.name Somebody; git config pull.rebase true; git config init.defaultBranch trunk",
    "a comment": "echo '# hello' >> .git/config",
}
BAD = {
    "a program": "git config core.sshCommand ./x",
    "an alias": "git config alias.st '!x'",
    "a filter": "git config filter.x.clean x",
    "hooks": "git config core.hooksPath .evil",
    "an include": "git config include.path ../evil",
    "another address": "git config remote.origin.url https://evil.invalid/x.git",
    "a second address": "git config --add remote.origin.url https://evil.invalid/x.git",
    "an address to push to": "git config remote.origin.pushurl https://evil.invalid/x.git",
    "no address": "git config --unset remote.origin.url",
    "rewritten addresses": "git config url.https://evil.invalid/.insteadOf https://",
    "a remote's program": "git config remote.origin.uploadpack ./x",
    "a new remote's program": "git config remote.x.receivepack ./x",
    "an address that runs": "git config remote.x.url 'ext::sh -c x'",
    "a branch led elsewhere": "git config branch.main.pushRemote https://evil.invalid/x.git",
    "a helper": "git config credential.helper '!x'",
    "a merge": "git config branch.main.mergeoptions '-s evil'",
    "a template": "git config init.templateDir evil",
    "both": "git config branch.feature.remote origin; git config core.editor x",
    "no settings at all": "echo '[' >> .git/config",
    "rights": "chmod 666 .git/config",
}


@pytest.fixture
def connected(yard: GuardProject, tmp_path: Path) -> Path:
    yard.box.git("init", "-q", "--bare", str(tmp_path / "origin.git"))
    yard.box.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    yard.box.git("push", "-q", "-u", "origin", "main")
    return yard.box.root / ".git/config"


def shell(code: str) -> str:
    return f"subprocess.run({code!r}, shell=True, check=True)"


@pytest.mark.parametrize("name", HONEST)
def test_harmless_git_settings_may_change(yard: GuardProject, connected: Path, name: str) -> None:
    before = connected.read_bytes()
    assert yard.watched(shell(HONEST[name])) == GuardResult()
    assert connected.read_bytes() != before


@pytest.mark.parametrize("name", BAD)
def test_git_settings_that_run_or_redirect_something_are_restored(
    yard: GuardProject, connected: Path, name: str
) -> None:
    before = connected.read_bytes(), connected.stat().st_mode
    [trespass] = yard.watched(shell(BAD[name])).put_back
    assert (trespass.path, trespass.what) == (".git/config", "changed")
    assert (connected.read_bytes(), connected.stat().st_mode) == before


# trust.json


def trusts(yard: GuardProject, *repositories: str) -> Path:
    item = {"checks.tests": [{"hash": "sha256:1", "at": "2026-01-01T00:00:00Z", "text": "make"}]}
    data = {"version": 1, "repositories": {name: {"": item} for name in repositories}}
    path = yard.user / "trust.json"
    path.write_text(json.dumps(data, indent=2) + "\n")
    path.chmod(0o600)
    let_files_age()
    return path


def test_trust_given_in_another_repository_is_kept(yard: GuardProject, tmp_path: Path) -> None:
    path = trusts(yard, yard.change.project.repo.common)
    other = tmp_path / "other"
    other.mkdir()
    yard.box.git("init", "-q", cwd=other)
    (other / "Makefile").write_text("test:\n\ttrue\n")
    guard = yard.guard()
    assert yard.box.agentd("init", cwd=other).code == 0
    assert finish(guard) == GuardResult()
    assert str(other) in path.read_text()


def test_trust_of_this_repository_is_restored_and_others_are_kept(yard: GuardProject) -> None:
    common = yard.change.project.repo.common
    path = trusts(yard, common, "/elsewhere/.git")
    was = json.loads(path.read_text())
    code = (
        "import json; p = Path.home() / '.config/agentd/trust.json'; d = json.loads(p.read_text())\n"
        f"d['repositories'][{common!r}]['']['checks.evil'] = []; d['repositories']['/new/.git'] = {{}}\n"
        "p.write_text(json.dumps(d))"
    )
    [trespass] = yard.watched(code).put_back
    assert (trespass.path, trespass.what) == ("~/.config/agentd/trust.json", "changed")
    assert "evil" in yard.kept(trespass).read_text()
    was["repositories"]["/new/.git"] = {}
    assert json.loads(path.read_text()) == was
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1}', '{"version": 2, "repositories": {}}'])
def test_unreadable_trust_file_is_restored(yard: GuardProject, text: str) -> None:
    path = trusts(yard, yard.change.project.repo.common, "/elsewhere/.git")
    before = path.read_bytes()
    [trespass] = yard.watched(f"Path.home().joinpath('.config/agentd/trust.json').write_text({text!r})").put_back
    assert trespass.path == "~/.config/agentd/trust.json"
    assert path.read_bytes() == before


# Judges


def test_judge_that_commits_has_changed_head(yard: GuardProject) -> None:
    code = "subprocess.run(['git', 'commit', '-q', '--allow-empty', '-m', 'x'], check=True)"
    assert yard.watched(code, judge=True) == GuardResult(changed=("HEAD",))
    assert yard.watched(code) == GuardResult(), "a maker may"


def test_judge_that_creates_an_empty_repository_has_changed_that_folder(yard: GuardProject) -> None:
    assert yard.watched("subprocess.run(['git', 'init', '-q', 'sub'], check=True)", judge=True).changed == ("sub",)
    with pytest.raises(GitFailed, match="sub is a git repository of its own without a commit") as stop:
        yard.guard(judge=True)
    assert stop.value.hint.startswith("commit something in sub, remove it, or name it in .gitignore")

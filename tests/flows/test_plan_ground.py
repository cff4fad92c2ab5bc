"""What stands in the way of a branch or a work tree, or comes along: files, commits and branches, with real git."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.change.folder import read_state
from agentd.project.layout import find_project
from git_setups import BRANCH, begin, is_untouched, place, prepare_project
from playbooks import FOLDER
from scenario import Result, Scenario

AWKWARD = "größe und\nmaß *.txt"


def snapshot(tree: Path, box: Scenario) -> tuple[str, str, dict[str, bytes]]:
    """git's own view with the index to the byte of its entries, and every file that is not agentd's."""
    files = {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }
    own = {name: text for name, text in files.items() if not name.startswith(FOLDER)}
    status = box.git("status", "--porcelain=v2", "-z", "--untracked-files=all", "--", ".", f":!{FOLDER}", cwd=tree)
    return status, box.git("ls-files", "--stage", "-z", cwd=tree), own


def dirty(box: Scenario) -> None:
    """One of everything that a tree can have that is not in its last commit."""
    for name in ("modified", "staged", "both", "deleted", "removed", "renamed"):
        box.write(f"src/{name}.py", f"{name}\n")
    box.commit("before")
    box.write("src/modified.py", "changed\r\nwithout an end")
    box.write("src/staged.py", "staged anew\n")
    box.write("src/both.py", "in the index\n")
    box.git("add", "src/staged.py", "src/both.py")
    box.write("src/both.py", "in the tree\n")
    (box.root / "src/deleted.py").unlink()
    box.git("rm", "-q", "src/removed.py")
    box.git("mv", "src/renamed.py", "src/another name.py")
    box.write(AWKWARD, "untracked\n")
    (box.root / "src/data.bin").write_bytes(b"\x00\xff")


def refused(ran: Result, code: int = 3) -> str:
    assert ran.code == code, ran.out + ran.err
    return str(ran.json["error"]["message"])


# ---- files that are not committed


def test_branch_carries_uncommitted_changes_unchanged(project: Scenario) -> None:
    prepare_project(project)
    dirty(project)
    before = snapshot(project.root, project)
    assert begin(project, "branch").code == 0
    assert project.git("branch", "--show-current") == BRANCH
    assert snapshot(project.root, project) == before


def test_worktree_refuses_uncommitted_files_unless_allow_dirty(project: Scenario) -> None:
    prepare_project(project)
    dirty(project)
    before = snapshot(project.root, project)
    words = refused(begin(project, "worktree", "--json"))
    assert words.startswith("a worktree starts from the last commit, without src/another name.py, src/both.py")
    assert words.endswith(" and 4 more") and is_untouched(project)
    assert begin(project, "worktree", "--allow-dirty").code == 0
    assert snapshot(project.root, project) == before
    own = project.git("status", "--porcelain", "--untracked-files=all", cwd=project.worktree()).splitlines()
    assert own and all(line.startswith(f"?? {FOLDER}/") for line in own)


@pytest.mark.parametrize("name", [AWKWARD, "-x", 'a "quoted" name'])
def test_unusual_file_name_is_quoted_verbatim(project: Scenario, name: str) -> None:
    prepare_project(project)
    project.write(name)
    assert name in refused(begin(project, "worktree", "--json"))


def test_dirty_submodule_is_refused_by_worktree_and_carried_by_branch(project: Scenario, tmp_path: Path) -> None:
    prepare_project(project)
    library = Scenario(tmp_path / "library", tmp_path / "home")
    library.write("lib.py", "one\n")
    library.commit("library")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "library")
    project.commit("with a library")
    project.write("library/lib.py", "two\n")
    assert "without library" in refused(begin(project, "worktree", "--json"))
    assert begin(project, "branch").code == 0
    assert (project.root / "library/lib.py").read_text() == "two\n"


def test_agentds_own_files_never_count_as_dirty(project: Scenario) -> None:
    prepare_project(project)
    project.write("agentd/changes/another/proposal.md", "somebody is writing\n")
    project.write("agentd/archive/20260101-old/tasks.md", "not committed\n")
    assert begin(project, "worktree").code == 0
    assert not (project.worktree() / "agentd/changes/another").exists()


# ---- agentd/ that is not committed


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_uncommitted_agentd_folder_is_refused_with_the_commit_command(project: Scenario, way: str) -> None:
    prepare_project(project)
    gone, awkward = project.write("agentd/specs/gone.md", "x\n"), "agentd/*.md"  # as a pattern it is the one below, too
    project.write("agentd/specs/removed.md", "x\n")
    another = project.write("agentd/changes/another/proposal.md")
    project.commit("specs")
    gone.unlink()
    project.git("rm", "-q", "agentd/specs/removed.md")
    project.write(awkward, "new\n")
    another.write_text("somebody is writing\n")
    project.write("agentd/specs/staged.md", "new\n")
    project.git("add", "agentd/specs/staged.md")
    if way == "branch":
        project.write("src/other.py", "staged by a person\n")
        project.git("add", "src/other.py")
    stopped = begin(project, way, "--json")
    assert f"a {way} needs agentd/ committed, and git lacks" in refused(stopped) and is_untouched(project)
    command, _, then = stopped.hint.partition(", then ")
    assert then == "run the command again (or add --git in-place)"
    project.paste(command, project.root / "src")
    names = project.git("show", "--format=", "--name-only", "-z", "HEAD").split("\0")
    assert project.git("log", "-1", "--format=%s") == "Set up agentd"
    assert sorted(names)[1:] == sorted([awkward, *(f"agentd/specs/{one}.md" for one in ("gone", "removed", "staged"))])
    rest = project.git("status", "--porcelain").split("\n")
    assert rest == ["M agentd/changes/another/proposal.md", *(["A  src/other.py"] if way == "branch" else [])]
    assert begin(project, way).code == 0


def test_branch_before_the_first_commit_is_refused_with_the_commit_command(
    box: Scenario, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The configuration is there, and git knows nothing yet; the path has a space in it."""
    own = Scenario(tmp_path / "my notes", tmp_path / "home")
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, own.env[name])
    monkeypatch.chdir(own.root)
    prepare_project(own)
    shutil.rmtree(own.root / ".git")
    own.git("init", "-q")
    stopped = begin(own, "branch", "--trust", "--json")
    assert "agentd/config.toml" in refused(stopped)
    own.paste(stopped.hint.partition(", then ")[0], own.root / "src")
    assert own.git("ls-files", "--", ":!agentd") == ""
    begun = begin(own, "branch", "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, "main")


def test_in_place_needs_no_commit(box: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    monkeypatch.chdir(box.root)
    prepare_project(box)
    shutil.rmtree(box.root / ".git")
    box.git("init", "-q")
    begun = begin(box, "in-place", "--trust", "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, "main")
    assert box.agentd("status", "add-oauth").code == 0


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_ignored_agentd_folder_is_reported_separately(project: Scenario, way: str) -> None:
    prepare_project(project)
    project.git("rm", "-rq", "--cached", "agentd")
    project.write(".gitignore", "/agentd/\n")
    project.commit("ours alone")
    stopped = begin(project, way, "--json")
    assert refused(stopped) == f"a {way} needs agentd/ committed, and a .gitignore hides it from git"
    assert is_untouched(project)
    assert begin(project, "in-place").code == 0


# ---- branches


def test_existing_branch_with_own_commits_is_not_touched(project: Scenario) -> None:
    prepare_project(project)
    project.git("switch", "-qc", BRANCH)
    project.write("src/kept.py", "kept\n")
    tip = project.commit("somebody's")
    project.git("switch", "-q", "main")
    for way in ("branch", "worktree"):
        stopped = begin(project, way, "--json")
        assert refused(stopped) == f"the branch {BRANCH} already exists and has commits of its own"
        assert stopped.hint.endswith(f"git log {BRANCH} shows its commits")
    assert project.git("rev-parse", BRANCH) == tip and not project.worktree().exists()


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_existing_branch_without_own_commits_is_reused(project: Scenario, way: str) -> None:
    prepare_project(project)
    project.git("branch", BRANCH)
    project.write("src/later.py", "later\n")
    tip = project.commit("later")
    assert begin(project, way).code == 0
    assert project.git("rev-parse", BRANCH) == tip


def test_branch_checked_out_elsewhere_is_left_there(project: Scenario) -> None:
    prepare_project(project)
    project.git("worktree", "add", "-q", "-b", BRANCH, "../elsewhere")
    elsewhere = project.root.with_name("elsewhere")
    for way in ("branch", "worktree"):
        stopped = begin(project, way, "--json")
        assert refused(stopped) == f"{BRANCH} is checked out in {elsewhere}"
        assert stopped.hint == f"run the command in {elsewhere} with --git branch"
    assert begin(project, "branch", cwd=elsewhere).code == 0
    assert place(elsewhere).tree == "../elsewhere"


def test_existing_folder_at_the_worktree_path_is_not_touched(project: Scenario) -> None:
    prepare_project(project)
    project.worktree().mkdir(parents=True)
    (project.worktree() / "mine").write_text("mine")
    stopped = begin(project, "worktree", "--json")
    assert refused(stopped) == f"{project.worktree()} already exists and is not a worktree of {BRANCH}"
    assert os.listdir(project.worktree()) == ["mine"]


def test_branch_named_agentd_can_be_renamed_with_the_printed_command(project: Scenario) -> None:
    prepare_project(project)
    project.git("branch", "agentd")
    for way in ("branch", "worktree"):
        stopped = begin(project, way, "--json")
        assert refused(stopped) == f"a branch is named agentd, so git cannot create {BRANCH}"
    project.paste(stopped.hint.partition(", then ")[0])
    assert begin(project, "worktree").code == 0


@pytest.mark.parametrize("way", ["branch", "worktree", "in-place"])
def test_change_started_from_a_detached_head_has_no_target(project: Scenario, way: str) -> None:
    prepare_project(project)
    project.git("switch", "-q", "--detach")
    begun = begin(project, way, "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, None)
    assert "begins from" not in begun.err
    assert project.agentd("status", "add-oauth").code == 0


# ---- what else is in the tree


def test_branch_is_not_switched_in_a_tree_with_an_active_run(project: Scenario) -> None:
    prepare_project(project)
    with lifecycle.create_change(find_project(), "first", "Sort the notes").running("agentd plan first"):
        stopped = begin(project, "branch", "--json")
        assert refused(stopped, 5) == "first is being worked on in this tree, so its branch cannot be switched"
        assert stopped.hint == "agentd wait first, or add --git worktree"
        assert project.git("branch", "--show-current") == "main"
        assert begin(project, "worktree").code == 0


def test_another_change_cannot_take_over_a_changes_worktree(project: Scenario) -> None:
    prepare_project(project)
    assert begin(project, "worktree").code == 0
    own = project.worktree()
    second = ("proposal", "second", "Sort the notes", "--skip-clarify", "--json", "--git")
    stopped = project.agentd(*second, "branch", cwd=own)
    assert refused(stopped) == "this is the worktree of add-oauth, and another branch here would take its place"
    assert project.git("branch", "--show-current", cwd=own) == BRANCH
    project.commit("documents", cwd=own)
    project.agentd(*second, "worktree", cwd=own)
    assert place_of(project.worktree("second"), "second") == ("worktree", "agentd/second", BRANCH)
    assert [one["change_id"] for one in project.agentd("list", "--json", cwd=own).json["changes"]] == [
        "second",
        "add-oauth",
    ]


def place_of(tree: Path, change_id: str) -> tuple[str, str | None, str | None]:
    found = read_state(tree / "agentd/changes" / change_id).git
    return found.setup, found.branch, found.target


def test_merge_in_progress_is_refused_by_git(project: Scenario) -> None:
    prepare_project(project)
    for branch, text in (("theirs", "1\n"), ("main", "2\n")):
        project.git(*(("switch", "-qc", branch) if branch == "theirs" else ("switch", "-q", branch)))
        project.write("src/notes.py", text)
        project.commit(branch)
    subprocess.run(["git", "merge", "theirs"], cwd=project.root, env=project.env, capture_output=True, check=False)
    assert "cannot switch branch while merging" in refused(begin(project, "branch", "--json"))
    assert "src/notes.py" in refused(begin(project, "worktree", "--json"))
    assert is_untouched(project) and (project.root / ".git/MERGE_HEAD").exists()


@pytest.mark.parametrize("lock", ["HEAD.lock", "refs/heads/agentd/add-oauth.lock"])
def test_git_failure_is_quoted_and_the_same_command_works_later(project: Scenario, lock: str) -> None:
    prepare_project(project)
    held = project.write(f".git/{lock}")
    stopped = begin(project, "branch", "--json")
    assert lock in refused(stopped)
    assert project.git("branch", "--show-current") == "main" and not (project.root / FOLDER).exists()
    held.unlink()
    begun = begin(project, "branch", "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, "main")

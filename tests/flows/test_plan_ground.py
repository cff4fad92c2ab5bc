"""What stands in the way of a branch or a work tree, or comes along: files, commits and branches, with real git."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentd.change import entry
from agentd.change.folder import read_state
from agentd.project import find_project
from placed import BRANCH, OWN, begin, hint, nothing_made, paste, place, ready, tree_of
from support import Box, Ran

AWKWARD = "größe und\nmaß *.txt"


def snapshot(tree: Path, box: Box) -> tuple[str, str, dict[str, bytes]]:
    """git's own view with the index to the byte of its entries, and every file that is not agentd's."""
    files = {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }
    own = {name: text for name, text in files.items() if not name.startswith(OWN)}
    status = box.git("status", "--porcelain=v2", "-z", "--untracked-files=all", "--", ".", f":!{OWN}", cwd=tree)
    return status, box.git("ls-files", "--stage", "-z", cwd=tree), own


def dirty(box: Box) -> None:
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


def refused(ran: Ran, code: int = 3) -> str:
    assert ran.code == code, ran.out + ran.err
    return str(ran.json["error"]["message"])


# ---- files that are not committed


def test_a_branch_takes_along_what_is_not_committed_to_the_byte(project: Box) -> None:
    ready(project)
    dirty(project)
    before = snapshot(project.root, project)
    assert begin(project, "branch").code == 0
    assert project.git("branch", "--show-current") == BRANCH
    assert snapshot(project.root, project) == before


def test_a_work_tree_is_refused_what_it_would_lack_by_name_or_leaves_it(project: Box) -> None:
    ready(project)
    dirty(project)
    before = snapshot(project.root, project)
    words = refused(begin(project, "worktree", "--json"))
    assert words.startswith("a work tree begins from the last commit, without src/another name.py, src/both.py")
    assert words.endswith(" and 4 more") and nothing_made(project)
    assert begin(project, "worktree", "--allow-dirty").code == 0
    assert snapshot(project.root, project) == before
    own = project.git("status", "--porcelain", "--untracked-files=all", cwd=tree_of(project)).splitlines()
    assert own and all(line.startswith(f"?? {OWN}/") for line in own)


@pytest.mark.parametrize("name", [AWKWARD, "-x", 'a "quoted" name'])
def test_an_awkward_name_is_named_as_it_is(project: Box, name: str) -> None:
    ready(project)
    project.write(name)
    assert name in refused(begin(project, "worktree", "--json"))


def test_a_submodule_that_is_dirty_counts_and_comes_along(project: Box, tmp_path: Path) -> None:
    ready(project)
    library = Box(tmp_path / "library", tmp_path / "home")
    library.write("lib.py", "one\n")
    library.commit("library")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "library")
    project.commit("with a library")
    project.write("library/lib.py", "two\n")
    assert "without library" in refused(begin(project, "worktree", "--json"))
    assert begin(project, "branch").code == 0
    assert (project.root / "library/lib.py").read_text() == "two\n"


def test_agentds_own_files_never_count_as_dirty(project: Box) -> None:
    ready(project)
    project.write("agentd/changes/another/proposal.md", "somebody is writing\n")
    project.write("agentd/archive/20260101-old/tasks.md", "not committed\n")
    assert begin(project, "worktree").code == 0
    assert not (tree_of(project) / "agentd/changes/another").exists()


# ---- agentd/ that is not committed


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_an_agentd_folder_that_is_not_committed_needs_one_command(project: Box, way: str) -> None:
    ready(project)
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
    assert f"a {way} needs agentd/ committed, and git lacks" in refused(stopped) and nothing_made(project)
    command, _, then = hint(stopped).partition(", then ")
    assert then == "run the command again (or add --git in-place)"
    paste(project, command, project.root / "src")
    names = project.git("show", "--format=", "--name-only", "-z", "HEAD").split("\0")
    assert project.git("log", "-1", "--format=%s") == "Set up agentd"
    assert sorted(names)[1:] == sorted([awkward, *(f"agentd/specs/{one}.md" for one in ("gone", "removed", "staged"))])
    rest = project.git("status", "--porcelain").split("\n")
    assert rest == ["M agentd/changes/another/proposal.md", *(["A  src/other.py"] if way == "branch" else [])]
    assert begin(project, way).code == 0


def test_before_the_first_commit(box: Box, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The configuration is there, and git knows nothing yet; the path has a space in it."""
    own = Box(tmp_path / "my notes", tmp_path / "home")
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, own.env[name])
    monkeypatch.chdir(own.root)
    ready(own)
    shutil.rmtree(own.root / ".git")
    own.git("init", "-q")
    stopped = begin(own, "branch", "--trust", "--json")
    assert "agentd/config.toml" in refused(stopped)
    paste(own, hint(stopped).partition(", then ")[0], own.root / "src")
    assert own.git("ls-files", "--", ":!agentd") == ""
    begun = begin(own, "branch", "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, "main")


def test_in_place_needs_no_commit_at_all(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    monkeypatch.chdir(box.root)
    ready(box)
    shutil.rmtree(box.root / ".git")
    box.git("init", "-q")
    begun = begin(box, "in-place", "--trust", "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, "main")
    assert box.agentd("status", "add-oauth").code == 0


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_an_agentd_folder_that_git_ignores_is_told_apart(project: Box, way: str) -> None:
    ready(project)
    project.git("rm", "-rq", "--cached", "agentd")
    project.write(".gitignore", "/agentd/\n")
    project.commit("ours alone")
    stopped = begin(project, way, "--json")
    assert refused(stopped) == f"a {way} needs agentd/ committed, and a .gitignore hides it from git"
    assert nothing_made(project)
    assert begin(project, "in-place").code == 0


# ---- branches


def test_a_branch_with_commits_of_its_own_is_not_touched(project: Box) -> None:
    ready(project)
    project.git("switch", "-qc", BRANCH)
    project.write("src/kept.py", "kept\n")
    tip = project.commit("somebody's")
    project.git("switch", "-q", "main")
    for way in ("branch", "worktree"):
        stopped = begin(project, way, "--json")
        assert refused(stopped) == f"the branch {BRANCH} is there already and has commits of its own"
        assert hint(stopped).endswith(f"git log {BRANCH}")
    assert project.git("rev-parse", BRANCH) == tip and not tree_of(project).exists()


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_a_branch_with_nothing_of_its_own_is_taken(project: Box, way: str) -> None:
    ready(project)
    project.git("branch", BRANCH)
    project.write("src/later.py", "later\n")
    tip = project.commit("later")
    assert begin(project, way).code == 0
    assert project.git("rev-parse", BRANCH) == tip


def test_a_branch_that_is_checked_out_elsewhere_is_left_there(project: Box) -> None:
    ready(project)
    project.git("worktree", "add", "-q", "-b", BRANCH, "../elsewhere")
    elsewhere = project.root.with_name("elsewhere")
    for way in ("branch", "worktree"):
        stopped = begin(project, way, "--json")
        assert refused(stopped) == f"{BRANCH} is checked out in {elsewhere}"
        assert hint(stopped) == f"run the command in {elsewhere} with --git branch"
    assert begin(project, "branch", cwd=elsewhere).code == 0
    assert place(elsewhere).tree == "../elsewhere"


def test_a_folder_in_the_way_is_not_touched(project: Box) -> None:
    ready(project)
    tree_of(project).mkdir(parents=True)
    (tree_of(project) / "mine").write_text("mine")
    stopped = begin(project, "worktree", "--json")
    assert refused(stopped) == f"{tree_of(project)} is there already, and is no work tree of {BRANCH}"
    assert os.listdir(tree_of(project)) == ["mine"]


def test_a_branch_called_agentd_is_renamed_by_what_is_printed(project: Box) -> None:
    ready(project)
    project.git("branch", "agentd")
    for way in ("branch", "worktree"):
        stopped = begin(project, way, "--json")
        assert refused(stopped) == f"a branch is called agentd, so git can make none called {BRANCH}"
    paste(project, hint(stopped).partition(", then ")[0])
    assert begin(project, "worktree").code == 0


@pytest.mark.parametrize("way", ["branch", "worktree", "in-place"])
def test_a_detached_head_is_a_beginning_without_a_target(project: Box, way: str) -> None:
    ready(project)
    project.git("switch", "-q", "--detach")
    begun = begin(project, way, "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, None)
    assert "begins from" not in begun.err
    assert project.agentd("status", "add-oauth").code == 0


# ---- what else is in the tree


def test_a_tree_that_a_run_works_in_stays_on_its_branch(project: Box) -> None:
    ready(project)
    with entry.create(find_project(), "first", "Sort the notes").running("agentd plan first"):
        stopped = begin(project, "branch", "--json")
        assert refused(stopped, 5) == "first is being worked on in this tree, so its branch cannot be switched"
        assert hint(stopped) == "agentd wait first, or add --git worktree"
        assert project.git("branch", "--show-current") == "main"
        assert begin(project, "worktree").code == 0


def test_in_the_work_tree_of_a_change_no_other_takes_its_place(project: Box) -> None:
    ready(project)
    assert begin(project, "worktree").code == 0
    own = tree_of(project)
    second = ("proposal", "second", "Sort the notes", "--skip-clarify", "--json", "--git")
    stopped = project.agentd(*second, "branch", cwd=own)
    assert refused(stopped) == "this is the work tree of add-oauth, and another branch here would take its place"
    assert project.git("branch", "--show-current", cwd=own) == BRANCH
    project.commit("documents", cwd=own)
    project.agentd(*second, "worktree", cwd=own)
    assert place_of(tree_of(project, "second"), "second") == ("worktree", "agentd/second", BRANCH)
    assert [one["change_id"] for one in project.agentd("list", "--json", cwd=own).json["changes"]] == [
        "second",
        "add-oauth",
    ]


def place_of(tree: Path, change_id: str) -> tuple[str, str | None, str | None]:
    found = read_state(tree / "agentd/changes" / change_id).git
    return found.setup, found.branch, found.target


def test_a_merge_under_way_is_gits_to_refuse(project: Box) -> None:
    ready(project)
    for branch, text in (("theirs", "1\n"), ("main", "2\n")):
        project.git(*(("switch", "-qc", branch) if branch == "theirs" else ("switch", "-q", branch)))
        project.write("src/notes.py", text)
        project.commit(branch)
    subprocess.run(["git", "merge", "theirs"], cwd=project.root, env=project.env, capture_output=True, check=False)
    assert "cannot switch branch while merging" in refused(begin(project, "branch", "--json"))
    assert "src/notes.py" in refused(begin(project, "worktree", "--json"))
    assert nothing_made(project) and (project.root / ".git/MERGE_HEAD").exists()


@pytest.mark.parametrize("lock", ["HEAD.lock", "refs/heads/agentd/add-oauth.lock"])
def test_what_git_cannot_do_is_told_in_its_words_and_done_by_the_same_command_later(project: Box, lock: str) -> None:
    ready(project)
    held = project.write(f".git/{lock}")
    stopped = begin(project, "branch", "--json")
    assert lock in refused(stopped)
    assert project.git("branch", "--show-current") == "main" and not (project.root / OWN).exists()
    held.unlink()
    begun = begin(project, "branch", "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, "main")

"""Reading git's layout: linked work trees, bare repositories, submodules, and what is no repository."""

import os
from pathlib import Path

import pytest

from agentd.domain.errors import NoGit
from agentd.project import git
from scenario import Scenario


def test_missing_git_repository_suggests_git_init(tmp_path: Path) -> None:
    with pytest.raises(NoGit) as caught:
        git.find_repository(str(tmp_path))
    assert (caught.value.exit_code, caught.value.hint) == (3, "git init")


def test_layout_matches_what_git_reports(box: Scenario, tmp_path: Path) -> None:
    box.write("a")
    box.commit()
    box.git("worktree", "add", "-q", "-b", "side", "../side")
    box.git("worktree", "add", "-q", "--detach", "../loose")
    for place in (box.root, tmp_path / "side", tmp_path / "loose"):
        (place / "deep").mkdir()
        repo = git.find_repository(str(place / "deep"))
        top, common = box.git("rev-parse", "--show-toplevel", "--git-common-dir", cwd=place).split("\n")
        assert repo == git.Repository(top, os.path.realpath(place / common), str(box.root))
        assert git.worktrees(repo) == [
            git.Worktree(str(box.root), "main"),
            git.Worktree(str(tmp_path / "loose"), None),
            git.Worktree(str(tmp_path / "side"), "side"),
        ]


@pytest.mark.parametrize("name", ["project.git", ".bare"])
def test_bare_repository_has_no_main_tree(box: Scenario, tmp_path: Path, name: str) -> None:
    box.write("a")
    box.commit()
    bare = tmp_path / "bare"
    bare.mkdir()
    box.git("clone", "-q", "--bare", str(box.root), str(bare / name))
    (bare / ".git").write_text(f"gitdir: ./{name}\n")
    box.git("worktree", "add", "-q", str(bare / "main"), "main", cwd=bare / name)
    repo = git.find_repository(str(bare / "main"))
    assert repo == git.Repository(str(bare / "main"), str(bare / name), str(bare))
    assert git.worktrees(repo) == [git.Worktree(str(bare / "main"), "main")]


def test_submodule_is_a_separate_repository(box: Scenario, tmp_path: Path) -> None:
    inner = Scenario(tmp_path / "inner", tmp_path / "home")
    inner.write("a")
    inner.commit()
    box.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "vendor")
    repo = git.find_repository(str(box.root / "vendor"))
    assert repo.top == repo.main == str(box.root / "vendor")
    assert git.worktrees(repo) == [git.Worktree(str(box.root / "vendor"), "main")]


def test_worktree_of_a_moved_repository_suggests_git_worktree_repair(box: Scenario, tmp_path: Path) -> None:
    box.write("a")
    box.commit()
    box.git("worktree", "add", "-q", "../side")
    box.root.rename(tmp_path / "moved")
    with pytest.raises(NoGit) as caught:
        git.find_repository(str(tmp_path / "side"))
    assert "git worktree repair" in (caught.value.hint or "")


def test_branch_is_asked_of_git_when_head_is_a_placeholder(
    box: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reftable format leaves a placeholder in HEAD; a git of that kind answers on PATH."""
    (box.root / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$3" = "symbolic-ref" ] && echo refs/heads/trunk\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert git.worktrees(git.find_repository(str(box.root))) == [git.Worktree(str(box.root), "trunk")]


def test_git_failure_message_quotes_git(project: Scenario) -> None:
    with pytest.raises(git.GitFailed, match=r"git rev-parse nonsense: .*unknown revision"):
        git.run(str(project.root), "rev-parse", "nonsense")


def test_git_dir_from_a_hook_is_ignored(project: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert git.head_commit(str(project.root))

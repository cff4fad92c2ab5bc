"""A change whose branch is left, whose work tree is gone, or which is dropped: what agentd says, typed, is enough."""

import os
import shutil
from pathlib import Path

import pytest

from git_setups import BRANCH, begin, prepare_project
from playbooks import FOLDER
from scenario import Scenario


def lost(box: Scenario, *command: str, cwd: Path | None = None) -> str:
    """What to type, as the command says it."""
    ran = box.agentd(*(command or ("status", "add-oauth")), "--json", cwd=cwd)
    assert (ran.code, ran.json["error"]["code"]) == (1, "not-checked-out"), ran.out
    return ran.hint


def words(box: Scenario) -> str:
    return str(box.agentd("status", "add-oauth", "--json").json["error"]["message"])


# ---- a branch that is left


@pytest.mark.parametrize("is_committed", [True, False])
def test_change_on_a_branch_not_checked_out_names_git_switch(project: Scenario, is_committed: bool) -> None:
    prepare_project(project)
    assert begin(project, "branch").code == 0
    if is_committed:
        project.commit("documents")
    project.git("switch", "-q", "main")
    assert (project.root / FOLDER / "STATE.yaml").exists() is not is_committed
    for command in ("status", "validate", "cost", "plan", "challenge", "drop"):
        assert lost(project, command, "add-oauth", cwd=project.root / "src") == f"git switch {BRANCH}", command
    assert words(project) == f"add-oauth is on branch {BRANCH}, which is not checked out"
    assert f"git switch {BRANCH}\n" in project.agentd("view", "add-oauth").err
    listed = project.agentd("list", "--json").json["changes"]
    assert [(one["change_id"], one["next"]) for one in listed] == [("add-oauth", f"git switch {BRANCH}")]
    assert project.agentd("log", "add-oauth").code == 0  # the journal is in the local room
    project.paste(f"git switch {BRANCH}")
    assert project.agentd("challenge", "add-oauth").code == 0


def test_switch_command_from_another_worktree_targets_the_right_tree(project: Scenario) -> None:
    prepare_project(project)
    project.git("worktree", "add", "-q", "-b", "other", "../other")
    assert begin(project, "branch").code == 0
    project.commit("documents")
    project.git("switch", "-q", "main")
    other = project.root.with_name("other")
    what = lost(project, cwd=other)
    assert what == f"git -C ../notes-service switch {BRANCH}"
    project.paste(what, other)
    assert project.git("branch", "--show-current") == BRANCH
    assert project.agentd("status", "add-oauth", cwd=other).code == 0


def test_plan_with_a_description_does_not_restart_a_change_on_another_branch(project: Scenario) -> None:
    prepare_project(project)
    assert begin(project, "branch").code == 0
    project.git("switch", "-q", "main")
    for way in ("branch", "worktree", "in-place"):
        refused = begin(project, way, "--json")
        assert (refused.code, refused.hint) == (1, f"git switch {BRANCH}")
    assert project.git("branch", "--show-current") == "main"


# ---- a work tree that is gone


def gone(box: Scenario, how: str) -> None:
    if how == "removed":
        box.git("worktree", "remove", "--force", str(box.worktree()))
    else:
        shutil.rmtree(box.worktree())
    if how == "pruned":
        box.git("worktree", "prune")


@pytest.mark.parametrize("how", ["deleted", "pruned", "removed"])
def test_missing_worktree_is_restored_from_its_commits(project: Scenario, how: str) -> None:
    prepare_project(project)
    assert begin(project, "worktree").code == 0
    project.commit("documents", cwd=project.worktree())
    text = (project.worktree() / FOLDER / "proposal.md").read_text()
    (project.worktree() / FOLDER / "proposal.md").write_text("not committed")
    gone(project, how)
    what = f"git worktree add -f ../notes-service-agentd/add-oauth {BRANCH}"
    assert (
        words(project) == f"the worktree of add-oauth is missing (../notes-service-agentd/add-oauth, branch {BRANCH})"
    )
    assert [one["next"] for one in project.agentd("list", "--json").json["changes"]] == [what]
    assert lost(project, "plan", "add-oauth") == what
    project.paste(lost(project, cwd=project.root / "src"), project.root / "src")
    assert (project.worktree() / FOLDER / "proposal.md").read_text() == text
    assert project.agentd("challenge", "add-oauth").code == 0


@pytest.mark.parametrize("how", ["deleted", "removed"])
def test_missing_worktree_without_commits_is_reported_and_can_be_restarted(project: Scenario, how: str) -> None:
    prepare_project(project)
    assert begin(project, "worktree").code == 0
    gone(project, how)
    assert words(project).endswith(f"branch {BRANCH}), and nothing in it was committed")
    project.paste(lost(project))
    assert project.agentd("list", "--json").json["changes"] == []
    assert begin(project, "worktree").code == 0
    assert (project.worktree() / FOLDER / "proposal.md").is_file()


def test_moved_worktree_is_found(project: Scenario) -> None:
    prepare_project(project)
    assert begin(project, "worktree").code == 0
    moved = project.root.with_name("somewhere else")
    project.git("worktree", "move", str(project.worktree()), str(moved))
    for cwd in (project.root, moved, moved / "src"):
        assert project.agentd("status", "add-oauth", cwd=cwd).code == 0
        assert len(project.agentd("list", "--json", cwd=cwd).json["changes"]) == 1
    assert project.agentd("challenge", "add-oauth").code == 0
    assert (moved / FOLDER / "CHALLENGE.md").is_file() and not project.worktree().exists()
    dropped = project.agentd("drop", "add-oauth", "--yes", "--json")
    project.paste("\n".join(dropped.json["to_remove"]))
    assert not moved.exists()


# ---- dropped


def left(box: Scenario) -> tuple[list[str], int]:
    """The branches and the number of work trees."""
    branches = box.git("branch", "--format=%(refname:short)").split("\n")
    return branches, box.git("worktree", "list").count("\n") + 1


@pytest.mark.parametrize(
    ("where", "is_committed"),
    [("src", True), ("../other", False), ("../notes-service-agentd/add-oauth/src", True)],
)
def test_dropped_worktree_is_removed_by_the_printed_commands(project: Scenario, where: str, is_committed: bool) -> None:
    prepare_project(project)
    project.git("worktree", "add", "-q", "--detach", "../other")
    assert begin(project, "worktree").code == 0
    if is_committed:
        project.commit("documents", cwd=project.worktree())
    cwd = project.root / where
    dropped = project.agentd("drop", "add-oauth", "--yes", cwd=cwd)
    assert dropped.code == 0 and "including unmerged work:" in dropped.out
    assert len(list((project.worktree() / "agentd/archive").iterdir())) == 1  # until that is typed, all is there
    printed = [line.strip() for line in dropped.out.splitlines() if line.startswith("  ")]
    project.paste("\n".join(printed), cwd)
    assert left(project) == (["main"], 2)
    assert project.git("status", "--porcelain") == ""


@pytest.mark.parametrize(("where", "is_committed"), [("src", False), ("../other", True)])
def test_dropped_branch_is_removed_by_the_printed_commands(project: Scenario, where: str, is_committed: bool) -> None:
    prepare_project(project)
    project.git("worktree", "add", "-q", "--detach", "../other")
    assert begin(project, "branch").code == 0
    if is_committed:
        project.commit("documents")
    cwd = project.root / where
    dropped = project.agentd("drop", "add-oauth", "--yes", "--json", cwd=cwd)
    project.paste("\n".join(dropped.json["to_remove"]), cwd)
    assert left(project) == (["main"], 2)
    assert project.git("branch", "--show-current") == "main"
    assert len(os.listdir(project.root / "agentd/archive")) == 1  # what was not committed came along


def test_dropped_branch_without_a_target_is_left_for_a_detached_head(project: Scenario) -> None:
    prepare_project(project)
    project.git("switch", "-q", "--detach")
    begun = begin(project, "branch", "--json")
    assert (begun.code, begun.json["git"]["target"]) == (0, None)
    dropped = project.agentd("drop", "add-oauth", "--yes", "--json")
    assert dropped.json["to_remove"] == ["git switch --detach", f"git branch -D {BRANCH}"]
    project.paste("\n".join(dropped.json["to_remove"]))
    assert left(project)[0][-1] == "main" and BRANCH not in left(project)[0]


def test_dropped_branch_whose_target_is_checked_out_elsewhere_can_be_removed(project: Scenario) -> None:
    prepare_project(project)
    assert begin(project, "branch").code == 0
    project.git("worktree", "add", "-q", "../other", "main")
    dropped = project.agentd("drop", "add-oauth", "--yes", "--json")
    project.paste("\n".join(dropped.json["to_remove"]))
    assert BRANCH not in left(project)[0]


def test_dropped_change_that_was_merged_leaves_the_main_tree(project: Scenario) -> None:
    prepare_project(project)
    assert begin(project, "worktree").code == 0
    project.commit("documents", cwd=project.worktree())
    project.git("merge", "-q", BRANCH)
    project.git("worktree", "remove", str(project.worktree()))
    dropped = project.agentd("drop", "add-oauth", "--yes", "--json")
    assert dropped.json["to_remove"] == [f"git branch -D {BRANCH}"]
    project.paste(dropped.json["to_remove"][0])
    assert (project.root / "README.md").is_file()


def test_dropped_in_place_change_has_nothing_to_remove(project: Scenario) -> None:
    prepare_project(project)
    assert begin(project, "in-place").code == 0
    dropped = project.agentd("drop", "add-oauth", "--yes", "--json")
    assert dropped.json["to_remove"] == []
    assert "branch" not in project.agentd("drop", "add-oauth", "--yes").out

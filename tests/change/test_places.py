"""Finding and listing changes from anywhere in the repository: branches, work trees, sub-folders."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.change.lifecycle import ChangeStanding
from agentd.change.locator import ChangeLocator
from agentd.change.state import GitLocation
from agentd.domain.errors import BadId, ChangeNotFound, MissingDescription, NotCheckedOut
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import GitSetup
from agentd.project.layout import find_project
from plans import EXAMPLE
from scenario import Scenario


def branch_change(box: Scenario, name: str) -> None:
    box.git("switch", "-qc", f"agentd/{name}")
    lifecycle.create_change(
        find_project(), name, f"describe {name}", GitLocation(GitSetup.BRANCH, f"agentd/{name}", ".", "main")
    )


def worktree_change(box: Scenario, name: str) -> Path:
    tree = f"../notes-service-agentd/{name}"
    box.git("worktree", "add", "-q", "-b", f"agentd/{name}", tree)
    place = GitLocation(GitSetup.WORKTREE, f"agentd/{name}", tree, "main")
    lifecycle.create_change(find_project(), name, f"describe {name}", place)
    return (box.root / tree).resolve()


def ids(box: Scenario, cwd: Path) -> list[str]:
    ran = box.agentd("list", "--json", cwd=cwd)
    assert ran.code == 0, ran.err
    return [row["change_id"] for row in ran.json["changes"]]


def test_change_in_a_worktree_is_found_from_everywhere(project: Scenario) -> None:
    tree = worktree_change(project, "add-oauth")
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    project.write("src/deep/er/x.py")
    (tree / "sub folder").mkdir()
    for cwd in (project.root, project.root / "src/deep/er", tree, tree / "sub folder", tree / "agentd"):
        assert sorted(ids(project, cwd)) == ["add-oauth", "fix-typo"], cwd
        shown = project.agentd("status", "add-oauth", "--json", cwd=cwd)
        assert shown.json["git"]["tree"] == "../notes-service-agentd/add-oauth"
        assert shown.json["folder"] == "agentd/changes/add-oauth"
    assert not (project.root / "agentd/changes/add-oauth").exists()


def test_change_on_a_branch_that_is_not_checked_out_names_git_switch(project: Scenario) -> None:
    branch_change(project, "add-oauth")
    project.commit("the change")
    project.git("switch", "-q", "main")
    ran = project.agentd("status", "add-oauth")
    assert ran.code == 1
    assert "add-oauth is on branch agentd/add-oauth, which is not checked out" in ran.err
    assert "git switch agentd/add-oauth" in ran.err
    (row,) = project.agentd("list", "--json").json["changes"]
    assert (row["checked_out"], row["next"]) == (False, "git switch agentd/add-oauth")
    subprocess.run(row["next"].split(), cwd=project.root, env=project.env, check=True, capture_output=True)
    assert project.agentd("status", "add-oauth").code == 0


def test_change_is_still_found_without_local_state(project: Scenario) -> None:
    branch_change(project, "add-oauth")
    project.commit("the change")
    project.git("switch", "-q", "main")
    shutil.rmtree(project.root / ".git/agentd")
    assert ids(project, project.root) == ["add-oauth"]
    shutil.rmtree(project.root / ".git/agentd")
    assert "git switch agentd/add-oauth" in project.agentd("status", "add-oauth").err


def test_untracked_files_carried_to_another_branch_are_not_the_change(project: Scenario) -> None:
    branch_change(project, "add-oauth")  # nothing committed: git carries the folder along
    project.git("switch", "-q", "main")
    assert (project.root / "agentd/changes/add-oauth/STATE.yaml").exists()
    with pytest.raises(NotCheckedOut):
        ChangeLocator(find_project()).find("add-oauth")


def test_merged_change_is_found_on_the_target(project: Scenario) -> None:
    branch_change(project, "add-oauth")
    project.commit("the change")
    project.git("switch", "-q", "main")
    project.git("merge", "-q", "--ff-only", "agentd/add-oauth")
    assert ChangeLocator(find_project()).find("add-oauth").tree == str(project.root)
    project.git("branch", "-qD", "agentd/add-oauth")
    assert ChangeLocator(find_project()).find("add-oauth").tree == str(project.root)


def test_copy_in_a_newer_worktree_is_not_the_change(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    project.commit("the change")
    tree = worktree_change(project, "add-oauth")
    assert (tree / "agentd/changes/fix-typo").exists()
    found = ChangeLocator(find_project(str(tree))).find("fix-typo")
    assert found.tree == str(project.root)
    assert sorted(ids(project, tree)) == ["add-oauth", "fix-typo"]


def test_manually_deleted_worktree_is_reported_and_can_be_restored(project: Scenario) -> None:
    tree = worktree_change(project, "add-oauth")
    project.commit("the change", cwd=tree)
    shutil.rmtree(tree)
    ran = project.agentd("status", "add-oauth")
    assert ran.code == 1
    assert "the worktree of add-oauth is missing (../notes-service-agentd/add-oauth" in ran.err
    fix = "git worktree add -f ../notes-service-agentd/add-oauth agentd/add-oauth"
    assert fix in ran.err
    project.git(*fix.split()[1:])
    assert project.agentd("status", "add-oauth").code == 0


def test_hint_from_another_worktree_switches_the_branch_in_the_main_tree(project: Scenario) -> None:
    branch_change(project, "add-oauth")
    project.commit("the change")
    project.git("switch", "-q", "main")
    tree = worktree_change(project, "other")
    ran = project.agentd("status", "add-oauth", cwd=tree)
    assert "git -C ../../notes-service switch agentd/add-oauth" in ran.err


def test_in_place_change_is_found_after_switching_branches(project: Scenario) -> None:
    project.git("switch", "-qc", "feature")
    lifecycle.create_change(find_project(), "fix-typo", "in place", GitLocation(target="feature"))
    project.commit("the change")
    project.git("switch", "-q", "main")
    ran = project.agentd("status", "fix-typo")
    assert ran.code == 1 and "git switch feature" in ran.err


def test_manually_deleted_folder_is_removed_from_the_index(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    assert ids(project, project.root) == ["fix-typo"]
    shutil.rmtree(project.root / "agentd/changes/fix-typo")
    assert ids(project, project.root) == []
    assert "fix-typo" not in (project.root / ".git/agentd/index.json").read_text()


def test_worktree_without_the_project_uses_the_main_tree(project: Scenario) -> None:
    project.git("switch", "-q", "--orphan", "empty")
    project.git("commit", "-qm", "nothing", "--allow-empty")
    project.git("switch", "-q", "main")
    project.git("worktree", "add", "-q", "../old", "empty")
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    old = (project.root / "../old").resolve()
    assert not (old / "agentd").exists()
    assert ids(project, old) == ["fix-typo"]


def test_project_in_a_subfolder_keeps_its_own_changes(project: Scenario) -> None:
    project.write("packages/my api/agentd/config.toml", "schema_version = 1\n")
    inner = project.root / "packages/my api"
    lifecycle.create_change(find_project(), "outer", "of the whole")
    lifecycle.create_change(find_project(str(inner)), "inner", "of the package")
    assert ids(project, project.root) == ["outer"]
    assert ids(project, inner) == ["inner"]
    assert (inner / "agentd/changes/inner/STATE.yaml").exists()


def test_names_with_spaces_are_quoted_in_suggested_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Scenario(tmp_path / "my notes", tmp_path / "home")
    box.write("agentd/config.toml", "schema_version = 1\n")
    box.commit("start")
    monkeypatch.chdir(box.root)
    box.git("worktree", "add", "-q", "-b", "agentd/x", "../my notes-agentd/x")
    lifecycle.create_change(
        find_project(), "x", "words", GitLocation(GitSetup.WORKTREE, "agentd/x", "../my notes-agentd/x", "main")
    )
    shutil.rmtree(tmp_path / "my notes-agentd/x")
    assert "git worktree add -f '../my notes-agentd/x' agentd/x" in box.agentd("status", "x").err


def test_index_is_always_checked_against_the_state_file(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "fix-typo", "in place")
    for _ in range(3):
        assert project.agentd("list", "--json").json["changes"][0]["phase"] == "drafting"
    change.update(lambda old: old.with_transition(TransitionEvent.PLAN_GENERATED, by="agentd", why="x", at="t"))
    assert project.agentd("list", "--json").json["changes"][0]["phase"] == "proposed"
    path = change.folder / "STATE.yaml"
    path.write_text(path.read_text().replace("phase: proposed", "phase: rejected"))
    assert project.agentd("list", "--json").json["changes"][0]["phase"] == "rejected"


def test_broken_index_is_rebuilt(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    rows = [b"[]", b"null", b'{"x": []}', b'{"x": null}', b'{"x": [0,0,0,"gone",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}']
    for garbage in (b"", b"{", b"[]", b"\xff", *(b'{"format": 3, "complete": true, "rows": %s}' % row for row in rows)):
        (project.root / ".git/agentd/index.json").write_bytes(garbage)
        assert ids(project, project.root) == ["fix-typo"]


def test_unwritable_local_state_does_not_stop_list(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    shutil.rmtree(project.root / ".git/agentd")
    (project.root / ".git/agentd").write_text("a file in its place")
    assert ids(project, project.root) == ["fix-typo"]


def test_unreadable_change_does_not_hide_the_others(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    project.write("agentd/changes/broken/STATE.yaml", "change_id: [")
    ran = project.agentd("list")
    assert ran.code == 0 and "fix-typo" in ran.out and "unreadable" in ran.out
    ran = project.agentd("status", "broken")
    assert ran.code == 6 and "line 1" in ran.err and "git log -p" in ran.err


def test_status_of_one_change_does_not_mark_the_index_complete(project: Scenario) -> None:
    tree = worktree_change(project, "in-tree")
    branch_change(project, "on-branch")
    project.commit("the change")
    project.git("switch", "-q", "main")
    lifecycle.create_change(find_project(), "in-main", "words")
    (project.root / ".git/agentd/index.json").unlink()
    assert project.agentd("status", "in-main").code == 0
    assert sorted(ids(project, project.root)) == ["in-main", "in-tree", "on-branch"]
    assert sorted(ids(project, tree)) == ["in-main", "in-tree", "on-branch"]


def test_unreadable_change_is_read_again_after_a_fix(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "fix-typo", "in place")
    record = change.folder / "reviews/challenge-1.yaml"
    record.parent.mkdir()
    record.write_text("kind: [")
    assert "unreadable" in project.agentd("list").out
    record.unlink()
    assert "drafting" in project.agentd("list").out


def test_symlink_loop_in_a_change_does_not_stop_list(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    folder = project.root / "agentd/changes/loop"
    folder.mkdir()
    (folder / "STATE.yaml").symlink_to("STATE.yaml")
    ran = project.agentd("list")
    assert ran.code == 0 and "fix-typo" in ran.out and "unreadable" in ran.out
    assert project.agentd("validate", "--all").code == 1


def test_broken_state_in_a_worktree_is_reported_instead_of_its_copy(project: Scenario) -> None:
    tree = worktree_change(project, "w1")
    project.commit("the change", cwd=tree)
    project.git("merge", "-q", "--ff-only", "agentd/w1")
    (tree / "agentd/changes/w1/STATE.yaml").write_text("change_id: [")
    ran = project.agentd("status", "w1")
    assert ran.code == 6 and str(tree) in ran.err


def test_in_place_change_records_its_branch(project: Scenario) -> None:
    project.git("switch", "-qc", "feature")
    assert lifecycle.create_change(find_project(), "fix-typo", "in place").read().git.target == "feature"
    project.commit("the change")
    project.git("switch", "-q", "main")
    assert "git switch feature" in project.agentd("status", "fix-typo").err


def test_dropped_change_is_reported_as_dropped(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fix-typo", "in place")
    assert project.agentd("drop", "fix-typo", "--yes").code == 0
    assert project.agentd("status", "fix-typo").out.startswith("fix-typo  dropped\n")
    ran = project.agentd("validate", "fix-typo")
    assert ran.code == 1 and "fix-typo is dropped; it is in agentd/archive/" in ran.err and "list --all" in ran.err


# ---- ids -----------------------------------------------------------------------------------------


def resolved(wanted: str, description: str | None = "words") -> tuple[str, ChangeStanding]:
    found = lifecycle.resolve_change(ChangeLocator(find_project()), wanted, description)
    return found.id, found.standing


def test_new_id_is_kept(project: Scenario) -> None:
    assert resolved("add-oauth") == ("add-oauth", ChangeStanding.NEW)


def test_new_id_needs_a_description(project: Scenario) -> None:
    with pytest.raises(MissingDescription, match="add-oauth") as caught:
        resolved("add-oauth", None)
    assert caught.value.exit_code == 2


def test_open_id_continues_the_change(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "add-oauth", "words")
    assert resolved("add-oauth") == ("add-oauth", ChangeStanding.OPEN)


def test_folder_with_only_clarifications_keeps_its_id(project: Scenario) -> None:
    project.write("agentd/changes/add-oauth/clarifications.md", "# Clarifications\n")
    assert resolved("add-oauth") == ("add-oauth", ChangeStanding.NEW)
    change = lifecycle.create_change(find_project(), "add-oauth", "words")
    assert sorted(path.name for path in change.folder.iterdir()) == ["STATE.yaml", "clarifications.md"]


def test_interrupted_creation_keeps_its_id(project: Scenario) -> None:
    project.write("agentd/changes/add-oauth/.STATE.yaml.1-2.tmp", "change_id: a")
    assert resolved("add-oauth") == ("add-oauth", ChangeStanding.NEW)
    lifecycle.create_change(find_project(), "add-oauth", "words")


def test_foreign_folder_adds_a_suffix(project: Scenario) -> None:
    project.write("agentd/changes/add-oauth/notes.txt")
    project.write("agentd/changes/add-oauth-1/notes.txt")
    assert resolved("add-oauth") == ("add-oauth-2", ChangeStanding.NEW)


def test_finished_id_gets_a_suffix_only_with_a_description(project: Scenario) -> None:
    folder = project.root / "agentd/changes/add-oauth"
    folder.mkdir(parents=True)
    text = (EXAMPLE / "STATE.yaml").read_text().replace("phase: challenged", "phase: complete")
    (folder / "STATE.yaml").write_text(
        text.replace("setup: branch", "setup: in-place").replace("agentd/add-oauth", "null")
    )
    assert resolved("add-oauth") == ("add-oauth-1", ChangeStanding.NEW)
    assert resolved("add-oauth", None) == ("add-oauth", ChangeStanding.OPEN)


@pytest.mark.parametrize("folder", ["20260119-add-oauth", "add-oauth"])
def test_archived_id_gets_a_suffix_only_with_a_description(project: Scenario, folder: str) -> None:
    text = (EXAMPLE / "STATE.yaml").read_text().replace("phase: challenged", "phase: archived")
    project.write(f"agentd/archive/{folder}/STATE.yaml", text)
    assert resolved("add-oauth") == ("add-oauth-1", ChangeStanding.NEW)
    assert resolved("add-oauth", None) == ("add-oauth", ChangeStanding.ENDED)


def test_suffix_respects_the_maximum_id_length(project: Scenario) -> None:
    longest = "a" * 64
    lifecycle.create_change(find_project(), longest, "words")
    change = find_project().changes_in(str(project.root)) / longest
    (change / "STATE.yaml").rename(change / "other.txt")
    assert resolved(longest) == ("a" * 62 + "-1", ChangeStanding.NEW)


@pytest.mark.parametrize(("bad", "better"), [("Add OAuth!", "add-oauth"), ("../up", "up"), ("", ""), ("ä", "")])
def test_invalid_id_is_refused_with_a_suggestion(project: Scenario, bad: str, better: str) -> None:
    with pytest.raises(BadId) as caught:
        resolved(bad)
    assert caught.value.exit_code == 2
    assert not better or caught.value.hint == f'agentd plan {better} "words"'


def test_unknown_id_suggests_the_nearest(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "add-oauth", "words")
    with pytest.raises(ChangeNotFound) as caught:
        ChangeLocator(find_project()).find("ad-oauth")
    assert "did you mean add-oauth?" in (caught.value.hint or "")

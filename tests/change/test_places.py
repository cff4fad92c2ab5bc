"""Finding and listing changes from anywhere in the repository: branches, work trees, sub-folders."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agentd.change import entry
from agentd.change.entry import Standing
from agentd.change.places import Places
from agentd.change.state import Place
from agentd.errors import BadId, ChangeNotFound, MissingDescription, NotCheckedOut
from agentd.machine import Event
from agentd.project import find_project
from agentd.terms import GitSetup
from plans import EXAMPLE
from scenario import Scenario


def branch_change(box: Scenario, name: str) -> None:
    box.git("switch", "-qc", f"agentd/{name}")
    entry.create(find_project(), name, f"describe {name}", Place(GitSetup.BRANCH, f"agentd/{name}", ".", "main"))


def worktree_change(box: Scenario, name: str) -> Path:
    tree = f"../notes-service-agentd/{name}"
    box.git("worktree", "add", "-q", "-b", f"agentd/{name}", tree)
    place = Place(GitSetup.WORKTREE, f"agentd/{name}", tree, "main")
    entry.create(find_project(), name, f"describe {name}", place)
    return (box.root / tree).resolve()


def ids(box: Scenario, cwd: Path) -> list[str]:
    ran = box.agentd("list", "--json", cwd=cwd)
    assert ran.code == 0, ran.err
    return [row["change_id"] for row in ran.json["changes"]]


def test_a_change_in_a_work_tree_is_found_from_everywhere(project: Scenario) -> None:
    tree = worktree_change(project, "add-oauth")
    entry.create(find_project(), "fix-typo", "in place")
    project.write("src/deep/er/x.py")
    (tree / "sub folder").mkdir()
    for cwd in (project.root, project.root / "src/deep/er", tree, tree / "sub folder", tree / "agentd"):
        assert sorted(ids(project, cwd)) == ["add-oauth", "fix-typo"], cwd
        shown = project.agentd("status", "add-oauth", "--json", cwd=cwd)
        assert shown.json["git"]["tree"] == "../notes-service-agentd/add-oauth"
        assert shown.json["folder"] == "agentd/changes/add-oauth"
    assert not (project.root / "agentd/changes/add-oauth").exists()


def test_a_branch_that_is_not_checked_out_gives_the_command_to_type(project: Scenario) -> None:
    branch_change(project, "add-oauth")
    project.commit("the change")
    project.git("switch", "-q", "main")
    ran = project.agentd("status", "add-oauth")
    assert ran.code == 1
    assert "add-oauth is on the branch agentd/add-oauth, which is not checked out" in ran.err
    assert "git switch agentd/add-oauth" in ran.err
    (row,) = project.agentd("list", "--json").json["changes"]
    assert (row["checked_out"], row["next"]) == (False, "git switch agentd/add-oauth")
    subprocess.run(row["next"].split(), cwd=project.root, env=project.env, check=True, capture_output=True)
    assert project.agentd("status", "add-oauth").code == 0


def test_it_is_still_known_when_the_local_room_is_lost(project: Scenario) -> None:
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
        Places(find_project()).find("add-oauth")


def test_a_merged_branch_is_found_on_the_target(project: Scenario) -> None:
    branch_change(project, "add-oauth")
    project.commit("the change")
    project.git("switch", "-q", "main")
    project.git("merge", "-q", "--ff-only", "agentd/add-oauth")
    assert Places(find_project()).find("add-oauth").tree == str(project.root)
    project.git("branch", "-qD", "agentd/add-oauth")
    assert Places(find_project()).find("add-oauth").tree == str(project.root)


def test_a_copy_in_a_younger_work_tree_is_not_the_change(project: Scenario) -> None:
    entry.create(find_project(), "fix-typo", "in place")
    project.commit("the change")
    tree = worktree_change(project, "add-oauth")
    assert (tree / "agentd/changes/fix-typo").exists()
    found = Places(find_project(str(tree))).find("fix-typo")
    assert found.tree == str(project.root)
    assert sorted(ids(project, tree)) == ["add-oauth", "fix-typo"]


def test_a_work_tree_deleted_by_hand_gets_clear_words_and_comes_back(project: Scenario) -> None:
    tree = worktree_change(project, "add-oauth")
    project.commit("the change", cwd=tree)
    shutil.rmtree(tree)
    ran = project.agentd("status", "add-oauth")
    assert ran.code == 1
    assert "the work tree of add-oauth is gone (../notes-service-agentd/add-oauth" in ran.err
    fix = "git worktree add -f ../notes-service-agentd/add-oauth agentd/add-oauth"
    assert fix in ran.err
    project.git(*fix.split()[1:])
    assert project.agentd("status", "add-oauth").code == 0


def test_a_branch_on_the_main_tree_is_switched_there_from_a_work_tree(project: Scenario) -> None:
    branch_change(project, "add-oauth")
    project.commit("the change")
    project.git("switch", "-q", "main")
    tree = worktree_change(project, "other")
    ran = project.agentd("status", "add-oauth", cwd=tree)
    assert "git -C ../../notes-service switch agentd/add-oauth" in ran.err


def test_an_in_place_change_whose_branch_was_left_is_known(project: Scenario) -> None:
    project.git("switch", "-qc", "feature")
    entry.create(find_project(), "fix-typo", "in place", Place(target="feature"))
    project.commit("the change")
    project.git("switch", "-q", "main")
    ran = project.agentd("status", "fix-typo")
    assert ran.code == 1 and "git switch feature" in ran.err


def test_a_folder_deleted_by_hand_is_forgotten(project: Scenario) -> None:
    entry.create(find_project(), "fix-typo", "in place")
    assert ids(project, project.root) == ["fix-typo"]
    shutil.rmtree(project.root / "agentd/changes/fix-typo")
    assert ids(project, project.root) == []
    assert "fix-typo" not in (project.root / ".git/agentd/index.json").read_text()


def test_a_work_tree_older_than_the_project_uses_the_main_one(project: Scenario) -> None:
    project.git("switch", "-q", "--orphan", "empty")
    project.git("commit", "-qm", "nothing", "--allow-empty")
    project.git("switch", "-q", "main")
    project.git("worktree", "add", "-q", "../old", "empty")
    entry.create(find_project(), "fix-typo", "in place")
    old = (project.root / "../old").resolve()
    assert not (old / "agentd").exists()
    assert ids(project, old) == ["fix-typo"]


def test_a_project_in_a_sub_folder_keeps_its_own_room(project: Scenario) -> None:
    project.write("packages/my api/agentd/config.toml", "schema_version = 1\n")
    inner = project.root / "packages/my api"
    entry.create(find_project(), "outer", "of the whole")
    entry.create(find_project(str(inner)), "inner", "of the package")
    assert ids(project, project.root) == ["outer"]
    assert ids(project, inner) == ["inner"]
    assert (inner / "agentd/changes/inner/STATE.yaml").exists()


def test_names_with_spaces_are_quoted_in_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Scenario(tmp_path / "my notes", tmp_path / "home")
    box.write("agentd/config.toml", "schema_version = 1\n")
    box.commit("start")
    monkeypatch.chdir(box.root)
    box.git("worktree", "add", "-q", "-b", "agentd/x", "../my notes-agentd/x")
    entry.create(find_project(), "x", "words", Place(GitSetup.WORKTREE, "agentd/x", "../my notes-agentd/x", "main"))
    shutil.rmtree(tmp_path / "my notes-agentd/x")
    assert "git worktree add -f '../my notes-agentd/x' agentd/x" in box.agentd("status", "x").err


def test_the_index_is_always_checked_against_the_file(project: Scenario) -> None:
    change = entry.create(find_project(), "fix-typo", "in place")
    for _ in range(3):
        assert project.agentd("list", "--json").json["changes"][0]["phase"] == "drafting"
    change.update(lambda old: old.moved(Event.PLAN_GENERATED, by="agentd", why="x", at="t"))
    assert project.agentd("list", "--json").json["changes"][0]["phase"] == "proposed"
    path = change.folder / "STATE.yaml"
    path.write_text(path.read_text().replace("phase: proposed", "phase: rejected"))
    assert project.agentd("list", "--json").json["changes"][0]["phase"] == "rejected"


def test_a_broken_index_costs_nothing_but_time(project: Scenario) -> None:
    entry.create(find_project(), "fix-typo", "in place")
    rows = [b"[]", b"null", b'{"x": []}', b'{"x": null}', b'{"x": [0,0,0,"gone",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}']
    for garbage in (b"", b"{", b"[]", b"\xff", *(b'{"format": 3, "complete": true, "rows": %s}' % row for row in rows)):
        (project.root / ".git/agentd/index.json").write_bytes(garbage)
        assert ids(project, project.root) == ["fix-typo"]


def test_a_room_that_cannot_be_written_is_no_reason_not_to_list(project: Scenario) -> None:
    entry.create(find_project(), "fix-typo", "in place")
    shutil.rmtree(project.root / ".git/agentd")
    (project.root / ".git/agentd").write_text("a file in its place")
    assert ids(project, project.root) == ["fix-typo"]


def test_one_unreadable_change_does_not_hide_the_others(project: Scenario) -> None:
    entry.create(find_project(), "fix-typo", "in place")
    project.write("agentd/changes/broken/STATE.yaml", "change_id: [")
    ran = project.agentd("list")
    assert ran.code == 0 and "fix-typo" in ran.out and "unreadable" in ran.out
    ran = project.agentd("status", "broken")
    assert ran.code == 6 and "line 1" in ran.err and "git log -p" in ran.err


def test_a_look_at_one_change_does_not_make_the_index_whole(project: Scenario) -> None:
    tree = worktree_change(project, "in-tree")
    branch_change(project, "on-branch")
    project.commit("the change")
    project.git("switch", "-q", "main")
    entry.create(find_project(), "in-main", "words")
    (project.root / ".git/agentd/index.json").unlink()
    assert project.agentd("status", "in-main").code == 0
    assert sorted(ids(project, project.root)) == ["in-main", "in-tree", "on-branch"]
    assert sorted(ids(project, tree)) == ["in-main", "in-tree", "on-branch"]


def test_what_could_not_be_read_is_looked_at_again(project: Scenario) -> None:
    change = entry.create(find_project(), "fix-typo", "in place")
    record = change.folder / "reviews/challenge-1.yaml"
    record.parent.mkdir()
    record.write_text("kind: [")
    assert "unreadable" in project.agentd("list").out
    record.unlink()
    assert "drafting" in project.agentd("list").out


def test_a_folder_that_may_not_be_looked_into_does_not_end_a_listing(project: Scenario) -> None:
    entry.create(find_project(), "fix-typo", "in place")
    folder = project.root / "agentd/changes/loop"
    folder.mkdir()
    (folder / "STATE.yaml").symlink_to("STATE.yaml")
    ran = project.agentd("list")
    assert ran.code == 0 and "fix-typo" in ran.out and "unreadable" in ran.out
    assert project.agentd("validate", "--all").code == 1


def test_a_broken_state_in_a_work_tree_is_named_not_its_copy(project: Scenario) -> None:
    tree = worktree_change(project, "w1")
    project.commit("the change", cwd=tree)
    project.git("merge", "-q", "--ff-only", "agentd/w1")
    (tree / "agentd/changes/w1/STATE.yaml").write_text("change_id: [")
    ran = project.agentd("status", "w1")
    assert ran.code == 6 and str(tree) in ran.err


def test_an_in_place_change_knows_its_branch(project: Scenario) -> None:
    project.git("switch", "-qc", "feature")
    assert entry.create(find_project(), "fix-typo", "in place").read().git.target == "feature"
    project.commit("the change")
    project.git("switch", "-q", "main")
    assert "git switch feature" in project.agentd("status", "fix-typo").err


def test_an_ended_change_is_said_to_be_so(project: Scenario) -> None:
    entry.create(find_project(), "fix-typo", "in place")
    assert project.agentd("drop", "fix-typo", "--yes").code == 0
    assert project.agentd("status", "fix-typo").out.startswith("fix-typo  dropped\n")
    ran = project.agentd("validate", "fix-typo")
    assert ran.code == 1 and "fix-typo is dropped; it lies in agentd/archive/" in ran.err and "list --all" in ran.err


# ---- ids -----------------------------------------------------------------------------------------


def resolved(wanted: str, description: str | None = "words") -> tuple[str, Standing]:
    found = entry.resolve(Places(find_project()), wanted, description)
    return found.id, found.standing


def test_a_new_id_is_kept(project: Scenario) -> None:
    assert resolved("add-oauth") == ("add-oauth", Standing.NEW)


def test_a_new_id_needs_a_description(project: Scenario) -> None:
    with pytest.raises(MissingDescription, match="add-oauth") as caught:
        resolved("add-oauth", None)
    assert caught.value.exit_code == 2


def test_an_open_id_goes_on(project: Scenario) -> None:
    entry.create(find_project(), "add-oauth", "words")
    assert resolved("add-oauth") == ("add-oauth", Standing.OPEN)


def test_a_folder_with_clarifications_alone_keeps_its_id(project: Scenario) -> None:
    project.write("agentd/changes/add-oauth/clarifications.md", "# Clarifications\n")
    assert resolved("add-oauth") == ("add-oauth", Standing.NEW)
    change = entry.create(find_project(), "add-oauth", "words")
    assert sorted(path.name for path in change.folder.iterdir()) == ["STATE.yaml", "clarifications.md"]


def test_a_creation_that_was_cut_off_keeps_its_id(project: Scenario) -> None:
    project.write("agentd/changes/add-oauth/.STATE.yaml.1-2.tmp", "change_id: a")
    assert resolved("add-oauth") == ("add-oauth", Standing.NEW)
    entry.create(find_project(), "add-oauth", "words")


def test_a_foreign_folder_gets_a_suffix(project: Scenario) -> None:
    project.write("agentd/changes/add-oauth/notes.txt")
    project.write("agentd/changes/add-oauth-1/notes.txt")
    assert resolved("add-oauth") == ("add-oauth-2", Standing.NEW)


def test_a_finished_id_gets_a_suffix_only_with_a_description(project: Scenario) -> None:
    folder = project.root / "agentd/changes/add-oauth"
    folder.mkdir(parents=True)
    text = (EXAMPLE / "STATE.yaml").read_text().replace("phase: challenged", "phase: complete")
    (folder / "STATE.yaml").write_text(
        text.replace("setup: branch", "setup: in-place").replace("agentd/add-oauth", "null")
    )
    assert resolved("add-oauth") == ("add-oauth-1", Standing.NEW)
    assert resolved("add-oauth", None) == ("add-oauth", Standing.OPEN)


@pytest.mark.parametrize("folder", ["20260119-add-oauth", "add-oauth"])
def test_an_archived_id_gets_a_suffix_only_with_a_description(project: Scenario, folder: str) -> None:
    text = (EXAMPLE / "STATE.yaml").read_text().replace("phase: challenged", "phase: archived")
    project.write(f"agentd/archive/{folder}/STATE.yaml", text)
    assert resolved("add-oauth") == ("add-oauth-1", Standing.NEW)
    assert resolved("add-oauth", None) == ("add-oauth", Standing.ENDED)


def test_a_suffix_keeps_within_the_length(project: Scenario) -> None:
    longest = "a" * 64
    entry.create(find_project(), longest, "words")
    change = find_project().changes_in(str(project.root)) / longest
    (change / "STATE.yaml").rename(change / "other.txt")
    assert resolved(longest) == ("a" * 62 + "-1", Standing.NEW)


@pytest.mark.parametrize(("bad", "better"), [("Add OAuth!", "add-oauth"), ("../up", "up"), ("", ""), ("ä", "")])
def test_a_bad_id_is_refused_with_a_better_one(project: Scenario, bad: str, better: str) -> None:
    with pytest.raises(BadId) as caught:
        resolved(bad)
    assert caught.value.exit_code == 2
    assert not better or caught.value.hint == f'agentd plan {better} "words"'


def test_an_unknown_id_names_the_nearest(project: Scenario) -> None:
    entry.create(find_project(), "add-oauth", "words")
    with pytest.raises(ChangeNotFound) as caught:
        Places(find_project()).find("ad-oauth")
    assert "did you mean add-oauth?" in (caught.value.hint or "")

"""`agentd archive` in all three git ways: which branch knows the specs of today, and what is typed afterwards."""

from collections.abc import Callable
from pathlib import Path

import pytest
from archive_end import BRANCH, all_commands, every, is_over, looks_ended

from plans import SHORT_TITLES, SHORT_TITLES_ID
from scenario import Scenario, tree_files

Make = Callable[..., Scenario]
STANDS = pytest.mark.parametrize("stand", ["main", "own", "third"])


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A project in a repository whose name has a space in it."""

    def made(prefix: str = "", start: str = "start") -> Scenario:
        box = Scenario(tmp_path / "notes service", tmp_path / "home").with_notes(prefix, start)
        for name, value in box.variables().items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(box.root / prefix)
        return box

    return made


@pytest.fixture
def notes(make: Make) -> Scenario:
    return make()


def move_on(box: Scenario, cwd: Path | None = None) -> None:
    """Somebody else commits."""
    (cwd or box.root).joinpath("other.txt").write_text("other\n")
    box.commit("other work", cwd)


def third_tree(box: Scenario) -> Path:
    """A work tree that has nothing to do with the change."""
    tree = box.root.with_name("third place")
    box.git("worktree", "add", "-q", "-b", "third", str(tree))
    return tree


def archive(box: Scenario, cwd: Path | None = None) -> str:
    """Archived: what is to be typed then."""
    return all_commands(box.agentd("archive", SHORT_TITLES_ID, "--json", cwd=cwd))


def refused(box: Scenario, cwd: Path | None = None) -> dict[str, str]:
    """Nothing is written: why not."""
    trees = [Path(line[9:]) for line in box.git("worktree", "list", "--porcelain").split("\n") if "worktree " in line]
    before = [tree_files(tree) for tree in trees]
    ran = box.agentd("archive", SHORT_TITLES_ID, "--json", cwd=cwd)
    assert ran.code == 1 and [tree_files(tree) for tree in trees] == before, ran.out
    error: dict[str, str] = ran.json["error"]
    return error


def follow(box: Scenario, error: dict[str, str], cwd: Path | None = None) -> None:
    command, _, again = error["hint"].partition(", then ")
    assert again == f"agentd archive {SHORT_TITLES_ID}"
    box.paste(command, cwd)


# ---- in place


def test_in_place_change_is_committed_on_the_current_branch(notes: Scenario) -> None:
    notes.complete_short_titles()
    notes.paste(archive(notes))
    is_over(notes, notes.root)


def test_copy_in_another_worktree_is_not_listed_as_open_after_archive(notes: Scenario) -> None:
    notes.complete_short_titles()
    third = third_tree(notes)
    assert (third / f"agentd/changes/{SHORT_TITLES_ID}/STATE.yaml").is_file()
    notes.paste(archive(notes, third), third)
    is_over(notes, notes.root, third)
    assert refused(notes, third)["code"] == "change-not-found"
    for tree in (notes.root, third):
        planned = notes.agentd("plan", SHORT_TITLES_ID, "Even shorter", "--dry-run", "--json", cwd=tree)
        assert planned.json["change_id"] == f"{SHORT_TITLES_ID}-1", planned.out


def test_archive_on_a_personal_branch_requires_the_target_tip(notes: Scenario) -> None:
    notes.complete_short_titles()
    notes.git("switch", "-q", "-c", "mine")
    move_on(notes)
    notes.git("switch", "-q", "main")
    notes.write("main.txt", "main\n")
    notes.commit("main moved on")
    notes.git("switch", "-q", "mine")
    error = refused(notes)
    assert error["code"] == "stale-branch" and "mine lacks a commit of main" in error["message"]
    follow(notes, error)
    assert archive(notes).startswith("git add --all")


def test_detached_head_is_warned_about_and_requires_the_target_tip(notes: Scenario) -> None:
    notes.complete_short_titles()
    move_on(notes)
    notes.git("switch", "-q", "--detach", "HEAD~1")
    assert "the detached HEAD lacks a commit of main" in refused(notes)["message"]
    notes.git("switch", "-q", "--detach", "main")
    told = notes.agentd("archive", SHORT_TITLES_ID, "--dry-run", "--json").json["warnings"]
    assert len(told) == 1 and told[0].startswith("HEAD is detached"), told
    notes.paste(told[0].partition(": ")[2])
    ran = notes.agentd("archive", SHORT_TITLES_ID, "--json")
    assert (ran.code, ran.json["warnings"]) == (0, [])


def test_archive_works_before_the_first_commit(make: Make) -> None:
    box = make(start="")
    box.notes_complete(SHORT_TITLES_ID, {"notes": SHORT_TITLES})
    box.paste(archive(box))
    is_over(box, box.root)


def test_unresolved_merge_stops_the_archive(notes: Scenario) -> None:
    notes.complete_short_titles()
    notes.git("switch", "-q", "-c", "side", "HEAD~1")
    notes.write("README.md", "side\n")
    notes.commit("side")
    notes.git("switch", "-q", "main")
    notes.write("README.md", "main\n")
    notes.commit("main")
    assert notes.execute("git", "merge", "side").code == 1
    error = refused(notes)
    assert error["message"] == "a merge is not finished: README.md" and error["hint"].startswith("git status")


# ---- branch


def test_branch_change_is_committed_merged_and_its_branch_deleted(notes: Scenario) -> None:
    notes.git("branch", "-m", "it's;main")
    notes.complete_short_titles(notes.on_branch(SHORT_TITLES_ID))
    notes.paste(archive(notes))
    is_over(notes, notes.root, target="it's;main")


def test_branch_behind_its_target_is_refused_until_it_is_merged(notes: Scenario) -> None:
    notes.complete_short_titles(notes.on_branch(SHORT_TITLES_ID))
    notes.git("switch", "-q", "main")
    move_on(notes)
    notes.git("switch", "-q", BRANCH)
    error = refused(notes)
    assert (error["code"], error["message"]) == (
        "stale-branch",
        f"{BRANCH} lacks a commit of main, so its specs may be outdated",
    )
    follow(notes, error)
    notes.paste(archive(notes))
    is_over(notes, notes.root)


def test_change_on_a_branch_that_is_not_checked_out_names_git_switch(notes: Scenario) -> None:
    notes.complete_short_titles(notes.on_branch(SHORT_TITLES_ID))
    notes.git("switch", "-q", "main")
    ran = notes.agentd("archive", SHORT_TITLES_ID, "--json")
    assert (ran.code, ran.hint) == (1, f"git switch {BRANCH}") and "not checked out" in ran.json["error"]["message"]
    notes.paste(ran.hint)
    assert archive(notes)


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "deleted"])
def test_merged_change_is_archived_on_the_target(notes: Scenario, is_kept: bool) -> None:
    notes.complete_short_titles(notes.on_branch(SHORT_TITLES_ID))
    notes.git("switch", "-q", "main")
    move_on(notes)
    notes.git("merge", "-q", "--no-edit", BRANCH)
    if not is_kept:
        notes.git("branch", "-q", "-d", BRANCH)
    commands = archive(notes)
    assert ("branch --delete" in commands, "merge" in commands) == (is_kept, False)
    notes.paste(commands)
    is_over(notes, notes.root)


def test_target_may_be_checked_out_in_another_worktree(notes: Scenario) -> None:
    notes.complete_short_titles(notes.on_branch(SHORT_TITLES_ID))
    holder = notes.root.with_name("holder")
    notes.git("worktree", "add", "-q", str(holder), "main")
    notes.paste(archive(notes))
    is_over(notes, holder, notes.root)


def test_archive_committed_on_the_branch_is_not_visible_on_the_target_yet(notes: Scenario) -> None:
    notes.complete_short_titles(notes.on_branch(SHORT_TITLES_ID))
    ran = notes.agentd("archive", SHORT_TITLES_ID, "--json")
    notes.paste("\n".join(ran.json["commands"]["commit"]))
    notes.git("switch", "-q", "main")
    assert every(notes, notes.root) == []
    notes.git("switch", "-q", BRANCH)
    looks_ended(notes, notes.root)


# ---- work tree


@STANDS
def test_worktree_change_is_archived_merged_and_removed_from_anywhere(notes: Scenario, stand: str) -> None:
    own = notes.complete_short_titles(notes.in_worktree(SHORT_TITLES_ID))
    third = third_tree(notes)
    move_on(notes)
    (own / "src").mkdir()
    here = {"main": notes.root, "own": own / "src", "third": third}[stand]
    error = refused(notes, here)
    assert error["code"] == "stale-branch"
    follow(notes, error, here)
    notes.paste(archive(notes, here), here)
    is_over(notes, notes.root, third)


@pytest.mark.parametrize("left", ["tree-and-branch", "branch", "nothing"])
def test_worktree_change_merged_into_the_target_is_archived_from_the_main_tree(notes: Scenario, left: str) -> None:
    own = notes.complete_short_titles(notes.in_worktree(SHORT_TITLES_ID))
    move_on(notes)
    notes.git("merge", "-q", "--no-edit", BRANCH)
    if left == "tree-and-branch":  # the change is still at home there
        follow(notes, refused(notes))
    else:
        notes.git("worktree", "remove", str(own))
    if left == "nothing":
        notes.git("branch", "-q", "-d", BRANCH)
    notes.paste(archive(notes))
    is_over(notes, notes.root)


def test_project_in_a_subfolder_is_archived(make: Make) -> None:
    box = make(prefix="the app/")
    own = box.complete_short_titles(box.in_worktree(SHORT_TITLES_ID))
    here = box.root / "the app"
    shown = box.agentd("archive", SHORT_TITLES_ID, "--dry-run", cwd=own / "the app/agentd/specs")
    assert "+++ b/agentd/specs/notes.md" in shown.out
    box.paste(archive(box, here), here)
    is_over(box, box.root, prefix="the app/")


def test_archive_path_is_shown_relative_to_the_current_folder(notes: Scenario) -> None:
    own = notes.complete_short_titles(notes.in_worktree(SHORT_TITLES_ID))
    told = notes.agentd("archive", SHORT_TITLES_ID)
    path = Path(told.out.partition(" to ")[2].partition("\n")[0])
    assert (notes.root / path).is_dir() and path.parts[:3] == ("..", own.parent.name, SHORT_TITLES_ID), told.out
    back = notes.agentd("archive", SHORT_TITLES_ID, "--undo")
    assert f"in ../{own.parent.name}/{SHORT_TITLES_ID}/agentd/changes/{SHORT_TITLES_ID}." in back.out
    assert notes.agentd("archive", SHORT_TITLES_ID, "--undo", cwd=own).code == 1


def test_undo_after_the_worktree_is_removed_points_to_git(notes: Scenario) -> None:
    notes.complete_short_titles(notes.in_worktree(SHORT_TITLES_ID))
    notes.paste(archive(notes))
    third = third_tree(notes)
    before = tree_files(notes.root)
    for here in (notes.root, third):
        back = notes.agentd("archive", SHORT_TITLES_ID, "--undo", "--json", cwd=here)
        assert back.code == 1 and "only git can undo it" in back.json["error"]["message"]
        notes.paste(back.hint.partition(", then ")[0], here)
    assert tree_files(notes.root) == before


# ---- beyond this machine


def test_target_behind_its_upstream_is_warned_about(notes: Scenario) -> None:
    shared, other = notes.root.with_name("shared.git"), notes.root.with_name("other")
    notes.git("clone", "-q", "--bare", str(notes.root), str(shared))
    notes.git("remote", "add", "origin", str(shared))
    notes.git("fetch", "-q", "origin")
    notes.git("branch", "-q", "--set-upstream-to", "origin/main")
    notes.complete_short_titles(notes.on_branch(SHORT_TITLES_ID))
    notes.git("clone", "-q", str(shared), str(other))
    move_on(notes, other)
    notes.git("push", "-q", cwd=other)
    assert notes.agentd("archive", SHORT_TITLES_ID, "--dry-run", "--json").json["warnings"] == [], (
        "what was not fetched is unknown"
    )
    notes.git("fetch", "-q")
    ran = notes.agentd("archive", SHORT_TITLES_ID, "--json")
    assert ran.json["warnings"] == [
        "main is 1 behind origin/main, which may have newer specs: git pull, then merge main"
    ]
    assert f"Warning: {ran.json['warnings'][0]}" in ran.err
    told = ran.json["commands"]
    notes.paste("\n".join([*told["commit"], *told["pull_request"]]))
    assert notes.git("ls-remote", "--heads", "origin", BRANCH)


def test_spec_that_is_a_symlink_is_not_archived(notes: Scenario) -> None:
    folder = notes.complete_short_titles() / "agentd/changes" / SHORT_TITLES_ID
    spec = next(folder.glob("specs/*.md"))
    spec.rename(notes.root / "elsewhere.md")
    spec.symlink_to(notes.root / "elsewhere.md")
    ran = notes.agentd("archive", SHORT_TITLES_ID)
    assert ran.code == 1 and "specs/notes.md" in ran.err, ran
    assert folder.is_dir()

"""Where a new change lives, in the three ways, with real git: planned to the end, found from everywhere, and ended."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_setups import BEGIN, BRANCH, WAYS, begin, home, place, prepare_project
from playbooks import FOLDER
from scenario import Result, Scenario, project_files

BY_ID = ("status", "log", "validate", "cost", "view")


@dataclass(frozen=True)
class Planned:
    """A plan to its end, and every place in the repository to ask about it from."""

    box: Scenario
    way: str
    ran: Result
    before: dict[str, bytes]

    @property
    def everywhere(self) -> list[Path]:
        own = [self.box.worktree(), self.box.worktree() / "src"] if self.way == "worktree" else []
        return [self.box.root, self.box.root / "src", self.box.root.with_name("other"), *own]


@pytest.fixture(scope="module", params=WAYS)
def planned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planned]:
    """Made once a way: the tests of it only look."""
    top = tmp_path_factory.mktemp(request.param)
    box = Scenario(top / "notes-service", top / "home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            patch.setenv(name, box.env[name])
        patch.chdir(box.root)
        prepare_project(box)
        box.git("worktree", "add", "-q", "-b", "other", "../other")
        before = project_files(box.root)
        ran = box.agentd(
            "plan", "add-oauth", "Sign in", "--skip-clarify", "--git", request.param, "--json", cwd=box.root / "src"
        )
        yield Planned(box, request.param, ran, before)


def test_plan_is_approved_and_reports_its_location(planned: Planned) -> None:
    data, is_apart = planned.ran.json, planned.way == "worktree"
    assert (planned.ran.code, data["verdict"], data["phase"]) == (0, "APPROVED", "challenged")
    assert data["git"] == {
        "setup": planned.way,
        "branch": None if planned.way == "in-place" else BRANCH,
        "tree": "../notes-service-agentd/add-oauth" if is_apart else ".",
        "target": "main",
    }
    assert {str(name): str(value) for name, value in data["git"].items()} == {
        name: str(getattr(place(home(planned.box, planned.way)), name)) for name in data["git"]
    }
    words = {
        "in-place": "here, on main",
        "branch": f"on the branch {BRANCH}, started from main",
        "worktree": f"in ../../notes-service-agentd/add-oauth, on the branch {BRANCH}, started from main",
    }
    assert f"add-oauth lives {words[planned.way]}\n" in planned.ran.err


def test_documents_exist_only_in_the_changes_tree(planned: Planned) -> None:
    box = planned.box
    for tree in (box.root, box.worktree(), box.root.with_name("other")):
        assert (tree / FOLDER / "tasks.md").exists() is (tree == home(box, planned.way)), tree
    current = box.git("branch", "--show-current")
    assert current == (BRANCH if planned.way == "branch" else "main")


def test_worktree_plan_leaves_the_main_tree_unchanged(planned: Planned) -> None:
    now = {name: text for name, text in project_files(planned.box.root).items() if not name.startswith(".git/")}
    was = {name: text for name, text in planned.before.items() if not name.startswith(".git/")}
    own = {name for name in now if name.startswith(FOLDER)}
    assert {name: text for name, text in now.items() if name not in own} == was
    assert bool(own) is (planned.way != "worktree")
    assert planned.box.git("status", "--porcelain") == ("" if planned.way == "worktree" else "?? agentd/changes/")


def test_change_is_found_from_everywhere(planned: Planned) -> None:
    told = set()
    for cwd in planned.everywhere:
        listed = planned.box.agentd("list", "--json", cwd=cwd).json["changes"]
        assert [(one["change_id"], one["phase"], one["next"]) for one in listed] == [
            ("add-oauth", "challenged", "agentd impl add-oauth")
        ], cwd
        status = planned.box.agentd("status", "add-oauth", "--json", cwd=cwd)
        told.add((status.code, status.json["phase"], status.json["verdict"]))
    assert told == {(0, "challenged", "APPROVED")}


@pytest.mark.parametrize("command", BY_ID)
def test_commands_give_the_same_output_from_everywhere(planned: Planned, command: str) -> None:
    said = {}
    for cwd in planned.everywhere:
        ran = planned.box.agentd(command, "add-oauth", cwd=cwd)
        assert ran.code == 0, (cwd, ran.err)
        said[str(cwd)] = ran.out.replace(os.path.relpath(planned.box.root.parent, cwd), "..")
    assert len(set(said.values())) == 1, said


def test_planning_again_from_anywhere_reports_completion(planned: Planned) -> None:
    for cwd in planned.everywhere:
        again = planned.box.agentd("plan", "add-oauth", "--json", cwd=cwd)
        assert (again.code, again.json["message"]) == (0, "Planning of add-oauth is complete"), cwd
    assert planned.box.git("status", "--porcelain") == ("" if planned.way == "worktree" else "?? agentd/changes/")


# ---- from where it is begun, and where it goes on


@pytest.mark.parametrize("way", WAYS)
def test_change_started_in_another_worktree_starts_from_its_branch(project: Scenario, way: str) -> None:
    prepare_project(project)
    project.git("worktree", "add", "-q", "-b", "feature", "../feature")
    other = project.root.with_name("feature")
    assert begin(project, way, cwd=other / "src").code == 0
    tree = project.worktree() if way == "worktree" else other
    found = place(tree)
    assert (found.setup, found.target) == (way, "feature")
    assert (project.root / found.tree).resolve() == tree
    assert project.git("status", "--porcelain") == "" and project.git("branch", "--show-current") == "main"
    assert project.agentd("status", "add-oauth").code == 0


def test_plan_continues_from_its_own_tree_and_from_another(project: Scenario) -> None:
    prepare_project(project)
    project.git("worktree", "add", "-q", "-b", "other", "../other")
    assert begin(project, "worktree").code == 0
    own = project.worktree()
    judged = project.agentd("challenge", "add-oauth", "--json", cwd=own / "src")
    assert (judged.code, judged.json["git"]["tree"]) == (0, "../notes-service-agentd/add-oauth")
    elsewhere = project.root.with_name("other")
    again = project.agentd("plan", "add-oauth", "--rechallenge", "--json", cwd=elsewhere)
    assert (again.code, again.json["round"]) == (0, 2)
    assert project.git("status", "--porcelain") == project.git("status", "--porcelain", cwd=elsewhere) == ""


@pytest.mark.parametrize("way", WAYS)
def test_project_in_a_subfolder_can_be_planned(project: Scenario, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    shutil.rmtree(project.root / "agentd")
    inner = Scenario(project.root, project.home)
    inner.root = project.root / "a" / "b"
    inner.root.mkdir(parents=True)
    monkeypatch.chdir(inner.root)
    prepare_project(inner)
    tree = project.worktree() if way == "worktree" else project.root
    ran = inner.agentd(*BEGIN, "--git", way, "--json", cwd=inner.root / "src")
    assert ran.code == 0, ran.err
    assert (tree / "a/b" / FOLDER / "proposal.md").is_file()
    assert ran.json["files"][0] == f"{FOLDER}/proposal.md"
    for cwd in (inner.root, tree / "a/b/src"):
        assert inner.agentd("status", "add-oauth", cwd=cwd).code == 0
    assert inner.agentd("challenge", "add-oauth", cwd=tree / "a/b").code == 0


@pytest.mark.parametrize("way", ["branch", "worktree"])
def test_path_with_spaces_and_umlauts_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    box = Scenario(tmp_path / "Größe und Maß" / "notes 'n more", tmp_path / "home")
    for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, box.env[name])
    monkeypatch.chdir(box.root)
    prepare_project(box)
    assert begin(box, way).code == 0
    assert (home(box, way) / FOLDER / "proposal.md").is_file()
    box.commit("documents", cwd=home(box, way))
    if way == "worktree":
        shutil.rmtree(box.worktree())
    else:
        box.git("switch", "-q", "main")
    lost = box.agentd("status", "add-oauth", "--json", cwd=box.root / "src")
    assert lost.code == 1
    box.paste(lost.hint, box.root / "src")
    assert box.agentd("challenge", "add-oauth").code == 0


def test_bare_repository_has_its_worktrees_next_to_it(project: Scenario, tmp_path: Path) -> None:
    prepare_project(project)
    folder = tmp_path / "code"
    folder.mkdir()
    project.git("clone", "-q", "--bare", ".", str(folder / "notes.git"))
    project.git("worktree", "add", "-q", "../work", "main", cwd=folder / "notes.git")
    work = folder / "work"
    begun = begin(project, "worktree", "--trust", "--json", cwd=work)
    assert begun.code == 0, begun.err
    assert (folder / "notes-agentd/add-oauth" / FOLDER / "proposal.md").is_file()
    assert project.git("status", "--porcelain", cwd=work) == ""
    for cwd in (work, folder / "notes-agentd/add-oauth"):
        assert project.agentd("status", "add-oauth", cwd=cwd).code == 0
    dropped = project.agentd("drop", "add-oauth", "--yes", "--json", cwd=folder / "notes-agentd/add-oauth")
    project.paste("\n".join(dropped.json["to_remove"]), folder / "notes-agentd/add-oauth")
    assert sorted(os.listdir(folder)) == ["notes-agentd", "notes.git", "work"]
    assert project.git("branch", "--format=%(refname:short)", cwd=work) == "main"

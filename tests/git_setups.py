"""Where a new change lives: a project for it, the command that begins one, and a look at what it left."""

from pathlib import Path

from agentd.change.folder import read_state
from agentd.change.state import GitLocation
from plans import SIGN_IN
from playbooks import FOLDER, plan_steps
from scenario import IN_PLACE, NO_REVIEWS, Result, Scenario

BRANCH = "agentd/add-oauth"
WAYS = ("in-place", "branch", "worktree")
BEGIN = ("proposal", "add-oauth", SIGN_IN, "--skip-clarify")  # one call: the quickest command that begins a change


def prepare_project(box: Scenario, git: str = IN_PLACE, workflow: str = "human_in_loop = false\n") -> None:
    """A committed project with a sub-folder, whose plans take two calls; `git` is its [git] section."""
    box.write("src/notes.py", "NOTES = []\n")
    box.with_agents(plan_steps(), workflow=f"{NO_REVIEWS}{workflow}")
    if git != IN_PLACE:
        config = box.root / "agentd/config.toml"
        box.configure(config.read_text().replace(IN_PLACE, git))


def begin(box: Scenario, way: str, *flags: str, cwd: Path | None = None) -> Result:
    return box.agentd(*BEGIN, "--git", way, *flags, cwd=cwd)


def home(box: Scenario, way: str) -> Path:
    return box.worktree() if way == "worktree" else box.root


def place(tree: Path) -> GitLocation:
    return read_state(tree / FOLDER).git


def is_untouched(box: Scenario) -> bool:
    """Neither a branch nor a worktree nor a folder."""
    branches = box.git("for-each-ref", "--format=%(refname:short)", "refs/heads/agentd").split()
    trees = box.git("worktree", "list", "--porcelain").count("worktree ")
    return not branches and trees == 1 and not box.worktree().exists() and not (box.root / FOLDER).exists()


def is_set_up(box: Scenario, way: str) -> bool:
    """The change is begun, once, and where it should be."""
    open_ = box.agentd("list", "--json").json["changes"]
    trees = box.git("worktree", "list").count("\n") + 1
    branches = box.git("branch", "--list", "agentd/*").count("\n") + 1
    assert [one["change_id"] for one in open_] == ["add-oauth"], open_
    assert (trees, branches) == (1 + (way == "worktree"), 1)
    found = place(home(box, way))
    return (found.setup, found.branch, found.target) == (way, BRANCH, "main")

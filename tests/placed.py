"""Where a new change lives: a project for it, the command that begins one, and a look at what it left."""

import subprocess
from pathlib import Path

from agentd.change.folder import read_state
from agentd.change.state import Place
from planned import NO_LOOKS, quick_plan
from plays import DESCRIPTION, IN_PLACE, stage
from support import Box, Ran
from working import settle

BRANCH = "agentd/add-oauth"
OWN = "agentd/changes/add-oauth"
WAYS = ("in-place", "branch", "worktree")
BEGIN = ("proposal", "add-oauth", DESCRIPTION, "--skip-clarify")  # one call: the quickest command that begins a change


def ready(box: Box, git: str = IN_PLACE, workflow: str = "human_in_loop = false\n") -> None:
    """A committed project with a sub-folder, whose plans take two calls; `git` is its [git] section."""
    box.write("src/notes.py", "NOTES = []\n")
    stage(box, quick_plan(), workflow=f"{NO_LOOKS}{workflow}")
    if git != IN_PLACE:
        config = box.root / "agentd/config.toml"
        settle(box, config.read_text().replace(IN_PLACE, git))


def begin(box: Box, way: str, *flags: str, cwd: Path | None = None) -> Ran:
    return box.agentd(*BEGIN, "--git", way, *flags, cwd=cwd)


def tree_of(box: Box, change_id: str = "add-oauth") -> Path:
    """The work tree of its own that a change would have."""
    return box.root.with_name(f"{box.root.name}-agentd") / change_id


def home(box: Box, way: str) -> Path:
    return tree_of(box) if way == "worktree" else box.root


def place(tree: Path) -> Place:
    return read_state(tree / OWN).git


def paste(box: Box, command: str, cwd: Path | None = None) -> None:
    """Type into a shell what agentd has printed."""
    done = subprocess.run(["sh", "-ec", command], cwd=cwd or box.root, env=box.env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def hint(ran: Ran) -> str:
    return str(ran.json["error"]["hint"])


def nothing_made(box: Box) -> bool:
    """Neither a branch nor a work tree nor a folder."""
    branches = box.git("for-each-ref", "--format=%(refname:short)", "refs/heads/agentd").split()
    trees = box.git("worktree", "list", "--porcelain").count("worktree ")
    return not branches and trees == 1 and not tree_of(box).exists() and not (box.root / OWN).exists()


def whole(box: Box, way: str) -> bool:
    """The change is begun, once, and where it should be."""
    open_ = box.agentd("list", "--json").json["changes"]
    trees = box.git("worktree", "list").count("\n") + 1
    branches = box.git("branch", "--list", "agentd/*").count("\n") + 1
    assert [one["change_id"] for one in open_] == ["add-oauth"], open_
    assert (trees, branches) == (1 + (way == "worktree"), 1)
    found = place(home(box, way))
    return (found.setup, found.branch, found.target) == (way, BRANCH, "main")

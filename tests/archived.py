"""A project whose changes are archived: what they say, what is typed afterwards, and how it is all over."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentd.change.state import Place
from finished import NOTES, complete, delta, requirement, scenario, spec
from program import Program
from support import Box, Ran

SHORTER = delta("notes", requirement("R2", "Notes have a title", "A title is at most 40 characters."))
TAGS = spec("tags", requirement("R1", "Tags", "A note has tags."), scenario("Tagged", "R1", "it is found by its tag"))
ID = "short-titles"
BRANCH = f"agentd/{ID}"
_VARIABLES = ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")


def laid_out(box: Box, prefix: str = "", start: str = "start") -> Box:
    """A project with a spec, in a sub-folder of its repository if wished; committed, if the commit has a name."""
    box.write("README.md", "notes\n")
    box.write(f"{prefix}agentd/config.toml", "schema_version = 1\n")
    box.write(f"{prefix}agentd/specs/notes.md", NOTES)
    if start:
        box.commit(start)
    return box


def variables(box: Box) -> dict[str, str]:
    return {name: box.env[name] for name in _VARIABLES}


def short_titles(box: Box, place: Place | None = None) -> Path:
    """A complete change, committed where it lives: its tree."""
    change = complete(box, ID, {"notes": SHORTER}, place)
    box.commit("the change", cwd=Path(change.tree))
    return Path(change.tree)


def all_commands(ran: Ran) -> str:
    """What was printed, to be typed into one shell: the pull request would be instead of the merge."""
    assert ran.code == 0, ran.out + ran.err
    told = ran.json["commands"]
    return "\n".join(line for kind in ("commit", "merge", "remove") for line in told[kind])


def is_over(box: Box, *trees: Path, target: str = "main", prefix: str = "") -> None:
    """The target has specs and archive, branch and work tree are gone, and from nowhere does it look open."""
    names = box.git("ls-tree", "-r", "--name-only", target, "-z").split("\0")
    kept = [name for name in names if name.startswith(f"{prefix}agentd/archive/") and f"-{ID}/STATE.yaml" in name]
    assert len(kept) == 1 and not [name for name in names if "/changes/" in name], names
    assert "at most 40" in box.git("show", f"{target}:{prefix}agentd/specs/notes.md")
    assert f": {ID}" in box.git("show", f"{target}:{prefix}agentd/specs/CHANGELOG.md")
    assert not box.git("branch", "--list", "agentd/*") and ID not in box.git("worktree", "list")
    assert not box.git("status", "--porcelain", cwd=trees[0])
    for tree in trees:
        looks_ended(box, tree / prefix)


def looks_ended(box: Box, tree: Path) -> None:
    assert box.agentd("list", "--json", cwd=tree).json["changes"] == []
    assert [(one["change_id"], one["phase"]) for one in every(box, tree)] == [(ID, "archived")]
    told = box.agentd("status", ID, "--json", cwd=tree).json
    assert (told["phase"], told["next"], told["error"]) == ("archived", None, None)


def every(box: Box, tree: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = box.agentd("list", "--all", "--json", cwd=tree).json["changes"]
    return rows


@contextmanager
def at_once(box: Box, *commands: Sequence[str]) -> Iterator[list[Program]]:
    """All of them started before one is waited for."""
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    started = [
        Program([*box.program, *arguments], cwd=box.root, env=box.env, stdin=quiet, stdout=pipe, stderr=pipe, text=True)
        for arguments in commands
    ]
    try:
        yield started
    finally:
        for one in started:
            one.kill()
            one.communicate()

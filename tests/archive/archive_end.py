"""What an archived change leaves, and the git commands that `agentd archive` prints."""

from pathlib import Path

from plans import SHORT_TITLES_ID
from scenario import Result, Scenario

BRANCH = f"agentd/{SHORT_TITLES_ID}"


def all_commands(ran: Result) -> str:
    """What was printed, to be typed into one shell: the pull request would be instead of the merge."""
    assert ran.code == 0, ran.out + ran.err
    told = ran.json["commands"]
    return "\n".join(line for kind in ("commit", "merge", "remove") for line in told[kind])


def is_over(box: Scenario, *trees: Path, target: str = "main", prefix: str = "") -> None:
    """The target has specs and archive, branch and work tree are gone, and from nowhere does it look open."""
    names = box.git("ls-tree", "-r", "--name-only", target, "-z").split("\0")
    kept = [
        name
        for name in names
        if name.startswith(f"{prefix}agentd/archive/") and f"-{SHORT_TITLES_ID}/STATE.yaml" in name
    ]
    assert len(kept) == 1 and not [name for name in names if "/changes/" in name], names
    assert "at most 40" in box.git("show", f"{target}:{prefix}agentd/specs/notes.md")
    assert f": {SHORT_TITLES_ID}" in box.git("show", f"{target}:{prefix}agentd/specs/CHANGELOG.md")
    assert not box.git("branch", "--list", "agentd/*") and SHORT_TITLES_ID not in box.git("worktree", "list")
    assert not box.git("status", "--porcelain", cwd=trees[0])
    for tree in trees:
        looks_ended(box, tree / prefix)


def looks_ended(box: Scenario, tree: Path) -> None:
    assert box.agentd("list", "--json", cwd=tree).json["changes"] == []
    assert [(one["change_id"], one["phase"]) for one in every(box, tree)] == [(SHORT_TITLES_ID, "archived")]
    told = box.agentd("status", SHORT_TITLES_ID, "--json", cwd=tree).json
    assert (told["phase"], told["next"], told["error"]) == ("archived", None, None)


def every(box: Scenario, tree: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = box.agentd("list", "--all", "--json", cwd=tree).json["changes"]
    return rows

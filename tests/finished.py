"""Changes that are complete, made without agents: for tests of what comes after. Their specs are about notes."""

from dataclasses import replace
from pathlib import Path

from agentd import clock, files, git
from agentd.change import entry
from agentd.change.folder import Change
from agentd.change.state import Place
from agentd.machine import Event
from agentd.project import find_project
from agentd.terms import GitSetup
from support import Box

SPECS = "agentd/specs"


def requirement(id_: str, title: str, words: str) -> str:
    return f"### {id_}: {title}\n\n{words}\n\n"


def scenario(title: str, requirement: str, then: str) -> str:
    return f"### Scenario: {title}\n\n- **Requirement**: {requirement}\n- **WHEN** it happens\n- **THEN** {then}\n\n"


def spec(id_: str, requirements: str, scenarios: str, head: str = "version: 1", aside: str = "") -> str:
    return (
        f"---\nid: {id_}\ntype: spec\ntitle: About {id_}\n{head}\n---\n\n# Spec: About {id_}\n\n## Overview\n\n"
        f"What holds for {id_}.\n\n## Requirements\n\n{requirements}{aside}## Acceptance Criteria\n\n{scenarios}"
    ).rstrip("\n") + "\n"


def delta(id_: str, requirements: str = "", scenarios: str = "", version: int = 1, aside: str = "") -> str:
    return spec(id_, requirements, scenarios, f"base_version: {version}", aside)


NOTES = spec(
    "notes",
    requirement("R1", "Notes are kept", "A note is kept until it is deleted.")
    + requirement("R2", "Notes have a title", "A title is at most 80 characters."),
    scenario("Kept", "R1", "the note is there") + scenario("Too long", "R2", "the note is refused"),
)


def proposal(change_id: str, specs: list[str]) -> str:
    listed = "".join(f"\n  - id: {one}\n    depends: []" for one in specs) or " []"
    names = ", ".join(f"`{one}`" for one in specs) or "none"
    return (
        f"---\nid: {change_id}\ntype: proposal\nversion: 1\ncreated: 2026-01-19T10:30:39Z\naffected_specs:{listed}\n"
        f"---\n\n# Change: {change_id}\n\n## Summary\n\nBetter notes.\n\n## Why\n\nThey are needed.\n\n"
        f"## What Changes\n\n- Notes.\n\n## Impact\n\n- Scope: minor\n- Affected specs: {names}\n- Affected files: 1\n"
    )


def tasks(change_id: str) -> str:
    return (
        f"---\nid: {change_id}\ntype: tasks\nversion: 1\n---\n\n# Tasks: {change_id}\n\n## 2. Logic Layer\n\n"
        f'### Task 2.1: Do it\n\n```yaml\nid: "2.1"\nfile: {change_id}.py\naction: CREATE\ndepends_on: []\n'
        "status: pending\n```\n\nDo it.\n"
    )


def begun(box: Box, change_id: str, specs: dict[str, str], place: Place | None = None) -> Change:
    """A plan that nobody has judged; the specs as the project has them now are kept as its base."""
    project = find_project()
    change = entry.create(project, change_id, f"Better notes by {change_id}", place)
    known: dict[str, str | None] = {}
    _write(change.folder / "proposal.md", proposal(change_id, list(specs)))
    _write(change.folder / "tasks.md", tasks(change_id))
    for name, text in specs.items():
        _write(change.folder / "specs" / f"{name}.md", text)
        main = project.specs_in(change.tree) / f"{name}.md"
        known[name] = files.digest(main.read_bytes()) if main.is_file() else None
        if main.is_file():
            files.write(change.folder / "base" / f"{name}.md", main.read_bytes())
    change.update(lambda old: replace(old, base=replace(old.base, specs=known)))
    move(change, Event.PLAN_GENERATED)
    return change


def complete(box: Box, change_id: str, specs: dict[str, str], place: Place | None = None) -> Change:
    """The same, with code that was approved: one file of its own."""
    change = begun(box, change_id, specs, place)
    move(change, Event.CHALLENGE_APPROVED)
    base = git.snapshot(change.tree)
    change.update(lambda old: replace(old, base=replace(old.base, tree=base)))
    move(change, Event.IMPLEMENTATION_STARTED)
    _write(Path(change.tree, f"{change_id}.py"), "DONE = True\n")
    approve(change)
    return change


def approve(change: Change) -> None:
    """The code as it is now is judged."""
    specs = {name: digest for name, digest in change.hashes().items() if name.startswith("specs/")}
    hashes = {"tree": git.snapshot(change.tree), "base": str(change.read().base.tree), **specs}
    at = clock.now()
    change.update(lambda old: old.moved(Event.REVIEW_APPROVED, by="agent:codex", why="test", at=at, hashes=hashes))


def move(change: Change, event: Event) -> None:
    change.update(lambda old: old.moved(event, by="agentd", why="test", at=clock.now(), hashes=change.hashes()))


def on_branch(box: Box, change_id: str) -> Place:
    """On a branch of its own in this tree, from where we stand."""
    target = box.git("branch", "--show-current")
    box.git("switch", "-q", "-c", f"agentd/{change_id}")
    return Place(GitSetup.BRANCH, f"agentd/{change_id}", ".", target)


def in_work_tree(box: Box, change_id: str) -> Place:
    """In a work tree of its own beside this one."""
    tree = box.root.with_name(f"{box.root.name}-agentd") / change_id
    box.git("worktree", "add", "-q", "-b", f"agentd/{change_id}", str(tree))
    target = box.git("branch", "--show-current")
    return Place(GitSetup.WORKTREE, f"agentd/{change_id}", find_project().tree_name(str(tree)), target)


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a tree but git's own, with its rights."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and name.parts[0] != ".git":
            found[str(name)] = (path.stat().st_mode, path.read_bytes())
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

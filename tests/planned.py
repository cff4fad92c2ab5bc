"""A small plan whose agents need no server: the planner writes its files itself, the judge answers in text.

For tests of how a plan ends, which run it many times; plays.py has agents that use their tools.
"""

import json
from pathlib import Path
from typing import Any

from agentd import clock, events
from agentd.change import entry
from agentd.change.folder import Change
from agentd.machine import Event
from agentd.project import find_project
from plays import DESCRIPTION, PASS, folder, stage
from support import EXAMPLE, Box
from working import Action, say, settle, usage

SPEC = "user-model"
NO_LOOKS = "self_review_iterations = 0\n"
APPROVED = [usage(0.05), say("It holds.\n\n**Verdict**: APPROVED")]
SPEC_TEXT = (EXAMPLE / "specs" / f"{SPEC}.md").read_text()
PROPOSAL_TEXT = """---
id: add-oauth
type: proposal
version: 1
created: 2026-01-19T10:30:39Z
affected_specs:
  - id: user-model
    depends: []
---

# Change: add-oauth

## Summary

People are users.

## Why

Nobody can tell who wrote a note.

## What Changes

- Add users.

## Impact

- Scope: minor
- Affected specs: `user-model`
- Affected files: 2
"""
TASKS_TEXT = """---
id: add-oauth
type: tasks
version: 1
---

# Tasks: add-oauth

## 1. Data Layer

### Task 1.1: Store users

```yaml
id: "1.1"
file: src/notes/user.py
action: CREATE
spec_ref: user-model:R1
depends_on: []
status: pending
```

Define `User`.

### Task 1.2: Store identities

```yaml
id: "1.2"
file: src/notes/identity.py
action: CREATE
spec_ref: user-model:R2
depends_on: ["1.1"]
status: pending
```

Define `Identity`.
"""
WITHOUT_WHY = PROPOSAL_TEXT.replace("## Why\n\nNobody can tell who wrote a note.\n\n", "")
TEXTS = {"proposal.md": PROPOSAL_TEXT, f"specs/{SPEC}.md": SPEC_TEXT, "tasks.md": TASKS_TEXT}


def put(name: str, text: str = "") -> Action:
    """The agent writes a document of the change with its own hands."""
    return {"write": f"agentd/changes/add-oauth/{name}", "text": text or TEXTS[name]}


def edit(name: str, old: str, new: str) -> Action:
    return {"edit": f"agentd/changes/add-oauth/{name}", "old": old, "new": new}


def quick_plan(**other: list[Action]) -> dict[str, list[Action]]:
    """Every step of a plan that goes well; `proposal_gen=[…]` is another one for that step."""
    look = [usage(0.001), say(f"Looked.\n\n{PASS}")]
    steps: dict[str, list[Action]] = {
        "proposal-gen": [put("proposal.md"), usage(0.01)],
        "proposal-review": look,
        f"spec-gen-{SPEC}": [put(f"specs/{SPEC}.md"), usage(0.01)],
        f"spec-review-{SPEC}": look,
        "tasks-gen": [put("tasks.md"), usage(0.01)],
        "tasks-review": look,
        "plan-gen": [*(put(name) for name in TEXTS), usage(0.03)],
        "plan-review": look,
        "challenge": APPROVED,
    }
    return steps | {name.replace("_", "-"): actions for name, actions in other.items()}


def replay(box: Box, steps: dict[str, list[Action]]) -> None:
    """From now on the agents play these."""
    box.write("playbook.json", json.dumps({"steps": steps}))
    settle(box, (box.root / "agentd/config.toml").read_text())


def seat(box: Box, role: str, agent: str) -> None:
    """That agent in that role."""
    text = (box.root / "agentd/config.toml").read_text()
    settle(box, text.replace(f'{role} = "play"', f'{role} = "{agent}"'))


def proposed(
    box: Box, challenge: list[Action], later: dict[str, list[Action]] | None = None, more: str = "", rounds: int = 0
) -> Change:
    """A staged project with a plan that is generated and not judged yet; `later` is played instead where it fits."""
    stage(box, {"challenge": challenge, **(later or {})}, more, f"planning_iterations = {rounds}\n")
    change = entry.create(find_project(), "add-oauth", DESCRIPTION)
    for name, text in TEXTS.items():
        box.write(f"agentd/changes/add-oauth/{name}", text)
    why = "proposal, 1 spec and 2 tasks generated and valid"
    change.update(
        lambda old: old.moved(Event.PLAN_GENERATED, by="agentd", why=why, at=clock.now(), hashes=change.hashes())
    )
    return change


def change_of(box: Box) -> Change:
    return Change(find_project(str(box.root)), "add-oauth", str(box.root), folder(box))


def ran(box: Box) -> list[str]:
    """Every call so far, in order: `tasks-review#2` is the second of its kind in a round."""
    started = journal(box, events.StepStarted)
    return [one.step + (f"#{one.number}" if one.number > 1 else "") for one in started]


def journal(box: Box, kind: type[events.Happened]) -> list[Any]:
    return [one.event for one in change_of(box).journal().since(0)[0] if isinstance(one.event, kind)]


def files_of(root: Path) -> dict[str, bytes]:
    """Every file of the project and of its local room, but the index, which any command may bring up to date."""
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    room = ".git/agentd/"
    own = [name for name in found if name.startswith(room) or not name.startswith(".git/")]
    return {name: found[name].read_bytes() for name in own if not name.startswith(f"{room}index.json")}

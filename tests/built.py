"""A small project with a plan that is approved: a Python module, its unittest, and agents that write code.

For tests of `impl`. The implementer writes files itself, the reviewer reports through its tool.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentd import clock, yaml12
from agentd.change import entry
from agentd.change.folder import Change, read_state
from agentd.change.state import State
from agentd.machine import Event
from agentd.project import find_project
from plays import APPROVE, call, stage
from support import Box, Ran
from working import Action, say, usage

DESCRIPTION = "Greet people by name"
TESTS = f"{sys.executable} -m unittest -q"
CHECK = f'[[checks]]\nname = "tests"\ncommand = "{TESTS}"\nrequired = true\ntimeout = 60\n'

PROPOSAL = """---
id: greet
type: proposal
version: 1
created: 2026-01-19T10:30:39Z
affected_specs:
  - id: greeting
    depends: []
---

# Change: greet

## Summary

People are greeted by name.

## Why

A greeting without a name is cold.

## What Changes

- Add a greeting.

## Impact

- Scope: minor
- Affected specs: `greeting`
- Affected files: 2
"""
SPEC = """---
id: greeting
title: Greeting
version: 1
---

# Spec: Greeting

## Overview

How people are greeted.

## Requirements

### R1: Greeting by name

The greeting contains the name.

### R2: Nobody

Without a name the greeting is to the world.

## Acceptance Criteria

### Scenario: By name

- **GIVEN** the name Ann
- **WHEN** she is greeted
- **THEN** the greeting is "Hello, Ann!"

Requirement: R1

### Scenario: Nobody

- **GIVEN** no name
- **WHEN** somebody is greeted
- **THEN** the greeting is "Hello, world!"

Requirement: R2
"""
TASKS = """---
id: greet
type: tasks
version: 1
---

# Tasks: greet

## 2. Logic Layer

### Task 2.1: Write the greeting

```yaml
id: "2.1"
file: greeting.py
action: CREATE
spec_ref: greeting:R1
depends_on: []
status: pending
```

Define `greet(name)`.

## 4. Testing Layer

### Task 4.1: Test the greeting

```yaml
id: "4.1"
file: tests/test_greeting.py
action: CREATE
spec_ref: greeting:R2
depends_on: ["2.1"]
status: pending
```

One test for each scenario.
"""
DOCUMENTS: dict[str, str] = {"proposal.md": PROPOSAL, "specs/greeting.md": SPEC, "tasks.md": TASKS}

GOOD = '''"""Greetings."""


def greet(name: str = "") -> str:
    return f"Hello, {name or 'world'}!"
'''
BAD = GOOD.replace("name or 'world'", "name")
TEST = '''"""What the greeting says."""

import unittest

from greeting import greet


class Greeting(unittest.TestCase):
    def test_by_name(self):
        """covers: greeting:R1"""
        self.assertEqual(greet("Ann"), "Hello, Ann!")

    def test_nobody(self):
        """covers: greeting:R2"""
        self.assertEqual(greet(), "Hello, world!")
'''


THERE = """import unittest


class There(unittest.TestCase):
    def test_it(self):
        self.assertEqual(len('it'), 2)
"""
YES = [usage(0.05), say("It holds.\n\n**Verdict**: APPROVED")]  # a reviewer that answers in text needs no server
NO = [usage(0.05), say("It does not hold.\n\n**Verdict**: NEEDS_CHANGES")]


def write(path: str, text: str) -> Action:
    return {"write": path, "text": text}


def edit(path: str, old: str, new: str) -> Action:
    return {"edit": path, "old": old, "new": new}


def answer(id_: str, word: str = "fixed", note: str = "Done.") -> Action:
    return call("answer_finding", id=id_, answer=word, note=note)


def judged(word: str = "APPROVED", *findings: dict[str, Any], **more: Any) -> list[Action]:
    report = {**APPROVE, "verdict": word, "findings": list(findings), **more}
    return [call("append_review", **report), usage(0.05), say("Reported.")]


def honest(code: str = GOOD, tests: str = TEST) -> list[Action]:
    return [write("greeting.py", code), write("tests/test_greeting.py", tests), usage(0.1), say("All tests pass.")]


def proposed(
    box: Box,
    steps: dict[str, list[Action]],
    more: str = CHECK,
    workflow: str = "",
    documents: Mapping[str, str] = DOCUMENTS,
) -> Change:
    """A committed project with a plan that nobody has judged, and whose agents play these steps."""
    box.write("tests/__init__.py", "")
    box.write("tests/test_there.py", THERE)
    box.write(".gitignore", "__pycache__/\nplaybook.json\n")
    stage(box, {"review": YES, **steps}, more, workflow)
    change = entry.create(find_project(), "greet", DESCRIPTION)
    for name, text in documents.items():
        (change.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (change.folder / name).write_text(text)
    move(change, Event.PLAN_GENERATED)
    return change


def approved(
    box: Box,
    steps: dict[str, list[Action]],
    more: str = CHECK,
    workflow: str = "",
    documents: Mapping[str, str] = DOCUMENTS,
) -> Change:
    """The same with a plan that is approved; no judge was asked."""
    change = proposed(box, steps, more, workflow, documents)
    move(change, Event.CHALLENGE_APPROVED)
    return change


def move(change: Change, event: Event, by: str = "agentd", why: str = "test") -> None:
    change.update(lambda old: old.moved(event, by=by, why=why, at=clock.now(), hashes=change.hashes()))


# ---- other plans


def task(id_: str, file: str, action: str = "CREATE", ref: str = "greeting:R1", needs: Sequence[str] = ()) -> str:
    depends = ", ".join(f'"{one}"' for one in needs)
    refs = f"spec_ref: {ref}\n" if ref else ""
    return (
        f'### Task {id_}: See to {file}\n\n```yaml\nid: "{id_}"\nfile: {file}\naction: {action}\n'
        f"{refs}depends_on: [{depends}]\nstatus: pending\n```\n\nDo it.\n"
    )


def tasks(*rows: str) -> str:
    """Under one heading; the ids name their layers."""
    head = TASKS[: TASKS.index("## 2. Logic Layer")]
    return head + "## 2. Logic Layer\n\n" + "\n".join(rows)


def plan_of(*rows: str, specs: Sequence[str] = ("greeting",)) -> dict[str, str]:
    """A plan with these tasks and specs."""
    listed = "".join(f"\n  - id: {one}\n    depends: []" for one in specs) or " []"
    names = ", ".join(f"`{one}`" for one in specs) or "none"
    proposal = PROPOSAL.replace("\n  - id: greeting\n    depends: []", listed).replace("`greeting`", names)
    texts = {f"specs/{one}.md": SPEC.replace("id: greeting", f"id: {one}") for one in specs}
    return {"proposal.md": proposal, **texts, "tasks.md": tasks(*rows)}


# ---- at work


def impl(box: Box, *flags: str) -> Ran:
    return box.agentd("impl", "greet", *flags)


def home(box: Box) -> Path:
    return box.root / "agentd" / "changes" / "greet"


def state(box: Box) -> State:
    return read_state(home(box))


def record(box: Box, number: int = 1) -> dict[str, Any]:
    """The record of a review."""
    found: dict[str, Any] = yaml12.load((home(box) / f"reviews/review-{number}.yaml").read_text())
    return found


def found(box: Box, number: int = 1) -> list[tuple[str, str, str]]:
    """What that review found: by whom, how severe, what."""
    return [(one["by"], one["severity"], one["title"]) for one in record(box, number)["findings"]]


def ran(box: Box) -> list[str]:
    """The steps that are done, in order, checks left out."""
    rows = [step for step in state(box).steps if step.name != "checks" and step.status == "done"]
    return [step.name + (f"#{step.number}" if step.number > 1 else "") for step in rows]


@contextmanager
def standing_in(box: Box) -> Iterator[Box]:
    """This process in that repository, as with the fixture `project`; for a box of a whole module."""
    box.write("README.md", "notes\n")
    box.write("agentd/config.toml", "schema_version = 1\n")
    box.commit("start")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(box.root)
        for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            patch.setenv(name, box.env[name])
        yield box

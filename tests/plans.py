"""Documents of plans: the contract's example, a plan made by hand, and the pieces that others are made of."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parent / "data" / "example"
EXAMPLE_SPECS = ("user-model", "auth-flow", "api-endpoints")
LAYERS = {"1": "Data", "2": "Logic", "3": "Integration", "4": "Testing"}


@cache
def _example_calls() -> str:
    text = (EXAMPLE / "tools.md").read_text()
    found = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[2:]:
        block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
        assert block, section
        found[section.split("\n", 1)[0].strip()] = json.loads(block[1])
    return json.dumps(found)


def example_calls() -> dict[str, dict[str, Any]]:
    """The arguments of each tool in the contract: the first JSON block of its section. Each caller gets its own."""
    calls: dict[str, dict[str, Any]] = json.loads(_example_calls())
    return calls


# ---- pieces


def proposal_text(
    change_id: str,
    specs: Sequence[str] = (),
    summary: str = "Better notes.",
    why: str = "They are needed.",
    what: str = "Notes.",
    files: int = 1,
) -> str:
    listed = "".join(f"\n  - id: {one}\n    depends: []" for one in specs) or " []"
    names = ", ".join(f"`{one}`" for one in specs) or "none"
    return (
        f"---\nid: {change_id}\ntype: proposal\nversion: 1\ncreated: 2026-01-19T10:30:39Z\naffected_specs:{listed}\n"
        f"---\n\n# Change: {change_id}\n\n## Summary\n\n{summary}\n\n## Why\n\n{why}\n\n"
        f"## What Changes\n\n- {what}\n\n## Impact\n\n- Scope: minor\n- Affected specs: {names}\n"
        f"- Affected files: {files}\n"
    )


def task(
    id_: str,
    file: str,
    action: str = "CREATE",
    ref: str = "greeting:R1",
    needs: Sequence[str] = (),
    title: str = "",
    text: str = "Do it.",
) -> str:
    depends = ", ".join(f'"{one}"' for one in needs)
    refs = f"spec_ref: {ref}\n" if ref else ""
    return (
        f'### Task {id_}: {title or f"See to {file}"}\n\n```yaml\nid: "{id_}"\nfile: {file}\naction: {action}\n'
        f"{refs}depends_on: [{depends}]\nstatus: pending\n```\n\n{text}\n"
    )


def tasks_text(change_id: str, layers: Mapping[str, Sequence[str]]) -> str:
    """Tasks by the number of their layer."""
    head = f"---\nid: {change_id}\ntype: tasks\nversion: 1\n---\n\n# Tasks: {change_id}\n"
    parts = [f"## {number}. {LAYERS[number]} Layer\n\n" + "\n".join(rows) for number, rows in layers.items()]
    return "\n".join([head, *parts])


def requirement_text(id_: str, title: str, text: str) -> str:
    return f"### {id_}: {title}\n\n{text}\n\n"


def scenario_text(title: str, requirement: str, then: str) -> str:
    return f"### Scenario: {title}\n\n- **Requirement**: {requirement}\n- **WHEN** it happens\n- **THEN** {then}\n\n"


def spec_text(id_: str, requirements: str, scenarios: str, head: str = "version: 1", aside: str = "") -> str:
    return (
        f"---\nid: {id_}\ntype: spec\ntitle: About {id_}\n{head}\n---\n\n# Spec: About {id_}\n\n## Overview\n\n"
        f"What holds for {id_}.\n\n## Requirements\n\n{requirements}{aside}## Acceptance Criteria\n\n{scenarios}"
    ).rstrip("\n") + "\n"


def delta_text(id_: str, requirements: str = "", scenarios: str = "", version: int = 1, aside: str = "") -> str:
    return spec_text(id_, requirements, scenarios, f"base_version: {version}", aside)


# ---- signing in: one spec of the contract's example, without its neighbours

SIGN_IN_ID = "add-oauth"
SIGN_IN = "Let people sign in with Google or GitHub"
SPEC = "user-model"
SPEC_FILE = f"specs/{SPEC}.md"
SPEC_TEXT = (EXAMPLE / SPEC_FILE).read_text()
PROPOSAL_TEXT = proposal_text(
    SIGN_IN_ID, [SPEC], "People are users.", "Nobody can tell who wrote a note.", "Add users.", 2
)
TASKS_TEXT = tasks_text(
    SIGN_IN_ID,
    {
        "1": [
            task("1.1", "src/notes/user.py", ref=f"{SPEC}:R1", title="Store users", text="Define `User`."),
            task(
                "1.2",
                "src/notes/identity.py",
                ref=f"{SPEC}:R2",
                needs=["1.1"],
                title="Store identities",
                text="Define `Identity`.",
            ),
        ]
    },
)
PROPOSAL_WITHOUT_WHY = PROPOSAL_TEXT.replace("## Why\n\nNobody can tell who wrote a note.\n\n", "")
SIGN_IN_DOCUMENTS = {"proposal.md": PROPOSAL_TEXT, SPEC_FILE: SPEC_TEXT, "tasks.md": TASKS_TEXT}


# ---- a greeting: a plan with code and tests that run

GREETING_ID = "greet"
GREETING = "Greet people by name"
GREETING_SPEC = """---
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
GREETING_TASKS = tasks_text(
    GREETING_ID,
    {
        "2": [task("2.1", "greeting.py", title="Write the greeting", text="Define `greet(name)`.")],
        "4": [
            task(
                "4.1",
                "tests/test_greeting.py",
                ref="greeting:R2",
                needs=["2.1"],
                title="Test the greeting",
                text="One test for each scenario.",
            )
        ],
    },
)


def greeting_proposal(specs: Sequence[str] = ("greeting",)) -> str:
    why, what = "A greeting without a name is cold.", "Add a greeting."
    return proposal_text(GREETING_ID, specs, "People are greeted by name.", why, what, 2)


GREETING_DOCUMENTS = {
    "proposal.md": greeting_proposal(),
    "specs/greeting.md": GREETING_SPEC,
    "tasks.md": GREETING_TASKS,
}


def greeting_tasks(*rows: str) -> str:
    """All of them in the second layer, whatever their ids say."""
    return tasks_text(GREETING_ID, {"2": rows})


def greeting_plan(*rows: str, specs: Sequence[str] = ("greeting",)) -> dict[str, str]:
    """The documents of a plan with these tasks and specs."""
    texts = {f"specs/{one}.md": GREETING_SPEC.replace("id: greeting", f"id: {one}") for one in specs}
    return {"proposal.md": greeting_proposal(specs), **texts, "tasks.md": greeting_tasks(*rows)}


GOOD_CODE = '''"""Greetings."""


def greet(name: str = "") -> str:
    return f"Hello, {name or 'world'}!"
'''
BAD_CODE = GOOD_CODE.replace("name or 'world'", "name")
GREETING_TEST = '''"""What the greeting says."""

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
OLD_TEST = """import unittest


class There(unittest.TestCase):
    def test_it(self):
        self.assertEqual(len('it'), 2)
"""


# ---- notes: specs that changes are merged into

NOTES = spec_text(
    "notes",
    requirement_text("R1", "Notes are kept", "A note is kept until it is deleted.")
    + requirement_text("R2", "Notes have a title", "A title is at most 80 characters."),
    scenario_text("Kept", "R1", "the note is there") + scenario_text("Too long", "R2", "the note is refused"),
)
SHORT_TITLES_ID = "short-titles"
SHORT_TITLES = delta_text("notes", requirement_text("R2", "Notes have a title", "A title is at most 40 characters."))
TAGS = spec_text(
    "tags", requirement_text("R1", "Tags", "A note has tags."), scenario_text("Tagged", "R1", "it is found by its tag")
)


def notes_tasks(change_id: str) -> str:
    return tasks_text(change_id, {"2": [task("2.1", f"{change_id}.py", ref="", title="Do it")]})

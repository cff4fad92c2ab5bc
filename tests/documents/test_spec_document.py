"""Specs: the examples byte for byte, every form that is read, and spans that a merge can cut."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.documents import spec
from agentd.documents import text as base
from agentd.documents.prose import unfence_code
from agentd.documents.spec import Priority, Requirement, Spec
from agentd.documents.spec_parts import RemovedItem, RenamedRequirement, RequirementName, Scenario, named_requirement
from agentd.documents.text import Span

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = DATA / "example"
EXAMPLES = [*sorted((EXAMPLE / "specs").iterdir()), *sorted((EXAMPLE / "base").iterdir())]
SEEDS = {
    "high-level-workflows.md": (["R1", "R2", "R3", "R4", "R5"], 9),
    "proposal-command.md": (["R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8"], 6),
    "progressive-proposal.md": (["R1", "R2", "R3"], 4),
}


def read(path: Path) -> str:
    return path.read_bytes().decode()


def parse(text: str) -> Spec:
    return spec.parse_spec(text, "x.md")


def scenario(body: str, name: str = "A") -> Scenario:
    (found,) = parse(f"## Acceptance Criteria\n\n### Scenario: {name}\n\n{body}\n").scenarios
    return found


def words(value: str | list[str] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def of_tool(data: dict[str, Any], base_version: int | None) -> Spec:
    """What a tool does with its input: nothing but naming things."""
    return Spec(
        id=data["spec_id"],
        title=data["title"],
        overview=data["overview"],
        requirements=tuple(
            Requirement(
                one["id"], one["title"], one["description"], Priority(one["priority"]) if "priority" in one else None
            )
            for one in data["requirements"]
        ),
        scenarios=tuple(
            Scenario(
                one["name"],
                words(one["when"]),
                words(one["then"]),
                words(one.get("given")),
                one.get("requirement", ""),
            )
            for one in data["scenarios"]
        ),
        removed=tuple(
            RemovedItem(one.get("id", ""), one.get("scenario", ""), one.get("reason", ""))
            for one in data.get("removed", ())
        ),
        renamed=tuple(RenamedRequirement(pair(one["from"]), pair(one["to"])) for one in data.get("renamed", ())),
        flow=unfence_code(data.get("flow_diagram", "")),
        base_version=base_version,
    )


def pair(text: str) -> RequirementName:
    name = named_requirement(text)
    assert name
    return name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_are_rendered_byte_for_byte(path: Path) -> None:
    assert spec.render_spec(parse(read(path))) == read(path)


def test_tool_call_renders_the_example_delta() -> None:
    section = read(EXAMPLE / "tools.md").split("\n## create_spec\n")[1]
    data = json.loads(section.split("```json\n")[1].split("```")[0])
    main = parse(read(EXAMPLE / "base" / "api-endpoints.md"))
    made = spec.fill_removed_titles(of_tool(data, main.version), main)
    assert spec.render_spec(made) == read(EXAMPLE / "specs" / "api-endpoints.md")


def test_delta_is_parsed() -> None:
    found = parse(read(EXAMPLE / "specs" / "api-endpoints.md"))
    assert (found.is_delta, found.base_version, found.version) == (True, 3, None)
    assert found.removed == (
        RemovedItem("R3", "Token in the query string", "The session cookie of auth-flow:R2 takes its place."),
        RemovedItem("", "Known token", "`/me` no longer knows tokens."),
    )
    assert found.renamed == (
        RenamedRequirement(RequirementName("R4", "Error format"), RequirementName("R4", "Error body")),
    )
    assert [one.span for one in (*found.removed, *found.renamed)] == [Span(30, 31), Span(32, 33), Span(37, 37)]
    assert found.unread == ()


@pytest.mark.parametrize("name", SEEDS)
def test_older_documents_are_parsed_as_specs(name: str) -> None:
    text = read(DATA / "seeds" / name)
    found = parse(text)
    requirements, scenarios = SEEDS[name]
    assert [one.id for one in found.requirements] == requirements
    assert all(one.title and one.text for one in found.requirements)
    assert len(found.scenarios) == scenarios
    assert all(one.when and one.then for one in found.scenarios)
    assert found.title and found.overview and not found.strays


@pytest.mark.parametrize("path", [*EXAMPLES, *sorted((DATA / "seeds").iterdir())], ids=lambda path: path.name)
def test_spans_start_at_their_heading_and_never_overlap(path: Path) -> None:
    found = parse(read(path))
    document = base.parse_document(read(path), path.name)
    spans = [*(piece for one in found.requirements for piece in one.own), *(one.span for one in found.scenarios)]
    covered = [line for span in spans for line in range(span.start, span.end + 1)]
    assert len(covered) == len(set(covered))
    assert all(one.id in document.content(one.line) for one in found.requirements)
    assert all(one.name in document.content(one.line) for one in found.scenarios)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("### R1: Title", ("R1", "Title")),
        ("### R1 - Title", ("R1", "Title")),
        ("###   RT-R12:  Title ###", ("RT-R12", "Title")),
        ("  ### R1: `a`: b", ("R1", "`a`: b")),
    ],
)
def test_requirement_headings_are_parsed(heading: str, expected: tuple[str, str]) -> None:
    (found,) = parse(f"## Requirements\n\n{heading}\n\ntext\n").requirements
    assert (found.id, found.title) == expected


@pytest.mark.parametrize("heading", ["### R1", "### R1:", "#### R1: Title", "## R1: Title", "### R1.1: T", "### Login"])
def test_malformed_requirement_heading_is_reported(heading: str) -> None:
    found = parse(f"## Requirements\n\n{heading}\n\ntext\n")
    assert found.requirements == ()
    assert [one.line for one in found.strays] == [3]


def test_requirement_pattern_of_the_project_is_used() -> None:
    pattern = re.compile(r"^## (REQ-\d+) (.+)$")
    text = "## REQ-7 Login\n\ntext\n\n### Scenario: A\n\nWHEN a THEN b\n\n## Removed\n\n- REQ-9 Old\n"
    found = spec.parse_spec(text, "x.md", pattern)
    assert found.requirements == (Requirement("REQ-7", "Login", "text"),)
    assert found.scenarios[0].requirement == "REQ-7"
    assert found.removed == (RemovedItem("REQ-9", "Old"),)
    assert spec.parse_spec("### R1\n", "x.md", re.compile("^### R1$")).requirements[0].id == "### R1"


def test_code_and_comments_contain_no_requirements_or_scenarios() -> None:
    inner = "### R1: A\n### Scenario: B\n- WHEN a\n- THEN b"
    found = parse(f"## Requirements\n\n```\n{inner}\n```\n<!--\n{inner}\n-->\n~~~\n{inner}\n")
    assert (found.requirements, found.scenarios) == ((), ())


@pytest.mark.parametrize(
    ("body", "priority", "text"),
    [
        ("**Priority**: High\n\ntext", Priority.HIGH, "text"),
        ("- Priority: low\ntext", Priority.LOW, "text"),
        ("text\n\n**Priority**: high", None, "text\n\n**Priority**: high"),
        ("**Priority**: soon\n\ntext", None, "**Priority**: soon\n\ntext"),
        ("a\n\n```\n### code\n```", None, "a\n\n```\n### code\n```"),
        ("a\n\n#### Detail\n\nb", None, "a\n\n#### Detail\n\nb"),
    ],
)
def test_priority_and_text_are_parsed(body: str, priority: Priority | None, text: str) -> None:
    (found,) = parse(f"## Requirements\n\n### R1: A\n\n{body}\n\n## Other\n").requirements
    assert (found.priority, found.text) == (priority, text)


@pytest.mark.parametrize(
    "body",
    [
        "- **GIVEN** g\n- **WHEN** w\n- **THEN** t\n- **AND** u",
        "GIVEN g\nWHEN w\nTHEN t\nAND u",
        "* GIVEN g\n* WHEN w\n* THEN t\n  - AND u",
        "**Given** g\n**When** w\n**Then** t\n**And** u",
        "- **GIVEN**: g\n- **WHEN:** w\n- **THEN** t\n- **THEN** u",
        "GIVEN g WHEN w THEN t\nAND u",
        "**GIVEN** g **WHEN** w **THEN** t **AND** u",
        "1. GIVEN g\n2. WHEN w\n3. THEN t\n4. BUT u",
        "Given g\nWhen w\nThen t\nAnd u",
        "- Given g\n- When: w\n- Then t\n- And u",
        "*Given* g\n*When* w\n_Then_ t\n- _And_ u",
        "Given g When w Then t\nAnd u",
        "```gherkin\nFeature: x\n\n  Scenario: y\n    Given g\n    When w\n    Then t\n    And u\n```",
        "~~~ Feature\nGIVEN g\nWHEN w\nTHEN t\nAND u\n~~~",
        "GIVEN g,\nWHEN w\n\n<!-- THEN x -->\nTHEN t\n```\nTHEN x\n```\nAND u",
    ],
)
def test_scenario_formats_are_parsed(body: str) -> None:
    found = scenario(body)
    assert (found.when, found.then) == (("w",), ("t", "u"))
    assert found.given[0].rstrip(",") == "g"


@pytest.mark.parametrize(
    "body",
    [
        "Whenever w\nThenceforth t",
        "when w\nthen t",
        "```python\nWhen w\nThen t\n```",
        "```\nWHEN w\nTHEN t\n```",
        "- **WHEN**\n- **THEN**",
    ],
)
def test_line_that_is_not_a_step_is_ignored(body: str) -> None:
    assert (scenario(body).when, scenario(body).then) == ((), ())


def test_sentence_within_a_step_is_not_a_step() -> None:
    found = scenario("- **WHEN** w\n  Then again, x\n- **THEN** t\n  When y, z")
    assert (found.when, found.then) == (("w\nThen again, x",), ("t\nWhen y, z",))


@pytest.mark.parametrize(
    "heading",
    [
        "### Scenario: S",
        "### **Scenario: S**",
        "### **Scenario:** S",
        "### __Scenario__: S",
        "### Scenario 1.1: S",
        "### 1. Scenario: S",
        "#### 1.2 **Scenario: S**",
        "### scenario 3 - S",
    ],
)
def test_scenario_headings_are_parsed(heading: str) -> None:
    (found,) = parse(f"## Acceptance Criteria\n\n{heading}\n\nWHEN a THEN b\n").scenarios
    assert found.name == "S"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("R1, R9", ("R1", ("R9",))),
        ("`R1`, `R2` and R3", ("R1", ("R2", "R3"))),
        ("R1/R2", ("R1", ("R2",))),
        ("R1: Title, TLS1", ("R1", ())),
        ("R1 Title, TLS1", ("R1", ())),
        ("R1, and more", ("R1", ())),
        ("x:R1, R2, y:R3", ("R1", ("R2", "y:R3"))),
        ("other:R1, R2", ("other:R1", ("other:R2",))),
    ],
)
def test_scenario_may_name_several_requirements(value: str, expected: tuple[str, tuple[str, ...]]) -> None:
    text = f"### Scenario: A\n\n- **Requirement**: {value}\n- **WHEN** a\n- **THEN** b\n"
    (found,) = parse(text).scenarios
    assert (found.requirement, found.also) == expected
    (again,) = parse(spec.render_spec(Spec("x", "t", "o", (), (found,)))).scenarios
    assert again == found


def test_scenario_heading_may_contain_all_steps() -> None:
    found = scenario("", "WHEN it rains THEN the roof closes")
    assert (found.when, found.then) == (("it rains",), ("the roof closes",))
    assert found.name == "WHEN it rains THEN the roof closes"


def test_lines_below_a_step_belong_to_it() -> None:
    found = scenario("- **WHEN** w\n  more\n\n  - nested\n\nA note.\n- **THEN** `THEN` and WHEN are words")
    assert found.when == ("w\nmore\n- nested",)
    assert found.then == ("`THEN` and WHEN are words",)


@pytest.mark.parametrize("value", ["R1", "`R1`", "R1: Title", "R1, R2", "x:R1", "**R1**", "R1 - T"])
@pytest.mark.parametrize("label", ["- **Requirement**:", "- Requirement:", "**Requirement:**"])
def test_scenario_names_its_requirement(label: str, value: str) -> None:
    assert scenario(f"{label} {value}\n- WHEN a\n- THEN b").requirement == "R1"
    assert scenario(f"- WHEN a\n- THEN b\n{label} {value}").then == ("b",)


NESTED = """## Requirements

### R1: First

one

#### Scenario: A

- **WHEN** a
- **THEN** b

#### Notes

after

### R2: Second

two

### Scenario: B

WHEN c THEN d

## Acceptance Criteria

### R1

#### Scenario: C

- **WHEN** e
- **THEN** f

### Scenario: D

- **Requirement**: R2
- **WHEN** g
- **THEN** h
"""


def test_scenarios_under_a_requirement_belong_to_it() -> None:
    found = parse(NESTED)
    first, second = found.requirements
    assert [(one.name, one.requirement) for one in found.scenarios] == [
        ("A", "R1"),
        ("B", "R2"),
        ("C", "R1"),
        ("D", "R2"),
    ]
    assert (first.text, second.text) == ("one\n\n#### Notes\n\nafter", "two")
    assert (first.span, first.own) == (Span(3, 15), (Span(3, 6), Span(12, 15)))
    assert [one.span for one in found.scenarios[:2]] == [Span(7, 11), Span(20, 23)]
    assert found.strays == ()
    assert [one.requirement for one in found.scenarios].count("R1") == 2
    assert found.scenarios[0].requirement == found.scenarios[2].requirement == "R1"


def test_scenario_ends_where_the_next_one_starts() -> None:
    found = parse("### Scenario: A\n\nWHEN a THEN b\n\n#### Scenario: B\n\nWHEN c THEN d\n")
    assert [(one.when, one.span) for one in found.scenarios] == [(("a",), Span(1, 4)), (("c",), Span(5, 7))]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("- R3: Title", RemovedItem("R3", "Title")),
        ("- **R3**: Title\n  - Reason: why", RemovedItem("R3", "Title", "why")),
        ("* `R3` - Title", RemovedItem("R3", "Title")),
        ("- R3", RemovedItem("R3")),
        ("- Scenario: Known token\n  **Reason**: why\n  more", RemovedItem("", "Known token", "why\nmore")),
    ],
)
def test_removed_entries_are_parsed(entry: str, expected: RemovedItem) -> None:
    found = parse(f"## Removed\n\n{entry}\n\n## Requirements\n")
    assert (found.removed, found.unread) == ((expected,), ())


@pytest.mark.parametrize("words", ["None.", "- none", "n/a", "- N/A", "None (all stays)", "Nothing is removed."])
def test_words_meaning_none_give_no_removed_or_renamed_entries(words: str) -> None:
    found = parse(f"## Removed\n\n{words}\n\n## Renamed\n\n{words}\n")
    assert (found.removed, found.renamed, found.unread) == ((), (), ())


@pytest.mark.parametrize("arrow", [" → ", " -> ", "→", " => "])
def test_renamed_entries_are_parsed(arrow: str) -> None:
    found = parse(f"## Renamed\n\n- R4: A → B{arrow}R4: New\n")
    assert found.renamed == (RenamedRequirement(RequirementName("R4", "A → B"), RequirementName("R4", "New")),)


def test_unreadable_entries_are_reported() -> None:
    found = parse("## Removed\n\nsome words\n\n- the login\n\n## Renamed\n\n- R4: only one side\n")
    assert (found.removed, found.renamed) == ((), ())
    assert found.unread == (("some words", 3), ("the login", 5), ("R4: only one side", 9))


def test_title_comes_from_frontmatter_or_heading() -> None:
    assert parse("---\ntitle: A\n---\n# Spec: B\n").title == "A"
    assert parse("# Specification: B\n").title == "B"
    assert parse("## Overview\n\n# Spec: B\n").title == "B"
    assert parse("# B\n").lines["title"] == 1


def test_keys_and_sections_have_their_lines() -> None:
    text = read(EXAMPLE / "specs" / "api-endpoints.md")
    lines = text.split("\n")
    found = {key: lines[line - 1] for key, line in parse(text).lines.items()}
    assert found["base_version"] == "base_version: 3"
    assert found["acceptance_criteria"] == "## Acceptance Criteria"
    assert found["removed"] == "## Removed"


def test_revision_keeps_version_dates_and_unknown_frontmatter() -> None:
    old = read(EXAMPLE / "base" / "api-endpoints.md").replace("type: spec\n", "type: spec\nx-owner: [ada]  # mine\n")
    new = replace(parse(old), overview="New words.", version=9, archived="2030-01-01")
    assert spec.revise_spec(old, new, "x.md") == old.replace(parse(old).overview, "New words.")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_revision_with_the_same_content_changes_nothing(path: Path) -> None:
    text = "\ufeff" + read(path).replace("\n", "\r\n")
    assert spec.revise_spec(text, parse(text), "x.md") == text


def test_revising_a_whole_spec_into_a_delta_replaces_the_version() -> None:
    old = read(EXAMPLE / "specs" / "user-model.md")
    delta = replace(parse(old), version=None, base_version=4)
    found = parse(spec.revise_spec(old, delta, "x.md"))
    assert (found.version, found.base_version) == (None, 4)


def test_delta_that_only_removes_has_every_heading() -> None:
    made = Spec("a", "A", "Goes away.", (), (), removed=(RemovedItem("R1"),), version=None, base_version=1)
    text = spec.render_spec(made)
    assert parse(text) == made
    assert {"overview", "requirements", "removed", "acceptance_criteria"} <= set(parse(text).lines)

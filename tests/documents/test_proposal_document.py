"""proposal.md: the example byte for byte, and every form that is read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.documents import proposal, review_blocks
from agentd.documents.frontmatter import InvalidFrontmatter
from agentd.documents.proposal import AffectedSpec, Impact, Proposal, Scope

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
TEXT = (EXAMPLE / "proposal.md").read_bytes().decode()


def call(tool: str) -> dict[str, Any]:
    """The first JSON input of a tool in tools.md."""
    section = (EXAMPLE / "tools.md").read_text().split(f"\n## {tool}\n")[1]
    found: dict[str, Any] = json.loads(section.split("```json\n")[1].split("```")[0])
    return found


def of_tool(data: dict[str, Any]) -> Proposal:
    impact = data["impact"]
    return Proposal(
        id=data["change_id"],
        summary=data["summary"],
        why=data["why"],
        what_changes=tuple(data["what_changes"]),
        impact=Impact(
            scope=Scope(impact["scope"]),
            affected_specs=tuple(AffectedSpec(s["id"], tuple(s["depends"])) for s in impact["affected_specs"]),
            affected_files=impact["affected_files"],
            affected_code=tuple(impact["affected_code"]),
            breaking_changes=impact["breaking_changes"],
        ),
        created="2026-01-19T10:30:39Z",
    )


def specs(text: str) -> list[str]:
    return [spec.id for spec in proposal.parse_proposal(text).impact.affected_specs]


def test_example_is_rendered_byte_for_byte() -> None:
    assert proposal.render_proposal(proposal.parse_proposal(TEXT)) == TEXT


def test_tool_call_renders_the_example() -> None:
    made = of_tool(call("create_proposal"))
    assert proposal.render_proposal(made) == review_blocks.proposal_body(TEXT)
    assert proposal.render_proposal(replace(made, reviews=review_blocks.find_blocks(TEXT))) == TEXT
    assert proposal.parse_proposal(TEXT) == replace(made, reviews=review_blocks.find_blocks(TEXT))


def test_each_field_has_its_line() -> None:
    lines = TEXT.split("\n")
    starts = {key: lines[line - 1] for key, line in proposal.parse_proposal(TEXT).lines.items()}
    assert starts == {
        "id": "id: add-oauth",
        "version": "version: 1",
        "created": "created: 2026-01-19T10:30:39Z",
        "affected_specs": "affected_specs:",
        "summary": "## Summary",
        "why": "## Why",
        "what_changes": "## What Changes",
        "impact": "## Impact",
        "scope": "- Scope: major",
        "affected_files": "- Affected files: 7",
        "affected_code": lines[37],
        "breaking_changes": lines[38],
    }


@pytest.mark.parametrize(
    "value",
    [
        "`a`, `b`",
        '["a", "b"]',
        "['a', 'b']",
        "[a, b]",
        "a, b",
        "a,b,",
        "a and b",
        "`specs/a.md` (NEW), specs/b.md (modified)",
        "[a](specs/a.md), [b](specs/b.md)",
        "**a**, *b*",
        "`a`,\n  `b`",
        "a (depends on `b`, `c`), b",
        "\n  - a\n  - b",
        "\n  - `a`: the first\n  - **b** - the second",
        "\n  - specs/a.md (NEW)\n  - `agentd/specs/b.md`",
        "\n  - `a`, `b`",
        "\n    * a (depends: b)\n    * b",
    ],
)
@pytest.mark.parametrize("label", ["- Affected specs:", "- **Affected specs**:", "* **Affected Specs:**"])
def test_affected_specs_are_read_from_a_line(label: str, value: str) -> None:
    assert specs(f"# Change: x\n\n## Impact\n\n- Scope: minor\n{label} {value}\n- Affected files: 2\n") == ["a", "b"]


@pytest.mark.parametrize(
    "body",
    [
        "- a\n- b",
        "`a`, `b`",
        "a, b",
        "This touches `a` and `b`, both known.",
        "- specs/a.md (NEW)\n- specs/b.md (MODIFIED): why",
        "1. `a`\n2. `b`",
        "<!-- - c -->\n- a\n\n- b",
        "Two:\n\n- a\n- b",
    ],
)
def test_affected_specs_are_read_from_a_section(body: str) -> None:
    assert specs(f"# Change: x\n\n## Affected Specs\n\n{body}\n\n## Other\n\n- c\n") == ["a", "b"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "none",
        "None.",
        "N/A",
        "n/a",
        "[]",
        "-",
        "(none)",
        "`none`",
        "\n  - none",
        "None (no spec changes)",
        "**None** (no spec changes)",
        "none - refactoring only",
        "None – only `code`, words",
        "None required",
        "None. Only tests change.",
        "N/A: internal",
        "No specs required for this change",
        "No new specs.",
        "\n  - None (no spec changes)",
        "\n  - No spec changes",
    ],
)
def test_words_meaning_none_give_no_specs(value: str) -> None:
    for text in (f"## Impact\n\n- Affected specs: {value}\n- Affected files: 2\n", f"## Affected Specs\n\n{value}\n"):
        assert (specs(text), proposal.parse_proposal(text).unread) == ([], ())


def test_spec_id_starting_with_none_is_kept() -> None:
    for text in ("none-left, a", "none, none-left, a", "none and none-left, a", "no-spec, a"):
        assert len(specs(f"## Impact\n\n- Affected specs: {text}\n")) == 2


def test_prose_and_code_name_no_specs() -> None:
    assert specs("## Affected Specs\n\nNo existing spec is touched.\n") == []
    assert specs("## Why\n\n```\n- Affected specs: a\n```\n") == []


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("affected_specs: [a, b]", ["a", "b"]),
        ("affected_specs:\n- a\n- id: b\n  depends: [a]", ["a", "b"]),
        ("affected_specs: [specs/a.md, b, a]", ["a", "b"]),
        ("affected_specs: a, b", ["a", "b"]),
        ("affected_specs: []", []),
        ("affected_specs:", []),
        ("affected_specs: none", []),
        ("other: 1", ["z"]),
    ],
)
def test_frontmatter_takes_precedence_for_affected_specs(front: str, expected: list[str]) -> None:
    assert specs(f"---\n{front}\n---\n## Impact\n\n- Affected specs: z\n") == expected


@pytest.mark.parametrize(
    "front", ["affected_specs: 3", "affected_specs: [[a]]", "affected_specs: [{id: a, depends: {}}]"]
)
def test_frontmatter_of_the_wrong_type_is_refused_with_its_line(front: str) -> None:
    with pytest.raises(InvalidFrontmatter, match=r"proposal\.md:3: 'affected_specs'"):
        proposal.parse_proposal(f"---\nid: x\n{front}\n---\n")


def test_invalid_spec_id_is_reported() -> None:
    found = proposal.parse_proposal("## Impact\n\n- Affected specs:\n  - User Model\n  - ok\n  - ../../etc/passwd\n")
    assert [spec.id for spec in found.impact.affected_specs] == ["ok", "passwd"]
    assert found.unread == (("User Model", 4),)


def test_spec_dependencies_are_read_and_ordered() -> None:
    impact = proposal.parse_proposal("## Affected Specs\n\n- `a` (depends on `b` and c)\n- b (NEW)\n- c\n").impact
    assert impact.affected_specs[0] == AffectedSpec("a", ("b", "c"))
    assert proposal.spec_order(impact).ids == ("b", "c", "a")
    assert proposal.spec_order(proposal.parse_proposal(TEXT).impact).ids == ("user-model", "auth-flow", "api-endpoints")
    assert proposal.spec_order(Impact(affected_specs=(AffectedSpec("a", ("old",)),)), known=("old",)).unknown == ()


@pytest.mark.parametrize(
    ("line", "scope"),
    [
        ("- **Scope**: Minor", Scope.MINOR),
        ("Scope: `patch` (small)", Scope.PATCH),
        ("- Scope: patch/minor/major", None),
        ("- Scope: patch | minor", None),
        ("- Scope: huge", None),
        ("", None),
    ],
)
def test_scope_is_read(line: str, scope: Scope | None) -> None:
    assert proposal.parse_proposal(f"## Impact\n\n{line}\n").impact.scope is scope


@pytest.mark.parametrize(
    ("value", "count"),
    [("7", 7), ("~7 files", 7), ("`a.py`, `b2.py`", 2), ("\n  - a.py\n  - 2.py", 2), ("none", 0), ("", None)],
)
def test_affected_files_are_counted(value: str, count: int | None) -> None:
    assert proposal.parse_proposal(f"## Impact\n\n- Affected files: {value}\n").impact.affected_files == count


@pytest.mark.parametrize("value", ["`a/`, `b/`", "a/, b/", "\n  - `a/`\n  - b/", '["a/", "b/"]'])
def test_affected_code_is_read_as_a_list(value: str) -> None:
    assert proposal.parse_proposal(f"## Impact\n\n- Affected code: {value}\n").impact.affected_code == ("a/", "b/")


def test_proposal_without_frontmatter_is_read() -> None:
    found = proposal.parse_proposal(
        "# Change: add-x\n\n## summary\n\nS\n\n## **Why**\n\nW\n\n## What Changes\n\nOne.\n\nTwo.\n"
    )
    assert (found.id, found.summary, found.why, found.what_changes) == ("add-x", "S", "W", ("One.", "Two."))
    assert (found.created, found.version, found.lines["id"]) == ("", None, 1)


def test_revision_keeps_review_blocks_created_date_and_unknown_frontmatter() -> None:
    old = TEXT.replace("type: proposal\n", "type: proposal\n# mine\nx-owner: 'Ada'\n")
    new = replace(of_tool(call("create_proposal")), summary="New summary.", created="2030-01-01T00:00:00Z")
    assert proposal.revise_proposal(old, new) == old.replace(proposal.parse_proposal(TEXT).summary, "New summary.")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_revision_with_the_same_content_changes_nothing(ending: str) -> None:
    text = "\ufeff" + TEXT.replace("\n", ending)
    assert proposal.revise_proposal(text, proposal.parse_proposal(text)) == text


def test_revision_adds_missing_frontmatter() -> None:
    new = of_tool(call("create_proposal"))
    assert proposal.revise_proposal("# Draft\r\n", new) == proposal.render_proposal(new).replace("\n", "\r\n")


def test_revision_changes_the_affected_specs_in_place() -> None:
    new = of_tool(call("create_proposal"))
    fewer = replace(new, impact=replace(new.impact, affected_specs=(AffectedSpec("user-model"),)))
    revised = proposal.revise_proposal(TEXT, fewer)
    assert proposal.parse_proposal(revised) == replace(fewer, reviews=review_blocks.find_blocks(TEXT))


def test_empty_fields_are_rendered_as_none() -> None:
    made = Proposal("x", "S", "W", ("c",), Impact(Scope.PATCH, affected_files=1))
    text = proposal.render_proposal(made)
    assert "affected_specs: []\n" in text
    assert text.endswith("- Scope: patch\n- Affected specs: none\n- Affected files: 1\n- Breaking changes: none\n")
    assert proposal.parse_proposal(text) == made

"""Mechanical faults are mended, everything else keeps its bytes, and a second time changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.documents import review_blocks
from agentd.project.config.loader import load_config
from agentd.validation.fixes import fix_document
from agentd.validation.rule import PlanDocuments, is_valid
from agentd.validation.validator import validate
from plans import EXAMPLE

SETTINGS = load_config(None, environ={}).validation
AUTH = (EXAMPLE / "specs/auth-flow.md").read_text()
PROPOSAL = (EXAMPLE / "proposal.md").read_text()


def mended(name: str, text: str, base_version: int | None = None) -> str:
    return fix_document(name, text.encode(), "add-oauth", base_version, SETTINGS).decode()


@pytest.mark.parametrize("name", ["proposal.md", "tasks.md", "clarifications.md", "specs/auth-flow.md"])
def test_examples_need_no_fixes(name: str) -> None:
    data = (EXAMPLE / name).read_bytes()
    assert fix_document(name, data, "add-oauth", None, SETTINGS) == data


@pytest.mark.parametrize(
    "heading",
    [
        "#### R2: Provider callback",
        "### R2. Provider callback",
        "### R2 Provider callback",
        "### R2) Provider callback",
        "### Requirement R2: Provider callback",
        "### Requirement 2: Provider callback",
        "###  R2:Provider callback",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_obvious_requirement_heading_is_fixed(heading: str, newline: str) -> None:
    good = AUTH.replace("\n", newline)
    bad = good.replace("### R2: Provider callback", heading)
    assert bad != good
    assert mended("specs/auth-flow.md", bad) == good


@pytest.mark.parametrize("heading", ["### Provider callback", "### R1. Another one", "### R2"])
def test_ambiguous_heading_is_left_unchanged(heading: str) -> None:
    bad = AUTH.replace("### R2: Provider callback", heading)
    assert mended("specs/auth-flow.md", bad) == bad


@pytest.mark.parametrize(
    "heading",
    [
        "### 2FA is required",
        "### 3FA is required",
        "### 5xx errors are retried",
        "### 404 handling",
        "### 10.000 users",
        "### R7.1: T",
        "### R7-1: T",
        "### R7-related words",
        "### Requirement 7.2: T",
        "### R7:",
        "### R7 and R8 interplay",
    ],
)
def test_heading_that_is_not_a_requirement_is_left_unchanged(heading: str) -> None:
    text = AUTH.replace("### R2: Provider callback", f"{heading}\n\ntext\n\n### R2: Provider callback")
    assert mended("specs/auth-flow.md", text) == text


@pytest.mark.parametrize("heading", ["#### R7 and R8 interplay", "### R7 flow", "#### R7: flow"])
def test_heading_outside_the_requirements_is_left_unchanged(heading: str) -> None:
    text = AUTH.replace("## Acceptance Criteria", f"## Flow\n\n{heading}\n\ntext\n\n## Acceptance Criteria")
    assert mended("specs/auth-flow.md", text) == text


def test_numbered_section_keeps_its_number() -> None:
    text = PROPOSAL.replace("## Why", "### 2. Why")
    assert mended("proposal.md", text) == text


@pytest.mark.parametrize("wrong", ["# Why", "### Why", "###### why"])
def test_section_level_is_corrected(wrong: str) -> None:
    assert mended("proposal.md", PROPOSAL.replace("## Why", wrong)) == PROPOSAL


def test_a_section_that_stands_twice_is_left_alone() -> None:
    text = PROPOSAL.replace("## Why", "### Why\n\nFirst.\n\n# Why")
    assert mended("proposal.md", text) == text


def test_heading_in_code_is_left_unchanged() -> None:
    text = AUTH.replace("## Requirements", "```\n# Requirements\n```\n\n## Requirements")
    assert mended("specs/auth-flow.md", text) == text


def test_missing_frontmatter_is_added() -> None:
    bare = AUTH[AUTH.index("# Spec") :]
    front = "---\nid: auth-flow\ntype: spec\nversion: 1\n---\n\n"
    assert mended("specs/auth-flow.md", bare) == front + bare
    assert mended("specs/auth-flow.md", bare, 3) == front.replace("version: 1", "base_version: 3") + bare
    assert mended("tasks.md", "# Tasks\n").startswith("---\nid: add-oauth\ntype: tasks\nversion: 1\n---\n")
    assert mended("clarifications.md", "# C\n").startswith("---\nchange: add-oauth\n---\n")


def test_review_blocks_keep_their_bytes() -> None:
    bad = PROPOSAL.replace("## Why", "# Why")
    after = mended("proposal.md", bad)
    assert after[after.index("<review ") :] == PROPOSAL[PROPOSAL.index("<review ") :]


def test_unreadable_document_is_left_unchanged() -> None:
    for data in (b"\xff\xfe", b"---\na: [\n---\n# Why\n", b"a\0"):
        assert fix_document("proposal.md", data, "x", None, SETTINGS) == data


LINES = st.sampled_from(
    [
        "---",
        "id: x",
        "# Why",
        "## Why",
        "### R1. a",
        "#### R1: b",
        "### Requirement 2: c",
        "## Requirements",
        "### Scenario: s",
        "WHEN a THEN b",
        "```",
        "~~~",
        "<!--",
        "-->",
        '<review status="approved" iteration="1" reviewer="x">',
        "</review>",
        "- [ ] 1.1 t",
        "text",
        "",
        "TODO",
        "[a](b)",
        "\ufeff",
        "### Task 1.1: x",
        "```yaml",
        "depends_on: [data.1]",
    ]
)
TEXTS = st.lists(LINES, max_size=30).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda newline: newline.join(lines))
)
NAMES = st.sampled_from(["proposal.md", "tasks.md", "clarifications.md", "specs/x.md"])


@given(NAMES, TEXTS | st.text())
def test_fixing_is_idempotent(name: str, text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    once = fix_document(name, data, "add-oauth", None, SETTINGS)
    assert fix_document(name, once, "add-oauth", None, SETTINGS) == once


@given(st.dictionaries(NAMES, st.binary() | (TEXTS | st.text()).map(lambda text: text.encode(errors="replace"))))
def test_validating_arbitrary_documents_never_raises(texts: dict[str, bytes]) -> None:
    findings = validate(PlanDocuments(texts), SETTINGS)
    assert all(one.line >= 1 and one.message and one.hint for one in findings)
    assert is_valid(findings) == (not [one for one in findings if one.severity == "high"])


def test_text_after_a_review_block_becomes_part_of_the_proposal() -> None:
    block = '<review status="approved" iteration="1" reviewer="codex">\n\nFine.\n\n</review>\n'
    own = (EXAMPLE / "proposal.md").read_text().split("<review")[0].rstrip() + "\n"
    text = f"{own}\n{block}\n## More\n\nA TODO.\n\n{block.replace('1', '2')}\nA last word.\n"
    after = review_blocks.gather_blocks(text)
    assert after == f"{own}\n## More\n\nA TODO.\n\n\nA last word.\n\n{block}\n{block.replace('1', '2')}"
    assert [one.iteration for one in review_blocks.find_blocks(after)] == [1, 2]
    assert "A TODO." in review_blocks.proposal_body(after) and review_blocks.gather_blocks(after) == after
    assert review_blocks.gather_blocks(f"{own}\n{block}\n\n") == f"{own}\n{block}\n\n"

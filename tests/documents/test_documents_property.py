"""What holds for every document: it comes back, it never breaks the reader, edits touch only their place."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentd.documents import clarifications, frontmatter, proposal, review_blocks, spec
from agentd.documents import text as base
from agentd.documents.clarifications import Clarification, Clarifications
from agentd.documents.proposal import AffectedSpec, Impact, Proposal, Scope
from agentd.documents.prose import embed_text, is_empty_phrase
from agentd.documents.review_blocks import ReviewBlock
from agentd.documents.spec import Priority, Requirement, Spec
from agentd.documents.spec_parts import RemovedItem, RenamedRequirement, RequirementName, Scenario
from agentd.documents.text import Span, trim_lines
from agentd.domain.errors import AgentdError

DATA = Path(__file__).parents[1] / "data"
TEXTS = {
    str(path.relative_to(DATA)): path.read_bytes().decode() for path in sorted(DATA.rglob("*.md")) if path.is_file()
}
TRICKY = (
    "```",
    "```yaml",
    "~~~~",
    "<!-- note",
    "-->",
    "---",
    "# Title",
    "## Removed",
    "## Impact",
    "### R1: Again",
    "### Scenario: Again",
    '<review status="approved" iteration="7" reviewer="x">',
    "</review>",
    "- Affected specs: a, b",
    "- **Requirement**: R1",
    "- **WHEN** it rains",
    "id: x",
    "  - nested",
    "    code",
    "",
    "\tid: [",
    "\x0b\x85\u2028",
)

# A busy machine may be slow; time is looked at elsewhere.

# ---- made documents

ids = st.from_regex(r"[a-z][a-z0-9-]{0,11}", fullmatch=True)
dates = st.sampled_from(["2026-01-19T10:30:39Z", "2025-12-02"])
phrases = (
    st.text(st.sampled_from("abxyz  `*_<>&-=:;,.()[]\"'#→é漢🙂|{}!?/\\~"), min_size=1, max_size=30)
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: text and not is_empty_phrase(text) and text[0] not in ":-*_" and text[-1] != "#")
)
texts = st.lists(st.sampled_from(TRICKY) | phrases, max_size=6).map("\n".join)
titles = phrases


def in_section(level: int) -> st.SearchStrategy[str]:
    return texts.map(lambda text: embed_text(text, level))


affected_specs = st.lists(st.builds(AffectedSpec, ids, st.lists(ids, max_size=2).map(tuple)), max_size=3).map(
    lambda specs: tuple({one.id: one for one in specs}.values())
)
paths = st.lists(
    st.from_regex(r"[a-z./]{1,12}", fullmatch=True).filter(lambda path: not is_empty_phrase(path)), max_size=3
)
proposals = st.builds(
    Proposal,
    id=ids,
    summary=in_section(2),
    why=in_section(2),
    what_changes=st.lists(phrases, max_size=3).map(tuple),
    impact=st.builds(
        Impact,
        scope=st.sampled_from(Scope),
        affected_specs=affected_specs,
        affected_files=st.integers(0, 10_000),
        affected_code=paths.map(tuple),
        breaking_changes=st.none() | phrases,
    ),
    created=dates,
    version=st.integers(1, 99),
    reviews=st.lists(
        st.builds(ReviewBlock, st.sampled_from(["approved", "rejected"]), st.integers(0, 9), ids, in_section(0)),
        max_size=2,
    ).map(tuple),
)

requirement_ids = st.sampled_from(["R1", "R2", "R10", "RT-R3"])
steps = st.lists(phrases, min_size=1, max_size=2).map(tuple)
specs = st.builds(
    Spec,
    id=ids,
    title=titles,
    overview=in_section(2),
    requirements=st.lists(
        st.builds(Requirement, requirement_ids, titles, in_section(3), st.none() | st.sampled_from(Priority)),
        max_size=3,
    ).map(tuple),
    scenarios=st.lists(
        st.builds(Scenario, titles, steps, steps, st.just(()) | steps, st.just("") | requirement_ids), max_size=3
    ).map(tuple),
    removed=st.lists(
        st.builds(RemovedItem, requirement_ids, st.just("") | titles, st.just("") | phrases)
        | st.builds(RemovedItem, st.just(""), titles, phrases),
        max_size=2,
    ).map(tuple),
    renamed=st.lists(
        st.builds(
            RenamedRequirement,
            st.builds(RequirementName, requirement_ids, titles),
            st.builds(RequirementName, requirement_ids, titles),
        ),
        max_size=2,
    ).map(tuple),
    flow=texts.map(lambda text: trim_lines(text.split("\n"))),
    version=st.none(),
    base_version=st.integers(0, 99),
)
asked = st.builds(Clarification, titles, phrases, in_section(6), st.just("") | phrases)


@given(proposals)
def test_proposal_round_trips(made: Proposal) -> None:
    text = proposal.render_proposal(made)
    assert proposal.parse_proposal(text) == made
    assert proposal.render_proposal(proposal.parse_proposal(text)) == text
    assert proposal.revise_proposal(text, made) == text


@given(specs)
def test_spec_round_trips(made: Spec) -> None:
    text = spec.render_spec(made)
    assert spec.parse_spec(text, "x.md") == made
    assert spec.revise_spec(text, made, "x.md") == text


@given(st.lists(asked, max_size=3))
def test_clarifications_round_trip(questions: list[Clarification]) -> None:
    made = Clarifications("x", "2026-01-19", tuple(questions))
    found = clarifications.parse_clarifications(clarifications.render_clarifications(made))
    plain = [replace(one, answer="") for one in found.questions]
    assert plain == [replace(one, answer="") for one in questions]


# ---- broken documents


@st.composite
def broken(draw: st.DrawFn) -> str:
    """An example that somebody's editor, tool or disk got hold of."""
    lines = draw(st.sampled_from(list(TEXTS.values()))).split("\n")
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        if draw(st.booleans()):
            del lines[at : at + draw(st.integers(1, 4))]
        else:
            lines.insert(at, draw(st.sampled_from(TRICKY) | st.text(max_size=20)))
    text = draw(st.sampled_from(["\n", "\r\n"])).join(lines)
    text = text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text
    return draw(st.sampled_from(["", "\ufeff"])) + text


def use_everything(text: str) -> None:
    """All that reads or edits a document; each may refuse it, in our own words."""
    new = Proposal("x", "s", "w", ("c",), Impact())
    for use in (
        lambda: proposal.parse_proposal(text),
        lambda: proposal.revise_proposal(text, new),
        lambda: spec.parse_spec(text, "x.md"),
        lambda: spec.revise_spec(text, Spec("x", "T", "o", (), ()), "x.md"),
        lambda: clarifications.parse_clarifications(text),
        lambda: review_blocks.append_block(text, ReviewBlock("approved", 1, "x", "y")),
        lambda: frontmatter.set_frontmatter_keys(text, {"id": "y", "new": ["z"]}, "x.md"),
    ):
        try:
            use()
        except AgentdError as error:
            if error.exit_code != 1:
                raise


@given(broken())
def test_broken_document_raises_only_agentd_errors(text: str) -> None:
    use_everything(text)


@given(st.text())
def test_arbitrary_text_raises_only_agentd_errors(text: str) -> None:
    use_everything(text)


@given(st.binary())
def test_arbitrary_bytes_raise_only_agentd_errors(data: bytes) -> None:
    try:
        text = base.decode_text(data, "x.md")
    except AgentdError:
        return
    assert text.encode() == data


@pytest.mark.parametrize("name", TEXTS)
def test_document_truncated_anywhere_can_be_read(name: str) -> None:
    lines = TEXTS[name].split("\n")
    for end in range(0, len(lines), 7):
        use_everything("\n".join(lines[:end]))


# ---- edits


@given(broken(), st.data())
def test_edit_keeps_the_surrounding_bytes(text: str, data: st.DataObject) -> None:
    try:
        document = base.parse_document(text, "x.md")
    except AgentdError:
        return
    assert "".join(document.lines) == text
    start = data.draw(st.integers(1, len(document.lines) + 1))
    end = data.draw(st.integers(start - 1, len(document.lines)))
    edited = document.replace(Span(start, end), "NEW\n")
    before, after = "".join(document.lines[: start - 1]), "".join(document.lines[end:])
    assert edited == before + "NEW\n" + after


@given(broken())
def test_setting_a_key_keeps_every_other_line(text: str) -> None:
    try:
        edited = frontmatter.set_frontmatter_keys(text, {"id": "new-id"}, "x.md")
        span = base.parse_document(text, "x.md").frontmatter
        before = frontmatter.read_frontmatter(base.parse_document(text, "x.md"))
    except AgentdError:
        return
    if span is None:
        assert edited.endswith(text.removeprefix("\ufeff"))
    else:
        lines = base.split_lines(text)
        own = next((entry.span for entry in before.entries if entry.key == "id"), Span(span.end, span.end - 1))
        assert edited.startswith("".join(lines[: own.start - 1]))
        assert edited.endswith("".join(lines[own.end :]))
    values = dict(frontmatter.read_frontmatter(base.parse_document(edited, "x.md")).values)
    assert values == {**before.values, "id": "new-id"}


@example("```\na\n\n\n", "")
@example("---\n\na rule on top", "---")
@example("\r", "")
@given(broken(), in_section(0))
def test_appended_review_block_is_found_and_keeps_the_hash(text: str, judged: str) -> None:
    try:
        written = review_blocks.append_block(text, ReviewBlock("approved", 3, "codex", judged))
    except AgentdError:
        return
    assert written.startswith(text)
    assert review_blocks.proposal_body(written) == review_blocks.proposal_body(text)
    found = review_blocks.find_blocks(written)
    assert len(found) == len(review_blocks.find_blocks(text)) + 1
    assert (found[-1].status, found[-1].text) == ("approved", judged)

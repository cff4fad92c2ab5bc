"""A person closes, regrades, removes and adds findings by editing the document; nothing else counts."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.documents import records, review_document, review_edits
from agentd.documents.records import ReviewRecord
from agentd.documents.review_edits import FindingChange, ReviewEdits
from agentd.domain.errors import AgentdError
from agentd.domain.terms import Severity
from assertions import assert_grows_linearly

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def example(name: str) -> ReviewRecord:
    return records.parse_record((EXAMPLE / "reviews" / f"{name}.yaml").read_text(), name)


FIRST = example("challenge-1")
CHALLENGE = example("challenge-2")
REVIEW = example("review-1")
TEXT = review_document.render_review(FIRST)


def edits(text: str, record: ReviewRecord = FIRST) -> ReviewEdits:
    return review_edits.read_review_edits(text, record, "CHALLENGE.md")


def line_of(words: str, text: str) -> int:
    return text[: text.index(words)].count("\n") + 1


def without(id_: str, text: str) -> str:
    start = text.index(f"### {id_}:")
    ends = [at for mark in ("\n### ", "\n## ") if (at := text.find(mark, start)) >= 0]
    return text[:start] + text[min(ends) + 1 :]


@pytest.mark.parametrize("record", [FIRST, CHALLENGE, REVIEW])
def test_untouched_document_has_no_edits(record: ReviewRecord) -> None:
    assert edits(review_document.render_review(record), record) == ReviewEdits()
    assert edits("\ufeff" + review_document.render_review(record).replace("\n", "\r\n"), record) == ReviewEdits()


@pytest.mark.parametrize("state", ["fixed", "Withdrawn", "`accepted`", "**disputed**"])
def test_state_can_be_changed(state: str) -> None:
    at = TEXT.index("- **State**: open", TEXT.index("### C2"))
    text = TEXT[:at] + f"* State:  {state} " + TEXT[at + len("- **State**: open") :]
    word = state.strip("`*").lower()
    assert edits(text).changes == (FindingChange("C2", "state", word, TEXT[:at].count("\n") + 1),)
    recorded = replace(FIRST, edits=(edits(text).changes[0].edit("person:Ann", "now"),))
    assert edits(text, recorded) == ReviewEdits()


def test_severity_can_be_regraded() -> None:
    text = TEXT.replace("**Severity**: High", "**Severity**: low")
    assert edits(text).changes == (FindingChange("C1", "severity", "low", line_of("**Severity**: low", text)),)


def test_removed_finding_is_withdrawn() -> None:
    text = without("C2", TEXT)
    assert edits(text).changes == (FindingChange("C2", "state", "withdrawn", line_of("## Issues", text)),)
    recorded = replace(FIRST, edits=(edits(text).changes[0].edit("person:Ann", "now"),))
    assert edits(text, recorded) == ReviewEdits()
    assert edits(TEXT, recorded).changes[0].to == "open"


def test_finding_can_be_added() -> None:
    new = "### Nobody can undo it\n\n- **Severity**: High\n- **Description**: There is no\n  way back.\n\n"
    text = TEXT.replace("## Earlier findings", new + "## Earlier findings")
    (added,) = edits(text).added
    assert (added.title, added.severity, added.what) == (
        "Nobody can undo it",
        Severity.HIGH,
        "There is no\nway back.",
    )
    assert added.line == line_of("### Nobody", text)
    recorded = replace(FIRST, edits=(added.edit("P1", "person:Ann", "now"),))
    assert edits(text, recorded) == ReviewEdits()
    assert edits(review_document.render_review(recorded), recorded) == ReviewEdits()
    assert edits(TEXT, recorded).changes[0].id == "P1"
    stored = records.parse_record(records.render_record(recorded), "x")
    assert edits(text, stored) == ReviewEdits()


def test_new_finding_needs_no_special_format() -> None:
    text = TEXT.replace("### C2:", "### C7: Slow\n\nThis reads every row.\n\n- Spec Reference: a:R1\n\n### C2:")
    (added,) = edits(text).added
    assert (added.title, added.severity, added.what) == ("Slow", Severity.MEDIUM, "This reads every row.")
    assert added.requirement == "a:R1"
    text = TEXT.replace("### C2:", "### R2: is unclear\n\n- Severity: low\n\n### C2:")
    assert edits(text).added[0].title == "R2: is unclear"


def test_heading_without_text_is_not_a_finding() -> None:
    found = edits(TEXT.replace("### C2:", "### Notes\n\n### C2:"))
    assert (found.added, found.changes, len(found.faults)) == ((), (), 1)


def test_other_wording_may_be_edited_freely() -> None:
    text = TEXT.replace("The plan is feasible", "I find the plan feasible")
    text = text.replace("- **Suggestion**: Name", "- **Suggestion**:   Please name").replace("\n\n", "\n\n\n")
    text = text.replace("### C2: People who hide", "### C2 - Persons who hide")
    assert edits(text) == ReviewEdits()


def test_heading_between_findings_removes_none() -> None:
    assert edits(TEXT.replace("### C2:", "## My notes\n\nHm.\n\n### C2:")).changes == ()


def test_edited_verdict_is_reported_but_decides_nothing() -> None:
    found = edits(TEXT.replace("**Verdict**: NEEDS_REVISION", "**Verdict**: APPROVED"))
    assert found == ReviewEdits(verdict=("APPROVED", 10))


def test_earlier_findings_are_edited_in_their_line() -> None:
    text = review_document.render_review(CHALLENGE)
    text = text.replace("- C1 (high), fixed:", "- C1 (high), open:").replace("- C2 (medium),", "- C2 (low),")
    found = edits(text, CHALLENGE)
    assert [(one.id, one.field, one.to) for one in found.changes] == [
        ("C1", "state", "open"),
        ("C2", "severity", "low"),
    ]
    assert found.changes[0].line == line_of("- C1", text)
    start = text.index("- C3")
    assert edits(text[:start], CHALLENGE).changes == found.changes  # it was closed already


def test_open_earlier_finding_can_be_removed() -> None:
    record = replace(CHALLENGE, previous=(replace(CHALLENGE.previous[0], state=FIRST.findings[0].state),))
    text = review_document.render_review(record)
    gone = text[: text.index("- C1")] + "None.\n"
    assert [(one.id, one.to) for one in edits(gone, record).changes] == [("C1", "withdrawn")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT[: TEXT.index("## Issues")],
        TEXT.replace("### C1:", "```\n### C1:"),
        TEXT.replace("### C1:", "<!-- hm\n\n### C1:"),
    ],
)
def test_accidental_damage_withdraws_no_finding(text: str) -> None:
    found = edits(text)
    assert found.changes == ()
    assert found.faults


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- **State**: open", "- **State**: closed"),
        ("- **Severity**: High", "- **Severity**: terrible"),
        ("- **State**: open", "- **State**: fixed\n- **State**: accepted"),
        ("### C2:", "### C1: The callback accepts any `state`\n\n### C2:"),
    ],
)
def test_unreadable_edit_is_a_fault(old: str, new: str) -> None:
    found = edits(TEXT.replace(old, new, 1))
    assert (found.changes, found.added, len(found.faults)) == ((), (), 1)


def test_second_state_line_takes_precedence() -> None:
    text = TEXT.replace("- **State**: open\n", "- **State**: open\n- **State**: fixed\n", 1)
    assert [(one.id, one.to) for one in edits(text).changes] == [("C1", "fixed")]


@given(st.data())
def test_broken_document_raises_only_agentd_errors(data: st.DataObject) -> None:
    text = data.draw(
        st.sampled_from([TEXT, review_document.render_review(CHALLENGE), review_document.render_review(REVIEW)])
    )
    junk = ["", "```", "\n", "---\n", "### ", "## Issues", "- **State**: ", "\x00", "\ud800", "<!--", "C1", "#", "\t"]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(junk)) + text[at + data.draw(st.integers(0, 60)) :]
    try:
        for record in (FIRST, CHALLENGE, REVIEW):
            edits(text, record)
    except AgentdError:
        return


@pytest.mark.parametrize(
    ("start", "unit", "count"),
    [
        ("## Issues\n\n", "### C1: x\n", 500),
        ("## Issues\n\n### C1: x\n", "- **State**: fixed\n", 500),
        ("## Issues\n\n### C1: ", "*", 200_000),
        ("## Earlier findings\n\n", "- C1 (high), open: x\n", 500),
        ("## Earlier findings\n\n- C1 (", "(", 200_000),
    ],
)
def test_parsing_takes_linear_time(start: str, unit: str, count: int) -> None:
    assert_grows_linearly(lambda text: edits(text, CHALLENGE), start, unit, count=count)

"""Records of rounds: the examples' own bytes, and how findings stand after all rounds."""

from dataclasses import replace

import pytest

from agentd.documents import records
from agentd.documents.records import ADDED, FindingEdit, closed_by_people, count_open, current_findings
from agentd.domain.errors import StateError
from agentd.domain.terms import FindingState
from plans import EXAMPLE

NAMES = ("challenge-1", "challenge-2", "review-1")
TEXTS = {name: (EXAMPLE / "reviews" / f"{name}.yaml").read_text() for name in NAMES}
RECORDS = {name: records.parse_record(text, name) for name, text in TEXTS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_example_record_round_trips_byte_for_byte(name: str) -> None:
    assert records.render_record(RECORDS[name]) == TEXTS[name]


def states(*names: str) -> dict[str, str]:
    return {finding.id: str(finding.state) for finding in current_findings(RECORDS[name] for name in names)}


def test_authors_fixed_answer_leaves_a_finding_open() -> None:
    assert RECORDS["challenge-1"].answers[0].answer == "fixed"
    assert states("challenge-1") == {"C1": "open", "C2": "open", "C3": "open"}


def test_judges_last_answer_counts() -> None:
    assert states("challenge-1", "challenge-2") == {"C1": "fixed", "C2": "fixed", "C3": "withdrawn", "C4": "open"}


def test_open_findings_are_counted_by_severity() -> None:
    counts = count_open(current_findings(RECORDS.values()))
    assert counts == {"high": 1, "medium": 0, "low": 2}


def test_users_edit_closes_and_regrades_findings() -> None:
    first = replace(
        RECORDS["challenge-1"],
        edits=(
            FindingEdit("C1", "severity", "low", "person:dev", "t"),
            FindingEdit("C2", "state", "accepted", "person:dev", "t"),
            FindingEdit("C9", "state", "accepted", "person:dev", "t"),
        ),
    )
    again = records.parse_record(records.render_record(first), "again")
    assert again == first
    assert count_open(current_findings([again])) == {"high": 0, "medium": 0, "low": 2}


def test_a_finding_stays_closed_by_a_person_until_it_is_reopened() -> None:
    first, second = RECORDS["challenge-1"], RECORDS["challenge-2"]
    closed = replace(first, edits=(FindingEdit("C1", "state", "accepted", "person:dev", "t"),))
    assert closed_by_people([first, second]) == set()
    assert closed_by_people([closed]) == closed_by_people([closed, second]) == {"C1"}
    reopened = replace(first, round=2, edits=(FindingEdit("C1", "state", "open", "person:dev", "t"),))
    assert closed_by_people([closed, reopened]) == set()
    judged_open = replace(second.previous[0], id="C1", state=FindingState.OPEN)
    assert closed_by_people([closed, replace(second, previous=(judged_open,))]) == set()


def test_finding_added_by_a_user_is_counted() -> None:
    added = FindingEdit("P1", ADDED, {"severity": "high", "title": "No limit on tries"}, "person:dev", "t")
    closed = FindingEdit("P1", "state", "accepted", "person:dev", "t")
    first = replace(RECORDS["challenge-1"], edits=(added,))
    assert count_open(current_findings([first])) == {"high": 2, "medium": 1, "low": 1}
    assert count_open(current_findings([replace(first, edits=(added, closed))])) == {"high": 1, "medium": 1, "low": 1}
    assert count_open(current_findings([first, RECORDS["challenge-2"]])) == {"high": 1, "medium": 0, "low": 1}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("severity: high", "severity: awful", "r.yaml: findings.0.: severity is 'awful'"),
        ("verified: true", "verified: maybe", "verified must be true or false"),
        ("schema_version: 1", "schema_version: 2", "newer agentd"),
        ("findings:", "findings: 3\nx:", "findings must be a list"),
        ("kind: challenge", "kind: [", "r.yaml line"),
    ],
)
def test_invalid_record_is_reported(old: str, new: str, words: str) -> None:
    with pytest.raises(StateError, match=words):
        records.parse_record(TEXTS["challenge-1"].replace(old, new, 1), "r.yaml")

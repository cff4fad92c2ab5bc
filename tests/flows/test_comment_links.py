"""Which finding a comment is: one that was made of it, and no other, whatever comments.yaml says."""

from dataclasses import replace

import pytest

from agentd.change import comment_store
from agentd.change.folder import Change
from agentd.documents.comments import COMMENTS_FILE, Comment, CommentSeverity, misattributed_comments, resolve_comments
from agentd.documents.records import Evidence, Finding, current_findings, finding_data
from agentd.domain import yaml12
from agentd.domain.terms import FindingState, Severity
from agentd.web import annotations, decisions
from plans import SPEC_FILE
from scenario import Result, Scenario, record_edits

ANN, BOB = "person:ann", "person:bob"
FOUND = (("High", "It breaks"), ("Medium", "It is slow"))


def comment(change: Change, text: str = "Who?") -> Comment:
    return comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC_FILE, "A user is"), text, ANN, CommentSeverity.SHOULD
    )


def forge(change: Change, **values: str) -> None:
    """The first comment by hand, as anybody can write it into the file."""
    path = change.folder / COMMENTS_FILE
    first, *rest = yaml12.load(path.read_text())
    path.write_text(yaml12.dump([{**first, **values}, *rest]))


def take_up(box: Scenario) -> Result:
    return box.agentd("plan", "add-oauth", "--rounds", "0", "--json")


def listed(change: Change) -> list[str]:
    return [one.id for one in annotations.open_annotations(change)]


def test_finding_names_its_source_comment(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change)
    take_up(project)
    assert {one.id: one.comment for one in current_findings(change.records())} == {"C1": None, "C2": None, "P1": "K1"}
    text = (change.folder / "reviews/challenge-1.yaml").read_text()
    assert text.count("comment:") == 1, "what has none does not speak of it"


def test_forged_link_to_a_judges_finding_neither_hides_nor_closes_it(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change)
    forge(change, finding="C1", state="resolved", resolved_by=BOB)
    assert listed(change) == ["C1", "C2"]
    told = f"{COMMENTS_FILE}: K1 says that it is the finding C1, which was not made of it; that counts for nothing"
    assert annotations.annotation_problems(change) == (told,)
    take_up(project)
    assert project.finding_states() == {"C1": "open", "C2": "open"} and record_edits(change.records()[0]) == []


def test_open_comment_with_a_forged_link_becomes_its_own_finding(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change)
    forge(change, finding="C1")
    assert listed(change) == ["C1", "C2", "K1"]
    take_up(project)
    assert project.finding_states() == {"C1": "open", "C2": "open", "P1": "open"}
    assert (comment_store.read_comments(change)[0].finding, annotations.annotation_problems(change)) == ("P1", ())


def test_forged_link_to_a_settled_finding_hides_no_comment(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change, "First.")
    comment(change, "Second.")
    take_up(project)
    comment_store.resolve_comment(change, "K2", BOB)
    take_up(project)
    assert project.finding_states()["P2"] == "withdrawn"
    forge(change, finding="P2")
    assert [(one.id, one.is_open, one.finding) for one in comment_store.current_comments(change)] == [
        ("K1", True, None),
        ("K2", False, "P2"),
    ]
    assert "accept" in [one.id for one in decisions.decision_choices(change)]


def test_comment_cannot_claim_the_finding_of_another_comment(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change, "Mine.")
    take_up(project)
    comment(change, "Another.")
    first, second = comment_store.read_comments(change)
    (change.folder / COMMENTS_FILE).write_text(yaml12.dump([]))
    assert resolve_comments([replace(second, finding="P1")], current_findings(change.records()))[0].finding is None
    assert resolve_comments([first], current_findings(change.records()))[0].finding == "P1"


@pytest.mark.parametrize("name", ["C9", "V1", "P0", "P", "", "../P1", "check:tests"])
def test_forged_finding_id_is_never_created(project: Scenario, name: str) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change)
    forge(change, finding=name)
    take_up(project)
    assert list(project.finding_states()) == ["C1", "C2", "P1"]


def test_long_forged_link_is_reported_in_short(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change)
    forge(change, finding="C1" * 500)
    (told,) = annotations.annotation_problems(change)
    assert len(told) < 200


# ---- by findings that an older agentd made


def older(**values: object) -> Finding:
    known: dict[str, object] = {
        "id": "P1",
        "severity": Severity.HIGH,
        "title": "Who?",
        "what": "Who?",
        "suggestion": "",
        "requirement": None,
        "where": None,
        "evidence": Evidence(file=SPEC_FILE, quote="A user is"),
        "verified": True,
        "by": ANN,
        "state": FindingState.OPEN,
    }
    return Finding(**{**known, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "is_own"),
    [
        ({}, True),
        ({"title": "Regarded otherwise", "what": "So."}, True),
        ({"by": BOB}, False),
        ({"by": "agent:codex"}, False),
        ({"evidence": None}, False),
        ({"evidence": Evidence(file="proposal.md", quote="A user is")}, False),
        ({"evidence": Evidence(file=SPEC_FILE, quote="A reader is")}, False),
        ({"comment": "K2"}, False),
        ({"comment": "K1", "evidence": None, "by": BOB}, True),
        ({"comment": "K1", "by": "agent:codex"}, False),
    ],
)
def test_finding_without_a_comment_id_is_matched_by_its_content(
    project: Scenario, values: dict[str, object], is_own: bool
) -> None:
    change = project.challenged().change
    comment_store.link_findings(change, {comment(change).id: "P1"})
    found = comment_store.read_comments(change)
    finding = older(**values)
    assert "comment" in finding_data(finding) or finding.comment is None
    assert bool(misattributed_comments(found, [finding])) is not is_own
    assert resolve_comments(found, [finding])[0].finding == ("P1" if is_own else None)


def test_finding_written_by_an_older_version_still_follows_its_comment(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    comment(change)
    take_up(project)
    path = change.folder / "reviews/challenge-1.yaml"
    text = path.read_text()
    assert text.count("comment: K1") == 1
    path.write_text("".join(line for line in text.splitlines(keepends=True) if "comment: K1" not in line))
    assert annotations.annotation_problems(change) == () and listed(change) == ["C1", "C2", "K1"]
    comment_store.resolve_comment(change, "K1", BOB)
    take_up(project)
    assert project.finding_states()["P1"] == "withdrawn"

"""What a person writes into CHALLENGE.md: findings closed, regraded, added; never a verdict, never a phase."""

from typing import Any

import pytest

from agentd.domain.terms import Phase
from playbooks import call, edit_spec, finding, previous, report, report_in_text, say
from scenario import Result, Scenario, record_edits, replace_text

FOUND = (("High", "It breaks"), ("Medium", "It is slow"), ("Low", "A comma"))
ME = "person:dev"
MINE = """### Name the cookie

- **Severity**: High
- **Description**: It has no name.

"""


def take_up(box: Scenario) -> Result:
    """The quickest command that reads what was edited."""
    return box.agentd("plan", "add-oauth", "--rounds", "0", "--json")


def section(title: str) -> str:
    """A finding as the document has it."""
    id_, severity = {"It breaks": ("C1", "High"), "It is slow": ("C2", "Medium"), "A comma": ("C3", "Low")}[title]
    return (
        f"### {id_}: {title}\n\n- **Severity**: {severity}\n- **Description**: So.\n- **Suggestion**: none\n"
        "- **Spec Reference**: none\n- **Evidence**: none, verified\n- **Found by**: play\n- **State**: open\n"
    )


def edit(box: Scenario, title: str, old: str, new: str) -> None:
    replace_text(box.challenge_page, section(title), section(title).replace(old, new))


def test_findings_can_be_closed_regraded_added_and_removed(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    before = change.read()
    edit(project, "It breaks", "State**: open", "State**: fixed")
    edit(project, "It is slow", "Severity**: Medium", "Severity**: Low")
    replace_text(project.challenge_page, section("A comma"), "")
    replace_text(project.challenge_page, "## Earlier findings", f"{MINE}## Earlier findings")
    told = take_up(project).json
    (record,) = change.records()
    cookie = {"severity": "high", "title": "Name the cookie", "what": "It has no name.", "suggestion": ""}
    assert record_edits(record) == [
        ("C1", "state", "fixed", ME),
        ("C2", "severity", "low", ME),
        ("C3", "state", "withdrawn", ME),
        ("P1", "added", {**cookie, "requirement": None}, ME),
    ]
    assert [(one["id"], one["severity"], one["by"]) for one in told["findings"]["list"]] == [
        ("C2", "low", "agent:play"),
        ("P1", "high", ME),
    ]
    assert (told["phase"], told["verdict"], told["exit_code"]) == ("proposed", "NEEDS_REVISION", 1)
    assert told["message"] == "NEEDS_REVISION - Found 1 HIGH, 1 LOW severity issues"
    text = project.challenge_page.read_text()
    assert "### P1: Name the cookie" in text and "### C3: A comma" in text and "**State**: withdrawn" in text
    take_up(project)
    assert (change.records(), project.challenge_page.read_text()) == ((record,), text), "nothing is taken twice"
    after = change.read()
    assert (after.phase, after.history, after.steps, project.started_steps()) == (
        before.phase,
        before.history,
        before.steps,
        [],
    )
    assert project.warnings() == []


def test_verdict_edited_to_approved_is_warned_about_once_and_restored(project: Scenario) -> None:
    change = project.challenged(
        "NEEDS_REVISION", *FOUND, reproposal=[edit_spec(), say("So.")], challenge_2=report_in_text("APPROVED")
    ).change
    before = project.challenge_page.read_text()
    replace_text(project.challenge_page, "**Verdict**: NEEDS_REVISION", "**Verdict**: APPROVED")
    assert take_up(project).json["phase"] == "proposed"
    words = (
        'the verdict in CHALLENGE.md was edited, which decides nothing: agentd plan add-oauth --accept "REASON" does'
    )
    assert project.warnings() == [("review-edit", words)]
    assert project.challenge_page.read_text() == before
    assert change.read().phase is Phase.PROPOSED and record_edits(change.records()[0]) == []


def test_invalid_edit_is_reported_with_its_line_and_left_unchanged(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    edit(project, "It is slow", "State**: open", "State**: gone")
    text = project.challenge_page.read_text()
    line = text.splitlines().index("- **State**: gone") + 1
    take_up(project)
    known = "open, fixed, disputed, withdrawn, accepted"
    assert project.warnings() == [("review-edit", f"CHALLENGE.md:{line}: unknown state 'gone'; use one of {known}")]
    assert project.challenge_page.read_text() == text and project.finding_states()["C2"] == "open"
    replace_text(project.challenge_page, "State**: gone", "State**: withdrawn")
    take_up(project)
    assert (project.finding_states()["C2"], len(project.warnings())) == ("withdrawn", 1)
    assert [one.id for one in change.records()[0].edits] == ["C2"]


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b""], ids=["no text", "empty"])
def test_missing_or_unreadable_challenge_md_withdraws_nothing(project: Scenario, data: bytes) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    project.challenge_page.write_bytes(data)
    assert take_up(project).code == 1
    assert set(project.finding_states().values()) == {"open"} and len(project.warnings()) == 1
    project.challenge_page.unlink()
    assert take_up(project).code == 1
    assert set(project.finding_states().values()) == {"open"}


def test_other_edits_of_challenge_md_are_kept(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    replace_text(project.challenge_page, "Looked at.", "Looked at, and I agree.")
    text = project.challenge_page.read_text()
    take_up(project)
    assert (project.challenge_page.read_text(), project.warnings()) == (text, [])


def refused(*found: dict[str, Any], **states: str) -> dict[str, Any]:
    report = {"verdict": "NEEDS_REVISION", "summary": "So.", "findings": list(found), "previous": previous(**states)}
    return call("append_review", **report) | {"refused": True}


def test_finding_closed_by_the_user_stays_closed_when_reported_again(project: Scenario) -> None:
    insists = [
        refused(finding(title="It breaks")),
        refused(C1="open"),
        *report("APPROVED", finding(title="It breaks")),
    ]
    project.challenged("NEEDS_REVISION", FOUND[0], challenge_2=insists)
    edit(project, "It breaks", "State**: open", "State**: accepted")
    assert project.agentd("plan", "add-oauth", "--rechallenge").code == 0
    record = project.change.records()[-1]
    assert (record.findings, record.previous, project.finding_states()) == ((), (), {"C1": "accepted"})


def test_finding_closed_by_the_user_is_not_reopened_by_a_text_verdict(project: Scenario) -> None:
    project.challenged(
        "NEEDS_REVISION",
        *FOUND[:2],
        challenge_2=report_in_text("NEEDS_REVISION", ("High", "It breaks"), ("Medium", "It is slow")),
    )
    edit(project, "It breaks", "State**: open", "State**: accepted")
    assert project.agentd("plan", "add-oauth", "--rechallenge", "--rounds", "0").code == 1
    record = project.change.records()[-1]
    assert (record.findings, [one.id for one in record.previous]) == ((), ["C2"])
    assert project.finding_states() == {"C1": "accepted", "C2": "open"}


def test_high_finding_regraded_to_low_does_not_block_approval(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", FOUND[0], challenge_2=report_in_text("APPROVED"))
    edit(project, "It breaks", "Severity**: High", "Severity**: Low")
    assert project.agentd("plan", "add-oauth", "--rechallenge").code == 0
    assert (project.change.read().phase, project.finding_states()) == (Phase.CHALLENGED, {"C1": "open"})


def test_planner_answers_a_finding_added_by_the_user(project: Scenario) -> None:
    answers = [{"expect": "P1 (high): Name the cookie"}, {"expect": "It has no name."}, edit_spec(), say("So.")]
    project.challenged(
        "NEEDS_REVISION", FOUND[2], reproposal=answers, challenge_2=report("APPROVED", previous=previous(P1="fixed"))
    )
    replace_text(project.challenge_page, "## Earlier findings", f"{MINE}## Earlier findings")
    assert project.agentd("plan", "add-oauth", "--rounds", "1").code == 0
    assert project.started_steps() == ["reproposal", "challenge"]
    assert project.finding_states() == {"C1": "open", "P1": "fixed"}


def test_plan_without_open_findings_suggests_rechallenge(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", FOUND[0], challenge_2=report_in_text("APPROVED"))
    edit(project, "It breaks", "State**: open", "State**: withdrawn")
    ended = project.agentd("plan", "add-oauth", "--rounds", "2")
    assert ended.code == 1
    assert "no finding is open; agentd plan add-oauth --rechallenge, or --accept" in ended.err
    told = take_up(project).json
    assert told["message"] == "NEEDS_REVISION - No open findings"
    assert (told["decision_needed"], told["next"]) == (None, "agentd plan add-oauth --rechallenge")
    assert project.started_steps() == []
    assert project.agentd(*told["next"].split()[1:]).code == 0
    assert project.started_steps() == ["challenge"]

"""What can be decided about a change in the viewer, and what comes of a decision, a stop and a resume."""

import sys
from pathlib import Path

import pytest

from agentd.change import comment_store
from agentd.change.folder import Change
from agentd.documents.comments import CommentSeverity
from agentd.domain.errors import Refusal, UsageError
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import Phase
from agentd.web import decisions, displayed
from agentd.web.decisions import ActionResult
from plans import BAD_CODE
from playbooks import APPROVED, NEEDS_CHANGES, edit_spec, implement, report_in_text, say
from processes import wait_until
from scenario import CHECK, Scenario, move, record_edits, replace_text
from terminal import at_question

FOUND = (("High", "It breaks"), ("Medium", "It is slow"))
ME, WHY = "person:dev", "Good enough."
SPEC = "specs/user-model.md"


def ids(change: Change) -> list[str]:
    return [one.id for one in decisions.decision_choices(change)]


def primary(change: Change) -> list[str]:
    return [one.id for one in decisions.decision_choices(change) if one.is_primary]


def decide(change: Change, choice: str, reason: str = WHY) -> ActionResult:
    return decisions.make_decision(change, choice, reason, displayed.displayed_state(change), ME)


def note(change: Change, weight: CommentSeverity, quote: str = "People are users", text: str = "Who?") -> str:
    return comment_store.add_comment(
        change, comment_store.comment_anchor(change, "proposal.md", quote), text, "person:ann", weight
    ).id


# ---- what can be decided about a plan


def test_plan_without_open_findings_can_be_approved_with_or_without_notes(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    assert ids(change) == ["approve", "approve-with-notes", "send-back", "reject"]
    assert primary(change) == ["approve"]
    assert [one.id for one in decisions.decision_choices(change) if not one.needs_reason] == ["approve"]
    assert {one.workflow for one in decisions.decision_choices(change)} == {"plan"}


def test_open_findings_must_be_accepted_with_a_reason(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    assert ids(change) == ["accept", "send-back", "reject"] and primary(change) == ["send-back"]
    assert all(one.needs_reason for one in decisions.decision_choices(change))


def test_unchallenged_plan_cannot_be_sent_back(project: Scenario) -> None:
    assert ids(project.proposed([]).change) == ["approve", "approve-with-notes", "reject"]


@pytest.mark.parametrize(
    ("weight", "wanted"),
    [
        (CommentSeverity.NOTE, ["approve-with-notes", "send-back", "reject"]),
        (CommentSeverity.SHOULD, ["accept", "send-back", "reject"]),
        (CommentSeverity.BLOCKER, ["accept", "send-back", "reject"]),
    ],
)
def test_comment_counts_before_it_becomes_a_finding(
    project: Scenario, weight: CommentSeverity, wanted: list[str]
) -> None:
    change = project.challenged("APPROVED").change
    note(change, weight, text="")
    assert "approve" in ids(change), "one that is just begun says nothing yet"
    comment_store.edit_comment(change, "K1", 0, "Who?", "person:ann")
    assert ids(change) == wanted
    comment_store.resolve_comment(change, "K1", "person:ann")
    assert "approve" in ids(change)


def test_approved_plan_can_be_approved_again_only_after_an_edit(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    assert decide(change, "approve", "").ok
    assert change.read().history[-1].why == "approved as read"
    assert ids(change) == ["approve-with-notes", "send-back", "reject"]
    replace_text(change.folder / SPEC, "A user is", "A user, so I say, is")
    assert "approve" in ids(change)


@pytest.mark.parametrize("word", ["REJECTED"])
def test_rejected_plan_offers_no_decision(project: Scenario, word: str) -> None:
    change = project.challenged(word, *FOUND).change
    assert ids(change) == []
    with pytest.raises(Refusal, match="accept cannot be decided about add-oauth now"):
        decide(change, "accept")


def test_archived_change_offers_no_decision(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    assert project.agentd("drop", "add-oauth", "--yes").code == 0
    (folder,) = (project.root / "agentd/archive").iterdir()
    assert decisions.decision_choices(Change(change.project, change.id, change.tree, folder)) == ()


# ---- what can be decided about code


def test_code_can_be_decided_after_its_review(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(), "review": NEEDS_CHANGES}).change
    assert ids(change) == ["approve", "approve-with-notes", "reject"], "of the plan"
    move(change, TransitionEvent.IMPLEMENTATION_STARTED)
    assert ids(change) == ["plan-wrong"]
    assert project.run("impl", "--rounds", "0").code == 1
    assert ids(change) == ["accept", "plan-wrong"]
    assert {one.workflow for one in decisions.decision_choices(change)} == {"impl"}
    told = decide(change, "accept")
    assert told.ok and told.message == f"Accepted by dev: {WHY}" and told.hint == "agentd archive greet"
    assert ids(change) == ["send-back"]
    assert decide(change, "send-back").ok and change.read().phase is Phase.IMPLEMENTING


def test_code_with_a_failed_check_cannot_be_accepted(project: Scenario) -> None:
    change = project.greeting_approved({"implement-greeting": implement(BAD_CODE), "review": APPROVED}, CHECK).change
    assert project.run("impl", "--rounds", "0").code == 1
    assert ids(change) == ["plan-wrong"]
    assert decide(change, "plan-wrong", "It cannot be greeted so.").ok
    assert change.read().phase is Phase.PROPOSED


# ---- a decision, by the command itself


def test_decision_is_made_by_the_command_and_reported_in_its_words(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    assert decide(change, "accept") == ActionResult(True, f"Accepted by dev: {WHY}", "agentd impl add-oauth")
    last = change.read().history[-1]
    assert (last.by, last.why, last.hashes) == (ME, WHY, change.hashes())
    assert set(project.finding_states().values()) == {"accepted"}


def test_plan_sent_back_without_a_run_names_the_next_command(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    assert decide(change, "send-back", "Name it.\r\nSoon.") == ActionResult(
        True, "Sent back by dev: Name it.\nSoon.", "agentd plan add-oauth --rounds 1"
    )
    assert (
        change.read().phase is Phase.PROPOSED
        and project.started_steps() == []
        and project.finding_states()["P1"] == "open"
    )


def test_decision_on_changed_documents_is_refused(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    shown = displayed.displayed_state(change)
    replace_text(change.folder / SPEC, "A user is", "A user, so I say, is")
    (change.folder / "specs/more.md").write_text("# More\n")
    told = decisions.make_decision(change, "accept", WHY, shown, ME)
    assert not told.ok and set(told.changed) == {SPEC, "specs/more.md"} and SPEC in told.message
    assert change.read().phase is Phase.PROPOSED and record_edits(change.records()[0]) == []


def test_change_after_the_page_check_is_refused_by_the_command(
    project: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    late = tmp_path / "late"  # somebody writes while the command is started
    late.write_text(f"#!/bin/sh\necho More. >> '{change.folder / SPEC}'\nexec '{sys.executable}' \"$@\"\n")
    late.chmod(0o755)
    shown = displayed.displayed_state(change)
    monkeypatch.setattr(sys, "executable", str(late))
    told = decisions.make_decision(change, "accept", WHY, shown, ME)
    assert not told.ok and told.changed == (SPEC,)
    assert change.read().phase is Phase.PROPOSED and record_edits(change.records()[0]) == []


@pytest.mark.parametrize("shown", [{}, {"proposal.md": "sha256:1"}, {"../STATE.yaml": "x"}])
def test_decision_without_the_shown_documents_is_refused(project: Scenario, shown: dict[str, str]) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    assert decisions.make_decision(change, "accept", WHY, shown, ME).changed
    assert change.read().phase is Phase.PROPOSED


@pytest.mark.parametrize("choice", ["", "view", "fix", "approve", "accept --trust", "drop", "--accept"])
def test_only_offered_choices_can_be_decided(project: Scenario, choice: str) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    with pytest.raises(Refusal, match="cannot be decided"):
        decide(change, choice)
    assert len(change.read().history) == 2


@pytest.mark.parametrize("reason", ["", " \n ", "a\0b", "long " * 5000])
def test_invalid_reason_is_refused(project: Scenario, reason: str) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    with pytest.raises(UsageError, match="reason"):
        decide(change, "accept", reason)


def test_reason_is_never_parsed_as_an_option(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    assert decide(change, "accept", "--trust").ok
    assert change.read().history[-1].why == "--trust"


def test_refusal_of_the_command_is_reported_with_its_hint(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    replace_text(change.folder / "proposal.md", "## Why", "## Because")
    told = decide(change, "accept")
    assert not told.ok and told.message.startswith("the plan cannot be accepted as it is: proposal.md:")
    assert told.hint == "agentd validate add-oauth lists what is wrong" and told.changed == ()


# ---- a decision, through a run that waits


def test_waiting_run_gets_the_answer_and_continues(project: Scenario) -> None:
    fixed = [edit_spec(), say("So.")]
    change = project.challenged(
        "NEEDS_REVISION", *FOUND[1:], reproposal=fixed, challenge_2=report_in_text("APPROVED")
    ).change
    person = at_question(project)
    assert ids(change) == ["fix", "accept", "stop", "reject", "send-back"] and primary(change) == ["fix"]
    assert [one.id for one in decisions.decision_choices(change) if one.needs_reason] == [
        "accept",
        "reject",
        "send-back",
    ]
    assert decide(change, "fix", "").ok
    assert person.waits() == 0
    assert project.started_steps() == ["reproposal", "challenge"] and project.decisions() == [
        ("fix", ME, "inbox", None)
    ]


def test_acceptance_ends_the_waiting_run(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    person = at_question(project)
    told = decisions.make_decision(change, "accept", WHY, displayed.displayed_state(change), "person:ann")
    assert told.ok, told
    assert person.waits() == 0
    assert project.decisions() == [("accept", "person:ann", "inbox", WHY)]
    assert change.read().history[-1].by == "person:ann"


def test_stale_answer_is_not_passed_to_the_waiting_run(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    shown = displayed.displayed_state(change)
    person = at_question(project)
    replace_text(change.folder / SPEC, "A user is", "A user, so I say, is")
    assert decisions.make_decision(change, "accept", WHY, shown, ME).changed == (SPEC,)
    assert project.decisions() == [] and change.active_run()
    assert decide(change, "stop", "").ok
    assert person.waits() == 1


def test_busy_run_offers_no_decision(project: Scenario) -> None:
    change = project.proposed([{"wait": 600}]).change
    assert decisions.resume_change(change).ok
    wait_until(lambda: project.started_steps() == ["challenge"], "it is at work")
    assert decisions.decision_choices(change) == ()
    with pytest.raises(Refusal):
        decide(change, "approve")
    decisions.stop_change(change)


# ---- stop and resume


def test_run_can_be_resumed_in_the_background_and_stopped(project: Scenario) -> None:
    change = project.proposed([{"wait": 600}]).change
    assert decisions.stop_change(change) == ActionResult(True, "Nothing is running for add-oauth.")
    told = decisions.resume_change(change)
    assert (told.ok, told.message) == (True, "add-oauth continues in the background.")
    wait_until(lambda: project.started_steps() == ["challenge"], "it is at work")
    busy = decisions.resume_change(change)
    assert not busy.ok and "is being worked on by" in busy.message
    stopped = decisions.stop_change(change)
    assert stopped.ok and stopped.hint == "agentd plan add-oauth"
    assert change.active_run() is None and change.read().phase is Phase.PROPOSED


def test_resume_can_raise_the_budget(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED"), more="[budget]\nper_change = 1\n").change
    less = decisions.resume_change(change, 0.5)
    wait_until(lambda: change.active_run() is None, "it has ended")
    assert change.read().budget is None and (not less.ok or less.message)
    assert decisions.resume_change(change, 3.25).ok
    wait_until(lambda: change.read().phase is Phase.CHALLENGED, "it is judged")
    wait_until(lambda: change.active_run() is None, "it has ended")
    raised = change.read().budget
    assert raised and (raised.per_change, raised.by) == (3.25, ME)


def test_refused_resume_is_reported(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    project.write("agentd/config.toml", (project.root / "agentd/config.toml").read_text() + CHECK)
    told = decisions.resume_change(change)
    assert not told.ok and "trust" in told.message and "agentd trust" in told.hint


def test_rejected_change_cannot_be_resumed(project: Scenario) -> None:
    change = project.challenged("REJECTED", *FOUND).change
    with pytest.raises(Refusal, match="add-oauth has nothing to continue"):
        decisions.resume_change(change)

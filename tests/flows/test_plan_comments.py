"""Comments on a plan: findings of the next round, answered by the planner, settled by the judge or by people."""

import os

import pytest

from agentd.change import comment_store
from agentd.change.folder import Change
from agentd.documents.comments import COMMENTS_FILE, CommentSeverity, CommentState
from agentd.documents.records import Evidence, Finding, current_findings
from agentd.domain.terms import FindingState, Phase, Severity
from agentd.engine.context.implementer_brief import implementer_brief
from agentd.engine.steps import person_findings
from agentd.engine.steps.step_context import CHALLENGER_SPEC, StepContext
from plans import SPEC_FILE, SPEC_TEXT
from playbooks import APPROVED, edit_spec, previous, report, report_in_text, say
from scenario import Result, Scenario, open_run, replace_text

ANN, BOB = "person:ann", "person:bob"
LOW = ("Low", "A comma")


def comment(
    change: Change, text: str, severity: CommentSeverity = CommentSeverity.BLOCKER, quote: str = "A user is"
) -> str:
    return comment_store.add_comment(
        change, comment_store.comment_anchor(change, SPEC_FILE, quote), text, ANN, severity
    ).id


def take_up(box: Scenario) -> Result:
    """The quickest command that takes up what people did."""
    return box.agentd("plan", "add-oauth", "--rounds", "0", "--json")


def finding(box: Scenario, id_: str = "P1") -> Finding:
    return next(one for one in current_findings(box.change.records()) if one.id == id_)


def shown(box: Scenario) -> dict[str, str]:
    return {one.id: str(one.state) for one in comment_store.current_comments(box.change)}


def test_open_comments_become_findings_with_evidence(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", LOW).change
    comment(change, "Who is that?\n\nSay it.")
    comment(change, "Slow.", CommentSeverity.SHOULD)
    comment(change, "A word.", CommentSeverity.NOTE)
    comment(change, " \n")
    comment_store.resolve_comment(change, comment(change, "Never mind."), ANN)
    told = take_up(project).json
    assert [(one["id"], one["severity"], one["by"]) for one in told["findings"]["list"]] == [
        ("C1", "low", "agent:play"),
        ("P1", "high", ANN),
        ("P2", "medium", ANN),
        ("P3", "low", ANN),
    ]
    line = SPEC_TEXT[: SPEC_TEXT.index("A user is")].count("\n") + 1
    one = finding(project)
    assert (one.title, one.what) == ("Who is that?", "Who is that?\n\nSay it.")
    assert (one.where, one.verified) == (f"{SPEC_FILE}:{line}", True)
    assert one.evidence == Evidence(file=SPEC_FILE, line=line, quote="A user is")
    assert [one.finding for one in comment_store.read_comments(change)] == ["P1", "P2", "P3", None, None]
    assert (
        "### P1: Who is that?" in project.challenge_page.read_text()
        and "  > A user is" in project.challenge_page.read_text()
    )
    record, kept = change.records(), (change.folder / COMMENTS_FILE).read_bytes()
    take_up(project)
    assert (change.records(), (change.folder / COMMENTS_FILE).read_bytes()) == (record, kept), "nothing is taken twice"


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("A user is one person. ", "", f"the text that it is about is gone from {SPEC_FILE}"),
        ("one person", "one human", "the text that it is about has changed since"),
    ],
)
def test_comment_whose_text_is_gone_becomes_an_unverified_finding(
    project: Scenario, old: str, new: str, because: str
) -> None:
    change = project.challenged("NEEDS_REVISION", LOW).change
    comment(change, "Who?", quote="A user is one person.")
    path = change.folder / SPEC_FILE
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    take_up(project)
    assert (finding(project).verified, finding(project).unverified_because) == (False, because)


def test_comment_is_resolved_when_the_judge_closes_its_finding(project: Scenario) -> None:
    answers = [{"expect": "P1 (high): Who is that?"}, {"expect": f"Where: {SPEC_FILE}:"}, edit_spec(), say("So.")]
    change = project.challenged(
        "NEEDS_REVISION", LOW, reproposal=answers, challenge_2=report("APPROVED", previous=previous(P1="fixed"))
    ).change
    comment(change, "Who is that?")
    comment(change, " ")
    assert shown(project) == {"K1": "open", "K2": "open"}
    assert project.agentd("plan", "add-oauth", "--rounds", "1").code == 0
    assert project.started_steps() == ["reproposal", "challenge"]
    assert (project.finding_states()["P1"], shown(project)) == ("fixed", {"K1": "resolved", "K2": "open"})
    assert comment_store.read_comments(change)[0].state is CommentState.OPEN, "it is computed, not written"


def test_later_replies_are_part_of_the_next_round(project: Scenario) -> None:
    answers = [{"expect": "P1 (high): Who?"}, {"expect": "bob: The reader."}, edit_spec(), say("So.")]
    change = project.challenged(
        "NEEDS_REVISION", LOW, reproposal=answers, challenge_2=report("APPROVED", previous=previous(P1="fixed"))
    ).change
    comment(change, "Wh")
    take_up(project)
    assert finding(project).title == "Wh"
    comment_store.edit_comment(change, "K1", 0, "Who?", ANN)
    comment_store.reply_to_comment(change, "K1", "The reader.", BOB)
    assert project.agentd("plan", "add-oauth", "--rounds", "1").code == 0
    assert (finding(project).title, finding(project).what) == ("Who?", "Who?\n\nbob: The reader.")
    assert "bob: The reader." not in project.challenge_page.read_text(), "the last round has only a line of it"
    count = len(change.records()[0].edits)
    take_up(project)
    assert len(change.records()[0].edits) == count == 3


def test_resolved_comment_withdraws_its_finding_and_reopening_adds_a_new_one(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", LOW).change
    comment(change, "Who?")
    take_up(project)
    comment_store.resolve_comment(change, "K1", BOB)
    take_up(project)
    (record,) = change.records()
    assert [(one.id, one.field, one.by) for one in record.edits] == [("P1", "added", ANN), ("P1", "state", BOB)]
    assert (project.finding_states()["P1"], shown(project)) == ("withdrawn", {"K1": "resolved"})
    assert comment_store.reopen_comment(change, "K1", ANN).finding is None
    take_up(project)
    assert (project.finding_states()["P2"], shown(project)) == ("open", {"K1": "open"})
    replace_text(project.challenge_page, "### P2: Who?\n\n- **Severity**: High", "### P2: Who?\n\n- **Severity**: Low")
    take_up(project)
    assert finding(project, "P2").severity is Severity.LOW


def test_finding_closed_in_challenge_md_resolves_its_comment(project: Scenario) -> None:
    change = project.challenged().change
    comment(change, "Who?")
    take_up(project)
    replace_text(project.challenge_page, "- **State**: open", "- **State**: accepted")
    take_up(project)
    assert (project.finding_states(), shown(project)) == ({"P1": "accepted"}, {"K1": "resolved"})
    assert comment_store.read_comments(change)[0].state is CommentState.OPEN


def test_blocker_comment_before_the_first_verdict_overrules_an_approval(project: Scenario) -> None:
    change = project.proposed(APPROVED).change
    comment(change, "Who?")
    comment(change, "Slow.", CommentSeverity.SHOULD)
    ended = project.agentd("plan", "add-oauth", "--rounds", "0")
    assert ended.code == 1
    (record,) = change.records()
    assert [(one.id, one.by, one.state) for one in record.findings] == [
        ("P1", ANN, FindingState.OPEN),
        ("P2", ANN, FindingState.OPEN),
    ]
    assert record.verdict == "NEEDS_REVISION"
    assert record.overruled == "What a person asked for must be answered first (P1)."
    assert (change.read().findings, change.read().phase) == ((), Phase.PROPOSED)
    comment_store.reply_to_comment(change, "K1", "Who indeed?", BOB)
    take_up(project)
    assert finding(project).what == "Who?\n\nbob: Who indeed?" and set(project.finding_states()) == {"P1", "P2"}


def test_pending_finding_follows_its_comment_until_it_is_recorded(project: Scenario) -> None:
    change = project.proposed(APPROVED).change
    comment(change, "Who?")
    comment(change, "Slow.")
    with open_run(change) as run:
        ctx = StepContext(run, os.environ)
        person_findings.apply_comments(ctx, CHALLENGER_SPEC)
        assert [(one.id, one.what) for one in change.read().findings] == [("P1", "Who?"), ("P2", "Slow.")]
        comment_store.reply_to_comment(change, "K1", "Me.", BOB)
        comment_store.resolve_comment(change, "K2", BOB)
        person_findings.apply_comments(ctx, CHALLENGER_SPEC)
        assert [(one.id, one.what) for one in change.read().findings] == [("P1", "Who?\n\nbob: Me.")]
        comment_store.reopen_comment(change, "K2", BOB)
        person_findings.apply_comments(ctx, CHALLENGER_SPEC)
        assert [one.id for one in change.read().findings] == ["P1", "P2"]


def test_interrupted_conversion_of_a_comment_creates_one_finding(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", LOW).change
    comment(change, "Who?")
    comment_store.link_findings(change, {"K1": "P4"})
    comment(change, "Slow.")
    take_up(project)
    take_up(project)
    assert project.finding_states() == {"C1": "open", "P4": "open", "P5": "open"}
    assert [one.finding for one in comment_store.read_comments(change)] == ["P4", "P5"]


def test_findings_from_users_and_from_comments_have_separate_ids(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", LOW).change
    comment(change, "Who?")
    mine = "### Name it\n\n- **Severity**: High\n- **Description**: It has no name.\n\n"
    replace_text(project.challenge_page, "## Earlier findings", f"{mine}## Earlier findings")
    take_up(project)
    comment(change, "Slow.")
    take_up(project)
    assert {one.id: one.title for one in current_findings(change.records())} == {
        "C1": "A comma",
        "P1": "Name it",
        "P2": "Who?",
        "P3": "Slow.",
    }


def test_unreadable_comment_stops_the_command_with_its_line(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", LOW).change
    comment(change, "Who?")
    path = change.folder / COMMENTS_FILE
    path.write_text(path.read_text().replace("severity: blocker", "severity: huge"))
    ended = project.agentd("plan", "add-oauth", "--rounds", "0")
    assert ended.code == 6
    assert "comments.yaml line 1: severity is 'huge'" in ended.err and "git log -p" in ended.err


def test_approval_that_ignores_a_blocker_comment_is_overruled(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", LOW, challenge_2=report_in_text("APPROVED")).change
    comment(change, "Who?")
    assert project.agentd("plan", "add-oauth", "--rechallenge", "--rounds", "0").code == 1
    assert change.records()[-1].overruled == "Findings of high severity are still open (P1)."


def test_unchallenged_plan_is_accepted_with_its_comments(
    project: Scenario,
) -> None:
    change = project.proposed(APPROVED).change
    comment(change, "And mind the comma.", CommentSeverity.NOTE)
    comment(change, "Who?")
    assert project.agentd("plan", "add-oauth", "--accept", "Good enough.").code == 0
    assert change.records() == () and change.read().phase is Phase.CHALLENGED
    assert [(one.id, str(one.state)) for one in change.read().findings] == [("P1", "accepted"), ("P2", "accepted")]
    assert shown(project) == {"K1": "resolved", "K2": "resolved"}
    assert implementer_brief(change, ["1.1"])["notes"] == ["Good enough.", "And mind the comma.", "Who?"]
    assert project.agentd("plan", "add-oauth", "--rechallenge").code == 0
    (record,) = change.records()
    assert (record.overruled, project.finding_states()) == (None, {"P1": "accepted", "P2": "accepted"})
    assert (change.read().findings, shown(project)) == ((), {"K1": "resolved", "K2": "resolved"})

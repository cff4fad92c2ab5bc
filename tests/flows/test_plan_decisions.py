"""What people decide about a challenged plan: by flag, at a terminal, and from elsewhere while a run waits."""

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentd.change.inbox import Decision, Inbox, InboxReply
from agentd.documents.records import ReviewRecord
from agentd.domain.terms import FindingState, Phase
from agentd.engine.workflows.read_digest import current_reading
from crash import restorable
from plans import PROPOSAL_TEXT, PROPOSAL_WITHOUT_WHY, SPEC_FILE
from playbooks import edit_spec, report_in_text, say, write_document
from processes import wait_until
from program import AGENTD
from scenario import Result, Scenario, names_in, record_edits, replace_text
from terminal import DOWN, ENTER, INTERRUPT, at_question, start_on_terminal

FOUND = (("High", "It breaks"), ("Medium", "It is slow"))
FIX = [edit_spec(), say("So.")]
ME, WHY = "person:dev", "Good enough."
ACCEPT, STOP = DOWN * 2 + ENTER, DOWN * 3 + ENTER


def decide(box: Scenario, flag: str, why: str = WHY, *more: str) -> Result:
    return box.agentd("plan", "add-oauth", flag, why, "--json", *more)


def error_of(ended: Result) -> tuple[int, str]:
    return ended.code, ended.json["error"]["code"]


def spec(box: Scenario) -> Path:
    return box.change.folder / SPEC_FILE


def only(box: Scenario) -> ReviewRecord:
    (record,) = box.change.records()
    return record


# ---- by flag


def test_accepted_plan_is_challenged_and_its_findings_accepted(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    ended = decide(project, "--accept", f"  {WHY} ")
    told = ended.json
    assert (ended.code, told["exit_code"], told["error"], told["phase"]) == (0, 0, None, "challenged")
    assert (told["message"], told["verdict"]) == (f"Accepted by dev: {WHY}", "NEEDS_REVISION")
    assert told["findings"] == {"open": {"high": 0, "medium": 0, "low": 0}, "list": []}
    assert (told["decision_needed"], told["next"]) == (None, "agentd impl add-oauth")
    record, state = only(project), change.read()
    assert record_edits(record) == [(id_, "state", "accepted", ME) for id_ in ("C1", "C2")]
    last = state.history[-1]
    assert (last.origin, last.to, last.event, last.by, last.why) == ("proposed", "challenged", "accepted", ME, WHY)
    assert last.hashes == change.hashes() == record.judged and state.run is None
    assert project.challenge_page.read_text().count("- **State**: accepted") == 2
    again = project.run("plan")
    assert again.code == 0 and again.out.startswith("Planning of add-oauth is complete\n")
    assert project.started_steps() == []


def test_plan_with_format_errors_cannot_be_accepted(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    replace_text(change.folder / "proposal.md", "## Why", "## Because")
    ended = decide(project, "--accept")
    assert error_of(ended) == (1, "format-invalid")
    assert ended.json["error"]["message"].startswith("the plan cannot be accepted as it is: proposal.md:")
    assert (change.read().phase, record_edits(only(project))) == (Phase.PROPOSED, [])


def test_edited_plan_is_accepted_with_its_current_content(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    replace_text(spec(project), "A user is", "A user, so I say, is")
    assert decide(project, "--accept").code == 0
    assert change.read().history[-1].hashes == change.hashes() != only(project).judged
    assert project.run("plan").out.startswith("Planning of add-oauth is complete\n")
    replace_text(spec(project), "so I say", "as they say")
    assert project.run("plan").out.startswith("Planning of add-oauth is complete, but the plan was edited since")


@pytest.mark.parametrize("edited", [False, True], ids=["as judged", "edited before"])
def test_rejected_plan_is_challenged_again_only_after_an_edit(project: Scenario, edited: bool) -> None:
    change = project.challenged(
        "NEEDS_REVISION", *FOUND, challenge_2=report_in_text("REJECTED", ("High", "No way"))
    ).change
    if edited:
        replace_text(spec(project), "A user is", "A user, so I say, is")
    ended = decide(project, "--reject", "Another time.")
    told = ended.json
    assert (ended.code, told["phase"], told["message"]) == (0, "rejected", "Rejected by dev: Another time.")
    assert (told["next"], told["decision_needed"]) == ("agentd view add-oauth", None)
    assert len(told["findings"]["list"]) == 2, "they are as open as before"
    assert change.read().history[-1].by == ME
    for flags in ([], ["--rechallenge"]):
        refused = project.agentd("plan", "add-oauth", *flags, "--json")
        assert error_of(refused) == (1, "wrong-phase")
    assert project.started_steps() == []
    replace_text(spec(project), "one or more identities", "identities")
    assert project.agentd("plan", "add-oauth", "--rechallenge").code == 1
    assert (project.started_steps(), change.read().phase, change.read().round) == (["challenge"], Phase.REJECTED, 2)


def test_plan_that_was_sent_back_has_the_reason_as_a_finding(project: Scenario) -> None:
    answers = [{"expect": "P1 (high): Name the cookie"}, edit_spec(), say("So.")]
    change = project.challenged(
        "APPROVED", reproposal=answers, challenge_2=report_in_text("NEEDS_REVISION", ("Low", "A comma"))
    ).change
    assert change.read().phase is Phase.CHALLENGED
    ended = decide(project, "--send-back", "Name the cookie")
    told = ended.json
    assert (ended.code, told["phase"], told["message"]) == (0, "proposed", "Sent back by dev: Name the cookie")
    assert [(one["id"], one["severity"], one["by"]) for one in told["findings"]["list"]] == [("P1", "high", ME)]
    assert told["next"] == "agentd plan add-oauth --rounds 1"
    assert [(id_, name, by) for id_, name, _, by in record_edits(only(project))] == [("P1", "added", ME)]
    assert change.read().history[-1].event == "sent-back"
    assert "### P1: Name the cookie" in project.challenge_page.read_text()
    assert project.agentd(*told["next"].split()[1:]).code == 1
    assert project.started_steps() == ["reproposal", "challenge"]
    assert decide(project, "--send-back", "And its path").code == 0
    assert {"P1", "P2"} <= set(project.finding_states())


def test_unchallenged_plan_can_be_accepted_or_rejected_but_not_sent_back(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    with restorable(project) as put_back:
        ended = decide(project, "--send-back")
        assert error_of(ended) == (1, "wrong-phase")
        assert ended.json["error"]["hint"] == "agentd challenge add-oauth" and change.records() == ()
        assert decide(project, "--accept").json["phase"] == "challenged"
        assert change.read().history[-1].hashes == change.hashes()
        put_back()
        assert decide(project, "--reject").json["phase"] == "rejected"
        assert error_of(project.agentd("plan", "add-oauth", "--rechallenge", "--json")) == (1, "wrong-phase")
    assert project.started_steps() == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--accept", " "], "--accept needs a reason"),
        (["--send-back", ""], "--send-back needs a reason"),
        (["--accept", "a", "--reject", "b"], "--accept and --reject are two decisions"),
    ],
)
def test_decision_needs_one_flag_and_a_reason(project: Scenario, flags: list[str], words: str) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    ended = project.agentd("plan", "add-oauth", *flags)
    assert ended.code == 2 and words in ended.err
    assert len(project.change.read().history) == 2


def test_rejected_plan_cannot_be_decided(project: Scenario) -> None:
    project.challenged("REJECTED", *FOUND)
    for flag in ("--accept", "--send-back", "--reject"):
        assert error_of(decide(project, flag)) == (1, "wrong-phase")
    assert record_edits(only(project)) == [], "nothing is written before it is refused"
    assert project.agentd("plan", "no-such", "--accept", WHY).code == 1


def test_rechallenge_judges_the_same_plan_again(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND[1:], challenge_2=report_in_text("APPROVED")).change
    ended = project.agentd("plan", "add-oauth", "--rechallenge", "--json")
    assert (ended.code, ended.json["round"], project.started_steps()) == (0, 2, ["challenge"])
    one, two = change.records()
    assert one.judged == two.judged
    assert project.run("plan").code == 0 and project.started_steps() == ["challenge"]


def test_every_option_has_a_working_command_without_a_terminal(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND[1:], reproposal=FIX, challenge_2=report_in_text("APPROVED"))
    ended = project.run("plan", "--json")
    needed = ended.json["decision_needed"]
    assert (ended.code, needed["id"]) == (1, "after-challenge-1")
    options = {one["id"]: one for one in needed["options"]}
    assert list(options) == ["fix", "view", "accept", "stop"]
    assert all(one["flag"] or one["command"] for one in options.values())
    codes = {}
    with restorable(project) as put_back:
        for name, one in options.items():
            command = one["command"] or f"agentd plan add-oauth {one['flag']}"
            codes[name] = project.agentd(*shlex.split(command)[1:]).code
            put_back()
    assert codes == {"fix": 0, "view": 0, "accept": 0, "stop": 1}


def test_repeated_challenge_reports_the_earlier_verdict(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    again = project.agentd("challenge", "add-oauth")
    assert again.code == 1 and again.out.startswith("NEEDS_REVISION") and project.started_steps() == []
    when = only(project).at[:16].replace("T", " ")
    words = f"judged already, in round 1 on {when} UTC; agentd plan add-oauth --rechallenge judges it again"
    assert words in again.err


# ---- at a terminal


def test_fix_answer_runs_reproposal_and_challenge(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND[1:], reproposal=FIX, challenge_2=report_in_text("APPROVED"))
    person = at_question(project)
    person.sees("The challenge found 1 medium. What next?")
    person.sees("❯ Fix and challenge again (recommended)")
    person.press(ENTER)
    assert person.waits() == 0
    assert "APPROVED - Ready for implementation!" in person.display.text
    assert (project.started_steps(), project.decisions()) == (
        ["reproposal", "challenge"],
        [("fix", ME, "terminal", None)],
    )


def test_findings_are_shown_once_before_the_question(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project)
    before, _, _ = person.display.text.partition("? The challenge found 1 high and 1 medium. What next?")
    lines = [line.rstrip() for line in before.splitlines()]
    assert "NEEDS_REVISION - Found 1 HIGH, 1 MEDIUM severity issues" in lines
    assert [line.split()[:2] for line in lines if line.startswith("  C")] == [["C1", "high"], ["C2", "medium"]]
    person.press(STOP)
    assert person.waits() == 1
    rows = [line for line in person.display.lines if line.startswith("  C")]
    assert len(rows) == 2 and person.display.text.count("Next ") == 1


def test_interrupt_at_the_question_names_one_command_to_continue(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project)
    person.press(INTERRUPT)
    assert person.waits() == 130
    after = person.display.text.partition("Error: interrupted")[2]
    assert "→ to continue: agentd plan add-oauth" in after and after.count("agentd plan") == 1


def test_view_answer_shows_the_challenge_and_asks_again(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    pager = project.write("pager.sh", '#!/bin/sh\nhead -n 8 "$1"; echo "-- $PWD --"\n')
    pager.chmod(0o755)
    person = at_question(project, PAGER=str(pager))
    person.press(DOWN + ENTER)
    person.sees("# Challenge: add-oauth")
    person.sees(lambda display: display.text.count("What next?") == 2)
    person.press(STOP)
    assert person.waits() == 1
    assert "NEEDS_REVISION - Found 1 HIGH, 1 MEDIUM severity issues" in person.display.text
    assert [one[0] for one in project.decisions()] == ["view", "stop"]
    assert (project.started_steps(), project.change.read().run) == ([], None)


def test_accept_asks_until_a_reason_is_given(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project)
    person.press(ACCEPT)
    person.sees("Why?")
    person.press(ENTER)
    person.sees("Please type an answer")
    person.sees(lambda display: display.text.count("Why?") == 2)
    person.press(WHY + ENTER)
    assert person.waits() == 0
    assert f"Accepted by dev: {WHY}" in person.display.text
    assert project.decisions() == [("accept", ME, "terminal", WHY)]
    assert project.change.read().history[-1].why == WHY


def test_decision_on_a_plan_edited_meanwhile_is_asked_again(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project)
    replace_text(spec(project), "A user is", "A user, so I say, is")
    person.press(ACCEPT)
    person.sees("Why?")
    person.press(WHY + ENTER)
    person.sees(f"{SPEC_FILE} changed while the question was open, so it is asked again")
    person.sees(lambda display: display.text.count("What next?") == 2)
    person.press(STOP)
    assert person.waits() == 1
    assert project.change.read().phase is Phase.PROPOSED


def test_edit_of_challenge_md_in_the_pager_counts(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project, PAGER="sed -i 's/State..: open/State**: withdrawn/'")
    person.press(DOWN + ENTER)
    assert person.waits() == 1
    assert "no finding is open" in person.display.text
    assert set(project.finding_states().values()) == {"withdrawn"}


def test_interrupt_at_the_question_can_be_resumed(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project)
    person.press(INTERRUPT)
    assert person.waits() == 130
    assert project.change.read().run is not None and names_in(project.inbox) == []
    person = at_question(project)
    person.press(STOP)
    assert person.waits() == 1
    assert project.change.read().run is None


def test_rounds_option_replaces_the_question(project: Scenario) -> None:
    project.challenged(
        "NEEDS_REVISION", *FOUND, reproposal=FIX, challenge_2=report_in_text("NEEDS_REVISION", ("Low", "A comma"))
    )
    for rounds in ("0", "1"):
        argv = [AGENTD, "plan", "add-oauth", "--rounds", rounds]
        person = start_on_terminal(argv, project.env, width=110, height=50)
        assert person.waits() == 1
        assert "What next?" not in person.display.text
    assert (project.started_steps(), project.decisions()) == (["reproposal", "challenge"], [])


@pytest.mark.parametrize("mends", [True, False], ids=["I will fix it myself", "stop"])
def test_format_errors_in_a_reproposal_are_shown_to_the_user(project: Scenario, mends: bool) -> None:
    project.challenged(
        "NEEDS_REVISION",
        *FOUND[1:],
        reproposal=[write_document("proposal.md", PROPOSAL_WITHOUT_WHY), say("So.")],
        challenge_2=report_in_text("APPROVED"),
    )
    person = at_question(project)
    person.press(ENTER)
    person.sees("The plan has 1 fault. What next?")
    person.sees("❯ Let the planner fix it")
    person.press(DOWN + ENTER if mends else DOWN * 2 + ENTER)
    if mends:
        person.sees("Fix proposal.md, then press Enter")
        (project.change.folder / "proposal.md").write_text(PROPOSAL_TEXT)
        person.press(ENTER)
    assert person.waits() == (0 if mends else 1)
    assert project.started_steps() == ["reproposal", *(["challenge"] if mends else [])]
    assert ("Stopped with 1 fault left in the plan" in person.display.text) is not mends


# ---- from elsewhere, while a run waits


def ended(program: "subprocess.Popen[str]") -> tuple[int, Any, str]:
    out, err = program.communicate()
    return program.returncode, json.loads(out) if out.startswith("{") else out, err


def test_decision_from_elsewhere_ends_the_waiting_run(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project)
    with project.deciding("--accept", WHY, "--json", name="ann") as other:
        code, told, _ = ended(other)
    assert (code, told["phase"], told["message"]) == (0, "challenged", f"Accepted by ann: {WHY}")
    assert (told["findings"]["list"], told["decision_needed"], told["exit_code"]) == ([], None, 0)
    assert person.waits() == 0
    assert "person:ann decided: accept" in person.display.text and f"Accepted by ann: {WHY}" in person.display.text
    assert project.decisions() == [("accept", "person:ann", "inbox", WHY)]
    last = project.change.read().history[-1]
    assert (last.by, last.why, project.change.read().run) == ("person:ann", WHY, None)
    assert names_in(project.inbox) == []


def test_second_of_two_concurrent_decisions_is_told_who_was_first(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", *FOUND)
    person = at_question(project)
    os.kill(person.pid, signal.SIGSTOP)  # it does not look until both have decided
    with project.deciding("--reject", "No.", name="ann") as first:
        wait_until(lambda: len(names_in(project.inbox)) == 2, "the first decision is there")
        with project.deciding("--accept", WHY, "--json", name="bob") as second:
            wait_until(lambda: len(names_in(project.inbox)) == 3, "the second decision is there")
            os.kill(person.pid, signal.SIGCONT)
            assert ended(first)[0] == 0
            code, told, _ = ended(second)
    assert (code, told["error"]["message"]) == (1, "the decision was refused: person:ann decided first: reject")
    assert person.waits() == 1
    assert "Rejected by ann: No." in person.display.text
    assert project.change.read().phase is Phase.REJECTED


def test_plan_sent_back_from_elsewhere_is_answered_by_the_waiting_run(project: Scenario) -> None:
    project.challenged(
        "NEEDS_REVISION", *FOUND[1:], reproposal=FIX, challenge_2=report_in_text("NEEDS_REVISION", ("Low", "A comma"))
    )
    person = at_question(project)
    with project.deciding("--send-back", "Name the cookie", "--json") as other:
        code, told, _ = ended(other)
    assert (code, told["message"]) == (0, "Sent back by dev: Name the cookie")
    person.sees("The challenge found 1 high, 1 medium and 1 low. What next?")
    person.sees("❯ Look at it (recommended)")  # the round closed nothing
    person.press(DOWN * 2 + ENTER)
    assert person.waits() == 1
    assert project.started_steps() == ["reproposal", "challenge"] and project.finding_states()["P1"] == "open"


def test_decision_that_cannot_be_applied_is_reported_as_failed(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    person = at_question(project)
    replace_text(change.folder / "proposal.md", "## Why", "## Because")
    with project.deciding("--accept", WHY, "--json") as other:
        code, told, _ = ended(other)
    assert (code, told["error"]["message"]) == (1, "the decision was delivered, but the run ended before applying it")
    assert person.waits() == 1
    assert "the plan cannot be accepted as it is" in person.display.text
    assert (change.read().phase, set(project.finding_states().values())) == (Phase.PROPOSED, {str(FindingState.OPEN)})


def test_invalid_decision_is_rejected_and_the_run_keeps_waiting(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    person = at_question(project)
    inbox, asked = Inbox(change), Inbox(change).asked()
    assert asked and asked["id"] == "after-challenge-1" and asked["hashes"] == current_reading(change)
    good = {"question": asked["id"], "answer": "accept", "reason": WHY, "by": "person:ann", "hashes": asked["hashes"]}
    bad: dict[str, dict[str, Any]] = {
        f"{SPEC_FILE} changed since this was decided": {"hashes": {**asked["hashes"], SPEC_FILE: "sha256:1"}},
        "the question is after-challenge-1 now": {"question": "after-challenge-0"},
        "approve is not one of fix, view, accept, stop, reject, send-back": {"answer": "approve"},
        "accept needs a reason": {"reason": ""},
        "only a person can decide": {"by": "agent:codex"},
    }
    names = {why: inbox.post(Decision(**{**good, **more})) for why, more in bad.items()}
    (project.inbox / "0.json").write_text("garbage")
    wait_until(lambda: all(inbox.has_reply(name) for name in (*names.values(), "0")), "all have a reply")
    assert {why: inbox.reply_to(name) for why, name in names.items()} == {why: InboxReply(False, why) for why in names}
    assert project.decisions() == [] and change.active_run()
    stop = inbox.post(Decision(**{**good, "answer": "stop", "reason": ""}))
    assert person.waits() == 1
    assert inbox.reply_to(stop) == InboxReply(True, "taken")
    assert project.decisions() == [("stop", "person:ann", "inbox", None)]


def test_run_killed_at_its_question_does_not_block_later_decisions(project: Scenario) -> None:
    change = project.challenged("NEEDS_REVISION", *FOUND).change
    person = at_question(project)
    os.kill(person.pid, signal.SIGKILL)
    assert person.waits() == -signal.SIGKILL
    wait_until(lambda: change.active_run() is None, "the lock is free")
    assert names_in(project.inbox) == ["asked.json"]
    taken = decide(project, "--accept")
    assert (taken.code, taken.json["phase"], change.read().run) == (0, "challenged", None)
    assert names_in(project.inbox) == [] and project.warnings() == []

"""`agentd plan` over rounds, with scripted agents: findings are answered, judged again, and settle or stop."""

import json
import re
from typing import Any

import pytest

from agentd.change.folder import document_hash
from agentd.documents import review_blocks
from agentd.domain import events, yaml12
from agentd.domain.terms import FindingState, Phase, StepStatus
from crash import kill_at_event
from plans import EXAMPLE, SIGN_IN_DOCUMENTS, SPEC_FILE
from playbooks import (
    NEEDS_REVISION,
    Action,
    answer,
    call,
    edit_spec,
    finding,
    plan_steps,
    previous,
    report,
    report_in_text,
    say,
    small_plan_steps,
    usage,
)
from scenario import Scenario, project_files

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
BREAKS = ("High", "It breaks")
EXPECT = "expect"


def edited() -> Action:
    """The planner edits a spec with its tool."""
    return call("edit_file", path=SPEC_FILE, old_text="A user is one", new_text="A user, now, is one")


def told(*words: str) -> list[Action]:
    return [{EXPECT: one} for one in words]


def refused(**report: Any) -> Action:
    return call("append_review", **report) | {"refused": True}


def form(value: Any) -> Any:
    """The keys, in their order, of all that is nested in it; of a list what each entry has."""
    if isinstance(value, dict):
        return {key: form(one) for key, one in value.items()}
    return sorted({repr(form(one)) for one in value}) if isinstance(value, list) else ""


def record_text(box: Scenario, number: int) -> str:
    return (box.folder / f"reviews/challenge-{number}.yaml").read_text()


# ---- findings that settle


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """One finding is fixed, one disputed and withdrawn, and round 2 approves. Only to be looked at."""
    place = tmp_path_factory.mktemp("settled")
    box = Scenario(place / "notes-service", place / "home")
    steps = small_plan_steps()
    slow = finding("medium", "It is slow", requirement="user-model:R1")
    steps["challenge/1"] = report("NEEDS_REVISION", finding(evidence={"file": SPEC_FILE, "quote": "A user is"}), slow)
    steps["reproposal"] = [
        *told("C1 (high): It breaks", "C2 (medium): It is slow", "Requirement: user-model:R1", "Mend it."),
        edited(),
        answer("C1", "fixed", "It holds now."),
        answer("C2", "disputed", "It is quick."),
        usage(0.02),
        say("So."),
    ]
    steps["challenge/2"] = report("APPROVED", previous=previous(C1="fixed", C2="withdrawn"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(box.root)
        for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            patch.setenv(name, box.env[name])
        box.with_agents(steps, workflow="self_review_iterations = 0\n")
    ended = box.run("plan", "--json")
    assert ended.code == 0, ended.out
    (place / "result.json").write_text(ended.out)
    return box


def test_settled_round_is_reported_as_approved(settled: Scenario) -> None:
    result = json.loads((settled.root.parent / "result.json").read_text())
    assert (result["phase"], result["verdict"], result["round"]) == ("challenged", "APPROVED", 2)
    assert result["message"] == "APPROVED - Ready for implementation!"
    assert result["findings"] == {"open": {"high": 0, "medium": 0, "low": 0}, "list": []}
    assert (result["decision_needed"], result["next"]) == (None, "agentd impl add-oauth")
    assert (result["error"], result["exit_code"]) == (None, 0)
    assert [name for name in result["files"] if "reviews" in name][-1].endswith("challenge-2.yaml")


def test_settled_round_is_in_the_state_with_steps_calls_and_session(settled: Scenario) -> None:
    state = settled.change.read()
    assert (state.phase, state.round, state.run) == (Phase.CHALLENGED, 2, None)
    rows = [(step.name, step.round, step.number, step.attempt, [*step.outputs]) for step in state.steps[-3:]]
    assert rows == [
        ("challenge", 1, 1, 1, ["reviews/challenge-1.yaml", "CHALLENGE.md"]),
        ("reproposal", 2, 1, 1, [SPEC_FILE, "reviews/challenge-1.yaml"]),
        ("challenge", 2, 1, 1, ["reviews/challenge-2.yaml", "CHALLENGE.md"]),
    ]
    assert {step.status for step in state.steps} == {StepStatus.DONE, StepStatus.SKIPPED}
    moves = [(str(one.origin), str(one.to), str(one.event), one.by, one.why) for one in state.history[1:]]
    assert moves == [
        ("proposed", "proposed", "challenge-needs-revision", "agent:play",
         "1 high, 1 medium open (reviews/challenge-1.yaml)"),
        ("proposed", "challenged", "challenge-approved", "agent:play", "nothing open (reviews/challenge-2.yaml)"),
    ]  # fmt: skip
    first, second = (one.hashes[SPEC_FILE] for one in state.history[1:])
    assert first != second == document_hash(settled.folder / SPEC_FILE)
    started = {(one.step, one.round): one for one in settled.journal(events.StepStarted)}
    again = started["reproposal", 2]
    assert again.resumed and again.session == state.session_id == started["proposal-gen", 1].session
    judges = [started["challenge", number] for number in (1, 2)]
    assert not any(one.resumed for one in judges) and len({state.session_id, *(one.session for one in judges)}) == 3
    assert [(one.step, one.session) for one in state.llm_calls][-2:] == [
        ("reproposal", state.session_id),
        ("challenge", judges[1].session),
    ]


def test_settled_round_has_the_records_page_and_blocks_of_the_contract(settled: Scenario) -> None:
    for number in (1, 2):
        like, mine = (yaml12.load(text) for text in (
            (EXAMPLE / f"reviews/challenge-{number}.yaml").read_text(), record_text(settled, number)
        ))  # fmt: skip
        assert list(mine) == list(like)
        for name in ("previous", "answers"):
            assert form(mine[name]) == form(like[name]), name
        assert [*mine["judged"]] == [*SIGN_IN_DOCUMENTS]
    answers = yaml12.load(record_text(settled, 1))["answers"]
    assert [(one["id"], one["answer"], one["note"], one["files"], one["by"]) for one in answers] == [
        ("C1", "fixed", "It holds now.", [SPEC_FILE], "agent:play"),
        ("C2", "disputed", "It is quick.", [], "agent:play"),
    ]
    assert f"files: [{SPEC_FILE}]\n" in record_text(settled, 1) and "files: []\n" in record_text(settled, 1)
    words = yaml12.load(record_text(settled, 2))["previous"]
    assert [tuple(one.values()) for one in words] == [
        ("C1", "high", "It breaks", "fixed", "It holds now.", "agent:play", "fixed", "Seen."),
        ("C2", "medium", "It is slow", "disputed", "It is quick.", "agent:play", "withdrawn", "Seen."),
    ]
    assert TIME.sub("TIME", (settled.folder / "CHALLENGE.md").read_text()) == PAGE
    found = review_blocks.find_blocks((settled.folder / "proposal.md").read_text())
    assert [(one.status, one.iteration, one.reviewer) for one in found] == [
        ("needs_revision", 1, "play"),
        ("approved", 2, "play"),
    ]
    assert found[0].text.endswith("- C1 (high, open): It breaks\n- C2 (medium, open): It is slow")
    assert found[1].text.endswith("- C1 (high, fixed): It breaks\n- C2 (medium, withdrawn): It is slow")


def test_next_challenger_reads_the_planners_answers(settled: Scenario) -> None:
    text = (settled.folder / "AGENTS.md").read_text()
    assert f"play answered: fixed. It holds now. Changed: {SPEC_FILE}." in text
    assert "play answered: disputed. It is quick." in text


PAGE = """---
change: add-oauth
type: challenge
round: 2
record: reviews/challenge-2.yaml
---

# Challenge: add-oauth

**Verdict**: APPROVED

Round 2, TIME. Judge: play. Maker: play. Judge and maker are the same vendor; the judge had a fresh session.

## Summary

It holds.

## Issues

None.

## Earlier findings

- C1 (high), fixed: It breaks
  - play, fixed: It holds now.
  - play, fixed: Seen.
- C2 (medium), withdrawn: It is slow
  - play, disputed: It is quick.
  - play, withdrawn: Seen.
"""


def test_planner_is_told_only_open_findings_with_the_judges_last_note(project: Scenario) -> None:
    both = report("NEEDS_REVISION", finding(), finding("medium", "It is slow"))
    half = report("NEEDS_REVISION", previous=[*previous(C1="fixed"), *previous("Still a crawl.", C2="open")])
    again = [*told("C2 (medium): It is slow", "Last note: Still a crawl."), edit_spec(2), say("So.")]
    later = {
        "challenge/2": half,
        "challenge/3": report("APPROVED", previous=previous(C2="fixed")),
        "reproposal/2": [edit_spec(), answer("C1", "fixed"), say("So.")],
        "reproposal/3": again,
    }
    project.proposed(both, later, rounds=2)
    assert project.run("plan").code == 0
    assert project.started_steps() == ["challenge", "reproposal", "challenge", "reproposal", "challenge"]
    assert project.finding_states() == {"C1": "fixed", "C2": "fixed"}
    assert project.warnings() == [
        ("unanswered", "the planner did not answer C2"),
        ("unanswered", "the planner did not answer C2"),
    ]
    assert [step.attempt for step in project.change.read().steps] == [1] * 5, "no prompt was without its words"
    sessions = [one.session for one in project.journal(events.StepStarted) if one.step == "reproposal"]
    assert sessions == [project.change.read().session_id] * 2


def test_disputes_without_edits_are_judged_again(project: Scenario) -> None:
    later = {
        "challenge/2": report("APPROVED", previous=previous(C1="withdrawn")),
        "reproposal": [answer("C1", "disputed", "It holds."), say("So.")],
    }
    project.proposed(report_in_text("NEEDS_REVISION", BREAKS), later, rounds=2)
    assert project.run("plan").code == 0
    one, two = project.change.records()
    assert one.judged == two.judged and project.finding_states() == {"C1": "withdrawn"}
    row = project.change.read().steps[-2]
    assert (row.name, [*row.outputs]) == ("reproposal", ["reviews/challenge-1.yaml"])


# ---- findings that do not


@pytest.mark.parametrize(
    "again",
    [
        report("NEEDS_REVISION", previous=previous(C1="open")),
        report("NEEDS_REVISION", finding(title="it  Breaks!")),
        report_in_text("NEEDS_REVISION", ("High", "**It breaks**")),
    ],
    ids=["under its id", "under a new id", "in text"],
)
def test_challenger_repeating_the_same_finding_ends_the_rounds(project: Scenario, again: list[Action]) -> None:
    steps = {"challenge/1": report_in_text("NEEDS_REVISION", BREAKS), "reproposal": [edit_spec(), say("So.")]}
    project.proposed(again, steps, rounds=5)
    ended = project.run("plan", "--json")
    assert project.started_steps() == ["challenge", "reproposal", "challenge"]
    assert ("stuck", "round 2 closed no finding") in project.warnings()
    result = ended.json
    assert (ended.code, result["exit_code"], result["error"]) == (1, 1, None)
    assert result["message"] == "NEEDS_REVISION - Found 1 HIGH severity issues"
    assert [one["id"] for one in result["findings"]["list"]] == ["C1"]
    assert result["decision_needed"]["id"] == "after-challenge-2"
    record = project.change.records()[-1]
    assert (record.findings, [(one.id, one.state) for one in record.previous]) == ((), [("C1", FindingState.OPEN)])
    assert project.change.read().run is None


def trifles(number: int) -> dict[str, list[Action]]:
    """Each round the last trifle is gone, and there is a new one."""
    steps = {"challenge/1": report_in_text("NEEDS_REVISION", ("Low", "Trifle 1"))}
    for one in range(2, number + 1):
        gone = previous(**{f"C{one - 1}": "fixed"})
        steps[f"challenge/{one}"] = report("NEEDS_REVISION", finding("low", f"Trifle {one}"), previous=gone)
        steps[f"reproposal/{one}"] = [edit_spec(one - 1), say("So.")]
    return steps


def test_rounds_are_limited_per_command_and_not_renewed_by_a_resume(project: Scenario) -> None:
    project.proposed([], trifles(4), rounds=1)
    first = project.run("plan", "--json")
    assert project.started_steps() == ["challenge", "reproposal", "challenge"]
    used = ("rounds-used", "all rounds of this command are used; the same command grants 1 more")
    assert used in project.warnings()
    result = first.json
    assert (first.code, result["round"], result["verdict"]) == (1, 2, "NEEDS_REVISION")
    assert (result["findings"]["open"]["low"], result["next"]) == (1, "agentd plan add-oauth --rounds 1")
    assert project.run("plan").code == 1
    assert project.started_steps()[3:] == ["reproposal", "challenge"], "a new command grants as many again"
    kill_at_event(project, type="step.finished", step="reproposal")
    left = project.change.read().run
    assert left and left.rounds_left == 0
    told_before = len(project.warnings())
    assert project.run("plan").code == 1
    assert project.started_steps()[5:] == ["reproposal", "challenge"], "a resumed one does not"
    assert used in project.warnings()[told_before:]
    assert project.change.read().run is None and project.finding_states()["C4"] == "open"


def test_planner_that_only_claims_fixed_is_reminded_and_fails(project: Scenario) -> None:
    lazy = [answer("C1", "fixed") | {"refused": True}, say("All fixed.")]
    later = {"reproposal/2/1": lazy, "reproposal/2/2": [*told("No finding has been answered"), *lazy]}
    project.proposed(report_in_text("NEEDS_REVISION", BREAKS), later, rounds=2)
    assert project.run("plan", "--rounds", "0").code == 1
    before = project_files(project.folder)
    ended = project.run("plan", "--json")
    assert (ended.code, ended.json["error"]["code"]) == (4, "did-nothing")
    assert (ended.json["phase"], ended.json["decision_needed"]) == ("proposed", None)
    assert project.started_steps() == ["challenge", "reproposal", "reproposal"]
    assert [one.code for one in project.journal(events.ErrorOccurred)] == ["did-nothing"] * 2
    after = project_files(project.folder)
    assert {name for name in after if after[name] != before.get(name)} <= {"STATE.yaml", "GEMINI.md"}


def test_judge_cannot_approve_with_an_open_high_finding(project: Scenario) -> None:
    approval = {"verdict": "APPROVED", "summary": "Fine.", "findings": []}
    first = [refused(**approval | {"findings": [finding()]}), *report("NEEDS_REVISION", finding())]
    still = refused(**approval, previous=previous(C1="open"))
    over = [still, refused(**approval), *report("NEEDS_REVISION", previous=previous(C1="open"))]
    project.proposed(first, {"challenge/2": over, "reproposal": [edit_spec(), say("So.")]}, rounds=1)
    assert project.run("plan").code == 1
    assert [record.verdict for record in project.change.records()] == ["NEEDS_REVISION"] * 2


def test_text_approval_with_an_open_high_finding_is_overruled(project: Scenario) -> None:
    later = {"challenge/2": report_in_text("APPROVED"), "reproposal": [edit_spec(), say("So.")]}
    project.proposed(report_in_text("NEEDS_REVISION", BREAKS), later, rounds=1)
    assert project.run("plan").code == 1
    record = project.change.records()[-1]
    assert (record.verdict, record.reported) == ("NEEDS_REVISION", "APPROVED")
    assert record.overruled == "Findings of high severity are still open (C1)."


# ---- how many rounds


def test_rounds_option_limits_a_command(project: Scenario) -> None:
    project.proposed([], trifles(3), rounds=5)
    ended = project.run("plan", "--rounds", "1", "--json")
    assert project.started_steps() == ["challenge", "reproposal", "challenge"]
    assert (ended.code, ended.json["decision_needed"]["id"]) == (1, "after-challenge-2")
    assert ("rounds-used", "all rounds of this command are used; the same command grants 1 more") in project.warnings()


def test_plan_stopped_after_the_challenge_continues_with_the_answers(project: Scenario) -> None:
    later = {"challenge/2": report_in_text("APPROVED"), "reproposal": [edit_spec(), say("So.")]}
    project.proposed(report_in_text("NEEDS_REVISION", ("Medium", "It is slow")), later, rounds=2)
    stopped = project.run("plan", "--rounds", "0", "--json")
    assert (stopped.code, stopped.json["next"]) == (1, "agentd plan add-oauth --rounds 1")
    assert (project.started_steps(), project.warnings()) == (["challenge"], [])
    fix = next(one for one in stopped.json["decision_needed"]["options"] if one["recommended"])
    assert project.agentd(*fix["command"].split()[1:]).code == 0
    assert project.started_steps() == ["challenge", "reproposal", "challenge"]


def test_failed_challenge_only_command_does_not_limit_the_next(project: Scenario) -> None:
    later = {
        "challenge/1/1": [{"fault": "crash"}],
        "challenge/2": report_in_text("APPROVED"),
        "reproposal": [edit_spec(), say("So.")],
    }
    project.proposed(report_in_text("NEEDS_REVISION", ("Medium", "It is slow")), later)
    assert project.run("plan", "--rounds", "0").code == 4
    assert project.change.read().run is not None
    assert project.run("plan", "--rounds", "1").code == 0
    assert project.started_steps() == ["challenge", "challenge", "reproposal", "challenge"]


def test_light_lane_has_no_rounds_by_default(project: Scenario) -> None:
    steps = plan_steps(challenge=NEEDS_REVISION, reproposal=[edit_spec(), say("So.")])
    steps["challenge/2"] = report_in_text("NEEDS_REVISION", ("Low", "A comma"))
    project.with_agents(steps)
    assert project.run("plan", "--light").code == 1
    assert project.run("plan").code == 1
    assert (project.started_steps(), project.warnings()) == (["plan-gen", "challenge"], [])
    assert project.run("plan", "--rounds", "1").code == 1
    assert project.started_steps() == ["plan-gen", "challenge", "reproposal", "challenge"]


# ---- one part of a round each, for scripts


def test_reproposal_and_challenge_commands_do_only_their_part(project: Scenario) -> None:
    later = {"challenge/2": report_in_text("APPROVED"), "reproposal": [edit_spec(), say("So.")]}
    never = project.proposed(report_in_text("NEEDS_REVISION", ("Medium", "It is slow")), later).change
    early = project.agentd("reproposal", "add-oauth", "--json")
    error = early.json["error"]
    assert (early.code, error["code"], error["hint"]) == (1, "change-not-ready", "agentd challenge add-oauth")
    assert never.records() == () and project.started_steps() == []
    assert project.agentd("challenge", "add-oauth").code == 1
    done = project.agentd("reproposal", "add-oauth", "--json")
    result = done.json
    assert (done.code, result["command"], result["exit_code"]) == (0, "reproposal", 0)
    assert result["message"] == "The findings are answered; agentd challenge add-oauth judges the answers"
    assert (result["phase"], result["decision_needed"], result["next"]) == ("proposed", None, "agentd plan add-oauth")
    assert project.agentd("reproposal", "add-oauth").code == 0
    assert project.started_steps() == ["challenge", "reproposal"], "what is answered is not answered twice"
    assert project.agentd("challenge", "add-oauth").code == 0
    late = project.agentd("reproposal", "add-oauth", "--json")
    assert (late.code, late.json["error"]["code"]) == (1, "wrong-phase")
    assert project.started_steps() == ["challenge", "reproposal", "challenge"]


def test_reproposal_without_open_findings_is_refused(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", BREAKS)
    page = project.folder / "CHALLENGE.md"
    page.write_text(page.read_text().replace("**State**: open", "**State**: withdrawn"))
    refused = project.agentd("reproposal", "add-oauth", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (1, "add-oauth has no open finding")
    assert project.started_steps() == []

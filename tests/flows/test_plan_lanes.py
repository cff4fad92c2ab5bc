"""The ways a plan can take: a session for each document, one for all, and the light one for small changes."""

import json

import pytest

from agentd.domain import events
from agentd.domain.terms import Lane, Phase
from plans import PROPOSAL_TEXT, SIGN_IN, SIGN_IN_DOCUMENTS, SPEC
from playbooks import PASS, Action, edit_document, plan_steps, say, write_document
from program import AGENTD
from scenario import NO_REVIEWS, Scenario
from terminal import DOWN, ENTER, Person, start_on_terminal

PATCH = PROPOSAL_TEXT.replace("Scope: minor", "Scope: patch")
LIGHT_REST = [write_document(f"specs/{SPEC}.md"), write_document("tasks.md")]
QUESTION = "The planner calls this a patch with 1 spec. How should it continue?"


def patch(**other: list[Action]) -> dict[str, list[Action]]:
    """The planner calls it a patch, so in the light lane the rest is written in the same session."""
    return plan_steps(proposal_gen=[write_document("proposal.md", PATCH)], plan_gen=LIGHT_REST, **other)


def started(box: Scenario) -> dict[str, events.StepStarted]:
    return {one.step: one for one in box.journal(events.StepStarted)}


def decided(box: Scenario) -> list[tuple[str, str, str]]:
    return [(one.id, one.answer, one.via) for one in box.journal(events.DecisionMade)]


def at_terminal(box: Scenario, *flags: str) -> Person:
    argv = [AGENTD, "plan", "add-oauth", SIGN_IN, "--skip-clarify", *flags]
    return start_on_terminal(argv, box.env, width=110, height=40)


def test_automated_mode_writes_and_reviews_all_in_one_session(project: Scenario) -> None:
    steps = plan_steps(plan_review=[edit_document("tasks.md", "Define `User`.", "Define `User` first."), say(PASS)])
    project.with_agents(steps, workflow="human_in_loop = false\n")
    assert project.run("plan").code == 0
    assert project.started_steps() == ["plan-gen", "plan-review", "challenge"]
    state = project.change.read()
    assert (state.lane, state.phase) == (Lane.AUTOMATED, Phase.CHALLENGED)
    calls = started(project)
    assert not calls["plan-gen"].resumed and calls["plan-review"].resumed
    assert calls["plan-gen"].session == calls["plan-review"].session == state.session_id
    assert calls["challenge"].session != state.session_id and not calls["challenge"].resumed
    rows = {step.name: [*step.outputs] for step in state.steps}
    assert rows["plan-gen"] == rows["plan-review"] == list(SIGN_IN_DOCUMENTS)
    assert rows["challenge"] == ["reviews/challenge-1.yaml", "CHALLENGE.md"]


def test_automated_session_that_wrote_half_is_reminded_and_then_fails(project: Scenario) -> None:
    half = plan_steps(plan_gen=[write_document("proposal.md"), say("Done.")])
    half["plan-gen/1/2"] = [{"expect": "Not every document of the plan has been written."}, say("Done again.")]
    project.with_agents(half, workflow="human_in_loop = false\n")
    planned = project.run("plan", "--json")
    assert (planned.code, planned.json["error"]["code"]) == (4, "did-nothing")
    project.replay(plan_steps())
    assert project.run("plan").code == 0
    assert project.started_steps() == ["plan-gen", "plan-gen", "plan-gen", "plan-review", "challenge"]


def test_light_lane_has_one_session_no_self_review_and_one_challenge(project: Scenario) -> None:
    project.with_agents(plan_steps())
    assert project.run("plan", "--light").code == 0
    assert project.started_steps() == ["plan-gen", "challenge"]
    assert project.change.read().lane is Lane.LIGHT
    assert decided(project) == []


def test_light_lane_offered_for_a_patch_continues_the_planners_session(project: Scenario) -> None:
    project.with_agents(patch())
    person = at_terminal(project)
    person.sees(QUESTION)
    person.sees("❯ Light lane")
    person.press(ENTER)
    assert person.waits() == 0
    assert "APPROVED - Ready for implementation!" in person.display.text
    assert project.started_steps() == ["proposal-gen", "plan-gen", "challenge"]
    calls, state = started(project), project.change.read()
    assert calls["plan-gen"].resumed and calls["plan-gen"].session == calls["proposal-gen"].session == state.session_id
    assert (state.lane, decided(project)) == (Lane.LIGHT, [("lane", "light", "terminal")])


def test_patch_planned_in_the_full_lane_is_not_asked_again(project: Scenario) -> None:
    project.with_agents(patch())
    person = at_terminal(project)
    person.sees("Full lane")
    person.press(DOWN + ENTER)
    assert person.waits() == 0
    look = f"spec-review-{SPEC}"
    order = ["proposal-gen", "proposal-review", f"spec-gen-{SPEC}", look, "tasks-gen", "tasks-review", "challenge"]
    assert project.started_steps() == order
    assert project.change.read().lane is Lane.FULL
    assert decided(project) == [("lane", "full", "terminal")]


@pytest.mark.parametrize(
    ("text", "flags", "lane"),
    [
        (PATCH, ("--yes",), Lane.LIGHT),
        (PATCH, (), Lane.FULL),
        (PROPOSAL_TEXT, ("--yes",), Lane.FULL),
    ],
    ids=["yes takes it", "nobody to ask", "no patch"],
)
def test_light_lane_without_a_terminal_needs_yes(
    project: Scenario, text: str, flags: tuple[str, ...], lane: Lane
) -> None:
    project.with_agents(
        plan_steps(proposal_gen=[write_document("proposal.md", text)], plan_gen=LIGHT_REST), workflow=NO_REVIEWS
    )
    assert project.run("plan", *flags).code == 0
    assert project.change.read().lane is lane
    assert decided(project) == ([("lane", "light", "flag")] if lane is Lane.LIGHT else [])
    assert len(project.journal(events.DecisionRequested)) == len(decided(project))


def test_format_errors_can_be_fixed_by_the_user(project: Scenario) -> None:
    bad = PATCH.replace("## Why", "## Because")
    steps = plan_steps(proposal_gen=[write_document("proposal.md", bad)])
    steps["format-fix#1"] = [say("I see nothing wrong.")]
    project.with_agents(steps, workflow=NO_REVIEWS)
    person = at_terminal(project)
    person.sees("The plan has 1 fault. What next?")
    person.press(ENTER)  # the planner mends it: it does not
    person.sees(lambda display: display.text.count("What next?") == 2)
    person.press(DOWN + ENTER)
    person.sees("Fix proposal.md, then press Enter")
    (project.folder / "proposal.md").write_text(PROPOSAL_TEXT)
    person.press(ENTER)
    assert person.waits() == 0
    answers = [("format-1", "planner", "terminal"), ("format-2", "person", "terminal")]
    assert decided(project) == answers
    assert project.started_steps() == ["proposal-gen", "format-fix", f"spec-gen-{SPEC}", "tasks-gen", "challenge"]


def test_user_can_stop_at_format_errors(project: Scenario) -> None:
    steps = plan_steps(proposal_gen=[write_document("proposal.md", PATCH.replace("## Why", "## Because"))])
    project.with_agents(steps, workflow=NO_REVIEWS)
    person = at_terminal(project)
    person.sees("Stop here")
    person.press(DOWN * 2 + ENTER)
    assert person.waits() == 1
    assert "Stopped with 1 fault left in the plan" in person.display.text
    assert project.started_steps() == ["proposal-gen"] and project.change.read().run is None


# ---- one phase each, for scripts


def test_proposal_stops_before_the_challenge_which_runs_once(project: Scenario) -> None:
    project.with_agents(plan_steps(), workflow=NO_REVIEWS)
    words = ("proposal", "add-oauth", SIGN_IN, "--skip-clarify")
    made = project.agentd(*words, "--json")
    told = made.json
    assert (made.code, told["command"], told["phase"], told["verdict"]) == (0, "proposal", "proposed", None)
    assert (told["message"], told["next"]) == ("Generated: proposal, 1 spec and 2 tasks", "agentd plan add-oauth")
    makers = ["proposal-gen", f"spec-gen-{SPEC}", "tasks-gen"]
    assert project.started_steps() == makers
    assert project.agentd("proposal", "add-oauth").code == 0 and project.started_steps() == makers
    judged = project.agentd("challenge", "add-oauth", "--json")
    assert (judged.code, judged.json["command"], judged.json["verdict"]) == (0, "challenge", "APPROVED")
    assert project.agentd("challenge", "add-oauth").code == 0
    assert project.started_steps() == [*makers, "challenge"]  # nothing is judged twice
    again = project.agentd(*words)
    assert again.code == 0 and "Planning of add-oauth is complete" in again.out


def test_incomplete_plan_cannot_be_challenged(project: Scenario) -> None:
    project.with_agents(plan_steps(tasks_gen=[{"fault": "crash"}]), workflow=NO_REVIEWS)
    assert project.agentd("proposal", "add-oauth", SIGN_IN, "--skip-clarify").code == 4
    refused = project.agentd("challenge", "add-oauth", "--json")
    error = refused.json["error"]
    assert (refused.code, error["code"], error["hint"]) == (1, "change-not-ready", "agentd plan add-oauth")
    assert json.loads(refused.out)["phase"] == "drafting"
    assert project.agentd("challenge", "no-such").code == 1

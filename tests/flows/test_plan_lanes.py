"""The ways a plan can take: a session for each document, one for all, and the light one for small changes."""

import json

import pytest

from agentd import events
from agentd.terms import Lane, Phase
from planned import (
    NO_LOOKS,
    PROPOSAL_TEXT,
    SPEC,
    TEXTS,
    change_of,
    edit,
    journal,
    put,
    quick_plan,
    ran,
    replay,
)
from plays import DESCRIPTION, PASS, folder, plan, stage
from program import AGENTD
from support import Box
from terminal import DOWN, ENTER, Person, before_terminal
from working import Action, say

PATCH = PROPOSAL_TEXT.replace("Scope: minor", "Scope: patch")
LIGHT_REST = [put(f"specs/{SPEC}.md"), put("tasks.md")]
QUESTION = "The planner calls this a patch with 1 spec. Which way?"


def patch(**other: list[Action]) -> dict[str, list[Action]]:
    """The planner calls it a patch, so in the light lane the rest is written in the same session."""
    return quick_plan(proposal_gen=[put("proposal.md", PATCH)], plan_gen=LIGHT_REST, **other)


def started(box: Box) -> dict[str, events.StepStarted]:
    return {one.step: one for one in journal(box, events.StepStarted)}


def decided(box: Box) -> list[tuple[str, str, str]]:
    return [(one.id, one.answer, one.via) for one in journal(box, events.DecisionMade)]


def at_terminal(box: Box, *flags: str) -> Person:
    argv = [AGENTD, "plan", "add-oauth", DESCRIPTION, "--skip-clarify", *flags]
    return before_terminal(argv, box.env, width=110, height=40)


def test_automated_one_session_writes_all_and_looks_over_it(project: Box) -> None:
    steps = quick_plan(plan_review=[edit("tasks.md", "Define `User`.", "Define `User` first."), say(PASS)])
    stage(project, steps, workflow="human_in_loop = false\n")
    assert plan(project).code == 0
    assert ran(project) == ["plan-gen", "plan-review", "challenge"]
    state = change_of(project).read()
    assert (state.lane, state.phase) == (Lane.AUTOMATED, Phase.CHALLENGED)
    calls = started(project)
    assert not calls["plan-gen"].resumed and calls["plan-review"].resumed
    assert calls["plan-gen"].session == calls["plan-review"].session == state.session_id
    assert calls["challenge"].session != state.session_id and not calls["challenge"].resumed
    rows = {step.name: [*step.outputs] for step in state.steps}
    assert rows["plan-gen"] == rows["plan-review"] == list(TEXTS)
    assert rows["challenge"] == ["reviews/challenge-1.yaml", "CHALLENGE.md"]


def test_automated_a_session_that_wrote_half_is_reminded_and_then_cut_off(project: Box) -> None:
    half = quick_plan(plan_gen=[put("proposal.md"), say("Done.")])
    half["plan-gen/1/2"] = [{"expect": "Not every document of the plan is there yet."}, say("Done again.")]
    stage(project, half, workflow="human_in_loop = false\n")
    planned = plan(project, "--json")
    assert (planned.code, planned.json["error"]["code"]) == (4, "did-nothing")
    replay(project, quick_plan())
    assert plan(project).code == 0
    assert ran(project) == ["plan-gen", "plan-gen", "plan-gen", "plan-review", "challenge"]


def test_the_light_lane_is_one_session_without_a_look_and_one_challenge(project: Box) -> None:
    stage(project, quick_plan())
    assert plan(project, "--light").code == 0
    assert ran(project) == ["plan-gen", "challenge"]
    assert change_of(project).read().lane is Lane.LIGHT
    assert decided(project) == []


def test_a_patch_is_offered_the_light_lane_which_goes_on_in_the_planners_session(project: Box) -> None:
    stage(project, patch())
    person = at_terminal(project)
    person.sees(QUESTION)
    person.sees("❯ Light lane")
    person.press(ENTER)
    assert person.waits() == 0
    assert "APPROVED - Ready for implementation!" in person.display.text
    assert ran(project) == ["proposal-gen", "plan-gen", "challenge"]
    calls, state = started(project), change_of(project).read()
    assert calls["plan-gen"].resumed and calls["plan-gen"].session == calls["proposal-gen"].session == state.session_id
    assert (state.lane, decided(project)) == (Lane.LIGHT, [("lane", "light", "terminal")])


def test_a_patch_that_is_not_to_be_light_takes_the_full_way_and_is_not_asked_again(project: Box) -> None:
    stage(project, patch())
    person = at_terminal(project)
    person.sees("Full lane")
    person.press(DOWN + ENTER)
    assert person.waits() == 0
    look = f"spec-review-{SPEC}"
    order = ["proposal-gen", "proposal-review", f"spec-gen-{SPEC}", look, "tasks-gen", "tasks-review", "challenge"]
    assert ran(project) == order
    assert change_of(project).read().lane is Lane.FULL
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
def test_without_a_person_only_yes_takes_the_light_lane(
    project: Box, text: str, flags: tuple[str, ...], lane: Lane
) -> None:
    stage(project, quick_plan(proposal_gen=[put("proposal.md", text)], plan_gen=LIGHT_REST), workflow=NO_LOOKS)
    assert plan(project, *flags).code == 0
    assert change_of(project).read().lane is lane
    assert decided(project) == ([("lane", "light", "flag")] if lane is Lane.LIGHT else [])
    assert len(journal(project, events.DecisionAsked)) == len(decided(project))


def test_faults_in_the_form_are_put_to_a_person_who_may_mend_them(project: Box) -> None:
    bad = PATCH.replace("## Why", "## Because")
    steps = quick_plan(proposal_gen=[put("proposal.md", bad)])
    steps["format-fix#1"] = [say("I see nothing wrong.")]
    stage(project, steps, workflow=NO_LOOKS)
    person = at_terminal(project)
    person.sees("The plan has 1 fault in its form. What next?")
    person.press(ENTER)  # the planner mends it: it does not
    person.sees(lambda display: display.text.count("What next?") == 2)
    person.press(DOWN + ENTER)
    person.sees("Mend proposal.md, then press Enter")
    (folder(project) / "proposal.md").write_text(PROPOSAL_TEXT)
    person.press(ENTER)
    assert person.waits() == 0
    answers = [("format-1", "planner", "terminal"), ("format-2", "person", "terminal")]
    assert decided(project) == answers
    assert ran(project) == ["proposal-gen", "format-fix", f"spec-gen-{SPEC}", "tasks-gen", "challenge"]


def test_a_person_may_stop_at_faults_in_the_form(project: Box) -> None:
    steps = quick_plan(proposal_gen=[put("proposal.md", PATCH.replace("## Why", "## Because"))])
    stage(project, steps, workflow=NO_LOOKS)
    person = at_terminal(project)
    person.sees("Stop here")
    person.press(DOWN * 2 + ENTER)
    assert person.waits() == 1
    assert "Stopped with 1 fault left in the plan" in person.display.text
    assert ran(project) == ["proposal-gen"] and change_of(project).read().run is None


# ---- one phase each, for scripts


def test_a_proposal_stops_before_the_verdict_and_a_challenge_gives_it_once(project: Box) -> None:
    stage(project, quick_plan(), workflow=NO_LOOKS)
    words = ("proposal", "add-oauth", DESCRIPTION, "--skip-clarify")
    made = project.agentd(*words, "--json")
    told = made.json
    assert (made.code, told["command"], told["phase"], told["verdict"]) == (0, "proposal", "proposed", None)
    assert (told["message"], told["next"]) == ("Generated: proposal, 1 spec and 2 tasks", "agentd plan add-oauth")
    makers = ["proposal-gen", f"spec-gen-{SPEC}", "tasks-gen"]
    assert ran(project) == makers
    assert project.agentd("proposal", "add-oauth").code == 0 and ran(project) == makers
    judged = project.agentd("challenge", "add-oauth", "--json")
    assert (judged.code, judged.json["command"], judged.json["verdict"]) == (0, "challenge", "APPROVED")
    assert project.agentd("challenge", "add-oauth").code == 0
    assert ran(project) == [*makers, "challenge"]  # nothing is judged twice
    again = project.agentd(*words)
    assert again.code == 0 and "Planning of add-oauth is complete" in again.out


def test_what_is_not_generated_yet_cannot_be_challenged(project: Box) -> None:
    stage(project, quick_plan(tasks_gen=[{"fault": "crash"}]), workflow=NO_LOOKS)
    assert project.agentd("proposal", "add-oauth", DESCRIPTION, "--skip-clarify").code == 4
    refused = project.agentd("challenge", "add-oauth", "--json")
    error = refused.json["error"]
    assert (refused.code, error["code"], error["hint"]) == (1, "change-not-ready", "agentd plan add-oauth")
    assert json.loads(refused.out)["phase"] == "drafting"
    assert project.agentd("challenge", "no-such").code == 1

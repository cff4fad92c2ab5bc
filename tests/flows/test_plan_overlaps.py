"""A plan that changes what another open change changes too: a warning, once in a run, that stops nothing."""

import pytest

from agentd import events
from finished import begun, complete, delta, requirement, scenario
from planned import NO_LOOKS, PROPOSAL_TEXT, TASKS_TEXT, change_of, journal, put, quick_plan, ran, replay
from plays import plan, stage
from support import Box
from working import Action, say, usage

SPEC = "api-endpoints"
R2 = requirement("R2", "Current user", "`GET /me` answers 200 with the name of the signed-in user.")
R4 = requirement("R4", "Error format", "An error is a JSON object with the key `problem`.")
OURS = delta(SPEC, R2, scenario("Signed in", "R2", "the name is there"), version=3)
PROPOSAL = PROPOSAL_TEXT.replace("user-model", SPEC)
TASKS = TASKS_TEXT.replace("user-model:R1", f"{SPEC}:R2").replace("user-model:R2", f"{SPEC}:R2")
WORDS = "{} changed by {} too; whoever archives second may have to rebase"
REFUSED = [usage(0.05), say("**Verdict**: NEEDS_REVISION\n\n## Issues\n\n### It breaks\n\n- **Severity**: High\n")]


def steps(spec: str = OURS, **other: list[Action]) -> dict[str, list[Action]]:
    """A plan that changes a spec of the project."""
    documents = [put("proposal.md", PROPOSAL), put(f"specs/{SPEC}.md", spec), put("tasks.md", TASKS)]
    own = {
        "proposal-gen": [documents[0], usage(0.01)],
        f"spec-gen-{SPEC}": [documents[1], usage(0.01)],
        "tasks-gen": [documents[2], usage(0.01)],
        "plan-gen": [*documents, usage(0.03)],
    }
    return quick_plan() | own | {name.replace("_", "-"): actions for name, actions in other.items()}


def warnings(box: Box) -> list[str]:
    return [one.message for one in journal(box, events.Warned) if one.code == "overlap"]


def test_it_is_told_when_the_specs_are_written_and_the_plan_is_approved_all_the_same(project: Box) -> None:
    stage(project, steps(), workflow=NO_LOOKS)
    begun(project, "add-sso", {SPEC: delta(SPEC, R2, version=3)})
    begun(project, "other-errors", {SPEC: delta(SPEC, R4, version=3)})
    end = plan(project)
    assert end.code == 0, end.err
    words = WORDS.format("api-endpoints:R2 is", "add-sso (proposed)")
    assert warnings(project) == [words], "once"
    assert words in end.err + end.out
    assert change_of(project).read().phase == "challenged" and change_of(project).read().findings == ()
    lines = [one.event for one in change_of(project).journal().since(0)[0]]
    told = next(place for place, one in enumerate(lines) if getattr(one, "code", "") == "overlap")
    made = [one.step for one in lines[:told] if isinstance(one, events.StepFinished)]
    assert made == ["proposal-gen", f"spec-gen-{SPEC}"], "before anything is built on the specs"


@pytest.mark.parametrize("settings", ["human_in_loop = false\n", ""])
def test_every_lane_tells_it(project: Box, settings: str) -> None:
    stage(project, steps(), workflow=NO_LOOKS + settings)
    complete(project, "add-sso", {SPEC: delta(SPEC, R2 + R4, version=3)})
    assert plan(project, *([] if settings else ["--light"])).code == 0
    assert "plan-gen" in ran(project)
    assert warnings(project) == [WORDS.format("api-endpoints:R2 is", "add-sso (complete)")]


def test_the_phase_command_that_only_writes_tells_it_too(project: Box) -> None:
    stage(project, steps(), workflow=NO_LOOKS)
    begun(project, "add-sso", {SPEC: delta(SPEC, R2, version=3)})
    end = project.agentd("proposal", "add-oauth", "Say who is signed in", "--skip-clarify")
    assert end.code == 0, end.err
    assert len(warnings(project)) == 1


def test_who_comes_between_is_told_when_the_plan_is_resumed_before_its_challenge(project: Box) -> None:
    stage(project, steps(challenge=[{"exit": 1}]), workflow=NO_LOOKS)
    assert plan(project).code == 4
    assert warnings(project) == []
    begun(project, "add-sso", {SPEC: delta(SPEC, R2, version=3)})
    replay(project, steps())
    assert plan(project).code == 0
    assert warnings(project) == [WORDS.format("api-endpoints:R2 is", "add-sso (proposed)")]


def test_what_a_round_adds_is_told_alone(project: Box) -> None:
    """The first meeting was told already, though the plan is looked at again before each challenge."""
    more = delta(SPEC, R2 + R4, scenario("Signed in", "R2", "the name is there"), version=3)
    wider: list[Action] = [put(f"specs/{SPEC}.md", more), usage(0.01), say("Mended.")]
    played = steps(challenge=REFUSED, reproposal=wider)
    stage(project, played | {"challenge/2": quick_plan()["challenge"]}, workflow=NO_LOOKS)
    begun(project, "add-sso", {SPEC: delta(SPEC, R2 + R4, version=3)})
    plan(project)
    assert ran(project)[-3:] == ["challenge", "reproposal", "challenge"]
    first, second = (WORDS.format(f"api-endpoints:{one} is", "add-sso (proposed)") for one in ("R2", "R4"))
    assert warnings(project) == [first, second]


def test_each_rival_is_named_with_all_that_both_change(project: Box) -> None:
    both = delta(SPEC, R2 + R4, scenario("Signed in", "R2", "the name is there"), version=3)
    stage(project, steps(both), workflow=NO_LOOKS)
    begun(project, "add-sso", {SPEC: delta(SPEC, R2 + R4, version=3)})
    begun(project, "other-errors", {SPEC: delta(SPEC, R4, version=3)})
    assert plan(project).code == 0
    assert warnings(project) == [
        WORDS.format("api-endpoints:R2 and api-endpoints:R4 are", "add-sso (proposed)"),
        WORDS.format("api-endpoints:R4 is", "other-errors (proposed)"),
    ]


def test_a_plan_that_meets_nobody_says_nothing(project: Box) -> None:
    stage(project, steps(), workflow=NO_LOOKS)
    begun(project, "other-errors", {SPEC: delta(SPEC, R4, version=3)})
    begun(project, "given-up", {SPEC: delta(SPEC, R2, version=3)})
    assert project.agentd("drop", "given-up", "--yes").code == 0
    assert plan(project).code == 0
    assert warnings(project) == []

"""A plan that changes what another open change changes too: a warning, once in a run, that stops nothing."""

import pytest

from agentd.domain import events
from plans import PROPOSAL_TEXT, TASKS_TEXT, delta_text, requirement_text, scenario_text
from playbooks import Action, plan_steps, say, usage, write_document
from scenario import NO_REVIEWS, Scenario

SPEC = "api-endpoints"
R2 = requirement_text("R2", "Current user", "`GET /me` answers 200 with the name of the signed-in user.")
R4 = requirement_text("R4", "Error format", "An error is a JSON object with the key `problem`.")
OURS = delta_text(SPEC, R2, scenario_text("Signed in", "R2", "the name is there"), version=3)
PROPOSAL = PROPOSAL_TEXT.replace("user-model", SPEC)
TASKS = TASKS_TEXT.replace("user-model:R1", f"{SPEC}:R2").replace("user-model:R2", f"{SPEC}:R2")
WORDS = "{} changed by {} too; the second to archive may have to rebase"
REFUSED = [usage(0.05), say("**Verdict**: NEEDS_REVISION\n\n## Issues\n\n### It breaks\n\n- **Severity**: High\n")]


def steps(spec: str = OURS, **other: list[Action]) -> dict[str, list[Action]]:
    """A plan that changes a spec of the project."""
    documents = [
        write_document("proposal.md", PROPOSAL),
        write_document(f"specs/{SPEC}.md", spec),
        write_document("tasks.md", TASKS),
    ]
    own = {
        "proposal-gen": [documents[0], usage(0.01)],
        f"spec-gen-{SPEC}": [documents[1], usage(0.01)],
        "tasks-gen": [documents[2], usage(0.01)],
        "plan-gen": [*documents, usage(0.03)],
    }
    return plan_steps() | own | {name.replace("_", "-"): actions for name, actions in other.items()}


def warnings(box: Scenario) -> list[str]:
    return [one.message for one in box.journal(events.WarningIssued) if one.code == "overlap"]


def test_overlap_is_warned_about_after_the_specs_and_stops_nothing(project: Scenario) -> None:
    project.with_agents(steps(), workflow=NO_REVIEWS)
    project.notes_proposed("add-sso", {SPEC: delta_text(SPEC, R2, version=3)})
    project.notes_proposed("other-errors", {SPEC: delta_text(SPEC, R4, version=3)})
    end = project.run("plan")
    assert end.code == 0, end.err
    words = WORDS.format("api-endpoints:R2 is", "add-sso (proposed)")
    assert warnings(project) == [words], "once"
    assert words in end.err + end.out
    assert project.change.read().phase == "challenged" and project.change.read().findings == ()
    lines = [one.event for one in project.change.journal().since(0)[0]]
    told = next(place for place, one in enumerate(lines) if getattr(one, "code", "") == "overlap")
    made = [one.step for one in lines[:told] if isinstance(one, events.StepFinished)]
    assert made == ["proposal-gen", f"spec-gen-{SPEC}"], "before anything is built on the specs"


@pytest.mark.parametrize("settings", ["human_in_loop = false\n", ""])
def test_overlap_is_reported_in_every_lane(project: Scenario, settings: str) -> None:
    project.with_agents(steps(), workflow=NO_REVIEWS + settings)
    project.notes_complete("add-sso", {SPEC: delta_text(SPEC, R2 + R4, version=3)})
    assert project.run("plan", *([] if settings else ["--light"])).code == 0
    assert "plan-gen" in project.started_steps()
    assert warnings(project) == [WORDS.format("api-endpoints:R2 is", "add-sso (complete)")]


def test_proposal_command_reports_overlaps(project: Scenario) -> None:
    project.with_agents(steps(), workflow=NO_REVIEWS)
    project.notes_proposed("add-sso", {SPEC: delta_text(SPEC, R2, version=3)})
    end = project.agentd("proposal", "add-oauth", "Say who is signed in", "--skip-clarify")
    assert end.code == 0, end.err
    assert len(warnings(project)) == 1


def test_overlap_added_meanwhile_is_reported_when_resumed(project: Scenario) -> None:
    project.with_agents(steps(challenge=[{"exit": 1}]), workflow=NO_REVIEWS)
    assert project.run("plan").code == 4
    assert warnings(project) == []
    project.notes_proposed("add-sso", {SPEC: delta_text(SPEC, R2, version=3)})
    project.replay(steps())
    assert project.run("plan").code == 0
    assert warnings(project) == [WORDS.format("api-endpoints:R2 is", "add-sso (proposed)")]


def test_only_new_overlaps_are_reported_in_later_rounds(project: Scenario) -> None:
    """The first meeting was told already, though the plan is looked at again before each challenge."""
    more = delta_text(SPEC, R2 + R4, scenario_text("Signed in", "R2", "the name is there"), version=3)
    wider: list[Action] = [write_document(f"specs/{SPEC}.md", more), usage(0.01), say("Mended.")]
    played = steps(challenge=REFUSED, reproposal=wider)
    project.with_agents(played | {"challenge/2": plan_steps()["challenge"]}, workflow=NO_REVIEWS)
    project.notes_proposed("add-sso", {SPEC: delta_text(SPEC, R2 + R4, version=3)})
    project.run("plan")
    assert project.started_steps()[-3:] == ["challenge", "reproposal", "challenge"]
    first, second = (WORDS.format(f"api-endpoints:{one} is", "add-sso (proposed)") for one in ("R2", "R4"))
    assert warnings(project) == [first, second]


def test_each_overlapping_change_is_named_with_all_shared_requirements(project: Scenario) -> None:
    both = delta_text(SPEC, R2 + R4, scenario_text("Signed in", "R2", "the name is there"), version=3)
    project.with_agents(steps(both), workflow=NO_REVIEWS)
    project.notes_proposed("add-sso", {SPEC: delta_text(SPEC, R2 + R4, version=3)})
    project.notes_proposed("other-errors", {SPEC: delta_text(SPEC, R4, version=3)})
    assert project.run("plan").code == 0
    assert warnings(project) == [
        WORDS.format("api-endpoints:R2 and api-endpoints:R4 are", "add-sso (proposed)"),
        WORDS.format("api-endpoints:R4 is", "other-errors (proposed)"),
    ]


def test_plan_without_overlap_has_no_warning(project: Scenario) -> None:
    project.with_agents(steps(), workflow=NO_REVIEWS)
    project.notes_proposed("other-errors", {SPEC: delta_text(SPEC, R4, version=3)})
    project.notes_proposed("given-up", {SPEC: delta_text(SPEC, R2, version=3)})
    assert project.agentd("drop", "given-up", "--yes").code == 0
    assert project.run("plan").code == 0
    assert warnings(project) == []

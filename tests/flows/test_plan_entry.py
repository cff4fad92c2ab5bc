"""Where `agentd plan` begins: which change is meant, what must be there first, and what a dry run shows."""

import os
import signal
import subprocess

import pytest

from agentd.change import lifecycle
from agentd.change.state import ChangeState
from agentd.domain import clock
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import Phase
from agentd.project.config.loader import load_config
from agentd.project.layout import find_project
from agentd.project.trust.store import revoke_trust, untrusted_items
from plans import SIGN_IN, SPEC
from playbooks import example_plan_steps, plan_steps
from program import AGENTD, Program
from scenario import NO_REVIEWS, Scenario, project_files

FORWARD = {
    Phase.CHALLENGED: (TransitionEvent.CHALLENGE_APPROVED,),
    Phase.IMPLEMENTING: (TransitionEvent.CHALLENGE_APPROVED, TransitionEvent.IMPLEMENTATION_STARTED),
    Phase.COMPLETE: (
        TransitionEvent.CHALLENGE_APPROVED,
        TransitionEvent.IMPLEMENTATION_STARTED,
        TransitionEvent.REVIEW_APPROVED,
    ),
}


def forward(box: Scenario, phase: Phase) -> None:
    """A proposed change, moved on by the table."""
    change = box.proposed([]).change

    def moved(old: ChangeState) -> ChangeState:
        for event in FORWARD[phase]:
            old = old.with_transition(event, by="agentd", why="test", at=clock.now())
        return old

    change.update(moved)


def test_new_change_without_description_is_refused(project: Scenario) -> None:
    project.with_agents(plan_steps())
    refused = project.agentd("plan", "add-oauth", "--skip-clarify", "--json")
    error = refused.json["error"]
    assert (refused.code, error["code"]) == (2, "missing-description")
    assert error["hint"] == 'agentd plan add-oauth "what should change"'
    assert project.agentd("plan", "add-oauth", " ", "--skip-clarify").code == 2
    assert not (project.root / "agentd/changes").exists()


@pytest.mark.parametrize("bad", ["Add-OAuth", "../x", "-x", "a" * 65])
def test_invalid_id_is_refused(project: Scenario, bad: str) -> None:
    project.with_agents(plan_steps())
    assert project.agentd("plan", "--skip-clarify", "--", bad, SIGN_IN).code == 2
    assert not (project.root / "agentd/changes").exists()


def test_plan_without_a_project_is_refused(box: Scenario) -> None:
    refused = box.run("plan")
    assert refused.code == 3 and "agentd init" in refused.err


def test_untrusted_agent_is_not_run_and_nothing_is_written(project: Scenario) -> None:
    project.with_agents(plan_steps(), workflow=NO_REVIEWS)
    revoke_trust(find_project(), os.environ)
    before = project_files(project.root)
    refused = project.run("plan", "--json")
    assert (refused.code, refused.json["error"]["code"], refused.json["error"]["hint"]) == (
        3,
        "not-trusted",
        "agentd trust",
    )
    assert project_files(project.root) == before
    planned = project.run("plan", "--trust", "--light")
    assert planned.code == 0 and "Trusted by --trust" in planned.err
    assert untrusted_items(find_project(), load_config(find_project().config_file), os.environ) == ()


def test_questions_without_a_terminal_must_be_answered_by_flags(project: Scenario) -> None:
    project.with_agents(plan_steps())
    before = project_files(project.root)
    refused = project.agentd("plan", "add-oauth", SIGN_IN, "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "unanswered")
    assert "--skip-clarify" in refused.json["error"]["hint"]
    assert project_files(project.root) == before


def test_folder_with_only_clarifications_becomes_the_new_change(project: Scenario) -> None:
    project.with_agents(plan_steps(), workflow=NO_REVIEWS)
    project.write("agentd/changes/add-oauth/clarifications.md", "# Clarifications\n\nGoogle only.\n")
    planned = project.agentd("plan", "add-oauth", SIGN_IN, "--light", "--json")
    told = planned.json
    assert (planned.code, told["change_id"]) == (0, "add-oauth")
    assert told["files"][0] == "agentd/changes/add-oauth/clarifications.md"


def test_open_change_continues_and_keeps_its_description(project: Scenario) -> None:
    steps = plan_steps()
    steps["tasks-gen/1/1"] = [{"fault": "crash"}]
    project.with_agents(steps, workflow=NO_REVIEWS)
    failed = project.run("plan", "--json")
    assert (failed.code, failed.json["next"], failed.json["error"]["code"]) == (4, "agentd plan add-oauth", "crashed")
    again = project.agentd("plan", "add-oauth", "Something else")
    assert again.code == 0 and "add-oauth already exists; the new description is ignored" in again.err
    assert project.change.read().description == SIGN_IN
    assert project.started_steps() == ["proposal-gen", f"spec-gen-{SPEC}", "tasks-gen", "tasks-gen", "challenge"]


def test_used_id_with_a_description_gets_a_suffix(project: Scenario) -> None:
    forward(project, Phase.COMPLETE)
    project.with_agents(plan_steps(plan_gen=[{"fault": "crash"}]))
    made = project.run("plan", "--light", "--json")
    assert (made.json["change_id"], made.json["resolved_from"]) == ("add-oauth-1", "add-oauth")
    assert "add-oauth is taken, so this is add-oauth-1" in made.err
    lifecycle.drop_change(lifecycle.open_change(find_project(), "add-oauth"), "person:dev", "no")
    ended = project.agentd("plan", "add-oauth", "--json")
    assert (ended.code, ended.json["message"]) == (0, "add-oauth is dropped, past planning")
    archived = find_project().archive_in(str(project.root)).name
    assert ended.json["files"] and all(name.startswith(f"agentd/{archived}/") for name in ended.json["files"])
    made = project.run("plan", "--light", "--json")
    assert made.json["change_id"] == "add-oauth-2"


@pytest.mark.parametrize(
    ("phase", "words", "following"),
    [
        (Phase.CHALLENGED, "Planning of add-oauth is complete", "agentd impl add-oauth"),
        (Phase.IMPLEMENTING, "add-oauth is implementing, past planning", "agentd impl add-oauth"),
        (Phase.COMPLETE, "add-oauth is complete, past planning", "agentd archive add-oauth"),
    ],
)
def test_plan_beyond_planning_says_so(project: Scenario, phase: Phase, words: str, following: str) -> None:
    forward(project, phase)
    before = project_files(project.root)
    told = project.agentd("plan", "add-oauth", "--json")
    assert (told.code, told.json["message"], told.json["next"]) == (0, words, following)
    shown = project.agentd("plan", "add-oauth", "--dry-run")
    assert (shown.code, shown.out.strip()) == (0, words)
    assert project_files(project.root) == before


def test_second_plan_of_a_busy_change_names_the_holder(project: Scenario) -> None:
    project.with_agents(plan_steps(plan_gen=[{"wait": 600}]))
    words = [AGENTD, "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--light"]
    with Program(words, cwd=project.root, env=project.env, stderr=subprocess.PIPE, text=True) as first:
        assert first.stderr
        while "started" not in first.stderr.readline():
            assert first.poll() is None
        second = project.run("plan", "--json")
        assert (second.code, second.json["error"]["code"]) == (5, "busy")
        assert str(first.pid) in second.json["error"]["message"]
        first.send_signal(signal.SIGTERM)
        first.stderr.read()
    assert first.returncode == 130
    assert project.change.read().run is not None  # to be resumed


def test_missing_agent_names_the_install_command(project: Scenario) -> None:
    project.with_agents(plan_steps(), "[agents.gemini]\ncommand = 'no-such-gemini'\n")
    project.assign("planner", "gemini")
    refused = project.run("plan", "--json")
    error = refused.json["error"]
    assert (refused.code, error["code"]) == (3, "agent-missing")
    assert "no-such-gemini" in error["message"] and "npm install -g @google/gemini-cli" in error["hint"]
    assert project.started_steps() == []


# ---- a dry run


def dry(box: Scenario, *flags: str) -> tuple[list[str], float]:
    """The steps that would run and what they would cost; nothing may change by asking."""
    before = project_files(box.root)
    shown = box.agentd("plan", "add-oauth", SIGN_IN, "--dry-run", "--json", *flags)
    assert shown.code == 0, shown.err
    assert project_files(box.root) == before
    return [one["step"] for one in shown.json["steps"]], shown.json["cost"]


def test_dry_run_shows_the_steps_of_a_new_change(project: Scenario) -> None:
    levels = '["low", "medium", "high", "critical"]'
    model = f'[[agents.play.models]]\nid = "only"\nmodel = "gpt-5.2-codex"\ncomplexity = {levels}\n'
    project.with_agents(plan_steps(), model)
    steps, cost = dry(project, "--skip-clarify")
    assert steps == ["proposal-gen", "proposal-review", "tasks-gen", "tasks-review", "challenge"]
    assert cost > 0
    light, less = dry(project, "--light", "--skip-clarify")
    assert light == ["plan-gen", "challenge"] and 0 < less < cost
    assert not (project.root / "agentd/changes").exists()
    shown = project.agentd("plan", "add-oauth", SIGN_IN, "--dry-run")
    assert "6 steps would run" in shown.out and "Questions" in shown.out and "gpt-5.2-codex" in shown.out
    assert "Spec steps come between the proposal and the tasks; the proposal determines which." in shown.out
    assert "Nothing was run and nothing was spent." in shown.out
    assert project.agentd("plan", "add-oauth", "--dry-run").code == 2


def test_dry_run_of_an_interrupted_plan_shows_the_remaining_steps(project: Scenario) -> None:
    steps = example_plan_steps()
    steps["spec-gen-user-model"] = [{"fault": "crash"}]
    project.with_agents(steps)
    assert project.run("plan").code == 4
    left, _ = dry(project)
    specs = [f"spec-{what}-{one}" for one in ("user-model", "auth-flow", "api-endpoints") for what in ("gen", "review")]
    assert left == [*specs, "tasks-gen", "tasks-review", "challenge"]
    shown = project.agentd("plan", "add-oauth", "--dry-run")
    assert "Spec 1/3: user-model" in shown.out and "9 steps would run, at an unknown price." in shown.out

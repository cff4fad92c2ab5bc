"""What a person types around a plan: long sentences, flags that do not go together, commands that go on."""

import re
import subprocess

import pytest

from agentd.domain import events
from agentd.domain.terms import Lane, Phase
from plans import PROPOSAL_TEXT, SIGN_IN
from playbooks import edit_spec, plan_steps, report_in_text, say, write_document
from program import AGENTD, Program
from scenario import NO_REVIEWS, Scenario


@pytest.mark.parametrize("sentence", ["見" * 900, "So it is. " * 1200, "Ask @README.md\n'and' \"quote\"\t`it`"])
def test_any_description_can_be_planned_and_resumed(project: Scenario, sentence: str) -> None:
    project.with_agents(plan_steps(tasks_gen=[say("Not yet.")]), workflow=NO_REVIEWS)
    first = project.agentd("plan", "add-oauth", sentence, "--skip-clarify")
    assert first.code == 4 and "tasks-gen" in first.err
    project.replay(plan_steps())
    assert project.agentd("plan", "add-oauth", sentence, "--skip-clarify").code == 0
    assert project.change.read().description == sentence.strip()


def test_dry_run_with_a_decision_is_refused(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    ran_dry = project.run("plan", "--dry-run", "--accept", "so")
    assert ran_dry.code == 2 and "--dry-run changes nothing" in ran_dry.err
    assert project.change.read().phase is Phase.PROPOSED


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "much"])
def test_invalid_max_cost_is_refused(project: Scenario, amount: str) -> None:
    project.with_agents(plan_steps())
    refused = project.run("plan", "--max-cost", amount)
    assert refused.code == 2 and "not an amount above 0" in refused.err
    assert not project.folder.exists()


def test_continue_hint_names_the_resolved_id(project: Scenario) -> None:
    project.proposed(report_in_text("APPROVED"))
    assert project.agentd("drop", "add-oauth", "--yes").code == 0
    project.replay({"proposal-gen": [{"wait": 600}]})
    command = [AGENTD, "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--rounds", "1"]
    with Program(command, cwd=project.root, env=project.env, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr
        said_so = ""
        while "started" not in said_so:
            said_so = program.stderr.readline()
        assert project.agentd("stop", "add-oauth-1").code == 0
        assert "to continue: agentd plan add-oauth-1 --rounds 1\n" in program.stderr.read()


def test_resumed_rechallenge_does_not_challenge_again(project: Scenario) -> None:
    again = report_in_text("NEEDS_REVISION", ("High", "It breaks still"))
    project.challenged("APPROVED", ("low", "It is plain"), challenge_2=again, reproposal=[{"fault": "crash"}])
    cut = project.run("plan", "--rechallenge", "--rounds", "1")
    assert cut.code == 4, cut.err
    project.replay({"reproposal": [edit_spec()], "challenge": report_in_text("APPROVED")})
    project.run("plan", "--rechallenge", "--rounds", "1")
    assert [name for name in project.started_steps() if name == "challenge"] == ["challenge"] * 2
    assert project.started_steps()[-3:] == ["reproposal", "reproposal", "challenge"]


def test_accepted_light_lane_has_only_one_challenge(project: Scenario) -> None:
    small = PROPOSAL_TEXT.replace("Scope: minor", "Scope: patch")
    steps = plan_steps(
        proposal_gen=[write_document("proposal.md", small)], challenge=report_in_text("NEEDS_REVISION", ("High", "No"))
    )
    steps["plan-gen"] = steps["plan-gen"][1:]
    project.with_agents(steps)
    assert project.run("plan", "--yes").code == 1
    assert project.change.read().lane is Lane.LIGHT
    assert project.started_steps() == ["proposal-gen", "plan-gen", "challenge"]


def test_lane_cannot_be_changed_after_generation_started(project: Scenario) -> None:
    project.with_agents(plan_steps(tasks_gen=[say("Not yet.")]), workflow=NO_REVIEWS)
    assert project.run("plan").code == 4
    project.replay(plan_steps())
    late = project.run("plan", "--light")
    assert late.code == 0 and "was started in the full lane and stays in it" in late.err


def test_dry_run_of_a_challenged_plan_lists_the_reproposal(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    assert [one["step"] for one in project.run("plan", "--dry-run", "--json").json["steps"]] == [
        "reproposal",
        "challenge",
    ]
    again = project.run("plan", "--dry-run", "--rechallenge", "--json").json
    assert [(one["step"], one["round"]) for one in again["steps"]] == [("challenge", 2)]


def test_text_added_after_a_review_block_counts_as_an_edit(project: Scenario) -> None:
    project.challenged("APPROVED", ("low", "It is plain"))
    with (project.folder / "proposal.md").open("a") as file:
        file.write("\n## More\n\nAnd a door.\n")
    edited = project.run("plan")
    assert edited.code == 0 and "edited since it was approved" in edited.out and "--rechallenge" in edited.out
    project.replay({"challenge": report_in_text("APPROVED")})
    assert project.run("plan", "--rechallenge").code == 0
    text = (project.folder / "proposal.md").read_text()
    assert text.index("And a door.") < text.index("<review")
    assert re.findall(r'iteration="(\d)"', text) == ["1", "2"]


def test_journal_records_how_a_run_ended(project: Scenario) -> None:
    project.proposed(report_in_text("NEEDS_REVISION", ("High", "It breaks")))
    assert project.run("plan").code == 1
    [ended] = project.journal(events.RunFinished)
    assert (ended.exit_code, ended.message) == (1, "NEEDS_REVISION - Found 1 HIGH severity issues")


def test_dry_run_lists_a_needed_format_fix(project: Scenario) -> None:
    change = project.proposed(report_in_text("APPROVED")).change
    steps = [one["step"] for one in project.run("plan", "--dry-run", "--json").json["steps"]]
    assert steps == ["challenge"]
    proposal = change.folder / "proposal.md"
    text = proposal.read_text()
    proposal.write_text(f"{text}\n\n\n")  # agentd mends that itself
    assert [one["step"] for one in project.run("plan", "--dry-run", "--json").json["steps"]] == steps
    proposal.write_text(text.replace("## Why", "## Because"))
    ran = project.run("plan", "--dry-run", "--json").json
    assert [(one["step"], one["role"]) for one in ran["steps"]] == [
        ("format-fix", "planner"),
        ("challenge", "challenger"),
    ]
    assert proposal.read_text().count("## Because") == 1

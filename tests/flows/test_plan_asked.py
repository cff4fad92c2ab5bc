"""What a person types around a plan: long sentences, flags that do not go together, commands that go on."""

import re
import subprocess

import pytest

from agentd import events
from agentd.terms import Lane, Phase
from judged import by_hand, judged, said
from planned import NO_LOOKS, PROPOSAL_TEXT, change_of, journal, proposed, put, quick_plan, ran, replay
from plays import DESCRIPTION, folder, plan, stage
from program import AGENTD, Program
from support import Box
from working import say


@pytest.mark.parametrize("sentence", ["見" * 900, "So it is. " * 1200, "Ask @README.md\n'and' \"quote\"\t`it`"])
def test_any_sentence_is_planned_and_resumed_with(project: Box, sentence: str) -> None:
    stage(project, quick_plan(tasks_gen=[say("Not yet.")]), workflow=NO_LOOKS)
    first = project.agentd("plan", "add-oauth", sentence, "--skip-clarify")
    assert first.code == 4 and "tasks-gen" in first.err
    replay(project, quick_plan())
    assert project.agentd("plan", "add-oauth", sentence, "--skip-clarify").code == 0
    assert change_of(project).read().description == sentence.strip()


def test_a_dry_run_decides_nothing(project: Box) -> None:
    judged(project, ("high", "It breaks"))
    ran_dry = plan(project, "--dry-run", "--accept", "so")
    assert ran_dry.code == 2 and "--dry-run changes nothing" in ran_dry.err
    assert change_of(project).read().phase is Phase.PROPOSED


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "much"])
def test_a_limit_that_limits_nothing_is_refused(project: Box, amount: str) -> None:
    stage(project, quick_plan())
    refused = plan(project, "--max-cost", amount)
    assert refused.code == 2 and "no amount above 0" in refused.err
    assert not folder(project).exists()


def test_what_to_type_to_go_on_is_about_the_change_it_worked_on(project: Box) -> None:
    proposed(project, said("APPROVED"))
    assert project.agentd("drop", "add-oauth", "--yes").code == 0
    replay(project, {"proposal-gen": [{"wait": 600}]})
    command = [AGENTD, "plan", "add-oauth", DESCRIPTION, "--skip-clarify", "--rounds", "1"]
    with Program(command, cwd=project.root, env=project.env, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr
        said_so = ""
        while "started" not in said_so:
            said_so = program.stderr.readline()
        assert project.agentd("stop", "add-oauth-1").code == 0
        assert "to go on: agentd plan add-oauth-1 --rounds 1\n" in program.stderr.read()


def test_a_resumed_rechallenge_does_not_challenge_again(project: Box) -> None:
    again = said("NEEDS_REVISION", ("High", "It breaks still"))
    judged(project, ("low", "It is plain"), word="APPROVED", challenge_2=again, reproposal=[{"fault": "crash"}])
    cut = plan(project, "--rechallenge", "--rounds", "1")
    assert cut.code == 4, cut.err
    replay(project, {"reproposal": [by_hand()], "challenge": said("APPROVED")})
    plan(project, "--rechallenge", "--rounds", "1")
    assert [name for name in ran(project) if name == "challenge"] == ["challenge"] * 2
    assert ran(project)[-3:] == ["reproposal", "reproposal", "challenge"]


def test_a_light_lane_that_was_offered_has_one_challenge_too(project: Box) -> None:
    small = PROPOSAL_TEXT.replace("Scope: minor", "Scope: patch")
    steps = quick_plan(proposal_gen=[put("proposal.md", small)], challenge=said("NEEDS_REVISION", ("High", "No")))
    steps["plan-gen"] = steps["plan-gen"][1:]
    stage(project, steps)
    assert plan(project, "--yes").code == 1
    assert change_of(project).read().lane is Lane.LIGHT
    assert ran(project) == ["proposal-gen", "plan-gen", "challenge"]


def test_a_lane_is_chosen_at_the_beginning(project: Box) -> None:
    stage(project, quick_plan(tasks_gen=[say("Not yet.")]), workflow=NO_LOOKS)
    assert plan(project).code == 4
    replay(project, quick_plan())
    late = plan(project, "--light")
    assert late.code == 0 and "was begun in the full lane and stays in it" in late.err


def test_a_dry_run_of_a_judged_plan_has_the_answers_in_it(project: Box) -> None:
    judged(project, ("high", "It breaks"))
    assert [one["step"] for one in plan(project, "--dry-run", "--json").json["steps"]] == ["reproposal", "challenge"]
    again = plan(project, "--dry-run", "--rechallenge", "--json").json
    assert [(one["step"], one["round"]) for one in again["steps"]] == [("challenge", 2)]


def test_what_is_written_behind_a_verdict_counts(project: Box) -> None:
    judged(project, ("low", "It is plain"), word="APPROVED")
    with (folder(project) / "proposal.md").open("a") as file:
        file.write("\n## More\n\nAnd a door.\n")
    edited = plan(project)
    assert edited.code == 0 and "edited since it was approved" in edited.out and "--rechallenge" in edited.out
    replay(project, {"challenge": said("APPROVED")})
    assert plan(project, "--rechallenge").code == 0
    text = (folder(project) / "proposal.md").read_text()
    assert text.index("And a door.") < text.index("<review")
    assert re.findall(r'iteration="(\d)"', text) == ["1", "2"]


def test_the_journal_says_how_a_run_ended(project: Box) -> None:
    proposed(project, said("NEEDS_REVISION", ("High", "It breaks")))
    assert plan(project).code == 1
    [ended] = journal(project, events.RunFinished)
    assert (ended.exit_code, ended.message) == (1, "NEEDS_REVISION - Found 1 HIGH severity issues")


def test_a_dry_run_tells_that_the_form_is_to_be_put_right_first(project: Box) -> None:
    change = proposed(project, said("APPROVED"))
    steps = [one["step"] for one in plan(project, "--dry-run", "--json").json["steps"]]
    assert steps == ["challenge"]
    proposal = change.folder / "proposal.md"
    text = proposal.read_text()
    proposal.write_text(f"{text}\n\n\n")  # agentd mends that itself
    assert [one["step"] for one in plan(project, "--dry-run", "--json").json["steps"]] == steps
    proposal.write_text(text.replace("## Why", "## Because"))
    ran = plan(project, "--dry-run", "--json").json
    assert [(one["step"], one["role"]) for one in ran["steps"]] == [
        ("format-fix", "planner"),
        ("challenge", "challenger"),
    ]
    assert proposal.read_text().count("## Because") == 1

"""`--quiet` and `--verbose`, NO_COLOR, and a terminal that is closed: how much a command says, and to whom."""

import os
import re

import pytest

from agentd.domain import events
from plans import SIGN_IN
from playbooks import plan_steps, say, usage
from program import AGENTD
from scenario import Result, Scenario
from terminal import run_on_terminal, start_on_terminal


@pytest.fixture
def staged(project: Scenario) -> Scenario:
    """A plan that goes well, with a planner that says what it does."""
    project.with_agents(plan_steps(proposal_review=[usage(0.001), say("Read it twice.\n\n<review>PASS</review>")]))
    return project


def plan(box: Scenario, *flags: str) -> Result:
    return box.agentd("plan", "add-oauth", SIGN_IN, "--skip-clarify", "--git", "in-place", *flags)


def test_default_output_shows_steps_but_no_agent_actions(staged: Scenario) -> None:
    ran = plan(staged)
    assert ran.code == 0, ran.err
    assert "Challenge" in ran.err and "Read it twice." not in ran.err and "tokens in" not in ran.err


@pytest.mark.parametrize("flag", ["--quiet", "-q"])
def test_quiet_prints_only_the_result(staged: Scenario, flag: str) -> None:
    ran = plan(staged, flag)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("APPROVED") and "agentd impl add-oauth" in ran.out


def test_quiet_may_precede_the_command(staged: Scenario) -> None:
    ran = staged.agentd("-q", "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--git", "in-place")
    assert (ran.code, ran.err) == (0, "")


def test_quiet_keeps_errors_and_their_hints(staged: Scenario) -> None:
    ran = staged.agentd("plan", "nothing-like-it", "--quiet")
    assert ran.code == 2 and ran.err.startswith("Error: ") and "→" in ran.err


def test_quiet_draws_nothing_on_a_terminal(staged: Scenario) -> None:
    seen = run_on_terminal(staged, "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--git", "in-place", "--quiet")
    assert seen.code == 0
    assert "\x1b[?2026h" not in seen.screen and "Proposal" not in seen.screen
    assert "APPROVED" in seen.lines[0]


@pytest.mark.parametrize("flag", ["--verbose", "-v"])
def test_verbose_shows_agent_actions_and_usage(staged: Scenario, flag: str) -> None:
    ran = plan(staged, flag)
    assert ran.code == 0, ran.err
    assert re.search(r"^\d\d:\d\d:\d\d  Review of the proposal  Read it twice\.", ran.err, re.M)
    assert "1,000 tokens in, 10 out, 0.0010 USD" in ran.err
    assert len(re.findall("tokens in", ran.err)) == len(staged.journal(events.UsageRecorded))


def test_verbose_works_together_with_the_live_view(staged: Scenario) -> None:
    argv = [str(AGENTD), "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--git", "in-place", "-v"]
    person = start_on_terminal(argv, {**staged.env, "PWD": str(staged.root)}, width=100, height=40)
    assert person.waits() == 0
    assert "Review of the proposal: Read it twice." in person.display.text
    assert person.display.text.count("✓ Challenge") == 1


def test_verbose_output_goes_to_stderr_with_json(staged: Scenario) -> None:
    ran = plan(staged, "--json", "--verbose")
    assert ran.json["verdict"] == "APPROVED"
    assert "Read it twice." in ran.err


def test_quiet_and_verbose_together_are_refused(project: Scenario) -> None:
    for words in (["-q", "status", "-v"], ["status", "--quiet", "--verbose"]):
        ran = project.agentd(*words)
        assert ran.code == 2 and "--quiet and --verbose" in ran.err
        assert len(ran.err.splitlines()) <= 3


def test_every_command_accepts_quiet_and_verbose(project: Scenario) -> None:
    for name in ("list", "status", "cost", "config", "doctor"):
        for flag in ("-q", "-v"):
            assert project.agentd(name, flag).out == project.agentd(name).out, name


def test_only_commands_with_progress_list_quiet_and_verbose_in_help(project: Scenario) -> None:
    for name in ("plan", "impl", "run", "challenge", "review"):
        text = project.agentd(name, "--help").out
        assert "-q, --quiet" in text and "-v, --verbose" in text
    assert "--quiet" not in project.agentd("list", "--help").out


@pytest.mark.parametrize("name", ["status", "list", "cost", "doctor", "config"])
def test_no_color_disables_colors(staged: Scenario, name: str) -> None:
    plan(staged, "-q")
    coloured = run_on_terminal(staged, name)
    assert "\x1b[" in coloured.screen
    staged.env["NO_COLOR"] = "1"
    plain = run_on_terminal(staged, name)
    assert "\x1b" not in plain.screen
    assert plain.code == coloured.code


def test_closing_the_terminal_ends_the_run_like_ctrl_c(project: Scenario) -> None:
    steps = plan_steps(proposal_gen=[{"write": "begun", "text": ""}, {"wait": 600}])
    project.with_agents(steps)
    argv = [str(AGENTD), "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--git", "in-place"]
    person = start_on_terminal(argv, {**project.env, "PWD": str(project.root)}, width=80)
    person.sees(lambda display: (project.root / "begun").exists())
    os.close(person.handle)
    person.program.wait()
    change = project.change
    assert change.active_run() is None
    (ended,) = project.journal(events.RunFinished)
    assert ended.exit_code == 130
    assert [str(step.status) for step in change.read().steps][-1] == "failed"

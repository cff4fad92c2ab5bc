"""A budget that a person raises for one change: from then on, by any command that spends, and told everywhere."""

import pytest

from agentd.change import state
from agentd.change.folder import Change
from agentd.change.state import BudgetIncrease
from agentd.domain import events
from agentd.engine.calls.budget import effective_budget
from agentd.project.config.settings import BudgetSettings
from plans import EXAMPLE
from playbooks import NEEDS_CHANGES, Action, implement, report_in_text, say, usage
from processes import wait_until
from scenario import Result, Scenario

SMALL = "[budget]\nper_change = 0.06\n"
TEXT = (EXAMPLE / "STATE.yaml").read_text()
RAISED = "budget:\n  per_change: 20.0\n  by: person:ann\n  at: 2026-01-19T11:00:00Z\n  colour: green\n"


def used_up(box: Scenario, *challenge: Action) -> Change:
    """A plan whose change has no money left for its judge."""
    change = box.proposed(list(challenge) or report_in_text("APPROVED"), more=SMALL).change
    change.update(lambda old: old.with_call(state.CallRecord("x", "play", "planner", "m", 1, 1, 0, 1, 0.06, "", None)))
    return change


def raising(box: Scenario, amount: str, *more: str) -> Result:
    return box.run("plan", "--raise-budget", amount, "--json", *more)


def decided(box: Scenario) -> list[tuple[str, str, str, str]]:
    return [(one.id, one.answer, one.by, one.via) for one in box.journal(events.DecisionMade)]


# ---- STATE.yaml


def test_raised_budget_and_unknown_keys_round_trip() -> None:
    text = state.render_state(state.parse_state(TEXT + RAISED))
    assert RAISED in text and state.parse_state(text).budget == BudgetIncrease(
        20.0, "person:ann", "2026-01-19T11:00:00Z", {"colour": "green"}
    )
    assert "budget" not in state.render_state(state.parse_state(TEXT))
    assert "budget:\n  colour: green\n" in state.render_state(state.parse_state(TEXT + "budget:\n  colour: green\n"))


@pytest.mark.parametrize(("configured", "raised", "limit"), [(10.0, 20.0, 20.0), (30.0, 20.0, 30.0), (0.0, 20.0, 0.0)])
def test_raised_budget_never_lowers_the_configured_one(configured: float, raised: float, limit: float) -> None:
    known = state.parse_state(TEXT + RAISED.replace("20.0", str(raised)))
    assert effective_budget(BudgetSettings(configured, 5.0, "stop"), known) == BudgetSettings(limit, 5.0, "stop")
    assert effective_budget(BudgetSettings(configured, 5.0, "stop"), state.parse_state(TEXT)).per_change == configured


# ---- at work


def test_over_budget_error_suggests_raise_budget_and_the_run_continues(project: Scenario) -> None:
    change = used_up(project)
    over = project.run("plan", "--json")
    hint = over.json["error"]["hint"]
    assert over.code == 7 and hint.startswith(
        "agentd plan add-oauth --raise-budget 0.12 continues; or set budget.per_change"
    )
    assert project.started_steps() == []
    ended = project.agentd(*hint.split(" continues")[0].split()[1:], "--json")
    assert (ended.code, ended.json["phase"], project.started_steps()) == (0, "challenged", ["challenge"])
    raised = change.read().budget
    assert raised and (raised.per_change, raised.by) == (0.12, "person:dev") and raised.at
    assert decided(project) == [("budget", "0.12", "person:dev", "flag")]
    assert project.run("plan", "--rechallenge", "--json").code == 7, "0.11 of 0.12 by now, and then 0.16"


def test_raised_budget_applies_during_a_call(project: Scenario) -> None:
    used_up(project, usage(1.0), *report_in_text("APPROVED"))
    assert raising(project, "0.5").code == 7
    assert raising(project, "5").code == 0


def test_agent_cannot_raise_its_own_budget(project: Scenario) -> None:
    line = "budget:\n  per_change: 50.0\n  by: person:dev\n  at: now\n"
    cheat = {"edit": "agentd/changes/add-oauth/STATE.yaml", "old": "total_cost:", "new": f"{line}total_cost:"}
    change = used_up(project, cheat, usage(1.0), say("Mine."))
    assert raising(project, "0.5").code == 7
    raised = change.read().budget
    assert raised and raised.per_change == 0.5


def test_impl_suggests_its_own_raise_budget_command(project: Scenario) -> None:
    project.greeting_approved(
        {"implement-greeting": implement(), "review": NEEDS_CHANGES}, more="[budget]\nper_change = 0.1\n"
    )
    over = project.run("impl", "--rounds", "0", "--json")
    assert over.code == 7
    assert over.json["error"]["hint"].startswith("agentd impl greet --raise-budget 0.2 continues")
    assert project.run("impl", "--rounds", "0", "--raise-budget", "0.2", "--json").code == 1


@pytest.mark.parametrize("command", ["challenge", "run"])
def test_every_command_that_spends_accepts_raise_budget(project: Scenario, command: str) -> None:
    change = used_up(project)
    project.agentd(command, "add-oauth", "--raise-budget", "3", "--json")
    assert change.read().budget and "challenge" in project.started_steps()


def test_lower_budget_is_refused_and_the_same_budget_is_a_no_op(project: Scenario) -> None:
    change = used_up(project)
    less = raising(project, "0.03")
    assert (less.code, less.json["error"]["message"]) == (
        2,
        "add-oauth may already cost 0.06 USD, so 0.03 USD is not more",
    )
    assert raising(project, "2").code == 0
    before = change.read().budget
    assert raising(project, "1").code == 2
    assert raising(project, "2").code == 0 and change.read().budget == before
    assert [one[1] for one in decided(project)] == ["2"] and len(project.started_steps()) == 1


def test_unlimited_budget_cannot_be_raised(project: Scenario) -> None:
    project.proposed(report_in_text("APPROVED"), more="[budget]\nper_change = 0\n")
    ended = raising(project, "5")
    assert ended.code == 2 and "has no limit" in ended.json["error"]["message"]


def test_budget_of_a_completed_plan_can_be_raised(project: Scenario) -> None:
    change = project.challenged("APPROVED").change
    ended = raising(project, "50")
    assert (ended.code, ended.json["message"]) == (0, "Planning of add-oauth is complete")
    raised = change.read().budget
    assert raised and raised.per_change == 50 and project.started_steps() == []


def test_background_run_uses_the_raised_budget(project: Scenario) -> None:
    change = used_up(project)
    started = raising(project, "4", "--detach")
    assert started.code == 0, started.err
    wait_until(lambda: change.read().phase == "challenged", "it has its verdict")
    wait_until(lambda: change.active_run() is None, "it has ended")
    raised = change.read().budget
    assert raised and raised.per_change == 4


@pytest.mark.parametrize("more", [["--accept", "So."], ["--dry-run"]])
def test_raise_budget_is_refused_with_flags_that_spend_nothing(project: Scenario, more: list[str]) -> None:
    change = used_up(project)
    ended = project.agentd("plan", "add-oauth", "--raise-budget", "5", *more)
    assert ended.code == 2 and "does not go with --raise-budget" in ended.err
    assert change.read().budget is None


def test_status_and_cost_show_the_effective_limit(project: Scenario) -> None:
    used_up(project)
    assert raising(project, "2.5").code == 0
    assert "0.11 USD of 2.50 USD in 2 calls" in project.agentd("status", "add-oauth").out
    assert project.agentd("status", "add-oauth", "--json").json["budget"] == 2.5
    assert "2.39 USD left of 2.50 USD for this change" in project.agentd("cost", "add-oauth").out
    assert project.agentd("--set", "budget.per_change=9", "status", "add-oauth", "--json").json["budget"] == 9
    project.write("agentd/config.toml", "broken")
    assert project.agentd("status", "add-oauth", "--json").json["budget"] is None

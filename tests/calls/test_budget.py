"""Is there money for a call: when a limit stops it, and what a person is told then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_calls import planner_request, play
from agentd.agents.protocol import TokenUsage
from agentd.change.folder import Change
from agentd.domain import events
from agentd.domain.errors import OverBudget
from agentd.domain.terms import Workflow
from agentd.engine.calls import call_costs, retries
from agentd.engine.calls import run_context as runs
from agentd.engine.calls.budget import ExceededLimit, check_budget, check_price, find_exceeded
from agentd.engine.calls.call_costs import OpenCall, Spending
from agentd.project.config.loader import load_config
from agentd.project.config.settings import BudgetSettings, Config
from playbooks import usage, write_document
from scenario import Scenario, journal_of


def limits(per_change: float = 10.0, per_day: float = 0.0, stop: bool = False) -> BudgetSettings:
    return BudgetSettings(per_change, per_day, "stop" if stop else "allow")


def refused(
    budget: BudgetSettings, spent: Spending, in_flight: float | None = None, max_cost: float = 0.0
) -> OverBudget:
    with pytest.raises(OverBudget) as caught:
        check_budget(budget, "add-oauth", spent, in_flight, max_cost)
    assert caught.value.exit_code == 7
    return caught.value


def test_reached_limit_stops_the_next_call() -> None:
    assert find_exceeded(limits(), Spending(9.999999, 0)) is None
    assert find_exceeded(limits(), Spending(10.0, 0)) == ExceededLimit("per_change", 10.0, 10.0)
    assert find_exceeded(limits(0, 5), Spending(100, 4.99)) is None
    assert find_exceeded(limits(0, 5), Spending(0, 5.0)) == ExceededLimit("per_day", 5.0, 5.0)


def test_limit_may_be_reached_but_not_exceeded_during_a_call() -> None:
    assert find_exceeded(limits(), Spending(9.0, 0), 1.0) is None
    assert find_exceeded(limits(), Spending(9.0, 0), 1.000001) == ExceededLimit("per_change", 10.000001, 10.0)
    assert find_exceeded(limits(0, 5), Spending(0, 4.5), 0.51) == ExceededLimit("per_day", 5.01, 5.0)
    assert find_exceeded(limits(), Spending(10.0, 0), 0.0) is None, "a call that costs nothing passes nothing"


def test_floating_point_rounding_does_not_exceed_a_limit() -> None:
    assert find_exceeded(limits(0.3), Spending(0.1, 0), 0.2) is None  # 0.30000000000000004 in binary


def test_zero_means_no_limit() -> None:
    assert find_exceeded(limits(0, 0), Spending(1e6, 1e6)) is None
    assert find_exceeded(limits(0, 0), Spending(1e6, 1e6), 1e6) is None


def test_error_shows_the_amounts_and_how_to_raise_the_limit() -> None:
    error = refused(limits(), Spending(9.0, 0), 1.02)
    assert error.message == "add-oauth has cost 10.02 USD of its 10.00 USD"
    assert error.hint == (
        "agentd plan add-oauth --raise-budget 20 continues; or set budget.per_change above 10.02 in agentd/config.toml "
        "(or run agentd --set budget.per_change=20 …), then run the command again"
    )


def test_daily_limit_error_names_the_day() -> None:
    error = refused(limits(10, 5), Spending(1, 21))
    assert error.message == "today's calls have cost 21.00 USD of the day's 5.00 USD"
    assert "--set budget.per_day=40 …" in error.hint and "wait for the next day (UTC)" in error.hint


@pytest.mark.parametrize(
    ("spent", "limit", "words"),
    [
        (10.0, 10.0, "10.00 USD of its 10.00 USD"),
        (10.001, 10.0, "10.0010 USD of its 10.0000 USD"),
        (0.0015, 0.001, "0.0015 USD of its 0.0010 USD"),
        (0.000002, 0.000001, "0.000002 USD of its 0.000001 USD"),
    ],
)
def test_amounts_have_enough_digits_to_show_the_difference(spent: float, limit: float, words: str) -> None:
    assert words in refused(limits(limit), Spending(spent, 0)).message


USD = st.integers(1, 10**9).map(lambda millionths: millionths / 10**6)


@given(USD, USD, st.none() | USD)
def test_suggested_limit_is_sufficient(limit: float, spent: float, in_flight: float | None) -> None:
    if find_exceeded(limits(limit), Spending(spent, 0), in_flight) is None:
        return
    error = refused(limits(limit), Spending(spent, 0), in_flight)
    proposed = float(error.hint.split("--set budget.per_change=")[1].split()[0])
    assert find_exceeded(limits(proposed), Spending(spent, 0), in_flight) is None
    assert find_exceeded(limits(proposed), Spending(round(spent + (in_flight or 0), 6), 0)) is None


def test_unknown_price_is_a_warning_when_a_limit_is_set() -> None:
    words = check_price(limits(), "codex", "gpt-99", known=False)
    assert words == "the price of gpt-99 is not known, so the budget cannot count what codex spends"
    assert check_price(limits(), "codex", "gpt-5", known=True) is None
    assert check_price(limits(0, 0), "codex", "gpt-99", known=False) is None
    assert check_price(limits(0, 1), "codex", "gpt-99", known=False)
    assert check_price(limits(0, 0, stop=True), "codex", "gpt-99", known=False) is None


def test_unknown_price_stops_when_configured() -> None:
    with pytest.raises(OverBudget, match="the price of gpt-99 is not known") as caught:
        check_price(limits(stop=True), "codex", "gpt-99", known=False)
    assert 'add [prices."gpt-99"] with input and output' in caught.value.hint
    with pytest.raises(OverBudget, match="which model codex uses") as caught:
        check_price(limits(stop=True), "codex", None, known=False)
    assert "[[agents.codex.models]]" in caught.value.hint and '[prices."<model>"]' in caught.value.hint


def test_max_cost_limits_a_run() -> None:
    assert find_exceeded(limits(), Spending(5.0, 5.0, 0.49), max_cost=0.5) is None
    assert find_exceeded(limits(), Spending(5.0, 5.0, 0.5), max_cost=0.5) == ExceededLimit("per_run", 0.5, 0.5)
    assert find_exceeded(limits(), Spending(5.0, 5.0, 0.2), 0.3, max_cost=0.5) is None
    assert find_exceeded(limits(0, 0), Spending(0, 0, 0.2), 0.300001, max_cost=0.5) == ExceededLimit(
        "per_run", 0.500001, 0.5
    )
    assert find_exceeded(limits(), Spending(5.0, 5.0, 9.0)) is None


def test_run_over_max_cost_says_how_to_continue() -> None:
    error = refused(limits(), Spending(1.0, 1.0, 0.5), 0.02, max_cost=0.5)
    assert error.message == "this run has cost 0.52 USD of the 0.50 USD it may (--max-cost)"
    assert error.hint == "run again with a higher --max-cost, such as 1: it continues where it stopped"


def test_change_budget_is_reported_before_max_cost() -> None:
    assert "of its 10.00 USD" in refused(limits(), Spending(10.0, 0, 1.0), max_cost=0.5).message


def test_max_cost_requires_a_known_price() -> None:
    assert check_price(limits(0, 0), "codex", "gpt-99", known=False, max_cost=0.5)
    with pytest.raises(OverBudget):
        check_price(limits(0, 0, stop=True), "codex", "gpt-99", known=False, max_cost=0.5)


def perform(change: Change, max_cost: float, times: int = 1) -> None:
    """So many calls in a run that may cost that much."""

    def load() -> Config:
        return load_config(change.project.config_file)

    with runs.begin_run(change, load, Workflow.PLAN, "agentd plan add-oauth", max_cost=max_cost) as run:
        first = len(change.read().steps) + 1
        for number in range(first, first + times):
            retries.perform_call(run, planner_request(run, number=number))


def test_run_stops_before_a_call_that_max_cost_does_not_cover(project: Scenario) -> None:
    change = play(project, proposal_gen=[usage(0.25), write_document("proposal.md")])
    with pytest.raises(OverBudget, match=r"this run has cost 0\.50 USD of the 0\.50 USD it may \(--max-cost\)"):
        perform(change, max_cost=0.5, times=3)
    assert len(journal_of(change, events.StepStarted)) == 2
    assert journal_of(change, events.RunFinished)[-1].exit_code == 7


def test_call_that_exceeds_max_cost_is_ended(project: Scenario) -> None:
    change = play(project, proposal_gen=[usage(0.3), usage(0.3), {"wait": 600}, write_document("proposal.md")])
    with pytest.raises(OverBudget, match=r"this run has cost 0\.60 USD of the 0\.50 USD"):
        perform(change, max_cost=0.5)
    assert change.read().total_cost == pytest.approx(0.6)
    assert journal_of(change, events.ErrorOccurred)[-1].code == "budget"


def test_max_cost_counts_each_run_separately(project: Scenario) -> None:
    change = play(project, proposal_gen=[usage(0.25), write_document("proposal.md")])
    perform(change, max_cost=0.5)
    perform(change, max_cost=0.5)
    perform(change, max_cost=0.5)
    assert change.read().total_cost == pytest.approx(0.75)


def test_cost_of_a_killed_run_does_not_count_toward_max_cost(project: Scenario) -> None:
    change = play(project, proposal_gen=[usage(0.25), write_document("proposal.md")])
    with change.running("agentd plan") as held:
        call = OpenCall.begin(
            change,
            held.token,
            step="proposal-gen",
            round=1,
            number=9,
            attempt=1,
            agent="play",
            role="planner",
            model=None,
            session=None,
        )
        call.update(TokenUsage(tokens_in=100), 0.4)
    assert call_costs.change_spending(change).change == 0.4
    perform(change, max_cost=0.4)
    assert change.read().total_cost == pytest.approx(0.65)

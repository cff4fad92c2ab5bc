"""Is there money for a call: when a limit stops it, and what a person is told then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.calls.budget import Over, check, check_price, over
from agentd.calls.spend import Spent
from agentd.config import Budget
from agentd.errors import OverBudget


def limits(per_change: float = 10.0, per_day: float = 0.0, stop: bool = False) -> Budget:
    return Budget(per_change, per_day, "stop" if stop else "allow")


def refused(budget: Budget, spent: Spent, in_flight: float | None = None) -> OverBudget:
    with pytest.raises(OverBudget) as caught:
        check(budget, "add-oauth", spent, in_flight)
    assert caught.value.exit_code == 7
    return caught.value


def test_before_a_call_a_limit_that_is_reached_stops() -> None:
    assert over(limits(), Spent(9.999999, 0)) is None
    assert over(limits(), Spent(10.0, 0)) == Over("per_change", 10.0, 10.0)
    assert over(limits(0, 5), Spent(100, 4.99)) is None
    assert over(limits(0, 5), Spent(0, 5.0)) == Over("per_day", 5.0, 5.0)


def test_during_a_call_a_limit_may_be_reached_but_not_passed() -> None:
    assert over(limits(), Spent(9.0, 0), 1.0) is None
    assert over(limits(), Spent(9.0, 0), 1.000001) == Over("per_change", 10.000001, 10.0)
    assert over(limits(0, 5), Spent(0, 4.5), 0.51) == Over("per_day", 5.01, 5.0)
    assert over(limits(), Spent(10.0, 0), 0.0) is None, "a call that costs nothing passes nothing"


def test_fractions_of_a_cent_do_not_pass_a_limit_by_themselves() -> None:
    assert over(limits(0.3), Spent(0.1, 0), 0.2) is None  # 0.30000000000000004 in binary


def test_no_limit_is_no_limit() -> None:
    assert over(limits(0, 0), Spent(1e6, 1e6)) is None
    assert over(limits(0, 0), Spent(1e6, 1e6), 1e6) is None


def test_the_error_has_the_figures_and_how_to_raise_the_limit() -> None:
    error = refused(limits(), Spent(9.0, 0), 1.02)
    assert error.message == "add-oauth has cost 10.02 USD of its 10.00 USD"
    assert error.hint == (
        "set budget.per_change above 10.02 in agentd/config.toml (or run agentd --set budget.per_change=20 …), "
        "then run the command again"
    )


def test_the_days_limit_says_that_it_is_the_days() -> None:
    error = refused(limits(10, 5), Spent(1, 21))
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
def test_figures_are_fine_enough_to_show_the_difference(spent: float, limit: float, words: str) -> None:
    assert words in refused(limits(limit), Spent(spent, 0)).message


USD = st.integers(1, 10**9).map(lambda millionths: millionths / 10**6)


@given(USD, USD, st.none() | USD)
def test_the_limit_that_is_proposed_is_enough(limit: float, spent: float, in_flight: float | None) -> None:
    if over(limits(limit), Spent(spent, 0), in_flight) is None:
        return
    error = refused(limits(limit), Spent(spent, 0), in_flight)
    proposed = float(error.hint.split("--set budget.per_change=")[1].split()[0])
    assert over(limits(proposed), Spent(spent, 0), in_flight) is None
    assert over(limits(proposed), Spent(round(spent + (in_flight or 0), 6), 0)) is None


def test_an_unknown_price_is_a_warning_where_a_limit_is_set() -> None:
    words = check_price(limits(), "codex", "gpt-99", known=False)
    assert words == "the price of gpt-99 is not known, so the budget cannot count what codex spends"
    assert check_price(limits(), "codex", "gpt-5", known=True) is None
    assert check_price(limits(0, 0), "codex", "gpt-99", known=False) is None
    assert check_price(limits(0, 1), "codex", "gpt-99", known=False)
    assert check_price(limits(0, 0, stop=True), "codex", "gpt-99", known=False) is None


def test_an_unknown_price_stops_where_the_config_says_so() -> None:
    with pytest.raises(OverBudget, match="the price of gpt-99 is not known") as caught:
        check_price(limits(stop=True), "codex", "gpt-99", known=False)
    assert 'add [prices."gpt-99"] with input and output' in caught.value.hint
    with pytest.raises(OverBudget, match="which model codex uses") as caught:
        check_price(limits(stop=True), "codex", None, known=False)
    assert "[[agents.codex.models]]" in caught.value.hint and '[prices."<model>"]' in caught.value.hint

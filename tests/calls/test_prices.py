"""What a call cost: whose figure counts, to the digit, and never a zero for what nobody knows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.agents.prices import PriceSettings, has_known_price, sanitize_usage, usage_cost
from agentd.agents.protocol import TokenUsage
from agentd.change import state
from plans import EXAMPLE
from scenario import Scenario

OWN = {"gemini-3-flash-preview": PriceSettings(input=0.10, output=0.40, cached=0.025)}


def test_example_costs_match_its_prices() -> None:
    calls = [c for c in state.parse_state((EXAMPLE / "STATE.yaml").read_text()).llm_calls if c.model in OWN]
    assert len(calls) == 9
    for call in calls:
        tokens_in, tokens_out, cached = call.tokens_in or 0, call.tokens_out or 0, call.tokens_cached or 0
        usage = TokenUsage(tokens_in=tokens_in, tokens_out=tokens_out, tokens_cached=cached)
        assert usage_cost(usage, call.model, OWN) == call.cost


def test_cost_stated_by_the_agent_takes_precedence() -> None:
    usage = TokenUsage(tokens_in=1_000_000, cost=0.1234567)
    assert usage_cost(usage, "gemini-3-flash-preview", OWN) == 0.123457
    assert usage_cost(usage, None, {}) == 0.123457
    assert usage_cost(TokenUsage(cost=0), "nobody-knows-1", {}) == 0.0


def test_configured_price_takes_precedence_over_the_table() -> None:
    usage = TokenUsage(tokens_in=1_000_000)
    assert usage_cost(usage, "gpt-5.2-codex", {}) == 1.75
    assert usage_cost(usage, "gpt-5.2-codex", {"gpt-5.2-codex": PriceSettings(input=9, output=9)}) == 9.0


def test_price_table_treats_cached_input_as_we_do() -> None:
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    theirs = calc_price(Tokens(input_tokens=24567, cache_read_tokens=9216, output_tokens=2345), "gpt-5.2-codex")
    ours = usage_cost(TokenUsage(tokens_in=24567, tokens_cached=9216, tokens_out=2345), "gpt-5.2-codex", {})
    assert ours == round(float(theirs.total_price), 6) == 0.061307


def test_many_small_requests_are_not_priced_as_one_long_request() -> None:
    """The vendor doubles the price of a single request beyond 200,000 tokens; a call is the sum of many."""
    small = usage_cost(TokenUsage(tokens_in=100_000), "gemini-3-pro-preview", {})
    assert small == 0.2
    assert usage_cost(TokenUsage(tokens_in=1_000_000), "gemini-3-pro-preview", {}) == 2.0


def test_price_of_the_used_model_takes_precedence_over_the_requested_one() -> None:
    prices = {"asked": PriceSettings(input=1, output=1), "used": PriceSettings(input=2, output=2)}
    assert usage_cost(TokenUsage(tokens_in=1_000_000, model="used"), "asked", prices) == 2.0
    assert usage_cost(TokenUsage(tokens_in=1_000_000, model="used-0613"), "asked", prices) == 1.0
    assert usage_cost(TokenUsage(tokens_in=1_000_000, model="used"), None, prices) == 2.0


def test_cached_input_costs_the_full_price_without_a_cached_price() -> None:
    usage = TokenUsage(tokens_in=1_000_000, tokens_cached=600_000)
    assert usage_cost(usage, "m", {"m": PriceSettings(input=1.0, output=1.0)}) == 1.0
    assert usage_cost(usage, "m", {"m": PriceSettings(input=1.0, output=1.0, cached=0.0)}) == 0.4


@pytest.mark.parametrize("model", [None, "", "nobody-knows-1", "gpt-99", "sonnet", "whisper-1", "gemma-3"])
def test_unknown_model_has_unknown_cost(model: str | None) -> None:
    assert usage_cost(TokenUsage(tokens_in=5, tokens_out=5), model, {}) is None
    assert usage_cost(TokenUsage(), model, {}) is None
    assert not has_known_price(model, {})


def test_no_usage_of_a_known_model_costs_zero() -> None:
    assert usage_cost(TokenUsage(), "gpt-5.2-codex", {}) == 0.0
    assert has_known_price("gpt-5.2-codex", {})
    assert has_known_price("mine", {"mine": PriceSettings(input=0, output=0)})
    assert usage_cost(TokenUsage(tokens_in=7), "mine", {"mine": PriceSettings(input=0, output=0)}) == 0.0


def test_cost_is_computed_without_binary_rounding_errors() -> None:
    prices = {"m": PriceSettings(input=0.1, output=0.3)}
    assert usage_cost(TokenUsage(tokens_in=3_000_000, tokens_out=1_000_000), "m", prices) == 0.6
    assert (
        usage_cost(TokenUsage(tokens_in=15, tokens_out=0), "m", {"m": PriceSettings(input=0.1, output=1)}) == 0.000002
    )


@pytest.mark.parametrize("cost", [-0.01, math.nan, math.inf, -math.inf, 1e300])
def test_impossible_stated_cost_is_ignored(cost: float) -> None:
    assert usage_cost(TokenUsage(tokens_in=1_000_000, cost=cost), "m", {"m": PriceSettings(input=1, output=1)}) == 1.0
    assert usage_cost(TokenUsage(cost=cost), "nobody-knows-1", {}) is None


ANY = st.integers(min_value=-(10**30), max_value=10**30)


@given(ANY, ANY, ANY, st.none() | st.floats(), st.floats(min_value=0, max_value=1e15))
def test_cost_is_never_negative_or_infinite(
    tokens_in: int, tokens_out: int, cached: int, cost: float | None, price: float
) -> None:
    usage = TokenUsage(tokens_in=tokens_in, tokens_out=tokens_out, tokens_cached=cached, cost=cost)
    for prices in (
        {},
        {"m": PriceSettings(input=price, output=price)},
        {"m": PriceSettings(input=price, output=0, cached=price)},
    ):
        found = usage_cost(usage, "m", prices)
        assert found is None if not prices and usage_cost(usage, None, {}) is None else found is not None
        assert found is None or 0 <= found <= 1e9
    kept = sanitize_usage(usage)
    assert 0 <= kept.tokens_cached <= kept.tokens_in <= 10**12 and 0 <= kept.tokens_out <= 10**12


def test_pricing_never_touches_the_network(box: Scenario) -> None:
    ran = box.python("""
import sys, threading
touched = []
sys.addaudithook(lambda event, arguments: touched.append(event) if event.startswith("socket.") else None)
from agentd.agents import TokenUsage, usage_cost
assert "genai_prices" not in sys.modules
assert usage_cost(TokenUsage(cost=1.0), None, {}) == 1.0
assert "genai_prices" not in sys.modules, "the agent's own figure needs no table"
assert usage_cost(TokenUsage(tokens_in=1000000), "gpt-5.2-codex", {}) == 1.75
assert [event for event in touched if event != "socket.__new__"] == [], touched
assert threading.active_count() == 1
""")
    assert ran.code == 0, ran.err

"""What was spent, as bars: drawn to scale, against the budget, and the unknown never shown as nothing."""

import math
from itertools import pairwise

import pytest
from markup import Markup, parse_markup

from agentd.change.folder import read_state
from agentd.web.markup import cost_chart
from agentd.web.markup.cost_chart import ChartRow
from plans import EXAMPLE


def drawn(*rows: ChartRow, budget: float | None = None) -> Markup:
    return parse_markup(cost_chart.render_bars(rows, budget))


def lengths(found: Markup, kind: str = "bar") -> list[float]:
    return [float(one["width"]) for one in found.all("rect", kind)]


def figures(found: Markup) -> list[str]:
    return [one.text for one in found.all("text", "figure")]


def example() -> list[ChartRow]:
    """By model, as the example's STATE.yaml has it."""
    costs: dict[str, float] = {}
    for call in read_state(EXAMPLE).llm_calls:
        assert call.model and call.cost is not None
        costs[call.model] = costs.get(call.model, 0.0) + call.cost
    return [ChartRow(model, cost) for model, cost in costs.items()]


def test_example_costs_are_drawn_against_the_budget() -> None:
    found = drawn(*example(), budget=10.0)
    assert found.one("svg")["aria-label"] == "Cost: 0.18 of 10.00 USD"
    assert figures(found) == ["0.18 of 10.00 USD", "0.01 USD", "0.07 USD", "0.10 USD"]
    assert [one.text for one in found.all("title")][1] == "gemini-3-flash-preview: 0.01 USD"
    assert not found.all("g", "unknown") and not found.all("g", "over")


def test_bars_are_scaled_to_the_largest() -> None:
    small, large, half = lengths(drawn(ChartRow("a", 0.00001), ChartRow("b", 4.0), ChartRow("c", 2.0)))
    assert half == large / 2 and 0 < small < large / 50


def test_budget_has_its_own_track() -> None:
    found = drawn(ChartRow("a", 1.0), ChartRow("b", 1.5), budget=10.0)
    assert lengths(found)[0] == lengths(found, "track")[0] / 4
    assert len(found.all("g", "budget")) == 1 and len(figures(found)) == 3


def test_exceeded_budget_fills_the_track_and_is_marked() -> None:
    found = drawn(ChartRow("a", 30.0), budget=10.0)
    assert lengths(found)[0] == lengths(found, "track")[0]
    assert "over" in found.one("g", "budget").classes
    assert figures(found)[0] == "30.00 of 10.00 USD"


def test_no_track_is_drawn_without_a_budget() -> None:
    assert not drawn(ChartRow("a", 1.0)).all("rect", "track")


def test_unknown_cost_is_marked_and_not_shown_as_zero() -> None:
    found = drawn(ChartRow("a", None, 2), ChartRow("b", 1.0, 1), ChartRow("c", 1.0), ChartRow("d", 0.0), budget=5.0)
    assert figures(found) == ["2.00 + ? of 5.00 USD", "unknown", "1.00 + ? USD", "1.00 USD", "0.00 USD"]
    assert len(found.all("rect", "bar-unknown")) == 2
    assert found.one("g", "unknown").text.startswith("a: 2 calls of unknown cost")
    assert "b: 1.00 USD, and 1 call of unknown cost" in [one.text for one in found.all("title")]
    assert found.one("svg")["aria-label"] == "Cost: 2.00 of 5.00 USD, and 3 calls of unknown cost"


@pytest.mark.parametrize("cost", [math.nan, math.inf, -1.0, None])
def test_invalid_cost_is_unknown(cost: float | None) -> None:
    found = drawn(ChartRow("a", cost), ChartRow("b", 1.0))
    assert figures(found) == ["unknown", "1.00 USD"]
    assert all(math.isfinite(length) and length >= 0 for length in lengths(found))


def test_small_costs_show_more_digits() -> None:
    assert figures(drawn(ChartRow("a", 0.0019), ChartRow("b", 1.0))) == ["0.0019 USD", "1.0000 USD"]


def test_rows_do_not_overlap_and_stay_inside() -> None:
    found = drawn(*(ChartRow(f"step-{number}", number / 7, number % 2) for number in range(30)), budget=3.0)
    tops = [float(one["y"]) for one in found.all("rect", "bar")]
    assert all(two - one >= 18 for one, two in pairwise(tops))
    assert tops[-1] + 18 < float(found.one("svg")["height"])
    width = float(found.one("svg")["width"])
    assert all(float(one["x"]) + float(one["width"]) < width for one in found.all("rect"))


@pytest.mark.parametrize("label", ["<script>alert(1)</script>", '" onload="x', "</svg>" * 20, "a\u202e\0"])
def test_hostile_labels_are_escaped(label: str) -> None:
    found = drawn(ChartRow(label, 1.0))
    assert found.tags == {"svg", "g", "title", "text", "rect"} and not found.others
    allowed = {"class", "role", "aria-label", "viewbox", "x", "y", "width", "height", "rx"}
    assert all(set(one.attributes) <= allowed for one in found.elements)
    assert "\u202e" not in found.text and len(found.one("text", "label").text) <= 26


def test_chart_without_costs_is_empty() -> None:
    assert drawn().one("svg")["aria-label"] == "Cost: 0.00 USD"

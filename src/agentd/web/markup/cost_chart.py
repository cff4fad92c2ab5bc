"""Cost as bars: by step, model or round, and the total against the budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentd.web.markup import svg

_LABEL, _BAR, _UNKNOWN = 200, 300, 12  # px; fits on a phone, with the amount above its bar
_TEXT, _HEIGHT, _DOWN = 19, 9, 12
_PITCH = _TEXT + _HEIGHT + _DOWN
_MARGIN = 4
_USD = " USD"
_LEAST = 2  # px, so a small cost is visible


@dataclass(frozen=True, slots=True)
class ChartRow:
    """USD over the calls with a known price, None if there are none; and the number of calls without a known price."""

    label: str
    cost: float | None
    without_price: int = 0


def render_bars(rows: Sequence[ChartRow], budget: float | None = None) -> str:
    """Draw the rows, scaled to the largest. With a budget, the first bar is the total within it."""
    rows = [_checked(row) for row in rows]
    costs = [row.cost or 0.0 for row in rows]
    digits = 4 if any(0 < cost < 0.01 for cost in costs) else 2
    total = ChartRow("total", math.fsum(costs), sum(row.without_price for row in rows))
    parts = [_bar(row, max(costs), number + bool(budget), digits) for number, row in enumerate(rows)]
    if budget:
        parts.insert(0, _meter(total, budget, digits))
    height = 2 * _MARGIN + len(parts) * _PITCH
    label = f"Cost: {_told(total, digits, budget)}"
    return svg.svg_canvas("chart", label, _BAR + _UNKNOWN + 2 * _MARGIN + 1, height, "".join(parts))


def _checked(row: ChartRow) -> ChartRow:
    """Treat a cost that is not a valid amount as unknown."""
    is_amount = row.cost is not None and math.isfinite(row.cost) and row.cost >= 0
    return row if is_amount else ChartRow(row.label, None, max(row.without_price, 1))


def _bar(row: ChartRow, largest: float, number: int, digits: int) -> str:
    length = _length(row.cost or 0.0, largest)
    kind = (
        "row" + " unknown" * (row.cost is None) + " partly-unknown" * (row.cost is not None and row.without_price > 0)
    )
    marks = _rect("bar", length, number)
    if row.without_price:
        # The length is unknown: draw a mark of fixed length after the bar; the style sheet makes it dashed.
        marks += _rect("bar-unknown", _UNKNOWN, number, length)
    return _row(row.label, _told(row, digits), marks, _figure(row, digits), number, kind)


def _meter(total: ChartRow, budget: float, digits: int) -> str:
    spent = total.cost or 0.0
    kind = "row budget" + " over" * (spent > budget) + " partly-unknown" * (total.without_price > 0)
    marks = _rect("track", _BAR, 0) + _rect("bar", _length(min(spent, budget), budget), 0)
    figure = f"{_figure(total, digits).removesuffix(_USD)} of {budget:.2f}{_USD}"
    return _row("all, of the budget", _told(total, digits, budget), marks, figure, 0, kind)


def _length(cost: float, largest: float) -> float:
    return max(cost / largest * _BAR, _LEAST) if cost > 0 else 0


def _rect(kind: str, length: float, number: int, start: float = 0) -> str:
    x, y = _MARGIN + start, _MARGIN + number * _PITCH + _TEXT
    return svg.svg_tag("rect", class_=kind, x=x, y=y, width=length, height=_HEIGHT, rx=2)


def _row(label: str, told: str, marks: str, figure: str, number: int, kind: str) -> str:
    y = _MARGIN + number * _PITCH + 13
    title = svg.svg_tag("title", svg.escape_words(f"{label}: {told}"))
    name = svg.svg_tag("text", svg.escape_words(svg.fit_text(label, _LABEL - 10)), class_="label", x=_MARGIN, y=y)
    x = _MARGIN + _BAR + _UNKNOWN  # the right edge; the style sheet right-aligns the text
    cost = svg.svg_tag("text", svg.escape_words(figure), class_="figure", x=x, y=y)
    return svg.svg_tag("g", title + name + marks + cost, class_=kind, role="img")


def _figure(row: ChartRow, digits: int) -> str:
    """Return the short form."""
    if row.cost is None or (not row.cost and row.without_price):
        return "unknown"
    return f"{row.cost:.{digits}f}{' + ?' * (row.without_price > 0)}{_USD}"


def _told(row: ChartRow, digits: int, budget: float | None = None) -> str:
    """Return the long form."""
    known = f"{row.cost or 0:.{digits}f}" + (f" of {budget:.2f}" if budget else "") + _USD
    unknown = f"{row.without_price} call{'' if row.without_price == 1 else 's'} of unknown cost"
    if not row.without_price:
        return known
    return f"{known}, and {unknown}" if row.cost or budget else unknown

"""Calls added up: all of them, or by what they have in common (pure)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agentd.change import CallRecord


@dataclass(frozen=True, slots=True)
class CostTotals:
    """Some calls together; tokens and cost are over the known ones only."""

    calls: int = 0
    without_price: int = 0
    without_usage: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0.0

    @classmethod
    def of(cls, calls: Iterable[CallRecord]) -> "CostTotals":
        calls = tuple(calls)
        return cls(
            len(calls),
            sum(call.cost is None for call in calls),
            sum(call.tokens_in is None for call in calls),
            sum(call.tokens_in or 0 for call in calls),
            sum(call.tokens_out or 0 for call in calls),
            sum(call.tokens_cached or 0 for call in calls),
            round(sum(call.cost or 0.0 for call in calls), 6),
        )

    def data(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "calls_without_price": self.without_price,
            "tokens": {"in": self.tokens_in, "out": self.tokens_out, "cached": self.tokens_cached},
            "cost": self.cost,
        }


def group_costs(calls: Iterable[CallRecord], key: Callable[[CallRecord], str | None]) -> dict[str | None, CostTotals]:
    """In the order of the calls."""
    groups: dict[str | None, list[CallRecord]] = {}
    for call in calls:
        groups.setdefault(key(call), []).append(call)
    return {name: CostTotals.of(some) for name, some in groups.items()}

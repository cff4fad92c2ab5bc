"""What a call cost: the agent's own figure, else [prices] of the config, else the built-in table, else unknown.

An unknown cost is None, never 0. The table comes with the package and is never fetched anew.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache

from agentd.agents.protocol import TokenUsage
from agentd.project import PriceSettings

_MOST_TOKENS = 10**12
_MOST_USD = 10**9
_SAMPLE = 1000  # tokens; far below the size from which a vendor charges one request by a higher tier
_DIGITS = Decimal("0.000001")  # as STATE.yaml keeps it


def sanitize_usage(usage: TokenUsage) -> TokenUsage:
    """No count below zero or beyond belief, no more cached than there was; such a cost is no figure at all."""
    tokens_in = _count(usage.tokens_in)
    believed = usage.cost is not None and 0 <= usage.cost < _MOST_USD  # false for what is no number, too
    return replace(
        usage,
        tokens_in=tokens_in,
        tokens_out=_count(usage.tokens_out),
        tokens_cached=min(_count(usage.tokens_cached), tokens_in),
        cost=usage.cost if believed else None,
    )


def usage_cost(usage: TokenUsage, model: str | None, prices: Mapping[str, PriceSettings]) -> float | None:
    """In USD, to six digits. `model` is the one asked for; the one that the usage names goes before it.

    A price without `cached` says that input from the cache costs as much as any other.
    """
    usage = sanitize_usage(usage)
    if usage.cost is not None:
        return round(usage.cost, 6)
    price = _price(usage.model, model, prices)
    return None if price is None else _times(usage, price)


def has_known_price(model: str | None, prices: Mapping[str, PriceSettings]) -> bool:
    """For the question before a call: will tokens alone tell what it cost?"""
    return _price(None, model, prices) is not None


def _price(used: str | None, asked: str | None, prices: Mapping[str, PriceSettings]) -> PriceSettings | None:
    names = [name for name in (used, asked) if name]
    own = next((prices[name] for name in names if name in prices), None)
    return own or next((price for name in names if (price := _from_table(name))), None)


def _times(usage: TokenUsage, price: PriceSettings) -> float:
    cached = price.input if price.cached is None else price.cached
    per_million = (
        (usage.tokens_in - usage.tokens_cached) * _exact(price.input)
        + usage.tokens_cached * _exact(cached)
        + usage.tokens_out * _exact(price.output)
    )
    return float(min(per_million / 1_000_000, Decimal(_MOST_USD)).quantize(_DIGITS))


@cache
def _from_table(model: str) -> PriceSettings | None:
    """A call is many requests, so the tiers for one long request must not see their sum: the basic price is taken.

    What is free by the table is priced by something else than tokens, or by nobody: unknown.
    """
    from genai_prices import Usage as Tokens  # late: 0.4 s
    from genai_prices import calc_price

    def per_million(**tokens: int) -> float:
        return float(calc_price(Tokens(**tokens), model).total_price * (1_000_000 // _SAMPLE))

    try:
        price = PriceSettings(
            input=per_million(input_tokens=_SAMPLE),
            output=per_million(output_tokens=_SAMPLE),
            cached=per_million(input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE),
        )
    except (LookupError, ValueError):
        return None
    return price if price.input and price.output else None


def _count(tokens: int) -> int:
    return max(0, min(tokens, _MOST_TOKENS))


def _exact(price: float) -> Decimal:
    return Decimal(str(price))

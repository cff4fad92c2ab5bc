"""The cost of a call: the agent's own figure, else [prices] in the config, else the built-in table, else unknown.

An unknown cost is None, never 0. The table comes with the package and is not updated online.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache

from agentd.agents.protocol import TokenUsage

_MAX_TOKENS = 10**12
_MAX_USD = 10**9
_SAMPLE = 1000  # tokens; far below the size at which a higher price tier applies
_DIGITS = Decimal("0.000001")  # precision, as in STATE.yaml


@dataclass(frozen=True)
class PriceSettings:
    """The `[prices.<model>]` section, in USD per 1M tokens. Without `cached`, cached input costs the same as input."""

    input: float
    output: float
    cached: float | None = None


def sanitize_usage(usage: TokenUsage) -> TokenUsage:
    """Clamp counts to plausible values, and drop an implausible cost."""
    tokens_in = _count(usage.tokens_in)
    is_plausible = usage.cost is not None and 0 <= usage.cost < _MAX_USD  # False for NaN too
    return replace(
        usage,
        tokens_in=tokens_in,
        tokens_out=_count(usage.tokens_out),
        tokens_cached=min(_count(usage.tokens_cached), tokens_in),
        cost=usage.cost if is_plausible else None,
    )


def usage_cost(usage: TokenUsage, model: str | None, prices: Mapping[str, PriceSettings]) -> float | None:
    """Return the cost in USD, rounded to six digits. The model named in the usage wins over the requested `model`."""
    usage = sanitize_usage(usage)
    if usage.cost is not None:
        return round(usage.cost, 6)
    price = _price(usage.model, model, prices)
    return None if price is None else _apply_price(usage, price)


def has_known_price(model: str | None, prices: Mapping[str, PriceSettings]) -> bool:
    """Return whether the cost of a call can be computed from its tokens."""
    return _price(None, model, prices) is not None


def _price(used: str | None, asked: str | None, prices: Mapping[str, PriceSettings]) -> PriceSettings | None:
    names = [name for name in (used, asked) if name]
    own = next((prices[name] for name in names if name in prices), None)
    return own or next((price for name in names if (price := _from_table(name))), None)


def _apply_price(usage: TokenUsage, price: PriceSettings) -> float:
    cached = price.input if price.cached is None else price.cached
    per_million = (
        (usage.tokens_in - usage.tokens_cached) * _exact(price.input)
        + usage.tokens_cached * _exact(cached)
        + usage.tokens_out * _exact(price.output)
    )
    return float(min(per_million / 1_000_000, Decimal(_MAX_USD)).quantize(_DIGITS))


@cache
def _from_table(model: str) -> PriceSettings | None:
    """Return the base price per million tokens. A call is many requests, so tiers for long requests do not apply.

    Models that the table lists as free are not priced by tokens, so their price is unknown.
    """
    from genai_prices import Usage as Tokens  # deferred: takes 0.4 s
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
    return max(0, min(tokens, _MAX_TOKENS))


def _exact(price: float) -> Decimal:
    return Decimal(str(price))

"""Money as people read it."""

from collections.abc import Iterable

_USD = " USD"


def told(usd: float) -> str:
    """To the cent, and finer below one."""
    return written(usd, digits([usd]))


def told_of(usd: float, budget: float | None) -> str:
    """What is spent of what may be, if there is a limit."""
    return f"{told(usd).removesuffix(_USD)} of {told(budget)}" if budget else told(usd)


def digits(amounts: Iterable[float]) -> int:
    """For amounts that stand below each other: as many as the smallest of them needs."""
    return 4 if any(0 < usd < 0.01 for usd in amounts) else 2


def written(usd: float, digits: int) -> str:
    return f"{usd:.{digits}f}{_USD}"

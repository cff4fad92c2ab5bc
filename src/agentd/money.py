"""Money as people read it."""

from collections.abc import Iterable


def told(usd: float) -> str:
    """To the cent, and finer below one."""
    return written(usd, digits([usd]))


def digits(amounts: Iterable[float]) -> int:
    """For amounts that stand below each other: as many as the smallest of them needs."""
    return 4 if any(0 < usd < 0.01 for usd in amounts) else 2


def written(usd: float, digits: int) -> str:
    return f"{usd:.{digits}f} USD"

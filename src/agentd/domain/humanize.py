"""Money as people read it."""

from collections.abc import Iterable, Sequence


def pluralize(count: int, word: str) -> str:
    """`1 task`, `2 tasks`, `0 tasks`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def join_words(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


_USD = " USD"


def format_usd(usd: float) -> str:
    """To the cent, and finer below one."""
    return format_amount(usd, usd_digits([usd]))


def format_usd_of(usd: float, budget: float | None) -> str:
    """What is spent of what may be, if there is a limit."""
    return f"{format_usd(usd).removesuffix(_USD)} of {format_usd(budget)}" if budget else format_usd(usd)


def usd_digits(amounts: Iterable[float]) -> int:
    """For amounts that stand below each other: as many as the smallest of them needs."""
    return 4 if any(0 < usd < 0.01 for usd in amounts) else 2


def format_amount(usd: float, digits: int) -> str:
    return f"{usd:.{digits}f}{_USD}"

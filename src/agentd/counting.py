"""Counts and lists as people read them."""

from collections.abc import Sequence


def plural(count: int, word: str) -> str:
    """`1 task`, `2 tasks`, `0 tasks`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)

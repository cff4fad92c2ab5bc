"""Counts as people read them."""


def plural(count: int, word: str) -> str:
    """`1 task`, `2 tasks`, `0 tasks`."""
    return f"{count} {word}{'' if count == 1 else 's'}"

"""A tool's no: what is wrong, and what to send instead. After it nothing has changed."""

import difflib
from collections.abc import Iterable


class ToolRefusal(Exception):
    """One line, `code: what is wrong; what to send instead`, for the model to read."""

    def __init__(self, code: str, what: str, instead: str) -> None:
        super().__init__(" ".join(f"{code}: {what}; {instead}".split()))
        self.code = code
        self.what = what
        self.instead = instead


def nearest_names(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known words that look most like it."""
    return difflib.get_close_matches(word[:200], list(known), count, 0.5)

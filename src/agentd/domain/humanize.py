"""Format data for people: amounts, lists, values and keys in TOML notation, similar words."""

import re
from collections.abc import Iterable, Sequence


def pluralize(count: int, word: str) -> str:
    """Return `1 task`, `2 tasks`, `0 tasks`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def join_words(words: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


_USD = " USD"


def format_usd(usd: float) -> str:
    """Format to the cent; smaller amounts get more digits."""
    return format_amount(usd, usd_digits([usd]))


def format_usd_of(usd: float, budget: float | None) -> str:
    """Format the amount spent, and the limit if there is one."""
    return f"{format_usd(usd).removesuffix(_USD)} of {format_usd(budget)}" if budget else format_usd(usd)


def usd_digits(amounts: Iterable[float]) -> int:
    """Return the digits for a column of amounts: as many as the smallest needs."""
    return 4 if any(0 < usd < 0.01 for usd in amounts) else 2


def format_amount(usd: float, digits: int) -> str:
    return f"{usd:.{digits}f}{_USD}"


KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LENGTH = 60


def quote_toml(text: str) -> str:
    """Return a TOML string on one line; characters that a terminal could interpret are escaped."""
    return '"' + "".join(_SHORT.get(char) or _printable(char) for char in text) + '"'


def printable(text: str) -> str:
    return "".join(map(_printable, text))


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04X}" if ord(char) < 0x10000 else f"\\U{ord(char):08X}"


def dotted_key(path: KeyPath) -> str:
    """Return a key as TOML writes it, and an item of a list as `checks[0]`."""
    names = (part if isinstance(part, int) or _BARE.fullmatch(part) else quote_toml(part) for part in path)
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in names).removeprefix(".")


def show_value(value: object) -> str:
    """Return a value for a message: short, on one line."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quote_toml(value if len(value) <= _LENGTH else value[:_LENGTH] + "…")
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    # Python refuses to format numbers with thousands of digits
    return "a huge number" if isinstance(value, int) and abs(value) > 10**_LENGTH else str(value)


def join_choices(words: Iterable[str]) -> str:
    """Return `"a", "b" or "c"`."""
    *most, last = map(quote_toml, words)
    return f"{', '.join(most)} or {last}" if most else last


def nearest_word(word: str, words: Iterable[str]) -> str | None:
    """Return the most similar known word, or None."""
    import difflib  # deferred: slow to import, and only needed after a mistake

    known = {known.casefold(): known for known in words}
    found = difflib.get_close_matches(word[:80].casefold(), known, 1)  # a key may be very long
    return known[found[0]] if found else None

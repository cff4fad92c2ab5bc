"""Data -> text, for TOML and for messages: values, keys with their quotes, the nearest known word."""

import re
from collections.abc import Iterable

KeyPath = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LENGTH = 60


def quote_toml(text: str) -> str:
    """A TOML string on one line; whatever a terminal could act on is escaped."""
    return '"' + "".join(_SHORT.get(char) or _printable(char) for char in text) + '"'


def printable(text: str) -> str:
    return "".join(map(_printable, text))


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04X}" if ord(char) < 0x10000 else f"\\U{ord(char):08X}"


def dotted_key(path: KeyPath) -> str:
    """The key as TOML writes it; an item of a list as `checks[0]`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_part(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def _part(name: str) -> str:
    return name if _BARE.fullmatch(name) else quote_toml(name)


def show_value(value: object) -> str:
    """A value for a message: short, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote_toml(value if len(value) <= _LENGTH else value[:_LENGTH] + "…")
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    # Beyond some thousand digits Python refuses to write a number out.
    return "a huge number" if isinstance(value, int) and abs(value) > 10**_LENGTH else str(value)


def join_choices(words: Iterable[str]) -> str:
    """`"a", "b" or "c"`."""
    *most, last = map(quote_toml, words)
    return f"{', '.join(most)} or {last}" if most else last


def nearest_word(word: str, words: Iterable[str]) -> str | None:
    import difflib  # costs more than the rest of this package, and only a mistake needs it

    known = {known.casefold(): known for known in words}
    # A key can be a whole page of text; its start says enough.
    found = difflib.get_close_matches(word[:80].casefold(), known, 1)
    return known[found[0]] if found else None

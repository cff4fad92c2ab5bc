"""Change ids: what one may be, and the next free one."""

import re
from collections.abc import Collection

from agentd.domain import CHANGE_ID, ID_LENGTH, BadId

_SHOWN = 40  # characters of what is no id


def check_change_id(change_id: str) -> str:
    if CHANGE_ID.fullmatch(change_id):
        return change_id
    better = suggest_change_id(change_id)
    shown = change_id if len(change_id) <= _SHOWN else f"{change_id[: _SHOWN - 1]}…"
    words = f"{shown!r} cannot be a change id, which has a-z, 0-9 and dashes, at most {ID_LENGTH}"
    raise BadId(words, f"use {better}; agentd list shows the changes" if better else None)


def suggest_change_id(text: str) -> str:
    """The nearest id to a text: `Add OAuth!` gives `add-oauth`, `Größe` `grosse`; nothing to go by gives nothing."""
    import unicodedata  # late: ids are nearly always right

    letters = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    plain = re.sub(r"[^a-z0-9]+", "-", bare).strip("-")
    return plain[:ID_LENGTH].rstrip("-")


def unique_id(wanted: str, taken: Collection[str], longest: int = ID_LENGTH) -> str:
    """The id itself, or with the first free `-1`, `-2`, … behind it, within the length."""
    candidate, number = wanted, 0
    while candidate in taken:
        number += 1
        suffix = f"-{number}"
        candidate = wanted[: longest - len(suffix)].rstrip("-") + suffix
    return candidate


_DATED = re.compile(r"\d{8}-(.+)")


def archived_change_id(folder_name: str) -> str:
    """The id of an archive folder, `20260119-add-oauth` or plain `add-oauth`."""
    dated = _DATED.fullmatch(folder_name)
    return dated[1] if dated else folder_name

"""Change ids: what one may be, and the next free one."""

import re
from collections.abc import Collection

from agentd.errors import BadId
from agentd.terms import CHANGE_ID, ID_LENGTH


def check(change_id: str) -> str:
    if CHANGE_ID.fullmatch(change_id):
        return change_id
    better = suggest(change_id)
    hint = f"use {better}, or another id of a-z, 0-9 and dashes" if better else None
    raise BadId(f"'{change_id}' cannot be a change id", hint)


def suggest(text: str) -> str:
    """The nearest id to a text: `Add OAuth!` gives `add-oauth`; nothing to go by gives nothing."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return plain[:ID_LENGTH].rstrip("-")


def free(wanted: str, taken: Collection[str], longest: int = ID_LENGTH) -> str:
    """The id itself, or with the first free `-1`, `-2`, … behind it, within the length."""
    candidate, number = wanted, 0
    while candidate in taken:
        number += 1
        suffix = f"-{number}"
        candidate = wanted[: longest - len(suffix)].rstrip("-") + suffix
    return candidate


_DATED = re.compile(r"\d{8}-(.+)")


def archived(folder_name: str) -> str:
    """The id of an archive folder, `20260119-add-oauth` or plain `add-oauth`."""
    dated = _DATED.fullmatch(folder_name)
    return dated[1] if dated else folder_name

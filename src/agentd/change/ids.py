"""Change ids: validation, suggestions and the next free one."""

import re
from collections.abc import Collection

from agentd.domain import CHANGE_ID, ID_LENGTH, BadId

_MAX_SHOWN = 40  # characters of an invalid id in a message


def check_change_id(change_id: str) -> str:
    if CHANGE_ID.fullmatch(change_id):
        return change_id
    suggestion = suggest_change_id(change_id)
    shown = change_id if len(change_id) <= _MAX_SHOWN else f"{change_id[: _MAX_SHOWN - 1]}…"
    message = f"invalid change id {shown!r}: use a-z, 0-9 and dashes, at most {ID_LENGTH} characters"
    raise BadId(message, f"use {suggestion}; agentd list shows the changes" if suggestion else None)


def suggest_change_id(text: str) -> str:
    """Turn text into an id: `Add OAuth!` becomes `add-oauth`, `Größe` `grosse`. Empty if no characters are usable."""
    import unicodedata  # deferred: ids are almost always valid

    decomposed = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    slug = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")
    return slug[:ID_LENGTH].rstrip("-")


def unique_id(wanted: str, taken: Collection[str], longest: int = ID_LENGTH) -> str:
    """Return the id, with the first free suffix `-1`, `-2`, … if it is taken, shortened to the maximum length."""
    candidate, number = wanted, 0
    while candidate in taken:
        number += 1
        suffix = f"-{number}"
        candidate = wanted[: longest - len(suffix)].rstrip("-") + suffix
    return candidate


_DATED = re.compile(r"\d{8}-(.+)")


def archived_change_id(folder_name: str) -> str:
    """Return the change id of an archive folder: `20260119-add-oauth` or just `add-oauth`."""
    dated = _DATED.fullmatch(folder_name)
    return dated[1] if dated else folder_name

"""The entry that starts agentd's MCP server in a person's own session, and what its file formats share (pure)."""

import re
from collections.abc import Mapping

from agentd.domain import Refusal

NAME = "agentd"
ENTRY: Mapping[str, object] = {"command": "agentd", "args": ["mcp"]}
BOM = "\ufeff"


def has_entry(servers: object, table: str) -> bool:
    """Whether our entry is among the servers. One that others made under our name is refused, whatever it starts."""
    if not isinstance(servers, Mapping):
        raise Refusal(f"its {table} is not a table of servers")
    if NAME not in servers:
        return False
    found = servers[NAME]
    if isinstance(found, Mapping) and all(found.get(key) == value for key, value in ENTRY.items()):
        return True
    raise Refusal(f"its {table} has an entry {NAME} that starts something else")


def split_mark(text: str) -> tuple[str, str]:
    """The byte order mark, if there is one, and the rest."""
    return (BOM, text[1:]) if text.startswith(BOM) else ("", text)


def newline(text: str) -> str:
    """The line ending a text uses first."""
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"


def find_insertion(old: str, new: str) -> tuple[int, str] | None:
    """Where a single piece was put into the old text to make the new one, and that piece; None if more changed."""
    same = (number for number, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
    at = next(same, min(len(old), len(new)))
    piece = new[at : at + len(new) - len(old)]
    return (at, piece) if remove_at(new, at, piece) == old else None


def remove_at(text: str, at: int, piece: str) -> str:
    return text[:at] + text[at + len(piece) :]


def remove_once(text: str, piece: str) -> str:
    """The text without the piece, if that is in there word for word and once."""
    return text.replace(piece, "") if piece and text.count(piece) == 1 else text

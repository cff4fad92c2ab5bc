"""The entry that starts agentd's MCP server in a person's own session, and helpers for both file formats (pure)."""

import re
from collections.abc import Mapping

from agentd.domain import Refusal

NAME = "agentd"
ENTRY: Mapping[str, object] = {"command": "agentd", "args": ["mcp"]}
BOM = "\ufeff"


def has_entry(servers: object, table: str) -> bool:
    """Return whether agentd's entry is among the servers. Refuse a different entry with the same name."""
    if not isinstance(servers, Mapping):
        raise Refusal(f"its {table} is not a table of servers")
    if NAME not in servers:
        return False
    entry = servers[NAME]
    if isinstance(entry, Mapping) and all(entry.get(key) == value for key, value in ENTRY.items()):
        return True
    raise Refusal(f"its {table} has an entry {NAME} that starts something else")


def split_mark(text: str) -> tuple[str, str]:
    """Split off the byte order mark, if there is one."""
    return (BOM, text[1:]) if text.startswith(BOM) else ("", text)


def newline(text: str) -> str:
    """Return the first line ending in a text."""
    match = re.search(r"\r\n|\n|\r", text)
    return match[0] if match else "\n"


def find_insertion(old: str, new: str) -> tuple[int, str] | None:
    """Return the offset and text of the single insertion that turns `old` into `new`; None if more changed."""
    differences = (offset for offset, (left, right) in enumerate(zip(old, new, strict=False)) if left != right)
    at = next(differences, min(len(old), len(new)))
    piece = new[at : at + len(new) - len(old)]
    return (at, piece) if remove_at(new, at, piece) == old else None


def remove_at(text: str, at: int, piece: str) -> str:
    return text[:at] + text[at + len(piece) :]


def remove_once(text: str, piece: str) -> str:
    """Remove the piece if it occurs exactly once."""
    return text.replace(piece, "") if piece and text.count(piece) == 1 else text

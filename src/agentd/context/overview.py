"""What the project says about itself to agents, or else to people."""

import re
from collections.abc import Collection, Mapping

from agentd.context.ground import Reader
from agentd.context.quoting import quoted
from agentd.tools.paths import File

FOR_AGENTS = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")
FOR_PEOPLE = "README.md"
README = 3_000  # characters: its first part
DETOURS = 3

_IMPORT = re.compile(r"@(\S+)")


def overview(reader: Reader, limit: int, tools: Mapping[str, str], brought: Collection[str]) -> str:
    file = next(filter(None, (_followed(reader, name) for name in (*FOR_AGENTS, FOR_PEOPLE))), None)
    if file is None:
        return f"It has no {', '.join(FOR_AGENTS)} or {FOR_PEOPLE}."
    if any(file.data == other.data for name in brought if (other := _followed(reader, name))):
        return f"`{file.path}` says what it is. Your program gives you that file by itself, so it is not repeated here."
    limit = min(limit, README) if file.path == FOR_PEOPLE else limit
    return f"From `{file.path}`:\n\n{quoted(file.path, file.data.decode(), limit, tools)}"


def _followed(reader: Reader, name: str) -> File | None:
    """The file with something in it; one that only imports another is followed to that one."""
    for _ in range(DETOURS):
        file = reader.of_project(name)
        text = file.data.decode().removeprefix("\ufeff").strip() if file else ""
        if not text:
            return None
        imported = _IMPORT.fullmatch(text)
        if not imported:
            return file
        name = imported[1]
    return None

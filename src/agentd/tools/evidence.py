"""Evidence, checked in what was judged: the quote wins over the line number."""

import os
from collections.abc import Callable
from typing import Any

from agentd.documents.records import Evidence
from agentd.documents.text import InvalidDocument, decode_text
from agentd.project import git
from agentd.tools.binding import Binding
from agentd.tools.reading import short_name
from agentd.tools.refusal import Refused

Verified = tuple[str | None, Evidence | None, str | None]
"""Where the finding is, the evidence with its line corrected, and why it is not verified (None: it is)."""


def verify(given: dict[str, Any] | None, read: Callable[[str], str | None]) -> Verified:
    if given is None:
        return None, None, "no evidence was given"
    file, line, quote = given["file"], given.get("line"), given.get("quote")
    text = read(file)
    found, because = (None, "the file is not there") if text is None else _look(text.splitlines(), line, quote)
    line = found or line
    return f"{file}:{line}" if line else file, Evidence(file=file, line=line, quote=quote), because


def _look(lines: list[str], line: int | None, quote: str | None) -> tuple[int | None, str | None]:
    if quote is None:
        if line is None:
            return None, "neither line nor quote was given"
        return (line, None) if line <= len(lines) else (None, f"the file has {len(lines)} lines")
    wanted = " ".join(quote.split())
    hits = [number for number, one in enumerate(lines, 1) if quote in one]
    hits = hits or [number for number, one in enumerate(lines, 1) if wanted in " ".join(one.split())]
    if not hits:
        return None, "the quote is not in the file"
    return min(hits, key=lambda number: abs(number - (line or number))), None


def reader(binding: Binding) -> Callable[[str], str | None]:
    """Files as the judge saw them: the plan on disk, code in the tree under review."""
    assert binding.change
    change = binding.change
    tree = (binding.run_data("run.json") or {}).get("tree")
    ground = binding.ground(change)
    prefix = change.project.prefix
    own = f"agentd/changes/{change.id}/"

    def read(path: str) -> str | None:
        try:
            ground.check(path)
            if tree and not short_name(path, change) and not path.startswith(own):
                text = git.run(change.tree, "show", f"{tree}:{os.path.join(prefix, path)}", failing="")
                return text or None
            return decode_text(ground.read(path).data, path)
        except (Refused, InvalidDocument):
            return None

    return read

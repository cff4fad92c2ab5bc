"""Somebody else's text in a document of ours: bounded, and in a fence that nothing inside can close (pure)."""

import re
from collections.abc import Mapping

LONGEST = 100  # of a run of backticks; a longer one would make the fence longer than the text

_RUN = re.compile(r"`{3,}")
_TOO_LONG = re.compile(rf"`{{{LONGEST + 1},}}")


def quote_text(path: str, text: str, limit: int, tools: Mapping[str, str]) -> str:
    """At most `limit` characters of it, in whole lines; what is left off says where it goes on."""
    text = text.removeprefix("\ufeff").rstrip()
    if not text:
        return "It is empty."
    kept, following = cut_lines(text, limit)
    if not following:
        return fence_text(text)
    how = f"read on with `{tools.get('read_file', 'read_file')}`, offset {following}"
    return f"{fence_text(kept)}\n\n[cut here: `{path}` is longer; {how}]"


def shorten_text(text: str, limit: int, path: str) -> str:
    """For a prompt, which quotes by indenting: at most `limit` characters, and where the whole stands."""
    text = text.removeprefix("\ufeff").strip()
    kept, following = cut_lines(text, limit)
    return f"{kept}\n[cut here: the whole stands in `{path}`]".lstrip() if following else text


def pointer_to(path: str, text: str, tools: Mapping[str, str]) -> str:
    reading = tools.get("read_file", "read_file")
    return f"It has {len(text)} characters, too many for this file: read `{path}` with `{reading}`."


def cut_lines(text: str, limit: int) -> tuple[str, int]:
    """The lines that fit, and the number of the first that is missing or incomplete; 0 if all are there."""
    if len(text) <= limit:
        return text, 0
    end = text.rfind("\n", 0, limit + 1)
    kept = text[:end] if end > 0 else text[:limit]
    return kept, kept.count("\n") + (2 if end > 0 else 1)


def fence_text(text: str) -> str:
    # Every run counts, wherever it stands: not everybody agrees on what ends a line.
    text = _TOO_LONG.sub("`" * LONGEST + "…", text)
    fence = "`" * (max((len(run) for run in _RUN.findall(text)), default=2) + 1)
    return f"{fence}\n{text}\n{fence}"

"""Our mark in a file: a comment with a hash of all the rest, so the file itself tells whether a person edited it."""

import re

from agentd.storage import files

_WORDS = "written by agentd, which leaves it alone once you edit it"
_MARK = re.compile(r"^# ([0-9a-f]{16}) " + re.escape(_WORDS) + r"\n", re.MULTILINE)


def sealed(before: str, after: str) -> str:
    return f"{before}# {_hash(before + after)} {_WORDS}\n{after}"


def is_ours(text: str) -> bool:
    return _MARK.search(text) is not None


def is_edited(text: str) -> bool:
    """For one of ours."""
    mark = _MARK.search(text)
    return mark is None or mark[1] != _hash(text[: mark.start()] + text[mark.end() :])


def _hash(text: str) -> str:
    return files.hash_bytes(text.encode()).removeprefix("sha256:")[:16]

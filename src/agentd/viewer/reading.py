"""The documents of a change to read: each as a page, with what stands beside it."""

import html
import re
from collections import Counter
from dataclasses import dataclass

from agentd import files
from agentd.change import texts
from agentd.change.folder import Change, document_bytes, document_hash, documents, plan_files
from agentd.errors import AgentdError
from agentd.rendering import markdown, shown
from agentd.rendering.markdown import Page
from agentd.viewer import margin
from agentd.viewer.margin import Note

_LARGEST = 4_000_000  # characters; nobody reads more of one document


@dataclass(frozen=True, slots=True)
class Listed:
    """`is_plan`: it is part of what is approved. `open`: findings and comments beside it that are not settled."""

    name: str
    label: str
    hash: str
    is_plan: bool
    open: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    name: str
    hash: str
    page: Page
    notes: tuple[Note, ...]
    problem: str = ""


def listed(change: Change) -> tuple[Listed, ...]:
    """In the order of their making."""
    open_ones = Counter(one.document for one in margin.left(change))
    plan = {path.relative_to(change.folder).as_posix() for path in plan_files(change.folder)}
    found = []
    for name in documents(change.folder):
        label = name.removeprefix("specs/").removesuffix(".md") if name.startswith("specs/") else name
        found.append(Listed(name, label, _hash(change, name), name in plan, open_ones[name]))
    return tuple(found)


def read(change: Change, name: str, pattern: re.Pattern[str]) -> Read:
    """What was shown is kept, so that a change to it can be told later."""
    path = change.folder / name
    text = files.read(path).decode("utf-8-sig", "replace")[:_LARGEST]
    digest = texts.keep(change, document_bytes(path))
    try:
        return Read(name, digest, markdown.render(text, name), margin.notes(change, name, text, pattern))
    except AgentdError as error:  # to be seen all the same
        plain = f'<pre class="source">{html.escape(shown.readable(text))}</pre>'
        return Read(name, digest, Page(name, plain, ()), (), error.message)


def _hash(change: Change, name: str) -> str:
    try:
        return document_hash(change.folder / name)
    except (AgentdError, OSError):
        return ""

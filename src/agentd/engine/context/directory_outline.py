"""The layout of a project in a few lines, whatever its size (pure)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentd.engine.context.quotes import fence_text
from agentd.project import printable

DEPTH = 3
TOP_FILES = 40

_SECRET = re.compile(r"(?i)(?:^|/)\.env")


@dataclass
class OutlineFolder:
    """`count` is of all files below it, `files` the names in it."""

    count: int = 0
    files: list[str] = field(default_factory=list)
    folders: dict[str, "OutlineFolder"] = field(default_factory=dict)


def directory_outline(paths: Iterable[str], limit: int) -> str:
    """As deep as fits, at most three folders down; then what fits of the first level."""
    top = _tree(path for path in paths if not _SECRET.search(path))
    if not top.count:
        return "Nothing is tracked yet."
    room = limit - 10  # the fences
    for depth in range(DEPTH, 0, -1):
        text = "\n".join(_lines(top, depth))
        if len(text) <= room:
            return fence_text(text)
    return fence_text(_shortened(text, room))


def _tree(paths: Iterable[str]) -> OutlineFolder:
    top = OutlineFolder()
    for path in paths:
        *above, name = path.split("/")
        here = top
        here.count += 1
        for part in above[:DEPTH]:
            here = here.folders.setdefault(part, OutlineFolder())
            here.count += 1
        if not above:
            here.files.append(name)
    return top


def _lines(top: OutlineFolder, depth: int) -> Iterator[str]:
    yield from _below(top, depth, "")
    names = sorted(top.files)
    yield from map(printable, names[:TOP_FILES])
    if len(names) > TOP_FILES:
        yield f"and {len(names) - TOP_FILES} more files"


def _below(folder: OutlineFolder, depth: int, indent: str) -> Iterator[str]:
    for name, inner in sorted(folder.folders.items()):
        yield f"{indent}{printable(name)}/ ({inner.count} {'file' if inner.count == 1 else 'files'})"
        if depth > 1:
            yield from _below(inner, depth - 1, indent + "  ")


def _shortened(text: str, room: int) -> str:
    lines = text.split("\n")
    kept: list[str] = []
    room -= len(_rest(len(lines)))
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, _rest(len(lines) - len(kept))])


def _rest(count: int) -> str:
    return f"and {count} more"

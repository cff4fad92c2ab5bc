"""On which line of a TOML file each key stands. tomllib does not tell."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from agentd.project.config.display import KeyPath

# No key of ours lies this deep, and a file from elsewhere may go deeper than Python can follow.
_DEPTH = 10
# What can hold a line break, or hide a bracket.
_TOKEN = re.compile(
    r'''
    """ (?: [^\\] | \\. )*? "{3,5} | \'\'\' .*? \'{3,5}
    | " (?: [^"\\\n] | \\. )* " | ' [^'\n]* '
    | \#[^\n]* | [\[\]{}] | \n
    ''',
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The first line of every table, key and list item of a text that tomllib has read without complaint."""
    lines: dict[KeyPath, int] = {}
    items: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement in _statements(text):
        tree = tomllib.loads(statement)
        if statement.startswith("["):
            table = _header(tree, items)
            found = [table[:end] for end in range(1, min(len(table), _DEPTH) + 1)]
        else:
            found = [table + path for path in _paths(tree)]
        for path in found:
            lines.setdefault(path, line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each header and each `key = value` with its line; a value may go over many lines."""
    text += "\n"
    start, line, depth = 0, 1, 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "\n" and depth == 0:
            chunk = text[start : token.end()]
            statement = chunk.strip(" \t\n")
            if statement and not statement.startswith("#"):
                yield line, statement
            start, line = token.end(), line + chunk.count("\n")


def _header(tree: dict[str, Any], items: dict[KeyPath, int]) -> KeyPath:
    """The path that a header opens; `items` counts the tables of each list so far."""
    path: KeyPath = ()
    while tree:
        [(key, inner)] = tree.items()
        path += (key,)
        if isinstance(inner, list):
            items[path] = items.get(path, 0) + 1
            inner = {}
        if path in items:
            path += (items[path] - 1,)
        tree = inner
    return path


def _paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    if path:
        yield path
    if len(path) == _DEPTH:
        return
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _paths(item, (*path, key))

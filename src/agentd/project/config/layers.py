"""Configuration sources: files, the environment and `--set`. Each is read into a layer, or into a fault."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from agentd.domain import KeyPath, MapOf, Shape, Table, Text, nearest_word, printable, show_value
from agentd.project.config.config_schema import SCHEMA, shape_at

# No key of ours is nested this deep, and an untrusted file may be nested deeper than Python can recurse.
_DEPTH = 10
# Tokens that can contain a line break or hide a bracket.
_TOKEN = re.compile(
    r'''
    """ (?: [^\\] | \\. )*? "{3,5} | \'\'\' .*? \'{3,5}
    | " (?: [^"\\\n] | \\. )* " | ' [^'\n]* '
    | \#[^\n]* | [\[\]{}] | \n
    ''',
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the first line of every table, key and list item of a text that tomllib has parsed successfully."""
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
    """Yield each header and each `key = value` with its line; a value may span many lines."""
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
    """Return the path that a header opens; `items` counts the tables of each list so far."""
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


PREFIX = "AGENTD_"
# The only variable without a double underscore that belongs to the configuration.
PROJECT_NAME = "AGENTD_PROJECT_NAME"

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_FLAG = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=(.*)", re.DOTALL)
_AT = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")


class LayerRank(IntEnum):
    """The precedence of a layer: the higher one wins."""

    DEFAULT = 0
    PROJECT = 1
    USER = 2
    ENVIRONMENT = 3
    FLAG = 4


class ConfigLayer:
    """Values from one source. Every variable and every `--set` is a layer of its own."""

    def __init__(self, rank: LayerRank, label: str, tree: Mapping[str, Any], text: str = "") -> None:
        self.rank = rank
        self.label = label
        self.tree = tree
        self.text = text

    @cached_property
    def _lines(self) -> Mapping[KeyPath, int]:
        return key_lines(self.text)

    def line(self, path: KeyPath) -> int:
        """Return the line of the key or table; 0 if the layer is not a file."""
        return self._lines.get(path, 0)

    def where(self, path: KeyPath) -> str:
        line = self.line(path)
        return f"{self.label}:{line}" if line else self.label


class ConfigFault(NamedTuple):
    """One line of the error message shown to the user."""

    rank: LayerRank
    label: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.label}:{self.line}" if self.line else self.label
        return printable(f"{place}: {self.message}")


def file_layer(rank: LayerRank, label: str, file: Path) -> ConfigLayer | ConfigFault:
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ConfigLayer(rank, label, {})
    except IsADirectoryError:
        return ConfigFault(rank, label, 0, "this is a folder; a TOML file belongs here")
    except OSError as error:
        return ConfigFault(rank, label, 0, f"cannot be read: {error.strerror}; mend that or remove the file")
    try:
        # Some editors write a byte order mark; it has no meaning here.
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return ConfigFault(rank, label, line, "not UTF-8 text; save the file as UTF-8")
    try:
        return ConfigLayer(rank, label, tomllib.loads(text), text)
    except (ValueError, RecursionError) as error:
        return _not_toml(rank, label, text, error)


def _not_toml(rank: LayerRank, label: str, text: str, error: Exception) -> ConfigFault:
    reason = str(error)
    place = _AT.search(reason)
    if not place:
        return ConfigFault(rank, label, 0, "not TOML that can be read: nested too deep, or a number without end")
    reason = reason[:1].lower() + reason[1 : place.start()]
    if not place["line"]:
        return ConfigFault(rank, label, text.rstrip().count("\n") + 1, f"not TOML: {reason}, the file ends")
    advice = "; a text needs quotes" if reason == "invalid value" else ""
    return ConfigFault(rank, label, int(place["line"]), f"not TOML: {reason} in column {place['column']}{advice}")


def flag_layers(flags: Sequence[str]) -> Iterator[ConfigLayer | ConfigFault]:
    for flag in flags:
        path, text = _split(flag)
        if path:
            yield _single(LayerRank.FLAG, "--set", path, text)
        else:
            wish = "KEY=VALUE, such as workflow.planning_iterations=3"
            yield ConfigFault(LayerRank.FLAG, "--set", 0, f"{show_value(flag)} must be {wish}")


def _split(flag: str) -> tuple[KeyPath, str]:
    """Split `a."b.c"=x` into (a, b.c) and x; the path is empty if the flag is malformed."""
    match = _FLAG.fullmatch(flag)
    if not match:
        return (), ""
    try:
        tree: Any = tomllib.loads(f"{match[1]} = 0")
    except ValueError:
        return (), ""
    path: list[str | int] = []
    while isinstance(tree, dict):
        [(key, tree)] = tree.items()
        path.append(key)
    return tuple(path), match[2]


def environment_layers(
    environ: Mapping[str, str], trees: Iterable[Mapping[str, Any]]
) -> Iterator[ConfigLayer | ConfigFault]:
    """Yield one layer per variable. The names of agents and models are taken from the other layers."""
    ours = sorted(name for name in environ if name.startswith(PREFIX) and ("__" in name or name == PROJECT_NAME))
    if not ours:
        return
    known: dict[str, list[KeyPath]] = {}
    for path in _keys(SCHEMA, (), list(trees)):
        known.setdefault(_variable(path), []).append(path)
    for name in ours:
        paths = known.get(name, [])
        if len(paths) == 1:
            yield _single(LayerRank.ENVIRONMENT, name, paths[0], environ[name])
        else:
            yield ConfigFault(LayerRank.ENVIRONMENT, name, 0, _no_variable(name, paths, known))


def _no_variable(name: str, paths: Sequence[KeyPath], known: Iterable[str]) -> str:
    if paths:
        return "fits more than one key; set it in a file or with --set"
    # Compare without the prefix, which makes all names look alike.
    likely = nearest_word(name.removeprefix(PREFIX), (other.removeprefix(PREFIX) for other in known))
    return (
        f"unknown key; did you mean {PREFIX}{likely}?"
        if likely
        else "unknown key; `agentd config` shows the known ones"
    )


def _keys(shape: Shape, path: KeyPath, trees: Sequence[Mapping[str, Any]]) -> Iterator[KeyPath]:
    """Yield every key that can be set, with the free-form names found in the trees."""
    if isinstance(shape, Table):
        for key, inner in shape.keys.items():
            yield from _keys(inner, (*path, key), trees)
    elif isinstance(shape, MapOf):
        maps = [tree.get(str(path[0])) for tree in trees]
        for name in dict.fromkeys(name for names in maps if isinstance(names, dict) for name in names):
            yield from _keys(shape.item, (*path, name), trees)
    else:
        yield path


def _variable(path: KeyPath) -> str:
    return PREFIX + "__".join(re.sub(r"\W", "_", str(part)).upper() for part in path)


def _single(rank: LayerRank, label: str, path: KeyPath, text: str) -> ConfigLayer:
    value: Any = _value(text, shape_at(path))
    for part in reversed(path):
        value = {part: value}
    return ConfigLayer(rank, label, value)


def _value(text: str, shape: Shape | None) -> object:
    """Parse a TOML value. Return the text itself if it is not TOML, or if a text is expected (`project_name=2024`)."""
    try:
        tree = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = tree["value"]
    if len(tree) > 1 or (isinstance(shape, Text) and not isinstance(value, str)):
        return text
    return value


def user_config_file(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the user's own configuration, or None if this process has no home folder."""
    base = environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification says to ignore a relative path.
    if not os.path.isabs(base):
        home = environ.get("HOME")
        if not home:
            return None
        base = os.path.join(home, ".config")
    return Path(base, "agentd", "config.toml")


def user_config_label(file: Path, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME")
    if home and file.is_relative_to(home):
        return f"~/{file.relative_to(home)}"
    return str(file)

"""The fields of a dataclass as a reader needs them: name, type in words, and what the source says beside it."""

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from reference.markdown import code, plain

_WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
    type(None): "null",
    Any: "any value",
}


def rows_of(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    said = _said(cls)
    for one in fields(cls):
        if not one.name.endswith("extra"):
            yield one.name, words_of(one.type), plain(said.get(one.name, ""))


def words_of(kind: Any) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return ", ".join(words_of(one) for one in inner)
    if origin is tuple:
        return f"list of {words_of(inner[0])}"
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"mapping of text to {words_of(inner[1])}"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(code(one) for one in kind)
    assert is_dataclass(kind), f"no words for {kind}"
    return f"[{kind.__name__}](#{kind.__name__.lower()})"  # type: ignore[union-attr]


def _said(cls: type[Any]) -> dict[str, str]:
    """A string below a field, or a comment beside it."""
    source = textwrap.dedent(inspect.getsource(cls))
    lines, found = source.split("\n"), {}
    [body] = (node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[node.target.id] = str(after.value.value)
        else:
            found[node.target.id] = lines[(node.end_lineno or 1) - 1].partition("  # ")[2]
    return found

"""What a tool's arguments may look like: one declaration gives the JSON schema and the check with its words."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

from agentd.engine.tools.refusal import ToolRefusal, nearest_names

_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class ArgumentShape(Protocol):
    def schema(self) -> dict[str, Any]: ...

    def check(self, value: Any, where: str) -> Any:
        """The value, or a refusal that says what to send at that place."""


class TextArgument(ArgumentShape):
    """`least` and `most` count characters; white space alone is nothing."""

    def __init__(self, least: int, most: int, *, line: bool = False, pattern: str = "", like: str = "") -> None:
        self.least, self.most, self.line, self.like = least, most, line, like
        self.pattern = re.compile(pattern) if pattern else None

    def schema(self) -> dict[str, Any]:
        if self.pattern:  # which says how long it may be
            return {"type": "string", "pattern": f"^{self.pattern.pattern}$"}
        return {"type": "string", **_least("minLength", self.least), "maxLength": self.most}

    def check(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise _wrong(where, value, "a string")
        if "\0" in value or _SURROGATE.search(value):
            raise ToolRefusal("bad-argument", f"{where} has a character that is no text", "send it without")
        if self.line and _BREAKS.search(value):
            raise ToolRefusal("bad-argument", f"{where} has a line break", "send it as one line")
        if len(value) > self.most:
            raise ToolRefusal("bad-argument", f"{where} has {len(value)} characters", f"send at most {self.most}")
        if len(value.strip()) < self.least:
            raise ToolRefusal("bad-argument", f"{where} is too short", f"send at least {self.least} characters")
        if self.pattern and not self.pattern.fullmatch(value):
            raise ToolRefusal("bad-argument", f"{where} is {value[:60]!r}", f"send it like {self.like}")
        return value


class ChoiceArgument(ArgumentShape):
    def __init__(self, *words: str) -> None:
        self.words = words

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def check(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise ToolRefusal("bad-argument", f"{where} is {_short(value)}", f"send one of {', '.join(self.words)}")
        return value


class IntegerArgument(ArgumentShape):
    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def check(self, value: Any, where: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON knows one kind of number
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(where, value, "a whole number")
        if not self.least <= value <= self.most:
            raise ToolRefusal("bad-argument", f"{where} is {value}", f"send {self.least} to {self.most}")
        return value


class FlagArgument(ArgumentShape):
    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def check(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise _wrong(where, value, "true or false")
        return value


class ListArgument(ArgumentShape):
    def __init__(self, item: ArgumentShape, least: int, most: int) -> None:
        self.item, self.least, self.most = item, least, most

    def schema(self) -> dict[str, Any]:
        limits = {**_least("minItems", self.least), "maxItems": self.most}
        return {"type": "array", "items": self.item.schema(), **limits}

    def check(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(where, value, "an array")
        if not self.least <= len(value) <= self.most:
            raise ToolRefusal("bad-argument", f"{where} has {len(value)} entries", f"send {self.least} to {self.most}")
        return [self.item.check(one, f"{where}[{number}]") for number, one in enumerate(value)]


class OneOrManyArgument(ArgumentShape):
    """A single item, or an array of them; always a list afterwards."""

    def __init__(self, item: ArgumentShape, least: int, most: int) -> None:
        self.item, self.many = item, ListArgument(item, least, most)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.item.schema(), self.many.schema()]}

    def check(self, value: Any, where: str) -> list[Any]:
        return self.many.check(value, where) if isinstance(value, list) else [self.item.check(value, where)]


class TextOrObjectArgument(ArgumentShape):
    """A string, or an object."""

    def __init__(self, text: TextArgument, thing: "ObjectArgument") -> None:
        self.text, self.thing = text, thing

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.text.schema(), self.thing.schema()]}

    def check(self, value: Any, where: str) -> Any:
        return self.thing.check(value, where) if isinstance(value, dict) else self.text.check(value, where)


class ObjectArgument(ArgumentShape):
    """Fields by name; those ending in `?` may be left out or be null."""

    def __init__(self, fields: Mapping[str, ArgumentShape], about: Mapping[str, str] | None = None) -> None:
        self.fields = {name.rstrip("?"): shape for name, shape in fields.items()}
        self.required = [name for name in fields if not name.endswith("?")]
        self.about = about or {}

    def schema(self) -> dict[str, Any]:
        properties = {name: shape.schema() for name, shape in self.fields.items()}
        for name, words in self.about.items():
            properties[name] = {**properties[name], "description": words}
        return {
            "type": "object",
            "properties": properties,
            "required": self.required,
            "additionalProperties": False,
        }

    def check(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(where, value, "an object")
        inside = f"{where}." if where else ""
        for name in value:
            if name not in self.fields:
                near = nearest_names(str(name), self.fields, 1) or list(self.fields)
                raise ToolRefusal("bad-argument", f"unknown field {inside}{str(name)[:60]}", f"use {', '.join(near)}")
        for name in self.required:
            if value.get(name) is None:
                raise ToolRefusal("bad-argument", f"the field {inside}{name} is missing", "send it")
        return {name: self.fields[name].check(one, f"{inside}{name}") for name, one in value.items() if one is not None}


def _least(word: str, count: int) -> dict[str, int]:
    """Every request to a model carries the schemas, so what goes without saying is left out."""
    return {word: count} if count else {}


def _wrong(where: str, value: Any, wanted: str) -> ToolRefusal:
    return ToolRefusal("bad-argument", f"{where or 'the argument'} is {_short(value)}", f"send {wanted}")


def _short(value: Any) -> str:
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"


def text_size(value: Any, most: int) -> int:
    """Characters in all strings and keys, counted no further than `most`."""
    total, waiting = 0, [value]
    while waiting and total <= most:
        one = waiting.pop()
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            waiting.extend(one)
            waiting.extend(one.values())
            total += len(one)
        elif isinstance(one, list):
            waiting.extend(one)
            total += len(one)
        else:
            total += 8
    return total

"""Describe data from outside: configuration, tool arguments and stored mappings (pure).

A shape finds everything that is wrong with a value, each with its exact path, and gives the JSON schema for MCP tools.
`FieldReader` reads stored mappings key by key and keeps keys it does not know.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from agentd.domain.errors import StateError
from agentd.domain.humanize import KeyPath, dotted_key, join_choices, nearest_word, show_value

E = TypeVar("E", bound=StrEnum)

MAX_NUMBER = 10**9  # fits the clocks and counters of every system
_LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # NUL cannot be passed to a program, surrogates cannot be written to a file


class ShapeProblem(NamedTuple):
    """What was found and what was expected, or a complete `message` in the form `what is wrong; what to do`."""

    path: KeyPath
    found: str = ""  # empty: not repeated, as it may be a secret
    expected: str = ""
    message: str = ""

    def __str__(self) -> str:
        text = f"{dotted_key(self.path)} must be {self.expected}"
        return self.message or (f"{text}, not {self.found}" if self.found else text)


class Shape(ABC):
    expected: str

    @abstractmethod
    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        """Yield everything that is wrong with the value at this path."""

    def json_schema(self) -> dict[str, Any]:
        raise NotImplementedError  # only shapes of tool arguments have one

    def normalize(self, value: Any) -> Any:
        """Convert a valid value to the form that code works with."""
        return value


class Scalar(Shape):
    """A plain value; subclasses define `expected` and `fits`."""

    @abstractmethod
    def fits(self, value: Any) -> bool: ...

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        if not self.fits(value):
            yield ShapeProblem(path, show_value(value), self.expected)


class Flag(Scalar):
    expected = "true or false"

    def fits(self, value: Any) -> bool:
        return isinstance(value, bool)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Integer(Scalar):
    """A whole number. With `accepts_float`, 3.0 is accepted too: JSON has only one number type."""

    def __init__(self, least: int, most: int = MAX_NUMBER, *, accepts_float: bool = False) -> None:
        self.least, self.most, self.accepts_float = least, most, accepts_float
        self.expected = f"a whole number {f'of at least {least}' if most == MAX_NUMBER else f'from {least} to {most}'}"

    def fits(self, value: Any) -> bool:
        is_whole = isinstance(value, int) or (self.accepts_float and isinstance(value, float) and value.is_integer())
        return is_whole and not isinstance(value, bool) and self.least <= value <= self.most

    def json_schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def normalize(self, value: Any) -> int:
        return int(value)


class Number(Scalar):
    def __init__(self, *, positive: bool) -> None:
        self.positive = positive
        self.expected = "a number above 0" if positive else "a number of at least 0"

    def fits(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (value > 0 if self.positive else value >= 0) and value <= MAX_NUMBER


class Choice(Scalar):
    def __init__(self, *words: str) -> None:
        self.words = words
        self.expected = join_choices(words)

    def fits(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.words

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}


class Text(Shape):
    """`least` and `most` count characters; `least` ignores whitespace at the ends."""

    def __init__(
        self, least: int = 1, most: int | None = None, *, line: bool = False, pattern: str = "", like: str = ""
    ) -> None:
        self.least, self.most, self.line = least, most, line
        self.pattern = re.compile(pattern) if pattern else None
        self.expected = f"a text like {like}" if like else f"a text in quotes{' that is not empty' if least else ''}"

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, str):
            yield ShapeProblem(path, show_value(value), self.expected)
        elif _NO_TEXT.search(value):
            yield ShapeProblem(path, "", "plain UTF-8 text without NUL characters")
        elif self.line and _LINE_BREAK.search(value):
            yield ShapeProblem(path, "a text with a line break", "a single line")
        elif self.most is not None and len(value) > self.most:
            yield ShapeProblem(path, f"a text of {len(value)} characters", f"at most {self.most} characters")
        elif len(value.strip()) < self.least:
            expected = self.expected if self.least == 1 else f"at least {self.least} characters"
            yield ShapeProblem(path, show_value(value), expected)
        elif self.pattern and not self.pattern.fullmatch(value):
            yield ShapeProblem(path, show_value(value), self.expected)

    def json_schema(self) -> dict[str, Any]:
        if self.pattern:  # which also limits the length
            return {"type": "string", "pattern": f"^{self.pattern.pattern}$"}
        return {"type": "string", **_limits("Length", self.least, self.most)}


class Name(Text):
    """A text of a given form. Messages do not repeat the value: it may be a secret in the wrong place."""

    def __init__(self, pattern: str, expected: str) -> None:
        super().__init__(pattern=pattern)
        self.expected = expected

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        assert self.pattern
        if not isinstance(value, str) or not self.pattern.fullmatch(value):
            yield ShapeProblem(path, "", self.expected)


class Regex(Text):
    """A regular expression. If `groups` is given, it must have `count` groups; `groups` says what they match."""

    def __init__(self, *, groups: str = "", count: int = 0) -> None:
        super().__init__()
        self.groups, self.count = groups, count

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        if found := list(super().problems(value, path)):
            yield from found
            return
        try:
            count = re.compile(value).groups
        except (re.error, RecursionError, OverflowError) as error:
            yield ShapeProblem(path, "", f"a Python regular expression: {error}")
            return
        if self.groups and count != self.count:
            need = f"must have {self.count} groups, {self.groups}, not {count}; write others as (?:…)"
            yield ShapeProblem(path, message=f"{dotted_key(path)} {need}")


ListRule = Callable[[Sequence[Any], KeyPath], Iterator[ShapeProblem]]


class ListOf(Shape):
    """A list; `rules` check its items together. With `accepts_one`, a single item may be given without a list."""

    def __init__(
        self,
        item: Shape,
        least: int = 0,
        most: int | None = None,
        *,
        rules: Sequence[ListRule] = (),
        accepts_one: bool = False,
    ) -> None:
        self.item, self.least, self.most, self.rules, self.accepts_one = item, least, most, rules, accepts_one
        self.expected = 'a list such as ["one", "two"]' if isinstance(item, Text) else "a list"
        if most is not None:
            self.expected = f"a list of {least} to {most}"

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, list):
            if self.accepts_one:
                yield from self.item.problems(value, path)
            else:
                yield ShapeProblem(path, show_value(value), self.expected)
            return
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            yield ShapeProblem(path, f"a list of {len(value)}", self.expected)
            return
        for index, item in enumerate(value):
            yield from self.item.problems(item, (*path, index))
        for rule in self.rules:
            yield from rule(value, path)

    def json_schema(self) -> dict[str, Any]:
        item = self.item.json_schema()
        schema = {"type": "array", "items": item, **_limits("Items", self.least, self.most)}
        return {"anyOf": [item, schema]} if self.accepts_one else schema

    def normalize(self, value: Any) -> list[Any]:
        return [self.item.normalize(item) for item in (value if isinstance(value, list) else [value])]


class TextOrTable(Shape):
    def __init__(self, text: Text, table: "Table") -> None:
        self.text, self.table = text, table

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        return (self.table if isinstance(value, dict) else self.text).problems(value, path)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [self.text.json_schema(), self.table.json_schema()]}

    def normalize(self, value: Any) -> Any:
        return self.table.normalize(value) if isinstance(value, dict) else value


class Table(Shape):
    """A mapping with known keys; null is the same as a missing key. `about` describes keys in the JSON schema.

    A layered table is complete only together with the layers below it, so a missing key alone is not a problem.
    """

    def __init__(
        self,
        keys: Mapping[str, Shape],
        required: Sequence[str] = (),
        *,
        about: Mapping[str, str] | None = None,
        is_layered: bool = False,
    ) -> None:
        self.keys, self.required, self.about, self.is_layered = keys, required, about or {}, is_layered
        self.expected = f"a mapping with {', '.join(keys)}"

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, dict):
            yield ShapeProblem(path, show_value(value), self.expected)
            return
        for key in value:
            if key not in self.keys:
                message = f"unknown key {dotted_key((*path, str(key)[:60]))}; {self._advice(str(key))}"
                yield ShapeProblem((*path, key), message=message)
        if not self.is_layered:
            yield from self.missing(value, path)
        for key, item in value.items():
            if key in self.keys and item is not None:
                yield from self.keys[key].problems(item, (*path, key))

    def missing(self, value: Mapping[str, Any], path: KeyPath) -> Iterator[ShapeProblem]:
        for key in self.required:
            if value.get(key) is None:
                yield ShapeProblem(path, message=f"{dotted_key((*path, key))} is missing; add it")

    def json_schema(self) -> dict[str, Any]:
        about = {key: {"description": text} for key, text in self.about.items()}
        properties = {key: {**shape.json_schema(), **about.get(key, {})} for key, shape in self.keys.items()}
        required = list(self.required)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def normalize(self, value: Any) -> dict[str, Any]:
        return {key: self.keys[key].normalize(item) for key, item in value.items() if item is not None}

    def _advice(self, key: str) -> str:
        # writing a table's key above its header, or below another one, is a common mistake
        likely = nearest_word(key, self.keys) or next(self._below(key, ()), None)
        return f"did you mean {likely}?" if likely else f"known here: {', '.join(self.keys)}"

    def _below(self, key: str, path: KeyPath) -> Iterator[str]:
        for name, shape in self.keys.items():
            if isinstance(shape, Table):
                if key in shape.keys:
                    yield dotted_key((*path, name, key))
                yield from shape._below(key, (*path, name))


class MapOf(Shape):
    """A mapping with free-form keys."""

    expected = "a mapping"

    def __init__(self, name: Shape, item: Table) -> None:
        self.name, self.item = name, item

    def problems(self, value: Any, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, dict):
            yield ShapeProblem(path, show_value(value), self.expected)
            return
        for name, item in value.items():
            for problem in self.name.problems(name, ("name",)):
                yield ShapeProblem((*path, name), message=f"{dotted_key((*path, name))}: {problem}")
            yield from self.item.problems(item, (*path, name))


def _limits(word: str, least: int, most: int | None) -> dict[str, int]:
    """Return the limits, without trivial ones: every request to a model includes the schemas."""
    return ({f"min{word}": least} if least else {}) | ({} if most is None else {f"max{word}": most})


class FieldReader:
    """Take known keys from a stored mapping one by one; `rest()` is what remains. An invalid value is a StateError."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise StateError(f"{where} must be a mapping, not {show_value(data)}")
        self._data = dict(data)
        self._where = where

    def has(self, key: str) -> bool:
        return self._data.get(key) is not None

    def take(self, key: str) -> Any:
        return self._data.pop(key, None)

    def put_back(self, key: str, rest: Mapping[str, Any]) -> None:
        """Keep the part of a value that was not recognized."""
        if rest:
            self._data[key] = dict(rest)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)  # an id of digits, written without quotes
        return str(self._checked(key, value, str, "text", default))

    def text_or_none(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else self.take(key)

    def count(self, key: str, default: int = 0) -> int:
        return int(self._checked(key, self.take(key), int, "a whole number", default))

    def count_or_none(self, key: str) -> int | None:
        return self.count(key) if self.has(key) else self.take(key)

    def money(self, key: str) -> float | None:
        value = self.take(key)
        if value is None:
            return None
        number = self._checked(key, value, (int, float), "a number")
        if not -1e12 < number < 1e12:  # also true for NaN
            raise StateError(f"{self._where}: {key} is {value!r:.40}, which is not an amount")
        return float(number)

    def choice(self, key: str, choices: type[E], default: E | None = None) -> E:
        """Return the choice, ignoring case: older files have `Challenged`."""
        value = self.take(key)
        if value is None and default is not None:
            return default
        known = {word.lower(): word for word in choices}
        word = known.get(str(value).lower())
        if word is None:
            raise StateError(f"{self._where}: {key} is {value!r}, which is not one of {', '.join(choices)}")
        return word

    def flag(self, key: str) -> bool:
        for problem in Flag().problems(value := self.take(key), (key,)):
            raise StateError(f"{self._where}: {problem}")
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(map(str, self._checked(key, self.take(key) or [], list, "a list")))

    def mapping(self, key: str) -> dict[str, Any]:
        return dict(self._checked(key, self.take(key), Mapping, "a mapping", {}))

    def items(self, key: str) -> list["FieldReader"]:
        rows = self._checked(key, self.take(key), list, "a list", [])
        return [FieldReader(row, f"{self._where}: {key}[{number}]") for number, row in enumerate(rows)]

    def inner(self, key: str) -> "FieldReader | None":
        value = self.take(key)
        return None if value is None else FieldReader(value, f"{self._where}: {key}")

    def rest(self) -> dict[str, Any]:
        return self._data

    def _checked(self, key: str, value: Any, kind: Any, words: str, default: Any = None) -> Any:
        if value is None and default is not None:
            return default
        if not isinstance(value, kind) or isinstance(value, bool):
            raise StateError(f"{self._where}: {key} must be {words}, not {show_value(value)}")
        return value

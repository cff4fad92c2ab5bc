"""What a value can look like. Each shape says what is wrong with a value that does not fit.

Tables are partial here: a layer need not set every key. Only a table within a list stands for itself.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentd.domain import KeyPath, dotted_key, join_choices, nearest_word, show_value

# Clocks and counters of the system are sure to take this much.
MOST = 10**9


class ShapeProblem(NamedTuple):
    path: KeyPath
    message: str


class ConfigShape(ABC):
    @abstractmethod
    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        """Everything that is wrong with the value at this path."""


class ScalarShape(ConfigShape):
    """One plain value."""

    expected: str

    @abstractmethod
    def fits(self, value: object) -> bool: ...

    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        if not self.fits(value):
            yield ShapeProblem(path, f"{dotted_key(path)} must be {self.expected}, not {show_value(value)}")


class BoolShape(ScalarShape):
    expected = "true or false"

    def fits(self, value: object) -> bool:
        return isinstance(value, bool)


class IntShape(ScalarShape):
    def __init__(self, least: int) -> None:
        self.least = least
        self.expected = f"a whole number of at least {least}"

    def fits(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= MOST


class NumberShape(ScalarShape):
    """A whole number or a fraction."""

    def __init__(self, *, positive: bool) -> None:
        self.positive = positive
        self.expected = "a number above 0" if positive else "a number of at least 0"

    def fits(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (value > 0 if self.positive else value >= 0) and value <= MOST


class TextShape(ScalarShape):
    def __init__(self, *, empty: bool = False) -> None:
        self.empty = empty
        self.expected = "a text in quotes" if empty else "a text in quotes that is not empty"

    def fits(self, value: object) -> bool:
        return isinstance(value, str) and (self.empty or bool(value.strip()))

    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        yield from super().problems(value, path)
        # No program can be started with the first, no file written with the second.
        if isinstance(value, str) and re.search("[\0\ud800-\udfff]", value):
            yield ShapeProblem(path, f"{dotted_key(path)} must be plain UTF-8 text without NUL characters")


class NameShape(TextShape):
    """A word of a given form. The value is not repeated: it may be a secret in the wrong place."""

    def __init__(self, pattern: str, form: str) -> None:
        super().__init__()
        self.pattern = re.compile(pattern)
        self.form = form

    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, str) or not self.pattern.fullmatch(value):
            yield ShapeProblem(path, f"{dotted_key(path)} must be {self.form}")


class ChoiceShape(ScalarShape):
    def __init__(self, *words: str) -> None:
        self.words = words
        self.expected = join_choices(words)

    def fits(self, value: object) -> bool:
        return value in self.words


class RegexShape(TextShape):
    def __init__(self, *, groups: str = "", count: int = 0) -> None:
        super().__init__()
        self.groups = groups
        self.count = count

    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        wrong = list(super().problems(value, path))
        yield from wrong
        if wrong or not isinstance(value, str):
            return
        try:
            found = re.compile(value).groups
        except (re.error, RecursionError, OverflowError) as error:
            yield ShapeProblem(path, f"{dotted_key(path)} must be a regular expression of Python: {error}")
            return
        if self.groups and found != self.count:
            need = f"must have {self.count} groups, {self.groups}, not {found}; write others as (?:…)"
            yield ShapeProblem(path, f"{dotted_key(path)} {need}")


Rule = Callable[[Sequence[object], KeyPath], Iterator[ShapeProblem]]


class ListShape(ConfigShape):
    """A list; `rules` look at its items together. A list that nobody sets is empty."""

    def __init__(self, item: ConfigShape, rules: tuple[Rule, ...] = ()) -> None:
        self.item = item
        self.rules = rules

    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, list):
            yield ShapeProblem(path, f"{dotted_key(path)} must be {self._form(path)}, not {show_value(value)}")
            return
        for index, item in enumerate(value):
            yield from self.item.problems(item, (*path, index))
            if isinstance(self.item, TableShape) and isinstance(item, dict):
                yield from self.item.missing(item, (*path, index))
        for rule in self.rules:
            yield from rule(value, path)

    def _form(self, path: KeyPath) -> str:
        if isinstance(self.item, TableShape):
            return f"a list of tables, each under [[{dotted_key(path)}]]"
        return 'a list such as ["one", "two"]'


class TableShape(ConfigShape):
    """A table with known keys. `needs` are those without which it says nothing."""

    def __init__(self, keys: Mapping[str, ConfigShape], needs: tuple[str, ...] = ()) -> None:
        self.keys = keys
        self.needs = needs

    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, dict):
            yield _no_table(value, path)
            return
        for key, item in value.items():
            shape = self.keys.get(key)
            if shape:
                yield from shape.problems(item, (*path, key))
            else:
                yield ShapeProblem((*path, key), f"unknown key {dotted_key((*path, key))}; {self._advice(key)}")

    def missing(self, value: Mapping[str, object], path: KeyPath) -> Iterator[ShapeProblem]:
        for key in self.needs:
            if key not in value:
                yield ShapeProblem(path, f"{dotted_key(path)} has no {key}; add it")

    def _advice(self, key: str) -> str:
        # A key of a table, written before its header or after another one, is a common slip.
        likely = nearest_word(key, self.keys) or next(self._below(key, ()), None)
        return f"did you mean {likely}?" if likely else f"known here: {', '.join(self.keys)}"

    def _below(self, key: str, path: KeyPath) -> Iterator[str]:
        for name, shape in self.keys.items():
            if isinstance(shape, TableShape):
                if key in shape.keys:
                    yield dotted_key((*path, name, key))
                yield from shape._below(key, (*path, name))


class MapShape(ConfigShape):
    """A table whose keys are free names."""

    def __init__(self, name: ConfigShape, item: TableShape) -> None:
        self.name = name
        self.item = item

    def problems(self, value: object, path: KeyPath) -> Iterator[ShapeProblem]:
        if not isinstance(value, dict):
            yield _no_table(value, path)
            return
        for name, item in value.items():
            if any(self.name.problems(name, ())):
                yield from self._bad_name(name, path)
            yield from self.item.problems(item, (*path, name))

    def _bad_name(self, name: str, path: KeyPath) -> Iterator[ShapeProblem]:
        for problem in self.name.problems(name, ("name",)):
            yield ShapeProblem((*path, name), f"{dotted_key((*path, name))}: {problem.message}")


def _no_table(value: object, path: KeyPath) -> ShapeProblem:
    return ShapeProblem(
        path, f"{dotted_key(path)} must be a table, under [{dotted_key(path)}], not {show_value(value)}"
    )

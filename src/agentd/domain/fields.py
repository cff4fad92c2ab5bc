"""Reading a mapping of unknown quality into types: what is known is checked, the rest is kept."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from agentd.domain.errors import StateError

E = TypeVar("E", bound=StrEnum)


class FieldReader:
    """Takes keys out of a mapping, one by one; `rest()` is what nobody asked for. What is wrong is a StateError."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise StateError(f"{where} must be a mapping, not {_kind(data)}")
        self._data = dict(data)
        self._where = where

    def has(self, key: str) -> bool:
        return self._data.get(key) is not None

    def take(self, key: str) -> Any:
        return self._data.pop(key, None)

    def put_back(self, key: str, rest: Mapping[str, Any]) -> None:
        """What was not understood of a value stays."""
        if rest:
            self._data[key] = dict(rest)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key)
        if value is None and default is not None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)  # an id of digits, written without quotes
        text: str = self._checked(key, value, str, "text")
        return text

    def text_or_none(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else self.take(key)

    def count(self, key: str, default: int = 0) -> int:
        value = self.take(key)
        return default if value is None else self._checked(key, value, int, "a whole number")

    def count_or_none(self, key: str) -> int | None:
        return self.count(key) if self.has(key) else self.take(key)

    def money(self, key: str) -> float | None:
        value = self.take(key)
        if value is None:
            return None
        number = self._checked(key, value, (int, float), "a number")
        if not -1e12 < number < 1e12:  # also for what is no number at all
            raise StateError(f"{self._where}: {key} is {value!r:.40}, which is no amount")
        return float(number)

    def choice(self, key: str, choices: type[E], default: E | None = None) -> E:
        """Older files capitalise: `Challenged` is `challenged`."""
        value = self.take(key)
        if value is None and default is not None:
            return default
        known = {word.lower(): word for word in choices}
        word = known.get(str(value).lower())
        if word is None:
            raise StateError(f"{self._where}: {key} is {value!r}, which is none of: {', '.join(choices)}")
        return word

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if not isinstance(value, bool):
            raise StateError(f"{self._where}: {key} must be true or false, not {_kind(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        rows = self.take(key) or []
        return tuple(str(row) for row in self._checked(key, rows, list, "a list"))

    def mapping(self, key: str) -> dict[str, Any]:
        value = self.take(key)
        return {} if value is None else dict(self._checked(key, value, Mapping, "a mapping"))

    def items(self, key: str) -> list["FieldReader"]:
        value = self.take(key)
        rows: list[Any] = [] if value is None else self._checked(key, value, list, "a list")
        return [FieldReader(row, f"{self._where}: {key}[{number}]") for number, row in enumerate(rows)]

    def inner(self, key: str) -> "FieldReader | None":
        value = self.take(key)
        return None if value is None else FieldReader(value, f"{self._where}: {key}")

    def rest(self) -> dict[str, Any]:
        return self._data

    def _checked(self, key: str, value: Any, kind: Any, words: str) -> Any:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise StateError(f"{self._where}: {key} must be {words}, not {_kind(value)}")
        return value


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r:.40}"

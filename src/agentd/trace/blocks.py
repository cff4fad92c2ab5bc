"""A text of a language with braces: where each bracket closes, where a call ends, which block a place stands in."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from agentd.trace.cases import MANY, Assertion
from agentd.trace.masking import mask

_BRACKETS = re.compile(r"[()\[\]{}]")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_GOES_ON = re.compile(r"\s{0,80}(?:\??\.|::)\s{0,8}[\w$]{1,80}!?\s{0,8}(?:<[^<>()\n]{0,80}>)?(\()?")
_NAMES = re.compile(r"(?<![\w.$])[A-Za-z_$][\w$]*")
_CONSTANT = re.compile(r"\b(?:true|false|[0-9]+)\b")
_CONSTANTS = frozenset({"true", "false", "null", "nil", "undefined", "NaN"})
_LAST_NAME = re.compile(r"(\w+)!?\s*(?:<[^<>()]*>\s*)?$")
_LONGEST = 2000  # characters of a call that are looked at


class Kind(Enum):
    TEST = "test"
    GROUP = "group"
    HELPER = "helper"
    LOOP = "loop"


@dataclass(frozen=True, slots=True)
class Block:
    """`first` is where its marks begin, `start` where its name is, `body` to `end` what it runs; offsets all."""

    kind: Kind
    name: str
    first: int
    start: int
    body: int
    end: int
    skip: tuple[int, str] | None = None
    only: int | None = None
    is_table: bool = False  # runs with many values


@dataclass(frozen=True)
class Page:
    text: str
    language: str

    @cached_property
    def masked(self) -> str:
        return mask(self.text, self.language)

    @cached_property
    def _closes(self) -> dict[int, int]:
        found: dict[int, int] = {}
        waiting: list[tuple[str, int]] = []
        for match in _BRACKETS.finditer(self.masked):
            opens = _CLOSING.get(match[0])
            if opens is None:
                waiting.append((match[0], match.start()))
            elif waiting and waiting[-1][0] == opens:
                found[waiting.pop()[1]] = match.end()
        return found

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line(self, at: int) -> int:
        return bisect_right(self._starts, at)

    def quote(self, at: int) -> str:
        start = self._starts[self.line(at) - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].strip()[:200]

    def close(self, at: int) -> int:
        """Behind the bracket that closes the one opened there; the end of the text where none does."""
        return self._closes.get(at, len(self.text))

    def body(self, at: int) -> tuple[int, int] | None:
        """The next braces, unless a statement ends before them."""
        found = re.compile(r"[{;]").search(self.masked, at, at + 600)
        return (found.end(), self.close(found.start())) if found and found[0] == "{" else None

    def after(self, at: int) -> int:
        """The next place that is not blank."""
        blank = re.compile(r"\s{0,2000}+").match(self.masked, at)
        return blank.end() if blank else at

    def after_blank(self, at: int) -> int:
        """The next place of the text itself that is not blank: strings are there."""
        blank = re.compile(r"\s{0,2000}+").match(self.text, at)
        return blank.end() if blank else at

    def statement_end(self, at: int) -> int:
        """Where an expression that begins there ends: at the end of its line, or of the brackets it opens."""
        found = re.compile(r"[;\n(]").search(self.masked, at)
        if not found:
            return len(self.text)
        return self.call_end(found.start()) if found[0] == "(" else found.start()

    def call_end(self, at: int) -> int:
        """Behind a call that opens its bracket there, and what is called on its result."""
        end = self.close(at)
        while (more := _GOES_ON.match(self.masked, end)) and end - at < _LONGEST:
            end = self.close(more.end() - 1) if more[1] else more.end()
        return end

    def assertion(self, start: int, open_: int, times: int) -> Assertion:
        """The one that begins at `start`; `open_` is its first bracket, -1 if it has none."""
        end = min(self.call_end(open_) if open_ >= 0 else self.masked.find("\n", start), start + _LONGEST)
        text = "".join(self.text[start:end].split())
        inner = self.masked[open_ + 1 : end] if open_ >= 0 else ""
        named = _LAST_NAME.search(self.masked, max(start, open_ - 200), max(open_, start))
        name = named[1] if named else ""
        if _CONSTANT.search(inner) and not set(_NAMES.findall(inner)) - _CONSTANTS:
            return Assertion(text, 0, 0, name)
        return Assertion(text, 1, min(_elements(inner) * times, MANY), name)


def _elements(inner: str) -> int:
    """The longest list or object written out there, or the number of conditions: an assertion may stand for as many."""
    most = inner.count("&&") + 1
    commas: list[int] = []
    kinds: list[str] = []
    for match in re.finditer(r"[()\[\]{},]", inner):
        mark = match[0]
        if mark in "([{":
            kinds.append(mark)
            commas.append(0)
        elif mark == ",":
            if kinds:
                commas[-1] += 1
        elif kinds:
            count = commas.pop() + 1
            most = max(most, count) if kinds.pop() in "[{" else most
    return most

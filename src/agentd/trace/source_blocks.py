"""Source text in a brace language: where brackets close, where calls end, and which block a position is in."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from agentd.trace.test_cases import UNBOUNDED, Assertion

_LINE = r"//[^\n]*+"
_BLOCK = r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"
_DOUBLE = r'"(?:[^"\\\n]++|\\.)*+"?'
_SINGLE = r"'(?:[^'\\\n]++|\\.)*+'?"
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n]{1,10}?)'"
_TRIPLE = r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:""")?'
_RAW_RUST = r'\bb?r(?P<hashes>#{0,8})".*?(?:"(?P=hashes)|\Z)'

_PATTERNS = {
    "rust": rf"{_LINE}|{_BLOCK}|{_RAW_RUST}|{_DOUBLE.replace(chr(92) + 'n', '')}|{_CHARACTER}",
    "go": rf"{_LINE}|{_BLOCK}|`[^`]*+`?|{_DOUBLE}|{_CHARACTER}",
    "java": rf"{_LINE}|{_BLOCK}|{_TRIPLE}|{_DOUBLE}|{_CHARACTER}",
    "csharp": rf'{_LINE}|{_BLOCK}|{_TRIPLE}|@"(?:[^"]++|"")*+"?|{_DOUBLE}|{_CHARACTER}',
}
_HIDDEN = {language: re.compile(pattern, re.DOTALL) for language, pattern in _PATTERNS.items()}
_INK = re.compile(r"[^\n]")

_REGEX = r"/(?![*/\s])(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n]){0,200}+\]){1,500}+/"
_SCRIPT = re.compile(rf"{_LINE}|{_BLOCK}|{_DOUBLE}|{_SINGLE}|{_REGEX}|[`{{}}]", re.DOTALL)
_TEMPLATE = re.compile(r"(?:[^`\\$]++|\\.|\$(?!\{))*+(`|\$\{)?", re.DOTALL)
_BEFORE_REGEX = frozenset("(,=:[!&|?{};+-*%~^<>\n")


def mask_source(text: str, language: str) -> str:
    if language == "javascript":
        return _without(text, _script(text))
    return _HIDDEN[language].sub(lambda match: _INK.sub(" ", match[0]), text)


def _without(text: str, spans: Iterator[tuple[int, int]]) -> str:
    pieces, last = [], 0
    for start, end in spans:
        pieces += [text[last:start], _INK.sub(" ", text[start:end])]
        last = end
    return "".join((*pieces, text[last:]))


def _script(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of comments, strings, regular expressions and templates. Text inside `${}` is code again."""
    at = 0
    depth: list[int] = []  # open braces inside each enclosing `${`
    while match := _SCRIPT.search(text, at):
        at = match.end()
        mark = match[0]
        if mark == "{" and depth:
            depth[-1] += 1
        elif mark == "}" and depth and depth[-1]:
            depth[-1] -= 1
        elif mark == "`" or (mark == "}" and depth):
            if mark == "}":
                depth.pop()
            at = _template_end(text, at, depth)
            yield match.start(), at
        elif mark[0] == "/" and mark[1] not in "/*" and not _may_begin_regex(text, match.start()):
            at = match.start() + 1  # division, not a regular expression
        elif mark not in "{}":
            yield match.span()


def _template_end(text: str, at: int, depth: list[int]) -> int:
    match = _TEMPLATE.match(text, at)
    assert match
    if match[1] == "${":
        depth.append(0)
    return match.end()


def _may_begin_regex(text: str, at: int) -> bool:
    before = text[max(0, at - 80) : at].rstrip(" \t")
    return not before or before[-1] in _BEFORE_REGEX or before.endswith(("return", "typeof", "=>"))


_BRACKETS = re.compile(r"[()\[\]{}]")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_GOES_ON = re.compile(r"\s{0,80}(?:\??\.|::)\s{0,8}[\w$]{1,80}!?\s{0,8}(?:<[^<>()\n]{0,80}>)?(\()?")
_NAMES = re.compile(r"(?<![\w.$])[A-Za-z_$][\w$]*")
_CONSTANT = re.compile(r"\b(?:true|false|[0-9]+)\b")
_CONSTANTS = frozenset({"true", "false", "null", "nil", "undefined", "NaN"})
_LAST_NAME = re.compile(r"(\w+)!?\s*(?:<[^<>()]*>\s*)?$")
_LONGEST = 2000  # most characters of a call to look at


class BlockKind(Enum):
    TEST = "test"
    GROUP = "group"
    HELPER = "helper"
    LOOP = "loop"


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """A block, in offsets: annotations begin at `first`, its name at `start`; its code is from `body` to `end`."""

    kind: BlockKind
    name: str
    first: int
    start: int
    body: int
    end: int
    skip: tuple[int, str] | None = None
    only: int | None = None
    is_table: bool = False  # runs with several values


@dataclass(frozen=True)
class SourceText:
    text: str
    language: str

    @cached_property
    def masked(self) -> str:
        return mask_source(self.text, self.language)

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
        """Return the position after the bracket that closes the one at `at`, or the end of the text if none does."""
        return self._closes.get(at, len(self.text))

    def body(self, at: int) -> tuple[int, int] | None:
        """Return the next pair of braces, unless a statement ends before it."""
        found = re.compile(r"[{;]").search(self.masked, at, at + 600)
        return (found.end(), self.close(found.start())) if found and found[0] == "{" else None

    def after(self, at: int) -> int:
        """Return the next non-blank position in the masked text."""
        blank = re.compile(r"\s{0,2000}+").match(self.masked, at)
        return blank.end() if blank else at

    def after_blank(self, at: int) -> int:
        """Return the next non-blank position in the original text, where strings are not masked."""
        blank = re.compile(r"\s{0,2000}+").match(self.text, at)
        return blank.end() if blank else at

    def statement_end(self, at: int) -> int:
        """Return where the expression at `at` ends: at the end of its line, or after the brackets it opens."""
        found = re.compile(r"[;\n(]").search(self.masked, at)
        if not found:
            return len(self.text)
        return self.call_end(found.start()) if found[0] == "(" else found.start()

    def call_end(self, at: int) -> int:
        """Return the end of a call whose bracket opens at `at`, including calls chained to its result."""
        end = self.close(at)
        while (more := _GOES_ON.match(self.masked, end)) and end - at < _LONGEST:
            end = self.close(more.end() - 1) if more[1] else more.end()
        return end

    def assertion(self, start: int, open_: int, times: int) -> Assertion:
        """Return the assertion that begins at `start`; `open_` is its first bracket, or -1."""
        end = min(self.call_end(open_) if open_ >= 0 else self.masked.find("\n", start), start + _LONGEST)
        text = "".join(self.text[start:end].split())
        inner = self.masked[open_ + 1 : end] if open_ >= 0 else ""
        named = _LAST_NAME.search(self.masked, max(start, open_ - 200), max(open_, start))
        name = named[1] if named else ""
        if _CONSTANT.search(inner) and not set(_NAMES.findall(inner)) - _CONSTANTS:
            return Assertion(text, 0, 0, name)
        return Assertion(text, 1, min(_elements(inner) * times, UNBOUNDED), name)


def _elements(inner: str) -> int:
    """Return how many plain assertions this may count as: the longest literal list or object, or the conditions."""
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

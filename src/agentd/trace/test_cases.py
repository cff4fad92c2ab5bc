"""The tests in a source file as data: what they assert, what they call, whether they run."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

UNBOUNDED = 1000
"""How many assertions one in a loop of unknown length may count as."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion. If it proves nothing, such as `assert True`, `least` and `most` are 0."""

    text: str  # without whitespace
    least: int = 1
    most: int = 1  # how many plain assertions it may count as
    name: str = ""  # the function it calls, if it is a call


@dataclass(frozen=True, slots=True)
class HelperCall:
    """A call of a function that may be a helper with assertions; `factor` is how often a loop may call it."""

    name: str
    text: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class SkipMark:
    """The line and the word that keep a test from running."""

    line: int
    word: str
    quote: str


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test or a helper. `first` is the line where its decorators begin; `line` has its name."""

    name: str  # with the enclosing classes or blocks, joined by " > "
    first: int
    line: int
    last: int
    quote: str
    asserts: tuple[Assertion, ...] = ()
    calls: tuple[HelperCall, ...] = ()
    skip: SkipMark | None = None
    words: frozenset[str] = frozenset()

    @property
    def leaf(self) -> str:
        return self.name.rpartition(" > ")[2]

    @property
    def count(self) -> int:
        return sum(one.least for one in self.asserts)


@dataclass(frozen=True, slots=True)
class TestGroup:
    """A class or block of tests."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ScannedTests:
    cases: tuple[TestCase, ...] = ()
    helpers: Mapping[str, TestCase] = field(default_factory=dict)
    groups: tuple[TestGroup, ...] = ()
    only: tuple[SkipMark, ...] = ()
    """Marks that keep all other tests from running."""


_LANGUAGES = {
    "python": ("py", "pyi"),
    "javascript": ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"),
    "rust": ("rs",),
    "go": ("go",),
    "java": ("java", "kt", "kts", "groovy", "scala"),
    "csharp": ("cs",),
}
_BY_ENDING = {ending: language for language, endings in _LANGUAGES.items() for ending in endings}
_PROSE = ("md", "markdown", "rst", "txt", "adoc", "html", "csv", "json", "yaml", "yml", "toml", "lock", "snap", "svg")
_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "e2e", "testing"})
_NAME = re.compile(
    r"(?:tests?|conftest)[._-].*|.+[._-](?:tests?|specs?|e2e|cy)\.[^.]+|.+(?:Tests?|TestCase|Spec|IT)\.[a-z]+|tests?\.[a-z]+"
)
_CONTENT = re.compile(
    r"#\[(?:\w+::)*test\b|#\[cfg\(test\)\]|\bimport pytest\b|\b(?:import|from) unittest\b|^\s*(?:async )?def test_"
    r"|['\"](?:node:test|vitest|@jest/globals|@playwright/test|mocha|chai)['\"]|\*testing\.[TBF]\b"
    r"|@(?:Parameterized)?Test\b|\[(?:Fact|Theory|Test|TestMethod)\b",
    re.MULTILINE,
)


def language_of(path: str) -> str | None:
    """Return the language of a file, or None if its tests cannot be parsed."""
    return _BY_ENDING.get(path.rpartition(".")[2].lower())


def looks_like_test_path(path: str) -> bool:
    if path.rpartition(".")[2].lower() in _PROSE:
        return False
    return is_named_as_test(path) or not _FOLDERS.isdisjoint(posixpath.dirname(path).lower().split("/"))


def is_named_as_test(path: str) -> bool:
    return bool(_NAME.fullmatch(posixpath.basename(path)))


def may_hold_tests(path: str) -> bool:
    """Return whether the file may contain tests, possibly next to the code."""
    return language_of(path) is not None or looks_like_test_path(path)


def is_test(path: str, text: str) -> bool:
    return looks_like_test_path(path) or (language_of(path) is not None and bool(_CONTENT.search(text)))

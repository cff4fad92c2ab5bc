"""The tests of a text as data: what they assert, what they call, whether they run at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field

UNBOUNDED = 1000
"""More than anybody counts: how much an assertion in a loop of unknown length may stand for."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """One that stands for nothing, such as `assert True`, has `least` and `most` 0."""

    text: str  # without blanks
    least: int = 1
    most: int = 1  # how many plain ones it may stand for
    name: str = ""  # what it calls, for one that is a call


@dataclass(frozen=True, slots=True)
class HelperCall:
    """Of a function that may be a helper with assertions; `factor` is how often a loop may call it."""

    name: str
    text: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class SkipMark:
    """A line that says that a test does not run, and the word that says so."""

    line: int
    word: str
    quote: str


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test or a helper. `first` is the line where its decorators begin, `line` has its name."""

    name: str  # with the classes or blocks it stands in, divided by " > "
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

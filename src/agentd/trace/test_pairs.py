"""Where tests went: the same name, the same name elsewhere, or another name with the same words."""

from collections.abc import Iterable
from dataclasses import dataclass

from agentd.trace.test_cases import TestCase
from agentd.trace.test_files import language_of

_ALIKE = 0.6  # of a test's words: it lives on there
_SAME = 0.8  # it was renamed
_PART = 0.25  # a part of it may have gone there
_NEAR = 0.3  # the same name in another place
_ENOUGH = 3  # words
_LOOKED_AT = 500  # tests that may have taken up another


@dataclass(frozen=True, slots=True)
class LocatedTest:
    path: str
    case: TestCase


@dataclass(frozen=True, slots=True)
class KeptTest:
    old: LocatedTest
    new: LocatedTest


@dataclass(frozen=True, slots=True)
class SuccessorTests:
    """Tests that took up one that is gone; `is_renamed`: it is one new test with nearly all its words."""

    old: LocatedTest
    new: tuple[LocatedTest, ...]
    is_renamed: bool


def match_tests(
    old: Iterable[LocatedTest], new: Iterable[LocatedTest]
) -> tuple[list[KeptTest], list[LocatedTest], list[LocatedTest]]:
    """Tests that are still there, those that are gone, and those that are new."""
    by_name = {(one.path, one.case.name): one for one in new}
    kept: list[KeptTest] = []
    gone: list[LocatedTest] = []
    for one in old:
        same = by_name.pop((one.path, one.case.name), None)
        if same:
            kept.append(KeptTest(one, same))
        else:
            gone.append(one)
    return _moved(kept, gone, list(by_name.values()))


def _moved(
    kept: list[KeptTest], gone: list[LocatedTest], added: list[LocatedTest]
) -> tuple[list[KeptTest], list[LocatedTest], list[LocatedTest]]:
    by_leaf: dict[str, list[LocatedTest]] = {}
    for one in added:
        by_leaf.setdefault(one.case.leaf, []).append(one)
    left: list[LocatedTest] = []
    for one in gone:
        alike = [
            other for other in by_leaf.get(one.case.leaf, ())[:20] if _share(one.case.words, other.case.words) >= _NEAR
        ]
        if not alike:
            left.append(one)
            continue
        same = max(alike, key=lambda other: (other.path == one.path, _share(one.case.words, other.case.words)))
        by_leaf[one.case.leaf].remove(same)
        kept.append(KeptTest(one, same))
    return kept, left, [one for some in by_leaf.values() for one in some]


def find_successors(gone: LocatedTest, added: list[LocatedTest], kept: list[KeptTest]) -> SuccessorTests:
    """Empty: it was deleted. A test that was there before is an heir by what it gained."""
    words = gone.case.words
    near = sorted((one for one in added if _may_inherit(gone, one)), key=lambda one: one.path != gone.path)[:_LOOKED_AT]
    shares = [(_share(words, one.case.words), one) for one in near]
    whole = [one for share, one in shares if share >= _ALIKE]
    if whole:
        return SuccessorTests(gone, tuple(whole), len(whole) == 1 and _shares_most(words, whole[0].case.words))
    grown = [one.new for one in kept[:_LOOKED_AT] if _may_inherit(gone, one.new) and _grew_by(words, one)]
    if grown:
        return SuccessorTests(gone, tuple(grown), False)
    parts = [one for share, one in shares if share >= _PART]
    union = frozenset().union(*(one.case.words for one in parts))
    return SuccessorTests(gone, tuple(parts) if parts and _share(words, union) >= _ALIKE else (), False)


def _may_inherit(gone: LocatedTest, other: LocatedTest) -> bool:
    """In its own file, or in one of the same language if it has words enough to be known again there."""
    if other.path == gone.path:
        return True
    return len(gone.case.words) >= _ENOUGH and language_of(other.path) == language_of(gone.path)


def _shares_most(words: frozenset[str], others: frozenset[str]) -> bool:
    return _share(words, others) >= _SAME


def _grew_by(words: frozenset[str], kept: KeptTest) -> bool:
    old, new = kept.old.case, kept.new.case
    if len(new.asserts) + len(new.calls) <= len(old.asserts) + len(old.calls):
        return False
    return _share(words - old.words, new.words - old.words) >= _ALIKE


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    """Of the words, how many are among the others; of none, all are."""
    return len(words & others) / len(words) if words else 1.0

"""Where tests went: the same name, the same name elsewhere, or another name with the same words."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentd.trace.test_cases import UNBOUNDED, Assertion, TestCase, language_of

Helpers = Mapping[str, TestCase]

# Assertions of the usual libraries; any other of such a name is somebody's own and may hold many.
_PLAIN = re.compile(
    r"assert(?:_(?:eq|ne|matches|called\w*|not_called|has_calls|any_call|awaited\w*|that|type|never)"
    r"|(?:Not)?(?:Almost)?(?:Equals?|Same|True|False|Null|Is|IsNone|IsNot\w*|IsInstance|In|Raises\w*|Warns\w*|Greater\w*"
    r"|Less\w*|Regex|Count\w*|Dict\w*|List\w*|Tuple\w*|Set\w*|Sequence\w*|MultiLine\w*|Logs|That|Throws\w*"
    r"|DoesNotThrow|ArrayEquals|InstanceOf|Contains\w*))?"
)
_MAY_ASSERT = re.compile(r"_*(?:assert|check|verify|ensure|should|expect|must|require|validate|compare)", re.IGNORECASE)


def count_proved(old: TestCase, new: TestCase, old_helpers: Helpers, new_helpers: Helpers) -> tuple[int, int]:
    """The assertions before, and what may be left of them."""
    before = sum(one.least for one in old.asserts) + sum(_reach(one.name, old_helpers) > 0 for one in old.calls)
    known = Counter([*(one.text for one in old.asserts), *(one.text for one in old.calls)])
    after = 0
    for one in new.asserts:
        after += min(1, one.most) if _take(known, one.text) else most_assertions(one, new_helpers)
    for call in new.calls:
        reach = _reach(call.name, new_helpers)
        if _take(known, call.text):
            was = _reach(call.name, old_helpers)
            after += 1 if reach or (was and call.name not in new_helpers) else 0  # it may have moved to another file
        elif reach:
            after += reach * call.factor
        elif call.name not in new_helpers and _MAY_ASSERT.match(call.name):
            after += UNBOUNDED
    after += sum(UNBOUNDED for name in _mentioned(new, new_helpers) if name not in old.words)
    return before, after


def most_proved(case: TestCase, helpers: Helpers) -> int:
    """What it may prove at most."""
    own = sum(most_assertions(one, helpers) for one in case.asserts)
    called = sum(
        _reach(one.name, helpers) or (UNBOUNDED if _is_unknown(one.name, helpers) else 0) for one in case.calls
    )
    return own + called + UNBOUNDED * len(_mentioned(case, helpers))


def most_assertions(one: Assertion, helpers: Helpers) -> int:
    if one.name in helpers:
        return _reach(one.name, helpers)
    if one.name.startswith("assert") and not _PLAIN.fullmatch(one.name):
        return UNBOUNDED
    return one.most


def _is_unknown(name: str, helpers: Helpers) -> bool:
    return name not in helpers and bool(_MAY_ASSERT.match(name))


def _mentioned(case: TestCase, helpers: Helpers) -> list[str]:
    """Helpers handed on instead of called: `rows.forEach(check)`."""
    called = {one.name for one in case.calls} | {one.name for one in case.asserts}
    return [name for name in case.words & helpers.keys() if name not in called and _reach(name, helpers)]


def _reach(name: str, helpers: Helpers) -> int:
    """What a helper asserts, with the helpers that it calls in turn."""
    helper = helpers.get(name)
    if helper is None:
        return 0
    inner = (helpers[one.name] for one in helper.calls if one.name in helpers and one.name != name)
    return min(_own(helper) + sum(_own(one) for one in inner), UNBOUNDED)


def _own(helper: TestCase) -> int:
    return sum(one.most for one in helper.asserts)


def _take(known: Counter[str], text: str) -> bool:
    known[text] -= 1
    return known[text] >= 0


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

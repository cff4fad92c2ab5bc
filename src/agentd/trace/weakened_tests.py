"""Find tests that prove less than before: deleted, skipped, fewer assertions. Pure; when in doubt, reports nothing."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agentd.domain import pluralize
from agentd.trace.test_cases import (
    UNBOUNDED,
    Assertion,
    ScannedTests,
    SkipMark,
    TestCase,
    is_named_as_test,
    is_test,
    language_of,
)
from agentd.trace.text_tests import scan_tests

Helpers = Mapping[str, TestCase]

# Assertions of common libraries. Any other function with such a name may make many assertions.
_PLAIN = re.compile(
    r"assert(?:_(?:eq|ne|matches|called\w*|not_called|has_calls|any_call|awaited\w*|that|type|never)"
    r"|(?:Not)?(?:Almost)?(?:Equals?|Same|True|False|Null|Is|IsNone|IsNot\w*|IsInstance|In|Raises\w*|Warns\w*|Greater\w*"
    r"|Less\w*|Regex|Count\w*|Dict\w*|List\w*|Tuple\w*|Set\w*|Sequence\w*|MultiLine\w*|Logs|That|Throws\w*"
    r"|DoesNotThrow|ArrayEquals|InstanceOf|Contains\w*))?"
)
_MAY_ASSERT = re.compile(r"_*(?:assert|check|verify|ensure|should|expect|must|require|validate|compare)", re.IGNORECASE)


def count_proved(old: TestCase, new: TestCase, old_helpers: Helpers, new_helpers: Helpers) -> tuple[int, int]:
    """Return the number of assertions before, and how many may remain."""
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
    """Return the largest number of assertions a test may make."""
    own = sum(most_assertions(one, helpers) for one in case.asserts)
    called = sum(_reach(one.name, helpers) for one in case.calls)
    unknown = [one for one in case.calls if one.name not in helpers and _MAY_ASSERT.match(one.name)]
    return own + called + UNBOUNDED * (len(unknown) + len(_mentioned(case, helpers)))


def most_assertions(one: Assertion, helpers: Helpers) -> int:
    if one.name in helpers:
        return _reach(one.name, helpers)
    if one.name.startswith("assert") and not _PLAIN.fullmatch(one.name):
        return UNBOUNDED
    return one.most


def _mentioned(case: TestCase, helpers: Helpers) -> list[str]:
    """Return helpers that are passed rather than called: `rows.forEach(check)`."""
    called = {one.name for one in case.calls} | {one.name for one in case.asserts}
    return [name for name in case.words & helpers.keys() if name not in called and _reach(name, helpers)]


def _reach(name: str, helpers: Helpers) -> int:
    """Return the number of assertions in a helper and the helpers it calls."""
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


_ALIKE = 0.6  # share of a test's words found in another: it continues there
_SAME = 0.8  # share for a renamed test
_PART = 0.25  # share if only a part may have moved there
_NEAR = 0.3  # share for the same name in another place
_ENOUGH = 3  # words needed to recognize a test
_LOOKED_AT = 500  # most tests considered as replacements


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
    """Tests that replace a deleted one. `is_renamed`: a single new test has nearly all its words."""

    old: LocatedTest
    new: tuple[LocatedTest, ...]
    is_renamed: bool


def match_tests(
    old: Iterable[LocatedTest], new: Iterable[LocatedTest]
) -> tuple[list[KeptTest], list[LocatedTest], list[LocatedTest]]:
    """Return the tests that were kept, deleted and added."""
    by_name = {(one.path, one.case.name): one for one in new}
    kept: list[KeptTest] = []
    gone: list[LocatedTest] = []
    for one in old:
        same = by_name.pop((one.path, one.case.name), None)
        if same:
            kept.append(KeptTest(one, same))
        else:
            gone.append(one)
    by_leaf: dict[str, list[LocatedTest]] = {}
    for one in by_name.values():
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
    """Return the tests that replace a deleted one, if any. An existing test counts by what it gained."""
    words = gone.case.words
    near = sorted((one for one in added if _may_replace(gone, one)), key=lambda one: one.path != gone.path)[:_LOOKED_AT]
    shares = [(_share(words, one.case.words), one) for one in near]
    whole = [one for share, one in shares if share >= _ALIKE]
    if whole:
        return SuccessorTests(gone, tuple(whole), len(whole) == 1 and _share(words, whole[0].case.words) >= _SAME)
    grown = [one.new for one in kept[:_LOOKED_AT] if _may_replace(gone, one.new) and _grew_by(words, one)]
    if grown:
        return SuccessorTests(gone, tuple(grown), False)
    parts = [one for share, one in shares if share >= _PART]
    union = frozenset().union(*(one.case.words for one in parts))
    return SuccessorTests(gone, tuple(parts) if parts and _share(words, union) >= _ALIKE else (), False)


def _may_replace(gone: LocatedTest, other: LocatedTest) -> bool:
    """Return whether the test is in the same file, or in the same language with enough words to recognize it."""
    if other.path == gone.path:
        return True
    return len(gone.case.words) >= _ENOUGH and language_of(other.path) == language_of(gone.path)


def _grew_by(words: frozenset[str], kept: KeptTest) -> bool:
    old, new = kept.old.case, kept.new.case
    if len(new.asserts) + len(new.calls) <= len(old.asserts) + len(old.calls):
        return False
    return _share(words - old.words, new.words - old.words) >= _ALIKE


def _share(words: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of `words` that is in `others`; 1 if there are no words."""
    return len(words & others) / len(words) if words else 1.0


_MAX_NAMES = 3  # most names in one sentence
_ABOVE = 5  # how many lines above a test a comment about it may be


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A changed file before and after, None where it does not exist. Tests on `excused` lines may be deleted."""

    path: str
    before: str | None
    after: str | None
    excused: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Weakening:
    """A test that proves less. `line` is 0 if it was deleted; the quote is then from the old text."""

    path: str
    line: int
    what: str
    quote: str


@dataclass(frozen=True, slots=True)
class _ScannedChange:
    pair: ChangedFile
    old: ScannedTests
    new: ScannedTests


@dataclass
class _Changes:
    """All changed tests, and the texts that could not be scanned: a test may have moved there."""

    files: dict[str, _ScannedChange] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    _helpers: dict[tuple[str, bool], Helpers] = field(default_factory=dict)

    def helpers(self, path: str, *, new: bool) -> Helpers:
        """Return the helpers of a file and of all other files, because a test may import them."""
        if ("", new) not in self._helpers:
            sides = [file.new if new else file.old for file in self.files.values()]
            self._helpers["", new] = {name: one for side in sides for name, one in side.helpers.items()}
        if (path, new) not in self._helpers:
            own = self.files[path].new if new else self.files[path].old
            self._helpers[path, new] = {**self._helpers["", new], **own.helpers}
        return self._helpers[path, new]


def weakened(path: str, before: str | None, after: str | None) -> list[Weakening]:
    """Return the weakenings in a single changed file."""
    return weakened_in_all([ChangedFile(path, before, after)])


def weakened_in_all(pairs: Iterable[ChangedFile]) -> list[Weakening]:
    """Return the weakenings in all changed files. A test that moved to another file is not deleted."""
    pairs = [one for one in pairs if _is_test(one)]
    changes = _read(pairs)
    old = [LocatedTest(path, case) for path, file in changes.files.items() for case in file.old.cases]
    new = [LocatedTest(path, case) for path, file in changes.files.items() for case in file.new.cases]
    kept, gone, added = match_tests(old, new)
    deleted: list[LocatedTest] = []
    found = list(_unreadable_deleted(pairs))
    for one in gone:
        if _may_go(one, changes):
            continue
        took = find_successors(one, added, kept)
        if took.is_renamed:
            kept.append(KeptTest(one, took.new[0]))
        elif not _is_replaced(one.case, took.new, changes):
            deleted.append(one)
    found += _deleted(deleted, changes)
    found += _skipped(kept)
    found += _fewer(kept, changes)
    for file in changes.files.values():
        found += _only(file)
        found += _poorer_helpers(file)
    return sorted(found, key=lambda one: (one.path, one.line, one.what))


def count_cases(pairs: Iterable[ChangedFile]) -> tuple[int, int]:
    """Count the tests before and after. An unreadable file has none after."""
    changes = _read([one for one in pairs if _is_test(one)])
    before = sum(len(one.old.cases) for one in changes.files.values())
    return before + len(changes.unread), sum(len(one.new.cases) for one in changes.files.values())


def _is_test(pair: ChangedFile) -> bool:
    return any(text is not None and is_test(pair.path, text) for text in (pair.before, pair.after))


def _read(pairs: list[ChangedFile]) -> _Changes:
    changes = _Changes()
    for pair in pairs:
        old = scan_tests(pair.path, pair.before) if pair.before is not None else ScannedTests()
        new = scan_tests(pair.path, pair.after) if pair.after is not None else ScannedTests()
        if old is None or new is None:
            changes.unread.append(pair.after or "")
        else:
            changes.files[pair.path] = _ScannedChange(pair, old, new)
    return changes


# ---- deleted


def _may_go(gone: LocatedTest, changes: _Changes) -> bool:
    """Return whether a test may be deleted: it was skipped, its requirement is gone, or it may be in an unread file."""
    case = gone.case
    excused = changes.files[gone.path].pair.excused
    if case.skip or (case.leaf and any(case.leaf in text for text in changes.unread)):
        return True
    return any(case.first - _ABOVE <= line <= case.last for line in excused)


def _is_replaced(case: TestCase, new: tuple[LocatedTest, ...], changes: _Changes) -> bool:
    running = [one for one in new if one.case.skip is None]
    if not running:
        return False
    return not case.count or any(most_proved(one.case, changes.helpers(one.path, new=True)) for one in running)


def _deleted(gone: list[LocatedTest], changes: _Changes) -> Iterator[Weakening]:
    by_path: dict[str, list[TestCase]] = {}
    for one in gone:
        by_path.setdefault(one.path, []).append(one.case)
    for path, cases in by_path.items():
        file = changes.files[path]
        if file.pair.after is None and len(cases) == len(file.old.cases):
            yield Weakening(path, 0, f"the file was deleted with {_names(cases)}", cases[0].quote)
        elif len(cases) <= _MAX_NAMES:
            yield from (Weakening(path, 0, f"{one.leaf} was deleted", one.quote) for one in cases)
        else:
            yield Weakening(path, 0, f"{len(cases)} tests were deleted: {_names(cases)}", cases[0].quote)


def _unreadable_deleted(pairs: list[ChangedFile]) -> Iterator[Weakening]:
    """Yield deleted test files in languages that cannot be scanned."""
    new = [one for one in pairs if one.before is None and one.after is not None]
    for pair in pairs:
        if language_of(pair.path) or pair.after is not None or pair.excused or not is_named_as_test(pair.path):
            continue
        name = pair.path.rpartition("/")[2]
        if not any(one.after == pair.before or one.path.rpartition("/")[2] == name for one in new):
            yield Weakening(pair.path, 0, "the file was deleted", "")


def _names(cases: list[TestCase]) -> str:
    names = ", ".join(one.leaf for one in cases[:_MAX_NAMES])
    return names if len(cases) <= _MAX_NAMES else f"{names} and {len(cases) - _MAX_NAMES} others"


# ---- skipped


def _skipped(kept: list[KeptTest]) -> Iterator[Weakening]:
    """Yield one weakening per skip mark, which may apply to a whole class."""
    by_place: dict[tuple[str, SkipMark], list[TestCase]] = {}
    for one in kept:
        if one.new.case.skip and not one.old.case.skip:
            by_place.setdefault((one.new.path, one.new.case.skip), []).append(one.new.case)
    for (path, place), cases in by_place.items():
        verb = "is" if len(cases) == 1 else "are"
        yield Weakening(path, place.line, f"{_names(cases)} {verb} skipped now ({place.word})", place.quote)


def _only(file: _ScannedChange) -> Iterator[Weakening]:
    if len(file.new.only) <= len(file.old.only):
        return
    before = {one.quote for one in file.old.only}
    for one in file.new.only:
        if one.quote not in before:
            what = "only this one runs now, and all other tests do not (only)"
            yield Weakening(file.pair.path, one.line, what, one.quote)


# ---- fewer assertions


def _fewer(kept: list[KeptTest], changes: _Changes) -> Iterator[Weakening]:
    for one in kept:
        old, new = one.old.case, one.new.case
        if old.asserts == new.asserts and old.calls == new.calls:
            continue
        helpers = (changes.helpers(one.old.path, new=False), changes.helpers(one.new.path, new=True))
        before, after = count_proved(old, new, *helpers)
        if after < before and not new.skip:
            yield Weakening(
                one.new.path, new.line, f"{new.leaf} has {pluralize(after, 'assertion')}, {before} before", new.quote
            )


def _poorer_helpers(file: _ScannedChange) -> Iterator[Weakening]:
    """Yield helpers that lost assertions, unless the file as a whole has as many as before."""
    if _sum(file.new) >= _sum(file.old):
        return
    called = {call.name for case in file.new.cases for call in case.calls}
    called |= {one.name for case in file.new.cases for one in case.asserts}
    for name, old in file.old.helpers.items():
        new = file.new.helpers.get(name)
        if new is None or name not in called or old.asserts == new.asserts:
            continue
        before, after = count_proved(old, new, file.old.helpers, file.new.helpers)
        if after < before:
            yield Weakening(
                file.pair.path, new.line, f"{name} has {pluralize(after, 'assertion')}, {before} before", new.quote
            )


def _sum(scan: ScannedTests) -> int:
    return sum(case.count for case in (*scan.cases, *scan.helpers.values()))

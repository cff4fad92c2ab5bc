"""What changed tests no longer prove: deleted, skipped, fewer assertions. Pure; when in doubt, it says nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agentd.trace.test_cases import ScannedTests, SkipMark, TestCase, is_named_as_test, is_test, language_of
from agentd.trace.test_pairs import (
    Helpers,
    KeptTest,
    LocatedTest,
    count_proved,
    find_successors,
    match_tests,
    most_proved,
)
from agentd.trace.text_tests import scan_tests

_TOLD = 3  # names in one sentence
_ABOVE = 5  # lines above a test in which a comment on it may stand


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A changed file before and after; None: it was not there. Tests on `excused` lines before may go."""

    path: str
    before: str | None
    after: str | None
    excused: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Weakening:
    """`line` is 0 where the place is gone; the quote is of the text before then."""

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
    """All changed tests together, and the texts that could not be read: a test may have gone there."""

    files: dict[str, _ScannedChange] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    _helpers: dict[tuple[str, bool], Helpers] = field(default_factory=dict)

    def helpers(self, path: str, *, new: bool) -> Helpers:
        """Those of the other files too, for a test that imports them."""
        if ("", new) not in self._helpers:
            sides = [file.new if new else file.old for file in self.files.values()]
            self._helpers["", new] = {name: one for side in sides for name, one in side.helpers.items()}
        if (path, new) not in self._helpers:
            own = self.files[path].new if new else self.files[path].old
            self._helpers[path, new] = {**self._helpers["", new], **own.helpers}
        return self._helpers[path, new]


def weakened(path: str, before: str | None, after: str | None) -> list[Weakening]:
    """Of one file that changed alone."""
    return weakened_in_all([ChangedFile(path, before, after)])


def weakened_in_all(pairs: Iterable[ChangedFile]) -> list[Weakening]:
    """Of all files that changed together: a test that moved to another file is not deleted."""
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
        elif not _lives_on(one.case, took.new, changes):
            deleted.append(one)
    found += _deleted(deleted, changes)
    found += _skipped(kept)
    found += _fewer(kept, changes)
    for file in changes.files.values():
        found += _only(file)
        found += _poorer_helpers(file)
    return sorted(found, key=lambda one: (one.path, one.line, one.what))


def count_cases(pairs: Iterable[ChangedFile]) -> tuple[int, int]:
    """How many tests stand in them, before and after; what cannot be read holds none after."""
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
    """It did not run before, its requirement is gone too, or it may stand where we cannot read."""
    case = gone.case
    excused = changes.files[gone.path].pair.excused
    if case.skip or (case.leaf and any(case.leaf in text for text in changes.unread)):
        return True
    return any(case.first - _ABOVE <= line <= case.last for line in excused)


def _lives_on(case: TestCase, new: tuple[LocatedTest, ...], changes: _Changes) -> bool:
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
        elif len(cases) <= _TOLD:
            yield from (Weakening(path, 0, f"{one.leaf} was deleted", one.quote) for one in cases)
        else:
            yield Weakening(path, 0, f"{len(cases)} tests were deleted: {_names(cases)}", cases[0].quote)


def _unreadable_deleted(pairs: list[ChangedFile]) -> Iterator[Weakening]:
    """Of a language that we do not read a test file can only be there or not."""
    new = [one for one in pairs if one.before is None and one.after is not None]
    for pair in pairs:
        if language_of(pair.path) or pair.after is not None or pair.excused or not is_named_as_test(pair.path):
            continue
        name = pair.path.rpartition("/")[2]
        if not any(one.after == pair.before or one.path.rpartition("/")[2] == name for one in new):
            yield Weakening(pair.path, 0, "the file was deleted", "")


def _names(cases: list[TestCase]) -> str:
    names = ", ".join(one.leaf for one in cases[:_TOLD])
    return names if len(cases) <= _TOLD else f"{names} and {len(cases) - _TOLD} others"


# ---- skipped


def _skipped(kept: list[KeptTest]) -> Iterator[Weakening]:
    """One for each mark: it may stand above a whole class."""
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
            yield Weakening(one.new.path, new.line, f"{new.leaf} has {_count(after)}, {before} before", new.quote)


def _poorer_helpers(file: _ScannedChange) -> Iterator[Weakening]:
    """A helper that tests still call; what it lost may stand in the tests now, so the whole file is weighed."""
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
            yield Weakening(file.pair.path, new.line, f"{name} has {_count(after)}, {before} before", new.quote)


def _sum(scan: ScannedTests) -> int:
    return sum(case.count for case in (*scan.cases, *scan.helpers.values()))


def _count(number: int) -> str:
    return f"{number} assertion{'' if number == 1 else 's'}"

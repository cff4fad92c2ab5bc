"""Which tests of a text say what they cover (pure)."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from agentd.trace import test_cases
from agentd.trace.matrix import CoveringTest, TraceNote
from agentd.trace.test_cases import ScannedTests, TestCase
from agentd.trace.text_tests import scan_tests

_SAID = re.compile(r"(?<![A-Za-z0-9])covers[ \t:=(\[\"'`]{1,8}(?=[a-z0-9])", re.IGNORECASE)
_FULL = re.compile(r"([a-z0-9][a-z0-9-]{0,63}):([a-z](?=[a-z.-]{0,32}[0-9])[a-z0-9.-]{0,63})", re.IGNORECASE)
_LONE = re.compile(r"[a-z](?=[a-z.-]{0,32}[0-9])[a-z0-9.-]{0,63}(?![\w:])", re.IGNORECASE)
_NEXT = re.compile(r"[\"'`]?[ \t]{0,8}(?:,|;|&|and\b)[ \t]{0,8}(?:and\b[ \t]{0,8})?[\"'`]?", re.IGNORECASE)
_NAMED = re.compile(r"(?<![A-Za-z0-9])(?i:covers)_(\w{2,200})|(?<=[a-z0-9_])Covers(?=[A-Z_])_?(\w{2,200})")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ID = re.compile(r"_?((?:[a-z]{1,16}_)?r[0-9]{1,6})(?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class CoverageMark:
    """`requirement` as the specs write it where they know it, else as it stands."""

    requirement: str
    line: int
    known: bool


@dataclass(frozen=True)
class KnownRequirements:
    """The requirements that there are, `auth-flow:R1`."""

    ids: tuple[str, ...]

    def get(self, word: str) -> str | None:
        return self._folded.get(word.casefold())

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {one.casefold(): one for one in self.ids}

    @cached_property
    def in_names(self) -> dict[str, str]:
        """By what they are called in a name: `auth_flow_r1`."""
        return {_in_name(one): one for one in self.ids}

    @cached_property
    def specs_in_names(self) -> dict[str, str]:
        return {_in_name(one.partition(":")[0]): one.partition(":")[0] for one in self.ids}


def find_marks(text: str, known: KnownRequirements) -> list[CoverageMark]:
    """In the order of the text, each requirement once a line."""
    found: dict[tuple[int, str], CoverageMark] = {}
    line, last = 1, 0
    for at, word in sorted([*_said(text), *_named(text, known)]):
        line += text.count("\n", last, at)
        last = at
        real = known.get(word)
        found.setdefault((line, real or word), CoverageMark(real or word, line, real is not None))
    return list(found.values())


def _said(text: str) -> Iterator[tuple[int, str]]:
    """A lone `R2` belongs to the spec before it."""
    for said in _SAID.finditer(text):
        at, spec = said.end(), ""
        while True:
            match = _FULL.match(text, at) or (_LONE.match(text, at) if spec else None)
            if match is None:
                break
            full = match.re is _FULL
            spec = match[1] if full else spec
            yield said.start(), f"{spec}:{(match[2] if full else match[0]).rstrip('.-')}"
            following = _NEXT.match(text, match.end())
            if following is None:
                break
            at = following.end()


def _named(text: str, known: KnownRequirements) -> Iterator[tuple[int, str]]:
    for match in _NAMED.finditer(text):
        rest = _in_name(_HUMP.sub("_", match[1] or match[2]))
        while rest:
            word, rest = _first_of(rest, known)
            if not word:
                break
            yield match.start(), word
            rest = rest.lstrip("_").removeprefix("and_").removeprefix("covers_")


def _first_of(name: str, known: KnownRequirements) -> tuple[str, str]:
    """The requirement that a name begins with, and what follows it. Of a spec nobody knows nothing is said."""
    pieces = name.split("_")
    for end in range(len(pieces), 0, -1):
        head = "_".join(pieces[:end])
        if head in known.in_names:
            return known.in_names[head], "_".join(pieces[end:])
        if head in known.specs_in_names and (id_ := _ID.match(name, len(head))):
            return f"{known.specs_in_names[head]}:{id_[1].upper().replace('_', '-')}", name[id_.end() :]
    return "", ""


def _in_name(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", word.casefold())


def known_requirements(requirements: Iterable[str]) -> KnownRequirements:
    return KnownRequirements(tuple(dict.fromkeys(requirements)))


# A comment, a decorator or nothing: what may stand between a mark and the test below it.
_BETWEEN = re.compile(r"\s*(?:#|//|/\*|\*|@|\[|--|;|%|$)")


@dataclass(frozen=True, slots=True)
class _MarkOwner:
    """Whom a mark belongs to, and the tests in it."""

    line: int
    name: str
    cases: tuple[TestCase, ...]


def covering_tests(
    path: str, text: str, known: KnownRequirements, removed: Collection[str]
) -> tuple[list[CoveringTest], list[TraceNote]]:
    found = find_marks(text, known) if "covers" in text.lower() else []
    if not found or not test_cases.is_test(path, text):
        return [], []
    scanned = scan_tests(path, text)
    lines = text.split("\n")
    covered: dict[tuple[int, str], list[str]] = {}
    notes: list[TraceNote] = []
    for mark in found:
        if problem := _problem(mark, removed):
            notes.append(TraceNote(path, mark.line, problem))
            continue
        owner = _owner(mark, scanned, lines)
        if scanned is not None and not any(case.skip is None for case in owner.cases):
            why = "is skipped" if owner.cases else "stands beside no test"
            what = f"{owner.name or 'the mark'} {why}, so nothing here covers {mark.requirement}"
            notes.append(TraceNote(path, mark.line, what))
            continue
        covered.setdefault((owner.line, owner.name), []).append(mark.requirement)
    tests = [CoveringTest(path, line, name, tuple(dict.fromkeys(some))) for (line, name), some in covered.items()]
    return tests, notes


def _problem(mark: CoverageMark, removed: Collection[str]) -> str | None:
    if mark.requirement in removed:
        return f"{mark.requirement} is removed by this change"
    return None if mark.known else f"{mark.requirement} is in no spec"


def _owner(mark: CoverageMark, scanned: ScannedTests | None, lines: list[str]) -> _MarkOwner:
    """The test around the mark or right below it, else the class or block around it, else the whole file."""
    if scanned is None:
        return _MarkOwner(mark.line, "", ())
    cases = sorted(scanned.cases, key=lambda case: case.first)
    at = bisect_right([case.first for case in cases], mark.line)
    if at and mark.line <= cases[at - 1].last:
        return _MarkOwner(cases[at - 1].line, cases[at - 1].leaf, (cases[at - 1],))
    if at < len(cases) and all(_BETWEEN.match(line) for line in lines[mark.line - 1 : cases[at].first - 1]):
        return _MarkOwner(cases[at].line, cases[at].leaf, (cases[at],))
    around = [one for one in scanned.groups if one.first <= mark.line <= one.last]
    if around:
        group = max(around, key=lambda one: one.first)
        inside = tuple(case for case in cases if group.first <= case.line <= group.last)
        return _MarkOwner(group.first, group.name.rpartition(" > ")[2], inside)
    return _MarkOwner(mark.line, "", tuple(cases))

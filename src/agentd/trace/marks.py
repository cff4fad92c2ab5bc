"""What a test says it covers: `covers: auth-flow:R1` in a comment or string, or `covers_auth_flow_R1` in a name."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

_SAID = re.compile(r"(?<![A-Za-z0-9])covers[ \t:=(\[\"'`]{1,8}(?=[a-z0-9])", re.IGNORECASE)
_FULL = re.compile(r"([a-z0-9][a-z0-9-]{0,63}):([a-z](?=[a-z.-]{0,32}[0-9])[a-z0-9.-]{0,63})", re.IGNORECASE)
_LONE = re.compile(r"[a-z](?=[a-z.-]{0,32}[0-9])[a-z0-9.-]{0,63}(?![\w:])", re.IGNORECASE)
_NEXT = re.compile(r"[\"'`]?[ \t]{0,8}(?:,|;|&|and\b)[ \t]{0,8}(?:and\b[ \t]{0,8})?[\"'`]?", re.IGNORECASE)
_NAMED = re.compile(r"(?<![A-Za-z0-9])(?i:covers)_(\w{2,200})|(?<=[a-z0-9_])Covers(?=[A-Z_])_?(\w{2,200})")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ID = re.compile(r"_?((?:[a-z]{1,16}_)?r[0-9]{1,6})(?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class Mark:
    """`requirement` as the specs write it where they know it, else as it stands."""

    requirement: str
    line: int
    known: bool


@dataclass(frozen=True)
class Known:
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


def find(text: str, known: Known) -> list[Mark]:
    """In the order of the text, each requirement once a line."""
    found: dict[tuple[int, str], Mark] = {}
    line, last = 1, 0
    for at, word in sorted([*_said(text), *_named(text, known)]):
        line += text.count("\n", last, at)
        last = at
        real = known.get(word)
        found.setdefault((line, real or word), Mark(real or word, line, real is not None))
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


def _named(text: str, known: Known) -> Iterator[tuple[int, str]]:
    for match in _NAMED.finditer(text):
        rest = _in_name(_HUMP.sub("_", match[1] or match[2]))
        while rest:
            word, rest = _first_of(rest, known)
            if not word:
                break
            yield match.start(), word
            rest = rest.lstrip("_").removeprefix("and_").removeprefix("covers_")


def _first_of(name: str, known: Known) -> tuple[str, str]:
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


def known_of(requirements: Iterable[str]) -> Known:
    return Known(tuple(dict.fromkeys(requirements)))

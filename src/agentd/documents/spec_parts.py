"""One scenario: GIVEN, WHEN, THEN, in the forms that people write them."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from agentd.documents.prose import ListItem, heading_text, means_none, read_fields, read_items, render_item
from agentd.documents.text import Document, LineKind, LineScanner, Section, Span, trim_lines

_HEADING = re.compile(r"scenario(?:\s++\d++(?:\.\d++)*+)?\s*+(?:[:–—-]\s*+(.*))?$", re.IGNORECASE)
_NUMBER = re.compile(r"\d++(?:\.\d++)*+[.)]?\s++")
_MARKED = re.compile(r"([*_]{1,3})(?=\S)")
_MARKER = r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?"
_BOLD = re.compile(_MARKER + r"(?:\*\*|__)(GIVEN|WHEN|THEN|AND|BUT):?(?:\*\*|__):?[ \t]*+(.*)", re.IGNORECASE)
_PLAIN = re.compile(_MARKER + r"(GIVEN|WHEN|THEN|AND|BUT):?[ \t]++(.*)")
# Looked for only where the two above find no WHEN with its THEN: a sentence may begin with these words too.
_LOOSE = re.compile(
    _MARKER + r"[*_]{0,3}(GIVEN|WHEN|THEN|AND|BUT|Given|When|Then|And|But):?[*_]{0,3}:?(?:[ \t]++(.*)|$)"
)
_BEFORE = frozenset("*_0123456789")
_GHERKIN = (["gherkin"], ["feature"])
_ID = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9-]*+):)?([A-Za-z](?=[A-Za-z.-]*+[0-9])[A-Za-z0-9.-]*+)")
_NEXT = re.compile(r"[`*_]*+\s*+(?:[,;&+/]|and\b)(?:\s*+and\b)?\s*+[`*_]*+")
# Words in code are not words of a scenario.
_INNER_BOLD = re.compile(r"`[^`]*+`|\*\*(GIVEN|WHEN|THEN|AND|BUT)\*\*:?\s*+")
_INNER_PLAIN = re.compile(r"`[^`]*+`|(?<!\S)(WHEN|THEN):?(?!\S)\s*+")
_INNER_LOOSE = re.compile(r"`[^`]*+`|(?<!\S)(WHEN|THEN|When|Then):?(?!\S)\s*+")


@dataclass(frozen=True, slots=True)
class Scenario:
    """An AND belongs to what stands before it. `requirement` is empty for one of the whole spec.

    One of another spec has that spec's id before it: `other:R1`.
    """

    name: str
    when: tuple[str, ...]
    then: tuple[str, ...]
    given: tuple[str, ...] = ()
    requirement: str = ""
    also: tuple[str, ...] = ()
    """Further requirements that it shows."""
    span: Span = field(default=Span(0, 0), compare=False)

    @property
    def line(self) -> int:
        return self.span.start


@dataclass(slots=True)
class _ScenarioStep:
    word: str
    texts: list[str]
    inner: re.Pattern[str]


def scenario_name(title: str) -> str | None:
    """The name in `Scenario: Name`; None when the heading is of something else."""
    match = _HEADING.match(_unmarked(title) if title[:1] in _BEFORE else title)
    return (match[1] or "").strip() if match else None


def _unmarked(title: str) -> str:
    """`**Scenario: A**` and `1. Scenario: A` without what stands around the words."""
    number = _NUMBER.match(title)
    title = title[number.end() :] if number else title
    marked = _MARKED.match(title)
    return title[marked.end() :].replace(marked[1], "", 1) if marked else title


def parse_scenario(
    document: Document, section: Section, span: Span, parent: str, own_ids: Collection[str] = ()
) -> Scenario:
    """The scenario under a heading, up to the end of the span; `parent` is the requirement it stands under.

    `own_ids` are the names of this spec: `Requirement: auth-flow:R1` is R1 there, and not here.
    """
    name = scenario_name(section.heading.title) or ""
    inner = Span(span.start + 1, span.end)
    named = read_fields(document, inner, {"requirement", "requirements"})
    references = {one.span.start for one in named}
    given, when, then = _sorted(_steps(document.plain(inner), references, loose=False))
    if not (when and then):
        # A heading may say it all: `Scenario: WHEN it rains THEN the roof closes`.
        stated = _PLAIN.match(name)
        from_name = _sorted([_ScenarioStep(stated[1], [stated[2]], _INNER_PLAIN)]) if stated else ((), (), ())
        given, when, then = given or from_name[0], when or from_name[1], then or from_name[2]
    if not (when and then):
        loose = _sorted(_steps(_with_gherkin(document, inner), references, loose=True))
        if loose[1] and loose[2]:
            given, when, then = loose
    requirement, *also = _references(named[0].value, own_ids) if named else (parent,)
    return Scenario(name, when, then, given, requirement, tuple(also), span)


def _steps(lines: Iterator[tuple[int, str]], references: Collection[int], *, loose: bool) -> list[_ScenarioStep]:
    steps: list[_ScenarioStep] = []
    last = 0
    for line, content in lines:
        bold = _BOLD.match(content)
        match = bold or (_LOOSE if loose else _PLAIN).match(content)
        if match:
            inner = _INNER_BOLD if bold else _INNER_LOOSE if loose else _INNER_PLAIN
            steps.append(_ScenarioStep(match[1].upper(), [match[2] or ""], inner))
        elif steps and _goes_on(content, line == last + 1) and line not in references:
            steps[-1].texts.append(content.removeprefix("  "))
        else:
            continue
        last = line
    return steps


def _with_gherkin(document: Document, span: Span) -> Iterator[tuple[int, str]]:
    """The plain lines, and those in a fence that says it holds scenarios."""
    scanner = LineScanner()
    for line in range(span.start, span.end + 1):
        content = document.content(line)
        inside = bool(scanner.closing)
        mark = scanner.feed(content)
        written = inside and bool(scanner.closing) and scanner.info.lower().split(maxsplit=1)[:1] in _GHERKIN
        if mark is LineKind.TEXT or (mark is LineKind.FENCE and written):
            yield line, content


def _goes_on(content: str, next_line: bool) -> bool:
    """Whether a line belongs to the step above it: right below it, or indented."""
    return bool(content.strip()) and (next_line or content.startswith("  "))


def _references(value: str, own_ids: Collection[str]) -> list[str]:
    """R1 in `R1`, `R1: Title` and `auth-flow:R1`; R1 and R2 in `R1, R2`."""
    word = re.split(r"[\s,;/&+]", value, maxsplit=1)[0].strip("`*_")
    spec, colon, rest = word.partition(":")
    if not rest:
        found, spec = [spec], ""
    else:
        spec = "" if spec in own_ids else spec
        found = [_of(spec, rest)]
    at = value.find(word) + len(word)
    while not (colon and not rest) and (gap := _NEXT.match(value, at)) and (one := _ID.match(value, gap.end())):
        spec = spec if one[1] is None else "" if one[1] in own_ids else one[1]
        found.append(_of(spec, one[2]))
        at = one.end()
    return found


def _of(spec: str, id_: str) -> str:
    return f"{spec}:{id_}" if spec else id_


def _sorted(steps: list[_ScenarioStep]) -> tuple[tuple[str, ...], ...]:
    """What is given, when and then, with a line that says several things taken apart."""
    parts: dict[str, list[str]] = {"GIVEN": [], "WHEN": [], "THEN": []}
    group = "GIVEN"
    for step in steps:
        for word, words in _taken_apart(step.word, trim_lines(step.texts), step.inner):
            group = word if word in parts else group
            if words:
                parts[group].append(words)
    return tuple(tuple(group) for group in parts.values())


def _taken_apart(word: str, text: str, inner: re.Pattern[str]) -> list[tuple[str, str]]:
    """`WHEN a THEN b` on one line; after THEN or AND a plain word in capitals is just a word."""
    if inner is not _INNER_BOLD and word not in ("GIVEN", "WHEN"):
        return [(word, text)]
    pieces: list[tuple[str, str]] = []
    start = 0
    for match in inner.finditer(text):
        if match[1]:
            pieces.append((word, text[start : match.start()].rstrip(" \n\t,;")))
            word, start = match[1].upper(), match.end()
    last = text[start:].strip()
    return [*pieces, (word, last)]


def _escaped(match: re.Match[str]) -> str:
    """A bold word of a scenario inside a step would begin another step."""
    return match[0].replace("*", r"\*") if match[1] else match[0]


def render_scenario(scenario: Scenario) -> str:
    lines = [f"### Scenario: {heading_text(scenario.name)}", ""]
    if scenario.requirement:
        lines.append(f"- **Requirement**: {', '.join((scenario.requirement, *scenario.also))}")
    for word, texts in (("GIVEN", scenario.given), ("WHEN", scenario.when), ("THEN", scenario.then)):
        for number, text in enumerate(texts):
            lines.append(render_item(f"**{'AND' if number else word}** {_INNER_BOLD.sub(_escaped, text)}"))
    return "\n".join(lines)


REQUIREMENT_PATTERN = re.compile(r"^###\s+((?:[A-Z]+-)?R\d+)(?::|\s+-)\s+(\S.*)$")
"""Heading of a requirement: its id, its title. `[validation] requirement_pattern` replaces it."""

_LEVELS = ("###", "##", "####")
_ARROW = re.compile(r"\s*+(?:→|->|=>)\s*+")
_LONGEST = 1000  # characters of an entry under Removed or Renamed; a longer one is no title

Unread = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class RequirementName:
    """A requirement by id and title, as in `R4: Error format`."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class RemovedItem:
    """A requirement by its id, or a scenario by its title; then the id is empty."""

    id: str
    title: str = ""
    reason: str = ""
    span: Span = field(default=Span(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class RenamedRequirement:
    old: RequirementName
    new: RequirementName
    span: Span = field(default=Span(0, 0), compare=False)


def named_requirement(text: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN) -> RequirementName | None:
    """The requirement that an entry names: `R4: Error format`, **R4**: Error format, or R4 alone."""
    words = text.strip()
    if words.startswith(("**", "`")):
        words = words.replace("**", "", 2).replace("`", "", 2)
    if not words or len(words) > _LONGEST:
        return None
    bare = words.rstrip(": -")
    for level in _LEVELS:
        match = pattern.match(f"{level} {words}")
        if match:
            return requirement_from_match(match)
        alone = pattern.match(f"{level} {bare}: x")
        if alone and requirement_from_match(alone).id == bare:
            return RequirementName(bare, "")
    return None


def requirement_from_match(match: re.Match[str]) -> RequirementName:
    """A pattern of the project's own may have no group for the title."""
    title = match[2] if match.re.groups > 1 else ""
    return RequirementName((match[1] if match.re.groups else match[0]) or "", (title or "").strip())


def _entries(document: Document, title: str) -> tuple[ListItem, ...]:
    section = document.section(title) or document.section(f"{title} Requirements")
    return read_items(document, section.inner) if section else ()


def read_removed(document: Document, pattern: re.Pattern[str]) -> tuple[tuple[RemovedItem, ...], Unread]:
    good: list[RemovedItem] = []
    bad: list[tuple[str, int]] = []
    for entry in _entries(document, "Removed"):
        title = scenario_name(entry.text) if len(entry.text) <= _LONGEST else None
        name = RequirementName("", title) if title else named_requirement(entry.text, pattern)
        if name and entry.bulleted:
            reason = next((one.full for one in read_fields(document, entry.below, {"reason"})), "")
            good.append(RemovedItem(name.id, name.title, reason, entry.span))
        elif not means_none(entry.text):
            bad.append((entry.text[:60], entry.span.start))
    return tuple(good), tuple(bad)


def read_renamed(document: Document, pattern: re.Pattern[str]) -> tuple[tuple[RenamedRequirement, ...], Unread]:
    good: list[RenamedRequirement] = []
    bad: list[tuple[str, int]] = []
    for entry in _entries(document, "Renamed"):
        pair = _pair(entry.text, pattern) if entry.bulleted and len(entry.text) <= _LONGEST else None
        if pair:
            good.append(RenamedRequirement(*pair, entry.span))
        elif not means_none(entry.text):
            bad.append((entry.text[:60], entry.span.start))
    return tuple(good), tuple(bad)


def _pair(text: str, pattern: re.Pattern[str]) -> tuple[RequirementName, RequirementName] | None:
    """Split at the first arrow that has a requirement on both sides: a title may hold arrows too."""
    for arrow in _ARROW.finditer(text):
        old, new = named_requirement(text[: arrow.start()], pattern), named_requirement(text[arrow.end() :], pattern)
        if old and new:
            return old, new
    return None

"""Scenarios (GIVEN, WHEN, THEN), and the Removed and Renamed entries of a delta."""

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
# Only used if the two above find no WHEN with a THEN, because a sentence may begin with these words too.
_LOOSE = re.compile(
    _MARKER + r"[*_]{0,3}(GIVEN|WHEN|THEN|AND|BUT|Given|When|Then|And|But):?[*_]{0,3}:?(?:[ \t]++(.*)|$)"
)
_BEFORE = frozenset("*_0123456789")
_GHERKIN = (["gherkin"], ["feature"])
_ID = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9-]*+):)?([A-Za-z](?=[A-Za-z.-]*+[0-9])[A-Za-z0-9.-]*+)")
_NEXT = re.compile(r"[`*_]*+\s*+(?:[,;&+/]|and\b)(?:\s*+and\b)?\s*+[`*_]*+")
# Keywords inside code are ignored.
_INNER_BOLD = re.compile(r"`[^`]*+`|\*\*(GIVEN|WHEN|THEN|AND|BUT)\*\*:?\s*+")
_INNER_PLAIN = re.compile(r"`[^`]*+`|(?<!\S)(WHEN|THEN):?(?!\S)\s*+")
_INNER_LOOSE = re.compile(r"`[^`]*+`|(?<!\S)(WHEN|THEN|When|Then):?(?!\S)\s*+")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario. An AND belongs to the keyword before it.

    `requirement` is empty if the scenario covers the whole spec. A requirement of another spec is prefixed with that
    spec's id: `other:R1`.
    """

    name: str
    when: tuple[str, ...]
    then: tuple[str, ...]
    given: tuple[str, ...] = ()
    requirement: str = ""
    also: tuple[str, ...] = ()
    """Further requirements that it covers."""
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
    """Return the name in `Scenario: Name`, or None if this is not a scenario heading."""
    match = _HEADING.match(_strip_markers(title) if title[:1] in _BEFORE else title)
    return (match[1] or "").strip() if match else None


def _strip_markers(title: str) -> str:
    """Strip bold markers and a leading number: `**Scenario: A**`, `1. Scenario: A`."""
    number = _NUMBER.match(title)
    title = title[number.end() :] if number else title
    marked = _MARKED.match(title)
    return title[marked.end() :].replace(marked[1], "", 1) if marked else title


def parse_scenario(
    document: Document, section: Section, span: Span, parent: str, own_ids: Collection[str] = ()
) -> Scenario:
    """Parse the scenario under a heading, up to the end of the span. `parent` is the enclosing requirement.

    `own_ids` are the ids of this spec: in the spec auth-flow, `Requirement: auth-flow:R1` means R1.
    """
    name = scenario_name(section.heading.title) or ""
    inner = Span(span.start + 1, span.end)
    named = read_fields(document, inner, {"requirement", "requirements"})
    references = {one.span.start for one in named}
    given, when, then = _group_steps(_steps(document.plain_lines(inner), references, loose=False))
    if not (when and then):
        # The heading may contain the steps: `Scenario: WHEN it rains THEN the roof closes`.
        stated = _PLAIN.match(name)
        from_name = _group_steps([_ScenarioStep(stated[1], [stated[2]], _INNER_PLAIN)]) if stated else ((), (), ())
        given, when, then = given or from_name[0], when or from_name[1], then or from_name[2]
    if not (when and then):
        loose = _group_steps(_steps(_with_gherkin(document, inner), references, loose=True))
        if loose[1] and loose[2]:
            given, when, then = loose
    requirement, *also = _parse_references(named[0].value, own_ids) if named else (parent,)
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
        elif steps and _continues_step(content, line == last + 1) and line not in references:
            steps[-1].texts.append(content.removeprefix("  "))
        else:
            continue
        last = line
    return steps


def _with_gherkin(document: Document, span: Span) -> Iterator[tuple[int, str]]:
    """Yield plain lines and those inside a gherkin fence."""
    scanner = LineScanner()
    for line in range(span.start, span.end + 1):
        content = document.content(line)
        inside = bool(scanner.closing)
        mark = scanner.feed(content)
        written = inside and bool(scanner.closing) and scanner.info.lower().split(maxsplit=1)[:1] in _GHERKIN
        if mark is LineKind.TEXT or (mark is LineKind.FENCE and written):
            yield line, content


def _continues_step(content: str, next_line: bool) -> bool:
    """Return whether a line continues the step above it: it is directly below it, or indented."""
    return bool(content.strip()) and (next_line or content.startswith("  "))


def _parse_references(value: str, own_ids: Collection[str]) -> list[str]:
    """Parse requirement references: `R1`, `R1: Title`, `auth-flow:R1`, `R1, R2`."""
    word = re.split(r"[\s,;/&+]", value, maxsplit=1)[0].strip("`*_")
    spec, colon, rest = word.partition(":")
    if not rest:
        found, spec = [spec], ""
    else:
        spec = "" if spec in own_ids else spec
        found = [_qualify(spec, rest)]
    at = value.find(word) + len(word)
    while not (colon and not rest) and (gap := _NEXT.match(value, at)) and (one := _ID.match(value, gap.end())):
        spec = spec if one[1] is None else "" if one[1] in own_ids else one[1]
        found.append(_qualify(spec, one[2]))
        at = one.end()
    return found


def _qualify(spec: str, id_: str) -> str:
    return f"{spec}:{id_}" if spec else id_


def _group_steps(steps: list[_ScenarioStep]) -> tuple[tuple[str, ...], ...]:
    """Sort steps into given, when and then, splitting lines with several keywords."""
    parts: dict[str, list[str]] = {"GIVEN": [], "WHEN": [], "THEN": []}
    group = "GIVEN"
    for step in steps:
        for word, words in _split_keywords(step.word, trim_lines(step.texts), step.inner):
            group = word if word in parts else group
            if words:
                parts[group].append(words)
    return tuple(tuple(group) for group in parts.values())


def _split_keywords(word: str, text: str, inner: re.Pattern[str]) -> list[tuple[str, str]]:
    """Split `WHEN a THEN b` on one line. After THEN or AND, an uppercase keyword counts only in bold."""
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


def _escape_keyword(match: re.Match[str]) -> str:
    """Escape a bold keyword inside a step, which would start another step."""
    return match[0].replace("*", r"\*") if match[1] else match[0]


def render_scenario(scenario: Scenario) -> str:
    lines = [f"### Scenario: {heading_text(scenario.name)}", ""]
    if scenario.requirement:
        lines.append(f"- **Requirement**: {', '.join((scenario.requirement, *scenario.also))}")
    for word, texts in (("GIVEN", scenario.given), ("WHEN", scenario.when), ("THEN", scenario.then)):
        for number, text in enumerate(texts):
            lines.append(render_item(f"**{'AND' if number else word}** {_INNER_BOLD.sub(_escape_keyword, text)}"))
    return "\n".join(lines)


REQUIREMENT_PATTERN = re.compile(r"^###\s+((?:[A-Z]+-)?R\d+)(?::|\s+-)\s+(\S.*)$")
"""A requirement heading: id and title. Overridden by `[validation] requirement_pattern`."""

_LEVELS = ("###", "##", "####")
_ARROW = re.compile(r"\s*+(?:→|->|=>)\s*+")
_MAX_LENGTH = 1000  # characters; anything longer under Removed or Renamed is not a title

Unread = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class RequirementName:
    """The id and title of a requirement, as in `R4: Error format`."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class RemovedItem:
    """A requirement by its id, or a scenario by its title (with an empty id)."""

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
    """Parse the requirement in an entry: `R4: Error format`, **R4**: Error format, or R4 alone."""
    words = text.strip()
    if words.startswith(("**", "`")):
        words = words.replace("**", "", 2).replace("`", "", 2)
    if not words or len(words) > _MAX_LENGTH:
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
    """Return the id and title of a match. A custom pattern may lack a group for the title."""
    title = match[2] if match.re.groups > 1 else ""
    return RequirementName((match[1] if match.re.groups else match[0]) or "", (title or "").strip())


def _entries(document: Document, title: str) -> tuple[ListItem, ...]:
    section = document.section(title) or document.section(f"{title} Requirements")
    return read_items(document, section.inner) if section else ()


def read_removed(document: Document, pattern: re.Pattern[str]) -> tuple[tuple[RemovedItem, ...], Unread]:
    parsed: list[RemovedItem] = []
    unread: list[tuple[str, int]] = []
    for entry in _entries(document, "Removed"):
        title = scenario_name(entry.text) if len(entry.text) <= _MAX_LENGTH else None
        name = RequirementName("", title) if title else named_requirement(entry.text, pattern)
        if name and entry.bulleted:
            reason = next((one.full for one in read_fields(document, entry.below, {"reason"})), "")
            parsed.append(RemovedItem(name.id, name.title, reason, entry.span))
        elif not means_none(entry.text):
            unread.append((entry.text[:60], entry.span.start))
    return tuple(parsed), tuple(unread)


def read_renamed(document: Document, pattern: re.Pattern[str]) -> tuple[tuple[RenamedRequirement, ...], Unread]:
    parsed: list[RenamedRequirement] = []
    unread: list[tuple[str, int]] = []
    for entry in _entries(document, "Renamed"):
        pair = _parse_rename(entry.text, pattern) if entry.bulleted and len(entry.text) <= _MAX_LENGTH else None
        if pair:
            parsed.append(RenamedRequirement(*pair, entry.span))
        elif not means_none(entry.text):
            unread.append((entry.text[:60], entry.span.start))
    return tuple(parsed), tuple(unread)


def _parse_rename(text: str, pattern: re.Pattern[str]) -> tuple[RequirementName, RequirementName] | None:
    """Split at the first arrow that has a requirement on both sides, because titles may contain arrows too."""
    for arrow in _ARROW.finditer(text):
        old, new = named_requirement(text[: arrow.start()], pattern), named_requirement(text[arrow.end() :], pattern)
        if old and new:
            return old, new
    return None

"""One scenario: GIVEN, WHEN, THEN, in the forms that people write them."""

import re
from dataclasses import dataclass, field

from agentd.documents.prose import fields, item, one_line
from agentd.documents.text import Document, Section, Span, trim

_HEADING = re.compile(r"scenario(?:\s++\d++)?\s*+(?:[:–—-]\s*+(.*))?$", re.IGNORECASE)
_MARKER = r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?"
_BOLD = re.compile(_MARKER + r"(?:\*\*|__)(GIVEN|WHEN|THEN|AND|BUT):?(?:\*\*|__):?[ \t]*+(.*)", re.IGNORECASE)
_PLAIN = re.compile(_MARKER + r"(GIVEN|WHEN|THEN|AND|BUT):?[ \t]++(.*)")
# Words in code are not words of a scenario.
_INNER_BOLD = re.compile(r"`[^`]*+`|\*\*(GIVEN|WHEN|THEN|AND|BUT)\*\*:?\s*+")
_INNER_PLAIN = re.compile(r"`[^`]*+`|(?<!\S)(WHEN|THEN):?(?!\S)\s*+")


@dataclass(frozen=True, slots=True)
class Scenario:
    """An AND belongs to what stands before it. `requirement` is empty for one of the whole spec."""

    name: str
    when: tuple[str, ...]
    then: tuple[str, ...]
    given: tuple[str, ...] = ()
    requirement: str = ""
    span: Span = field(default=Span(0, 0), compare=False)

    @property
    def line(self) -> int:
        return self.span.start


@dataclass(slots=True)
class _Step:
    word: str
    texts: list[str]
    bold: bool


def name_of(title: str) -> str | None:
    """The name in `Scenario: Name`; None when the heading is of something else."""
    match = _HEADING.match(title)
    return (match[1] or "").strip() if match else None


def parse(document: Document, section: Section, span: Span, parent: str) -> Scenario:
    """The scenario under a heading, up to the end of the span; `parent` is the requirement it stands under."""
    name = name_of(section.heading.title) or ""
    inner = Span(span.start + 1, span.end)
    named = fields(document, inner, {"requirement", "requirements"})
    references = {one.span.start for one in named}
    steps: list[_Step] = []
    last = 0
    for line, content in document.plain(inner):
        bold = _BOLD.match(content)
        match = bold or _PLAIN.match(content)
        if match:
            steps.append(_Step(match[1].upper(), [match[2]], bold is not None))
        elif steps and _goes_on(content, line == last + 1) and line not in references:
            steps[-1].texts.append(content.removeprefix("  "))
        else:
            continue
        last = line
    given, when, then = _sorted(steps)
    if not (when and then):
        # A heading may say it all: `Scenario: WHEN it rains THEN the roof closes`.
        stated = _PLAIN.match(name)
        from_name = _sorted([_Step(stated[1], [stated[2]], False)]) if stated else ((), (), ())
        given, when, then = given or from_name[0], when or from_name[1], then or from_name[2]
    return Scenario(name, when, then, given, _reference(named[0].value) if named else parent, span)


def _goes_on(content: str, next_line: bool) -> bool:
    """Whether a line belongs to the step above it: right below it, or indented."""
    return bool(content.strip()) and (next_line or content.startswith("  "))


def _reference(value: str) -> str:
    """R1 in `R1`, `R1: Title`, `R1, R2` and `auth-flow:R1`."""
    word = re.split(r"[\s,]", value, maxsplit=1)[0].strip("`*_")
    spec, colon, rest = word.partition(":")
    return rest if colon and rest else spec


def _sorted(steps: list[_Step]) -> tuple[tuple[str, ...], ...]:
    """What is given, when and then, with a line that says several things taken apart."""
    parts: dict[str, list[str]] = {"GIVEN": [], "WHEN": [], "THEN": []}
    group = "GIVEN"
    for step in steps:
        for word, words in _taken_apart(step.word, trim(step.texts), step.bold):
            group = word if word in parts else group
            if words:
                parts[group].append(words)
    return tuple(tuple(group) for group in parts.values())


def _taken_apart(word: str, text: str, bold: bool) -> list[tuple[str, str]]:
    """`WHEN a THEN b` on one line; after THEN or AND a plain word in capitals is just a word."""
    if not bold and word not in ("GIVEN", "WHEN"):
        return [(word, text)]
    pieces: list[tuple[str, str]] = []
    start = 0
    for match in (_INNER_BOLD if bold else _INNER_PLAIN).finditer(text):
        if match[1]:
            pieces.append((word, text[start : match.start()].rstrip(" \n\t,;")))
            word, start = match[1].upper(), match.end()
    last = text[start:].strip()
    return [*pieces, (word, last)]


def render(scenario: Scenario) -> str:
    lines = [f"### Scenario: {one_line(scenario.name)}", ""]
    if scenario.requirement:
        lines.append(f"- **Requirement**: {scenario.requirement}")
    for word, texts in (("GIVEN", scenario.given), ("WHEN", scenario.when), ("THEN", scenario.then)):
        for number, text in enumerate(texts):
            lines.append(item(f"**{'AND' if number else word}** {text}"))
    return "\n".join(lines)

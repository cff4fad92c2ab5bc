"""A spec split into the units that a merge compares, requirements and scenarios; also conflict markers."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentd.documents import (
    Document,
    Heading,
    InvalidDocument,
    Scenario,
    Section,
    Span,
    Spec,
    parse_document,
    read_fields,
    read_frontmatter,
    read_spec,
    requirement_from_match,
    scenario_name,
    trim_lines,
)

YOURS, BASE, MIDDLE, THEIRS = "<<<<<<< yours", "||||||| base", "=======", ">>>>>>> theirs"
_MARK = re.compile(r"(<{7}|\|{7}|>{7})(?: |$)")


def find_conflict_markers(text: str, name: str) -> tuple[int, ...]:
    """Return the lines with conflict markers, including git's own, outside code and comments.

    `=======` may underline a heading, so it is a marker only after an opening marker.
    """
    return conflict_markers_in(parse_document(text, name))


def conflict_markers_in(document: Document) -> tuple[int, ...]:
    if not any(mark in document.text for mark in ("<<<<<<<", "|||||||", ">>>>>>>")):
        return ()
    found: list[int] = []
    is_open = False
    for line, content in document.plain_lines(document.span):
        mark = _MARK.match(content) if content[:1] in ("<", "|", ">") else None
        if mark:
            is_open = not content.startswith(">")
        if mark or (is_open and content.rstrip() == MIDDLE):
            found.append(line)
    return tuple(found)


def with_markers(yours: Sequence[str], ancestor: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Return three versions as lines between conflict markers; an empty version means that the unit does not exist."""
    return [YOURS, *yours, BASE, *ancestor, MIDDLE, *theirs, THEIRS]


def as_comment(lines: Sequence[str]) -> list[str]:
    """Wrap lines in a comment, for places where they would be parsed as something else."""
    return ["<!--", *(line.replace("-->", "--&gt;") for line in lines), "-->"] if lines else []


Key = tuple[str, str]
"""A scenario by its requirement, empty for one of the whole spec, and its title."""

ACCEPTANCE_CRITERIA = "Acceptance Criteria"
_LABELS = frozenset({"requirement", "requirements"})
_LIKE = re.compile(r"[*_`]*+(?:requirement\b|(?:[A-Z]++-?+)++\d)", re.IGNORECASE)
_GROUP = re.compile(r"((?:[A-Z]+-)?R\d+)(?!\w)")


def _line(heading: Heading) -> int:
    return heading.line


@dataclass(frozen=True, slots=True)
class RequirementUnit:
    """A requirement. `words` is its text for comparison: without the heading, inner headings relative to its level."""

    id: str
    title: str
    words: str
    level: int
    own: tuple[Span, ...]
    end: int
    """The last line of what belongs to it, scenarios right below it included."""

    @property
    def line(self) -> int:
        return self.own[0].start

    @property
    def name(self) -> tuple[str, str]:
        return self.id, self.title


@dataclass(frozen=True, slots=True)
class ScenarioUnit:
    """A scenario. `words` leaves out the heading and the line that names requirements."""

    title: str
    refs: tuple[str, ...]
    written: tuple[str, ...]
    """The requirements as its text names them; `refs` are those of the merge, after renames and removals."""
    words: str
    level: int
    span: Span
    field: int | None
    """The line that names its requirements; without one the place where it stands names it."""
    is_inside: bool

    @property
    def requirement(self) -> str:
        return self.refs[0] if self.refs else ""

    @property
    def key(self) -> Key:
        return self.requirement, self.title

    @property
    def value(self) -> tuple[tuple[str, ...], str]:
        return self.refs, self.words


@dataclass(frozen=True, slots=True)
class SpecUnits:
    """A spec with its units. `groups` are headings under Acceptance Criteria that name a requirement."""

    document: Document
    spec: Spec
    pattern: re.Pattern[str]
    requirements: Mapping[str, RequirementUnit]
    scenarios: Mapping[Key, ScenarioUnit]
    groups: tuple[tuple[str, Section], ...]

    def headings_in(self, span: Span) -> Sequence[Heading]:
        headings = self.document.headings
        first = bisect_left(headings, span.start, key=_line)
        return headings[first : bisect_left(headings, span.end + 1, lo=first, key=_line)]

    def last_line(self, span: Span) -> int:
        """Return the last non-blank line of a span, or the line before the span if all are blank."""
        line = span.end
        while line >= span.start and not self.document.content(line).strip():
            line -= 1
        return line


def read_units(text: str, name: str, pattern: re.Pattern[str]) -> SpecUnits:
    """Split a text into units. Raise InvalidDocument if it is ambiguous."""
    document = parse_document(text, name)
    spec = read_spec(document, read_frontmatter(document), pattern)
    _refuse(document, spec)
    ends, inside = _blocks(spec)
    lines = [heading.line for heading in document.headings]
    requirements: dict[str, RequirementUnit] = {}
    for one in spec.requirements:
        if one.id in requirements:
            raise InvalidDocument(name, one.line, f"{one.id} occurs twice, first on line {requirements[one.id].line}")
        heading = document.headings[bisect_left(lines, one.line)]
        body = (Span(one.own[0].start + 1, one.own[0].end), *one.own[1:])
        words = _words(document, lines, body, heading.level)
        title = _title(f"{'#' * heading.level} {heading.title}", pattern)
        requirements[one.id] = RequirementUnit(one.id, title, words, heading.level, one.own, ends[one.line])
    scenarios: dict[Key, ScenarioUnit] = {}
    for found in spec.scenarios:
        unit = _scenario(document, lines, found, found.line in inside)
        if unit.key in scenarios:
            first = scenarios[unit.key].span.start
            raise InvalidDocument(name, found.line, f"the scenario '{unit.title}' occurs twice, first on line {first}")
        scenarios[unit.key] = unit
    return SpecUnits(document, spec, pattern, requirements, scenarios, _groups(document, pattern))


def _refuse(document: Document, spec: Spec) -> None:
    if document.closing:
        problem = f"a code fence or comment is not closed; close it with {document.closing}"
        raise InvalidDocument(document.name, len(document.lines), problem)
    for line in conflict_markers_in(document):
        raise InvalidDocument(document.name, line, "an unresolved conflict; resolve it and delete the conflict markers")
    for heading in spec.strays:
        if _LIKE.match(heading.title):
            problem = f"'{heading.title[:60]}' cannot be read as a requirement; write `### R1: Title`"
            raise InvalidDocument(document.name, heading.line, problem)


def _scenario(document: Document, lines: list[int], found: Scenario, is_inside: bool) -> ScenarioUnit:
    inner = Span(found.span.start + 1, found.span.end)
    named = read_fields(document, inner, _LABELS)
    field = named[0].span.start if named else None
    level = document.headings[bisect_left(lines, found.line)].level
    refs = tuple(dict.fromkeys(ref for ref in (found.requirement, *found.also) if ref))
    words = _words(document, lines, (inner,), level, field)
    return ScenarioUnit(found.name, refs, refs, words, level, found.span, field, is_inside)


def _words(document: Document, lines: list[int], spans: Iterable[Span], level: int, without: int | None = None) -> str:
    """Return the text for comparison, regardless of its position, heading levels and blank lines."""
    parts: list[str] = []
    for span in spans:
        contents: list[str | None] = [*document.contents[span.start - 1 : span.end]]
        starts = [0]
        for at in range(bisect_left(lines, span.start), bisect_left(lines, span.end + 1)):
            heading = document.headings[at]
            starts.append(heading.line - span.start)
            contents[starts[-1]] = f"{'#' * max(1, heading.level - level)} {heading.title}"
        if without is not None:
            contents[without - span.start] = None
        for start, end in pairwise((*starts, len(contents))):
            parts.append(trim_lines([content for content in contents[start:end] if content is not None]))
    return "\n\n".join(part for part in parts if part)


def _title(heading: str, pattern: re.Pattern[str]) -> str:
    """Return the title of a requirement; if the pattern has no group for it, the rest of the heading."""
    match = pattern.match(heading)
    assert match, "a requirement was found by its heading"
    if pattern.groups > 1:
        return requirement_from_match(match).title
    start, end = match.span(1 if pattern.groups else 0)
    return (heading[:start] + heading[end:]).strip(" \t#:-")


def rename_heading(heading: str, pattern: re.Pattern[str], id_: str, title: str) -> str:
    """Return a heading with another id and title, keeping its style."""
    match = pattern.match(heading)
    assert match, "a requirement was found by its heading"
    start, end = match.span(1 if pattern.groups else 0)
    if pattern.groups < 2:
        return heading[:start] + id_ + heading[end:]
    second = match.span(2)
    return heading[:start] + id_ + heading[end : second[0]] + title + heading[second[1] :]


def _blocks(spec: Spec) -> tuple[dict[int, int], set[int]]:
    """Return where each requirement ends, by its first line, and the first lines of scenarios inside one."""
    units = sorted(
        [(one.line, one.span.end, True) for one in spec.requirements]
        + [(one.line, one.span.end, False) for one in spec.scenarios]
    )
    ends: dict[int, int] = {}
    inside: set[int] = set()
    current = 0
    for start, end, is_requirement in units:
        if is_requirement:
            current = start
            ends[start] = end
        elif current and start <= ends[current] + 1:
            ends[current] = max(ends[current], end)
            inside.add(start)
        else:
            current = 0
    return ends, inside


def _groups(document: Document, pattern: re.Pattern[str]) -> tuple[tuple[str, Section], ...]:
    criteria = document.section(ACCEPTANCE_CRITERIA)
    found: list[tuple[str, Section]] = []
    for section in document.sections if criteria else ():
        heading = section.heading
        if criteria and heading.line in criteria.inner and scenario_name(heading.title) is None:
            match = pattern.match(f"{'#' * heading.level} {heading.title}")
            like = _GROUP.match(heading.title)
            if match or like:
                found.append((requirement_from_match(match).id if match else like[1] if like else "", section))
    return tuple(found)


def requirement_heading(parsed: SpecUnits, one: RequirementUnit, id_: str, title: str) -> str:
    """Return the heading of a requirement with this id and title; unchanged if they are its own."""
    content = parsed.document.content(one.line)
    if (id_, title) == one.name:
        return content
    shown = content.strip().lstrip("#").strip()
    return rename_heading(f"{'#' * one.level} {shown}", parsed.pattern, id_, title)


def heading_at_level(content: str, level: int) -> str:
    """Return a heading at another level."""
    return "#" * min(level, 6) + content.lstrip(" ").lstrip("#")


def requirement_body(parsed: SpecUnits, one: RequirementUnit, level: int) -> list[str]:
    """Return the lines below the heading of a requirement, without its scenarios."""
    first = Span(one.line + 1, one.own[0].end)
    lines: list[str] = []
    for span in (first, *one.own[1:]):
        piece = _lines(parsed, span, level - one.level)
        lines += ["", *piece] if lines and piece else piece
    return lines


def requirement_lines(parsed: SpecUnits, one: RequirementUnit, head: str, level: int) -> list[str]:
    return [heading_at_level(head, level), *requirement_body(parsed, one, level)]


def scenario_lines(
    parsed: SpecUnits, one: ScenarioUnit, level: int, names: Mapping[str, str], is_named_by_place: bool
) -> list[str]:
    """Return a scenario with its heading, plus a line that names its requirement if its position does not."""
    lines = _lines(parsed, one.span, level - one.level)
    if one.field is not None:
        at = one.field - one.span.start
        lines[at] = reference_line(lines[at], one, names)
    elif one.refs and not is_named_by_place:
        first = next((at for at, line in enumerate(lines) if at and line.strip()), len(lines))
        field = [f"- **Requirement**: {', '.join(one.refs)}"]
        if first == len(lines) or not lines[first].lstrip().startswith(("- ", "* ", "+ ")):
            field.append("")
        lines = [lines[0], "", *field, *lines[first:]]
    return lines[:-1] if not lines[-1] else lines


def reference_line(content: str, one: ScenarioUnit, names: Mapping[str, str]) -> str:
    """Return the line that names a scenario's requirements, with new names and without removed ones."""
    if one.refs == one.written:
        return content
    start = content.index(":") + 1
    pieces: list[tuple[int, int, str | None]] = []
    for ref in one.written:
        id_ = ref.rpartition(":")[2]
        at = content.index(id_, start)
        qualified = content.rfind(":", start, at) == at - 1 and at > start
        begin = max(content.rfind(char, 0, at) for char in " \t,;&+/`*_") + 1 if qualified else at
        new = names.get(ref, ref)
        pieces.append((begin, at + len(id_), None if new not in one.refs else new if new != ref else ""))
        start = at + len(id_)
    return _without_gone(content, pieces)


def _without_gone(content: str, pieces: list[tuple[int, int, str | None]]) -> str:
    """Replace pieces of a line.

    Each piece has a position and a new text: empty keeps it, None removes it together with the separator before it.
    """
    written = content[: pieces[0][0]]
    is_first = True
    for number, (start, end, new) in enumerate(pieces):
        if new is None:
            continue
        if not is_first:
            written += content[pieces[number - 1][1] : start]
        written += new or content[start:end]
        is_first = False
    return written + content[pieces[-1][1] :]


def _lines(parsed: SpecUnits, span: Span, deeper: int) -> list[str]:
    """Return the lines of a span without trailing blank lines, with headings `deeper` levels down."""
    span = Span(span.start, parsed.last_line(span))
    lines = list(parsed.document.contents[span.start - 1 : max(span.end, span.start - 1)])
    if deeper:
        for inner in parsed.headings_in(span):
            lines[inner.line - span.start] = heading_at_level(lines[inner.line - span.start], inner.level + deeper)
    return lines

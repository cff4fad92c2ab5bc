"""Units as lines for another place: headings as deep as there, requirements named as there."""

from collections.abc import Mapping

from agentd.documents import Span
from agentd.merge.units import RequirementUnit, ScenarioUnit, SpecUnits, rename_heading


def requirement_heading(sheet: SpecUnits, one: RequirementUnit, id_: str, title: str) -> str:
    """The heading of a requirement with this id and title; as it stands where they are its own."""
    content = sheet.document.content(one.line)
    if (id_, title) == one.name:
        return content
    shown = content.strip().lstrip("#").strip()
    return rename_heading(f"{'#' * one.level} {shown}", sheet.pattern, id_, title)


def heading_at_level(content: str, level: int) -> str:
    """A heading as deep as it should be."""
    return "#" * min(level, 6) + content.lstrip(" ").lstrip("#")


def requirement_body(sheet: SpecUnits, one: RequirementUnit, level: int) -> list[str]:
    """The lines below the heading of a requirement, without the scenarios among them."""
    first = Span(one.line + 1, one.own[0].end)
    lines: list[str] = []
    for span in (first, *one.own[1:]):
        piece = _lines(sheet, span, level - one.level)
        lines += ["", *piece] if lines and piece else piece
    return lines


def requirement_lines(sheet: SpecUnits, one: RequirementUnit, head: str, level: int) -> list[str]:
    return [heading_at_level(head, level), *requirement_body(sheet, one, level)]


def scenario_lines(
    sheet: SpecUnits, one: ScenarioUnit, level: int, names: Mapping[str, str], is_named_by_place: bool
) -> list[str]:
    """A scenario with its heading. One whose place does not name its requirement says it in a line."""
    lines = _lines(sheet, one.span, level - one.level)
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
    """The line that names a scenario's requirements, with the new names and without those that are gone."""
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
    """Each piece has its place and its new words: empty to stay, None to go with what joins it to the one before."""
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


def _lines(sheet: SpecUnits, span: Span, deeper: int) -> list[str]:
    """The lines of a span without the blank ones at its end."""
    span = Span(span.start, sheet.last_line(span))
    lines = list(sheet.document.contents[span.start - 1 : max(span.end, span.start - 1)])
    if deeper:
        for inner in sheet.headings_in(span):
            lines[inner.line - span.start] = heading_at_level(lines[inner.line - span.start], inner.level + deeper)
    return lines

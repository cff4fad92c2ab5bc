"""Fix mechanical faults whose intent is unambiguous."""

import re
from collections.abc import Iterator

from agentd.documents import (
    PROPOSAL_FILE,
    Document,
    Heading,
    InvalidDocument,
    Span,
    decode_text,
    gather_blocks,
    parse_document,
    parse_spec,
    read_frontmatter,
    set_frontmatter_keys,
)
from agentd.validation.rule import DOCUMENT_KINDS, RuleSettings, spec_id

# After the id: punctuation that is not part of a number (`R1.1`), or a blank and the first word of a title.
_LOOSE = re.compile(
    r"(?:requirement\s++(?=\S))?((?:[A-Z]++-)?R\d++|(?<=\s)\d++)"
    r"(?:\s*+[:.)](?!\d)\s*+|\s++[–—-]\s*+(?!\d)|[–—-]\s++|\s++(?!(?:and|or|to|vs|with)\b)(?=[^\W\d_]))"
    r"(.*[^\W\d_].*)",
    re.IGNORECASE,
)


def fix_document(name: str, data: bytes, change_id: str, base_version: int | None, settings: RuleSettings) -> bytes:
    """Return the document with mechanical faults fixed; the same bytes if there are none or it is unreadable.

    `base_version` is the version of the project's own spec of that name, if there is one.
    """
    try:
        text = decode_text(data, name)
        read_frontmatter(parse_document(text, name))
        if name == PROPOSAL_FILE:
            text = gather_blocks(text)
        text = _headings(text, name, settings)
        if DOCUMENT_KINDS.get(name, "spec") == "spec":
            text = _requirements(text, name, settings)
        return _frontmatter(text, name, change_id, base_version).encode()
    except InvalidDocument:
        return data


def _headings(text: str, name: str, settings: RuleSettings) -> str:
    """Fix the level of required sections: `# Summary` becomes `## Summary`."""
    document = parse_document(text, name)
    edits = []
    for title in settings.required_headings[DOCUMENT_KINDS.get(name, "spec")]:
        alike = [one for one in document.headings if one.title.strip(" \t*_:").casefold() == title.casefold()]
        if len(alike) == 1 and alike[0].level != 2:
            edits.append(_retitled(document, alike[0], f"## {title}"))
    return document.replace_all(edits)


def _requirements(text: str, name: str, settings: RuleSettings) -> str:
    """Fix clear requirement headings: `#### R1. Title` and `### Requirement 1: Title` become `### R1: Title`."""
    document = parse_document(text, name)
    found = parse_spec(text, name, settings.requirement_pattern)
    taken = {one.id for one in found.requirements}
    edits = []
    for heading in _among_requirements(document, found.strays):
        match = _LOOSE.fullmatch(heading.title)
        if match is None:
            continue
        id_ = match[1].upper() if "R" in match[1].upper() else f"R{match[1]}"
        title = f"### {id_}: {match[2]}"
        if id_ not in taken and settings.requirement_pattern.match(title):
            taken.add(id_)
            edits.append(_retitled(document, heading, title))
    return document.replace_all(edits)


def _among_requirements(document: Document, strays: tuple[Heading, ...]) -> Iterator[Heading]:
    """Yield stray headings in the Requirements section. Elsewhere, `#### R2 flow` is about a requirement."""
    loose = set(strays)
    inside = False
    for heading in document.headings:
        if heading in loose:
            if inside:
                yield heading
        elif heading.level <= 2:
            inside = heading.key == "requirements"


def _frontmatter(text: str, name: str, change_id: str, base_version: int | None) -> str:
    if read_frontmatter(parse_document(text, name)).values:
        return text
    kind = DOCUMENT_KINDS.get(name, "spec")
    if kind == "clarifications":
        return set_frontmatter_keys(text, {"change": change_id}, name)
    values: dict[str, str | int] = {"id": spec_id(name) if kind == "spec" else change_id, "type": kind}
    if kind == "spec" and base_version is not None:
        values["base_version"] = base_version
    else:
        values["version"] = 1
    return set_frontmatter_keys(text, values, name)


def _retitled(document: Document, heading: Heading, line: str) -> tuple[Span, str]:
    old = document.lines[heading.line - 1]
    return Span(heading.line, heading.line), old.replace(document.content(heading.line), line, 1)

"""A proposal of OpenSpec as one of ours: its own words, and a Summary taken from them where it has none."""

import re
from dataclasses import dataclass

from agentd.documents import BOM, Document, InvalidDocument, Span, embed_text, one_line, parse_document
from agentd.domain import yaml12
from agentd.migrate.import_model import ImportNote
from agentd.migrate.openspec_spec import add_frontmatter

_REVIEW = re.compile(r"^<(?=/?review\b)", re.MULTILINE)
_TITLE = re.compile(r"(?:change|proposal)\s*:\s*", re.IGNORECASE)
_NO_TITLE = frozenset({"", "change", "proposal", "change proposal"})
_CAPABILITY = re.compile(
    r"[ \t]*[-*+][ \t]+\*{0,2}`?([\w./-]+)`?\*{0,2}[ \t]*(?::|[–—-](?=[ \t]))\*{0,2}[ \t]*([^<\s].*)"
)
_MORE = re.compile(r"[ \t]+(?![-*+][ \t])\S")


@dataclass(frozen=True, slots=True)
class ConvertedProposal:
    """`is_whole`: every byte of the original stands in it."""

    text: str
    is_whole: bool
    notes: tuple[ImportNote, ...]


def convert_proposal(text: str, source: str, id_: str, created: str, specs: list[str]) -> ConvertedProposal:
    """With our frontmatter. A tag that we would take for a verdict is made plain text. No document: BadDocument."""
    notes = []
    for match in _REVIEW.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        notes.append(ImportNote(source, line, "a review tag is written as plain text: only agentd writes verdicts"))
    affected = [{"id": one, "depends": yaml12.FlowList()} for one in specs]
    front = {"id": id_, "type": "proposal", "version": 1, "created": created, "affected_specs": affected}
    whole = add_frontmatter(_REVIEW.sub("&lt;", text), front, source)
    is_whole = whole.endswith(text.removeprefix(BOM))
    document = parse_document(whole, source)
    if document.section("Summary") is None:
        if words := proposal_title(document) or _reason(document):
            whole = _with_summary(document, words)
        else:
            notes.append(ImportNote(source, 0, "has neither a title nor a Why to take a Summary from"))
    return ConvertedProposal(whole, is_whole, tuple(notes))


def proposal_description(text: str | None, id_: str) -> str:
    """The title of the proposal, its reason, or its id."""
    try:
        document = parse_document(text or "", "proposal.md")
    except InvalidDocument:
        return id_
    return one_line(proposal_title(document) or _reason(document) or id_)[:300]


def proposal_capabilities(text: str | None) -> dict[str, str]:
    """What `## Capabilities` says of each; what is still a blank of the template says nothing."""
    try:
        document = parse_document(text or "", "proposal.md")
    except InvalidDocument:
        return {}
    section = document.section("Capabilities")
    found: dict[str, str] = {}
    last = ""
    for _, content in document.plain(section.inner) if section else ():
        if match := _CAPABILITY.match(content):
            last = match[1]
            found[last] = match[2]
        elif last and _MORE.match(content):
            found[last] += f" {content.strip()}"
        else:
            last = ""
    return {name: embed_text(one_line(words), 2) for name, words in found.items()}


def proposal_title(document: Document) -> str:
    titles = (_TITLE.sub("", one.title, count=1) for one in document.headings if one.level == 1)
    return next((one for one in titles if one.casefold() not in _NO_TITLE), "")


def _reason(document: Document) -> str:
    """The first paragraph of its Why."""
    why = document.section("Why")
    lines: list[str] = []
    for _, content in document.plain(why.inner) if why else ():
        if content.strip() and not content.lstrip().startswith("#"):
            lines.append(content.rstrip())
        elif lines:
            break
    return "\n".join(lines).strip()


def _with_summary(document: Document, words: str) -> str:
    """Before the first section, below the title."""
    part = document.native(f"## Summary\n\n{embed_text(words, 2)}\n\n")
    first = next((one.line for one in document.headings if one.level == 2), 0)
    if first:
        return document.replace_all([(Span(first, first), part + document.lines[first - 1])])
    return "".join(document.lines).rstrip() + document.native("\n\n") + part.rstrip() + document.newline

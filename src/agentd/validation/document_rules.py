"""Rules about the form of any document: readable, with frontmatter and the required headings."""

from agentd.documents import (
    PROPOSAL_FILE,
    Document,
    InvalidDocument,
    InvalidFrontmatter,
    LineKind,
    Span,
    decode_text,
    parse_document,
    read_frontmatter,
    read_spec,
    text_before_blocks,
)
from agentd.domain import Severity
from agentd.merge import conflict_markers_in
from agentd.validation.rule import DOCUMENT_KINDS, PlanDocument, PlanValidation, Rule, document_check
from agentd.validation.spec_rules import only_removes

FRONTMATTER_MISSING = Rule("frontmatter-missing", Severity.LOW, "a document has no frontmatter")


@document_check
def check_frontmatter(page: PlanDocument, run: PlanValidation) -> None:
    if not page.front.values:
        run.add(page.name, 1, FRONTMATTER_MISSING, "there is no frontmatter", "agentd validate --fix adds it")


UNREADABLE = Rule("unreadable", Severity.HIGH, "a document is not UTF-8 text", is_configurable=False)
FRONTMATTER_INVALID = Rule("frontmatter-invalid", Severity.HIGH, "the frontmatter cannot be read")


def open_document(name: str, data: bytes, run: PlanValidation) -> PlanDocument | None:
    """Return None, with a finding, for a document that no other rule can read."""
    kind = DOCUMENT_KINDS.get(name, "spec")
    try:
        text = decode_text(data, name)
        if name == PROPOSAL_FILE and "<review" in text:
            text = text_before_blocks(text).rstrip("\r\n") + "\n"
        document = parse_document(text, name)
        front = read_frontmatter(document)
        spec = read_spec(document, front, run.settings.requirement_pattern) if kind == "spec" else None
        return PlanDocument(name, kind, document, front, spec)
    except InvalidFrontmatter as error:
        report_frontmatter(error, run)
    except InvalidDocument as error:
        run.add(name, error.line, UNREADABLE, error.problem, "save the file as UTF-8 text")
    return None


def report_frontmatter(error: InvalidFrontmatter, run: PlanValidation) -> None:
    hint = "write the frontmatter as `key: value` lines between two lines `---`"
    run.add(error.file, error.line, FRONTMATTER_INVALID, error.problem, hint)


HEADING_MISSING = Rule(
    "heading-missing", Severity.HIGH, "a required section is missing, empty or hidden by an open code fence"
)


@document_check
def check_headings(page: PlanDocument, run: PlanValidation) -> None:
    hidden = _report_open_block(page, run) if page.document.closing else None
    optional = ("Requirements", "Acceptance Criteria") if page.spec and only_removes(page.spec) else ()
    for title in run.settings.required_headings[page.kind]:
        if title in optional or (hidden and hidden.section(title)):
            continue
        section = page.document.section(title)
        if section is None:
            hint = f"add a section `## {title}`"
            run.add(page.name, 1, HEADING_MISSING, f"the section `## {title}` is missing", hint)
        elif not _has_content(page.document, section.inner):
            hint = f"fill in the section `## {title}`"
            run.add(page.name, section.heading.line, HEADING_MISSING, f"`## {title}` is empty", hint)


def _report_open_block(page: PlanDocument, run: PlanValidation) -> Document:
    """Report a code fence or comment that is never closed, and return the text that it hides."""
    document = page.document
    line = len(document.contents)
    if document.closing == "-->":
        what, end = "comment", "`-->`"
        while line > 1 and document.kinds[line - 2] == LineKind.COMMENT and "-->" not in document.content(line - 1):
            line -= 1
    else:
        what, end = "code fence", f"a line `{document.closing}`"
        line = document.fences[-1].span.start
    below = document.text_at(Span(line + 1, len(document.lines)))
    if below.strip():
        message = f"the {what} opened in line {line} is never closed, so everything below is hidden"
        run.add(page.name, line, HEADING_MISSING, message, f"close it with {end}")
    return parse_document(below, page.name)


def _has_content(document: Document, span: Span) -> bool:
    """Text or code; readers do not see comments."""
    return any(
        document.content(line).strip() and document.kinds[line - 1] != LineKind.COMMENT
        for line in range(span.start, span.end + 1)
    )


CONFLICT_MARK = Rule("conflict-mark", Severity.HIGH, "a merge conflict is not resolved", is_configurable=False)


@document_check
def check_conflict_markers(page: PlanDocument, run: PlanValidation) -> None:
    """Report the first marker of each conflict."""
    found = conflict_markers_in(page.document)
    for line in [one for one in found if page.document.content(one).startswith("<")] or found[:1]:
        hint = "keep one of the texts between the conflict markers, or write a new one, and delete the markers"
        run.add(page.name, line, CONFLICT_MARK, "this conflict is not resolved", hint)

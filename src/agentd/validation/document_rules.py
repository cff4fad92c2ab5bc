"""Rules about the form of a document: readable, with frontmatter and required headings; requirements and scenarios."""

import re

from agentd.documents import (
    PROPOSAL_FILE,
    Document,
    InvalidDocument,
    InvalidFrontmatter,
    LineKind,
    Scenario,
    Span,
    Spec,
    decode_text,
    parse_document,
    read_frontmatter,
    read_spec,
    text_before_blocks,
)
from agentd.domain import Severity
from agentd.merge import conflict_markers_in
from agentd.validation.rule import DOCUMENT_KINDS, PlanDocument, PlanValidation, Rule, document_check

FRONTMATTER_MISSING = Rule("frontmatter-missing", Severity.LOW, "a document has no frontmatter")


@document_check
def check_frontmatter(page: PlanDocument, run: PlanValidation) -> None:
    if not page.front.values:
        run.add(page.name, 1, FRONTMATTER_MISSING, "there is no frontmatter", "agentd validate --fix adds it")


UNREADABLE = Rule("unreadable", Severity.HIGH, "a document is not UTF-8 text", is_configurable=False)
FRONTMATTER_INVALID = Rule("frontmatter-invalid", Severity.HIGH, "the frontmatter cannot be read")


def open_document(name: str, data: bytes, run: PlanValidation) -> PlanDocument | None:
    """Parse a document. If no other rule can read it, add a finding and return None."""
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
    """Report a code fence or comment that is never closed, and return the text it hides."""
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
    """Return whether the span has text or code. Readers do not see comments."""
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


_UNTITLED = re.compile(r"(?:[A-Z]+-)?R\d+\s*[:.–—-]*$")
_LIKE = re.compile(r"\brequirement\b|(?<![a-z0-9])(?:[a-z]++-)?(?:n?f?r|req)-?\d", re.IGNORECASE)
_WORDS = re.compile(r"\w(?:[\w.-]*\w)?")
_ID = re.compile(r"(?<![\w-])(?:[A-Za-z]++-)*+[A-Za-z]++\d++")
_NUMBERED = re.compile(r"requirement\s++(\d++)", re.IGNORECASE)
_LETTER = re.compile(r"[^\W_]")
_WHEN = re.compile(r"\bWHEN\b")
_THEN = re.compile(r"\bTHEN\b")
_DEFAULT_SCENARIO = r"(?s)\bWHEN\b.*?\bTHEN\b"
_LONGEST = 65536  # most characters to search with a configured pattern


def only_removes(spec: Spec) -> bool:
    """Return whether a delta only removes and renames, so it needs no requirements or scenarios."""
    return not spec.requirements and bool(spec.removed or spec.renamed)


def stray_ids(spec: Spec) -> set[str]:
    """Return the ids in headings that cannot be parsed as requirements; references to them are not reported again."""
    words = {word for one in spec.strays for part in (_WORDS, _ID) for word in part.findall(one.title)}
    return words | {f"R{match[1]}" for heading in spec.strays for match in _NUMBERED.finditer(heading.title)}


REQUIREMENT_FORMAT = Rule("requirement-format", Severity.HIGH, "a heading or entry cannot be read as a requirement")
REQUIREMENT_DUPLICATE = Rule(
    "requirement-duplicate", Severity.HIGH, "a requirement or scenario occurs twice, or is both written and removed"
)
REQUIREMENT_UNTITLED = Rule("requirement-untitled", Severity.MEDIUM, "a requirement has no title or no text")


@document_check
def check_requirements(page: PlanDocument, run: PlanValidation) -> None:
    spec, name = page.spec, page.name
    if spec is None:
        return
    for heading in spec.strays:
        if spec.requirements and not _LIKE.search(heading.title):
            continue  # notes, or the name of a group
        if _UNTITLED.fullmatch(heading.title):
            hint = f"write `### {heading.title.rstrip(' :.–—-')}: Title`"
            run.add(name, heading.line, REQUIREMENT_UNTITLED, f"{heading.title} has no title", hint)
        else:
            message = f"'{heading.title[:60]}' cannot be read as a requirement"
            run.add(name, heading.line, REQUIREMENT_FORMAT, message, "write `### R1: Title`")
    first: dict[str, int] = {}
    removed = {one.id for one in spec.removed if one.id}
    for requirement in spec.requirements:
        line = first.setdefault(requirement.id, requirement.line)
        if line != requirement.line:
            message = f"{requirement.id} occurs twice, first on line {line}"
            run.add(name, requirement.line, REQUIREMENT_DUPLICATE, message, "give it an unused id")
        if not requirement.text and requirement.own == (requirement.span,):
            hint = f"write below `### {requirement.id}: …` what must hold"
            run.add(name, requirement.line, REQUIREMENT_UNTITLED, f"{requirement.id} has no text", hint)
        if requirement.id in removed:
            message = f"{requirement.id} is both written and removed here"
            run.add(name, requirement.line, REQUIREMENT_DUPLICATE, message, "keep one of the two")
    if not spec.requirements and not spec.strays and not only_removes(spec) and not page.document.closing:
        line = spec.lines.get("requirements", 1)
        hint = "write `### R1: Title` and below it what must hold"
        run.add(name, line, REQUIREMENT_FORMAT, "there is no requirement", hint)
    for text, line in spec.unread:
        hint = "write `- R3: Title`, `- Scenario: Title` or `- R4: Old → R4: New`"
        run.add(name, line, REQUIREMENT_FORMAT, f"'{text[:60]}' names no requirement or scenario", hint)


SCENARIO_FORMAT = Rule("scenario-format", Severity.HIGH, "a scenario does not say WHEN and THEN")
SCENARIO_COUNT = Rule("scenario-count", Severity.HIGH, "a spec has fewer scenarios than scenario_min_count")


@document_check
def check_scenarios(page: PlanDocument, run: PlanValidation) -> None:
    spec, document, settings = page.spec, page.document, run.settings
    if spec is None:
        return
    first: dict[tuple[str, str], int] = {}
    for scenario in spec.scenarios:
        line = first.setdefault((scenario.requirement, scenario.name), scenario.line)
        if line != scenario.line and scenario.requirement and scenario.name:
            message = f"the scenario '{scenario.name[:60]}' occurs twice, first on line {line}"
            run.add(page.name, scenario.line, REQUIREMENT_DUPLICATE, message, "give it another name")
        if not _is_well_formed(scenario, document, settings.scenario_pattern):
            message = f"the scenario '{scenario.name[:60]}' does not say WHEN and THEN"
            hint = "write `- **WHEN** what happens` and `- **THEN** what must follow`"
            run.add(page.name, scenario.line, SCENARIO_FORMAT, message, hint)
    missing = settings.scenario_min_count - len(spec.scenarios)
    if missing > 0 and not only_removes(spec) and not document.closing:
        line = spec.lines.get("acceptance_criteria", 1)
        message = f"{len(spec.scenarios)} scenarios, but at least {settings.scenario_min_count} are required"
        hint = "write `### Scenario: Name` with WHEN and THEN lines"
        run.add(page.name, line, SCENARIO_COUNT, message, hint)


def _is_well_formed(scenario: Scenario, document: Document, pattern: re.Pattern[str]) -> bool:
    if pattern.pattern == _DEFAULT_SCENARIO:
        if scenario.when and scenario.then:
            return True
        text = _text(document, scenario.span)
        when = _WHEN.search(text)  # one at a time, because the whole pattern is quadratic
        then = _THEN.search(text, when.end()) if when else None
        return bool(
            when
            and then
            and _LETTER.search(text, when.end(), then.start())
            and _LETTER.search(text[then.end() :].partition("\n\n")[0])
        )
    return bool(pattern.search(_text(document, scenario.span)[:_LONGEST]))


def _text(document: Document, span: Span) -> str:
    return "\n".join(content for _, content in document.plain_lines(span))

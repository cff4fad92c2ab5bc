"""Rules for any document: frontmatter, headings, placeholders, links, length."""

import posixpath
import re
from collections.abc import Callable
from urllib.parse import unquote

from agentd.documents import Document, LineKind, Span, parse_document
from agentd.merge import conflict_markers_in
from agentd.validation.rule_input import FindingCollector, PlanDocument, PlanDocuments, RuleSettings

_PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|FIXME)\b")
_CODE = re.compile(r"(`+)(?:(?!\1).)*+\1")
# Not as a word of its own in capitals: alone on its line or in a list.
_LATER = re.compile(r"^[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?[*_(]*+(todo|tbd)[*_).:…]*+[ \t\r]*+$", re.I | re.M)
_LINK = re.compile(r"!?\[[^\]\n]*+\]\(\s*+(?:<([^<>\n]++)>|(?!<)([^)\s>]++))")
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*+:|//|#")


def check_document(
    page: PlanDocument,
    plan: PlanDocuments,
    settings: RuleSettings,
    findings: FindingCollector,
    needless: frozenset[str] = frozenset(),
) -> None:
    """`needless` are headings that this document may do without."""
    if not page.front.values:
        hint = "agentd validate --fix adds it"
        findings.add(page.name, 1, "frontmatter-missing", "there is no frontmatter", hint)
    hidden = _left_open(page, findings) if page.document.closing else None
    for title in settings.required_headings[page.kind]:
        if title not in needless and (hidden is None or hidden.section(title) is None):
            _heading(page, title, findings)
    lines, limit = len(page.document.contents), settings.max_lines[page.kind]
    if lines > limit:
        hint = f"say it in {limit} lines, or cut the change in two"
        findings.add(page.name, limit + 1, "too-long", f"{lines} lines are more than a person reads", hint)
    _marks(page, findings)
    _placeholders(page, findings)
    _links(page, plan, findings)


def _marks(page: PlanDocument, findings: FindingCollector) -> None:
    """Of each conflict its first mark."""
    found = conflict_markers_in(page.document)
    for line in [one for one in found if page.document.content(one).startswith("<")] or found[:1]:
        hint = "keep one of the texts between the marks, or write a new one, and take the marks out"
        findings.add(page.name, line, "conflict-mark", "a conflict is not solved here", hint)


def _left_open(page: PlanDocument, findings: FindingCollector) -> Document:
    """Tells of a fence or comment without an end, and gives what it hides."""
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
        findings.add(page.name, line, "heading-missing", message, f"close it with {end}")
    return parse_document(below, page.name)


def _heading(page: PlanDocument, title: str, findings: FindingCollector) -> None:
    section = page.document.section(title)
    if section is None:
        hint = f"add a section `## {title}`"
        findings.add(page.name, 1, "heading-missing", f"the section `## {title}` is missing", hint)
    elif not _says_something(page.document, section.inner):
        hint = f"say below `## {title}` what belongs there"
        findings.add(page.name, section.heading.line, "heading-missing", f"`## {title}` is empty", hint)


def _says_something(document: Document, span: Span) -> bool:
    """Text or code that a reader sees; a comment is not seen."""
    return any(
        document.content(line).strip() and document.kinds[line - 1] != LineKind.COMMENT
        for line in range(span.start, span.end + 1)
    )


def _placeholders(page: PlanDocument, findings: FindingCollector) -> None:
    found = _matches(page.document, _PLACEHOLDER, lambda match: match[0])
    lower = page.document.text.lower()
    if "todo" in lower or "tbd" in lower:
        found += [one for one in _matches(page.document, _LATER, lambda match: match[1]) if not one[1].isupper()]
    for line, word in found:
        hint = "say what it stands for, or put the word in backticks if it is meant"
        findings.add(page.name, line, "placeholder", f"{word} is left in the text", hint)


def _links(page: PlanDocument, plan: PlanDocuments, findings: FindingCollector) -> None:
    if "](" not in page.document.text:
        return
    for line, target in _matches(page.document, _LINK, lambda match: match[1] or match[2]):
        path = unquote(target.partition("#")[0])
        if _ELSEWHERE.match(target) or not path:
            continue
        near = posixpath.normpath(posixpath.join(plan.folder, posixpath.dirname(page.name), path))
        if not (plan.exists(near) or plan.exists(posixpath.normpath(path.lstrip("/")))):
            hint = f"write the path from {page.name} or from the project's root"
            findings.add(page.name, line, "link-broken", f"{path} is not there", hint)


def _matches(
    document: Document, pattern: re.Pattern[str], word: Callable[[re.Match[str]], str]
) -> list[tuple[int, str]]:
    """Each match outside of code and comments, with its line. Most documents have none, so look once first."""
    if not pattern.search(document.text):
        return []
    found = []
    for line, content in document.plain_lines(document.span):
        if pattern.search(content):
            bare = _CODE.sub(lambda code: " " * len(code[0]), content) if "`" in content else content
            found += [(line, word(match)) for match in pattern.finditer(bare)]
    return found

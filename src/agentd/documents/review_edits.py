"""Read a person's edits to CHALLENGE.md or REVIEW.md.

The document is compared with its record: changed states and severities, removed and added findings. All other text may
be edited freely. An edited verdict is reported but has no effect.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentd.documents import records
from agentd.documents import text as base
from agentd.documents.order import DocumentFault
from agentd.documents.prose import LabelledField, is_empty_phrase, one_line, read_fields
from agentd.documents.records import Finding, FindingEdit, PreviousFinding, ReviewRecord
from agentd.documents.text import Document, Section, Span, trim_lines
from agentd.domain import FindingState, Severity

_HEADING = re.compile(r"[*_`]*+([A-Za-z]{1,3}[0-9]{1,6})(?![\w.])[*_`]*+\s*+[:.)\-–—]?\s*+")
_EARLIER = re.compile(
    r"[-*+][ \t]++[*_`]*+([A-Za-z]{1,3}[0-9]{1,6})(?!\w)[*_`]*+[ \t]*+\(([^()]{0,40})\)[ \t]*+,([^:]{0,40}):"
)
_VERDICT = re.compile(r" {0,3}[*_]{0,3}verdict[*_]{0,3}[ \t]*+:[*_]{0,3}[ \t]*+(.*)", re.IGNORECASE)
_LABELS = ("severity", "state", "description", "suggestion", "spec reference", "evidence", "found by")
_AROUND = " \t*_`\"'()[].,"


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding's new state or severity. A removed finding is withdrawn."""

    id: str
    field: str
    to: str
    line: int

    def edit(self, by: str, at: str) -> FindingEdit:
        return FindingEdit(self.id, self.field, self.to, by, at)


@dataclass(frozen=True, slots=True)
class AddedFinding:
    """A finding written by a person. It has no id yet, and medium severity if none is given."""

    title: str
    severity: Severity
    what: str
    suggestion: str
    requirement: str | None
    line: int

    def edit(self, id_: str, by: str, at: str) -> FindingEdit:
        data: dict[str, Any] = {"severity": str(self.severity), "title": self.title, "what": self.what}
        data |= {"suggestion": self.suggestion, "requirement": self.requirement}
        return FindingEdit(id_, records.ADDED, data, by, at)


@dataclass(frozen=True, slots=True)
class ReviewEdits:
    changes: tuple[FindingChange, ...] = ()
    added: tuple[AddedFinding, ...] = ()
    verdict: tuple[str, int] | None = None
    """The edited verdict and its line; it never counts as a decision."""
    faults: tuple[DocumentFault, ...] = ()


@dataclass(frozen=True, slots=True)
class _FindingHeading:
    """A heading that names a finding."""

    id: str
    title: str
    section: Section


class _Comparison:
    """Compare the document with its record in one pass."""

    def __init__(self, document: Document, record: ReviewRecord) -> None:
        self.document = document
        self.findings: dict[str, Finding] = {one.id: one for one in records.round_findings(record)}
        self.earlier: dict[str, PreviousFinding] = {one.id: one for one in records.previous_findings(record)}
        self.by_person = [edit.id for edit in record.edits if edit.field == records.ADDED]
        self.changes: list[FindingChange] = []
        self.added: list[AddedFinding] = []
        self.faults: list[DocumentFault] = []

    def compare(self) -> None:
        issues = self.document.section("issues")
        seen: dict[str, _FindingHeading] = {}
        for entry in self._entries(issues):
            first = seen.get(entry.id)
            if entry.id in self.findings and first is None:
                seen[entry.id] = entry
                self._compare_fields(entry)
            elif first and first.title == entry.title:
                self._fault(entry.section.heading.line, f"{entry.id} appears twice; only the first one is used")
            elif issues and entry.section.heading.line in issues.span:
                self._add(entry)
        self._withdraw_removed(issues, {*seen}, self.findings)
        section = self.document.section("earlier findings")
        self._withdraw_removed(section, set(self._compare_earlier(section)), self.earlier)

    def _entries(self, issues: Section | None) -> Iterator[_FindingHeading]:
        """Yield known findings anywhere, and every third-level heading under Issues."""
        titles = {self.findings[id_].title: id_ for id_ in self.by_person}
        for section in self.document.sections:
            heading = section.heading
            match = _HEADING.match(heading.title)
            id_ = match[1].upper() if match else ""
            named = match is not None and (id_ in self.findings or id_[0] in "CVP")
            title = heading.title[match.end() :] if match and named else heading.title
            under = issues is not None and heading.level == 3 and heading.line in issues.span
            if id_ in self.findings or under:
                yield _FindingHeading(id_ if id_ in self.findings else titles.get(one_line(title), ""), title, section)

    def _compare_fields(self, entry: _FindingHeading) -> None:
        finding = self.findings[entry.id]
        found = read_fields(self.document, entry.section.own, _LABELS)
        states = [(one.span.start, one.value) for one in found if one.label == "state"]
        severities = [(one.span.start, one.value) for one in found if one.label == "severity"]
        self._compare_value(entry.id, "state", finding.state, states)
        self._compare_value(entry.id, "severity", finding.severity, severities)

    def _compare_value(
        self, id_: str, name: str, current: FindingState | Severity, written: list[tuple[int, str]]
    ) -> None:
        """Record a changed value. Two different new values are a fault."""
        values = [(line, self._parse_value(name, text, line)) for line, text in written]
        changed = [(line, value) for line, value in values if value not in (None, current)]
        if len({value for _, value in changed}) > 1:
            self._fault(changed[1][0], f"{id_} has more than one {name}; keep one")
        elif changed:
            self.changes.append(FindingChange(id_, name, str(changed[0][1]), changed[0][0]))

    def _parse_value(self, name: str, text: str, line: int) -> FindingState | Severity | None:
        known: type[FindingState] | type[Severity] = FindingState if name == "state" else Severity
        word = text.strip(_AROUND).casefold()
        if word in tuple(known):
            return known(word)
        self._fault(line, f"unknown {name} '{text[:60]}'; use one of {', '.join(known)}")
        return None

    def _add(self, entry: _FindingHeading) -> None:
        section = entry.section
        found: dict[str, LabelledField] = {}
        for one in read_fields(self.document, section.own, _LABELS):
            found.setdefault(one.label, one)
        severity_field = found.get("severity")
        what = found["description"].full if "description" in found else self._other_text(section, found)
        title = one_line(entry.title)
        line = section.heading.line
        if not title or not (severity_field or what):
            self._fault(line, "a finding needs a title, and a severity or a description below it")
            return
        severity = (
            self._parse_value("severity", severity_field.value, severity_field.span.start) if severity_field else None
        )
        reference = found.get("spec reference")
        suggestion = found["suggestion"].full if "suggestion" in found else ""
        self.added.append(
            AddedFinding(
                title=title,
                severity=Severity(severity or Severity.MEDIUM),
                what=what,
                suggestion="" if is_empty_phrase(suggestion) else suggestion,
                requirement=None if reference is None or is_empty_phrase(reference.value) else reference.value,
                line=line,
            )
        )

    def _other_text(self, section: Section, found: dict[str, LabelledField]) -> str:
        """Return the text below the heading without the fields."""
        taken = {line for one in found.values() for line in _line_numbers(one.span)}
        return trim_lines([self.document.content(line) for line in _line_numbers(section.own) if line not in taken])

    def _compare_earlier(self, section: Section | None) -> Iterator[str]:
        """Yield the ids of the earlier findings that are still listed."""
        for line, content in self.document.plain_lines(section.own) if section else ():
            match = _EARLIER.match(content)
            finding = self.earlier.get(match[1].upper()) if match else None
            if match and finding:
                yield finding.id
                self._compare_value(finding.id, "severity", finding.severity, [(line, match[2])])
                self._compare_value(finding.id, "state", finding.state, [(line, match[3])])

    def _withdraw_removed(
        self, section: Section | None, seen: set[str], known: dict[str, Finding] | dict[str, PreviousFinding]
    ) -> None:
        """Withdraw open findings that were removed, unless their removal may be an accident."""
        gone = [one.id for one in known.values() if one.id not in seen and one.state.is_open]
        if not gone:
            return
        names = ", ".join(gone[:20])
        if section is None:
            self._fault(1, f"{names}: the section that lists them is missing, so they are kept")
        elif self.document.closing:
            self._fault(len(self.document.lines), f"{names}: a code block or comment is not closed, so they are kept")
        else:
            line = section.heading.line
            self.changes += [FindingChange(one, "state", str(FindingState.WITHDRAWN), line) for one in gone]

    def _fault(self, line: int, message: str) -> None:
        self.faults.append(DocumentFault(line, "review-edit", message))


def read_review_edits(text: str, record: ReviewRecord, name: str) -> ReviewEdits:
    document = base.parse_document(text, name)
    comparison = _Comparison(document, record)
    comparison.compare()
    return ReviewEdits(
        changes=tuple(comparison.changes),
        added=tuple(comparison.added),
        verdict=_verdict(document, record),
        faults=tuple(comparison.faults),
    )


def _verdict(document: Document, record: ReviewRecord) -> tuple[str, int] | None:
    """Return the first verdict line if it differs from the record."""
    for line, content in document.plain_lines(document.span):
        match = _VERDICT.match(content)
        if match:
            word = match[1].strip()
            return None if word.strip(_AROUND) == record.verdict else (word[:200], line)
    return None


def _line_numbers(span: Span) -> range:
    return range(span.start, span.end + 1)

"""What a person changed in CHALLENGE.md or REVIEW.md, as data.

The document is compared with its record: a state or severity written anew, a finding taken out or added.
Other words may be edited freely. The verdict is reported when it was edited; it decides nothing.
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
    """A finding's state or severity as the person wrote it; a finding taken out is withdrawn."""

    id: str
    field: str
    to: str
    line: int

    def edit(self, by: str, at: str) -> FindingEdit:
        return FindingEdit(self.id, self.field, self.to, by, at)


@dataclass(frozen=True, slots=True)
class AddedFinding:
    """A finding that a person wrote; it has no id yet, and is medium when no severity is given."""

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
    """The verdict as a person wrote it, and its line; it never counts as a decision."""
    faults: tuple[DocumentFault, ...] = ()


@dataclass(frozen=True, slots=True)
class _FindingHeading:
    """A heading among the findings."""

    id: str
    title: str
    section: Section


class _Comparison:
    """Goes through the document once and gathers what differs."""

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
                self._fault(entry.section.heading.line, f"{entry.id} stands twice; the first one counts")
            elif issues and entry.section.heading.line in issues.span:
                self._add(entry)
        self._removed(issues, {*seen}, self.findings)
        section = self.document.section("earlier findings")
        self._removed(section, set(self._compare_earlier(section)), self.earlier)

    def _entries(self, issues: Section | None) -> Iterator[_FindingHeading]:
        """Known findings wherever they stand, and every third-level heading under Issues."""
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
        self._words(entry.id, "state", finding.state, states)
        self._words(entry.id, "severity", finding.severity, severities)

    def _words(self, id_: str, name: str, now: FindingState | Severity, written: list[tuple[int, str]]) -> None:
        """A new word where another stood; two different new ones are a fault."""
        words = [(line, word) for line, text in written if (word := self._word(name, text, line)) not in (None, now)]
        if len({word for _, word in words}) > 1:
            self._fault(words[1][0], f"{id_} has more than one {name}; leave one")
        elif words:
            self.changes.append(FindingChange(id_, name, str(words[0][1]), words[0][0]))

    def _word(self, name: str, text: str, line: int) -> FindingState | Severity | None:
        known: type[FindingState] | type[Severity] = FindingState if name == "state" else Severity
        word = text.strip(_AROUND).casefold()
        if word in tuple(known):
            return known(word)
        self._fault(line, f"the {name} '{text[:60]}' is none of {', '.join(known)}")
        return None

    def _add(self, entry: _FindingHeading) -> None:
        section = entry.section
        found: dict[str, LabelledField] = {}
        for one in read_fields(self.document, section.own, _LABELS):
            found.setdefault(one.label, one)
        grade = found.get("severity")
        what = found["description"].full if "description" in found else self._prose(section, found)
        title = one_line(entry.title)
        line = section.heading.line
        if not title or not (grade or what):
            self._fault(line, "a finding needs a title, and a severity or a description below it")
            return
        severity = self._word("severity", grade.value, grade.span.start) if grade else None
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

    def _prose(self, section: Section, found: dict[str, LabelledField]) -> str:
        """What stands below the heading beside the fields."""
        taken = {line for one in found.values() for line in _numbers(one.span)}
        return trim_lines([self.document.content(line) for line in _numbers(section.own) if line not in taken])

    def _compare_earlier(self, section: Section | None) -> Iterator[str]:
        """The ids of the earlier findings that are still listed."""
        for line, content in self.document.plain(section.own) if section else ():
            match = _EARLIER.match(content)
            word = self.earlier.get(match[1].upper()) if match else None
            if match and word:
                yield word.id
                self._words(word.id, "severity", word.severity, [(line, match[2])])
                self._words(word.id, "state", word.state, [(line, match[3])])

    def _removed(
        self, section: Section | None, seen: set[str], known: dict[str, Finding] | dict[str, PreviousFinding]
    ) -> None:
        """Findings that are gone are withdrawn, unless what hides them may be an accident."""
        gone = [one.id for one in known.values() if one.id not in seen and one.state.is_open]
        if not gone:
            return
        names = ", ".join(gone[:20])
        if section is None:
            self._fault(1, f"{names}: the section that lists them is gone, so nothing was taken from it")
        elif self.document.closing:
            self._fault(len(self.document.lines), f"{names}: a code block or comment is not closed, so they stay")
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
    """The first verdict line, when it does not say what the record says."""
    for line, content in document.plain(document.span):
        match = _VERDICT.match(content)
        if match:
            word = match[1].strip()
            return None if word.strip(_AROUND) == record.verdict else (word[:200], line)
    return None


def _numbers(span: Span) -> range:
    return range(span.start, span.end + 1)

"""How findings stand: the last word on each counts, a judge's or a person's.

A maker's `fixed` leaves a finding open, so answers say nothing here.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from agentd.documents.records import Finding, PreviousFinding, ReviewRecord, finding_data, parse_evidence
from agentd.domain import FieldReader, FindingState, Severity

T = TypeVar("T", Finding, PreviousFinding)

ADDED = "added"
"""The field of an edit by which a person made a finding; `to` holds what it says."""
_NOT_TOLD = ("id", "by", "state")  # the edit itself says these


def current_findings(records: Iterable[ReviewRecord]) -> tuple[Finding, ...]:
    """Every finding of a change after all its rounds. Records come in order."""
    found: dict[str, Finding] = {}
    for record in records:
        found.update((one.id, one) for one in round_findings(record))
        for word in record.previous:
            if word.id in found:
                found[word.id] = replace(found[word.id], state=word.state)
        for edit in record.edits:
            if edit.id in found and edit.field != ADDED:
                found[edit.id] = _with_edit(found[edit.id], edit.field, edit.to)
    return tuple(found.values())


def closed_by_people(records: Iterable[ReviewRecord]) -> set[str]:
    """Findings whose last word is a person's, and is no: a judge does not open them again."""
    closed: set[str] = set()
    for record in records:
        for word in record.previous:
            if word.state.is_open:
                closed.discard(word.id)
        for edit in record.edits:
            if edit.field == "state":
                (closed.discard if FindingState(edit.to).is_open else closed.add)(edit.id)
    return closed


def count_open(found: Iterable[Finding]) -> dict[Severity, int]:
    counts = dict.fromkeys(Severity, 0)
    for finding in found:
        counts[finding.severity] += finding.state.is_open
    return counts


def round_findings(record: ReviewRecord) -> tuple[Finding, ...]:
    """The findings of one round and those a person added, with the person's edits."""
    added = [_added(edit.id, edit.to, edit.by) for edit in record.edits if edit.field == ADDED]
    return tuple(_edited(one, record) for one in (*record.findings, *added))


def previous_findings(record: ReviewRecord) -> tuple[PreviousFinding, ...]:
    """The judge's words on earlier findings, with the person's edits."""
    return tuple(_edited(one, record) for one in record.previous)


def edit_content(one: Finding) -> dict[str, Any]:
    """What the edit holds by which it comes into a record."""
    return {name: value for name, value in finding_data(one).items() if name not in _NOT_TOLD}


def _edited(one: T, record: ReviewRecord) -> T:
    for edit in record.edits:
        if edit.id == one.id and edit.field != ADDED:
            one = _with_edit(one, edit.field, edit.to)
    return one


def _with_edit(one: T, name: str, to: Any) -> T:
    if name == "state":
        return replace(one, state=FindingState(to))
    if isinstance(one, Finding) and name in ("title", "description"):  # of a comment, in other words
        return replace(one, title=str(to)) if name == "title" else replace(one, what=str(to))
    return replace(one, severity=Severity(to)) if name == "severity" else one


def _added(id_: str, data: Any, by: str) -> Finding:
    row = FieldReader(data, f"the finding {id_}")
    return Finding(
        id=id_,
        severity=row.choice("severity", Severity, Severity.MEDIUM),
        title=row.text("title", ""),
        what=row.text("what", ""),
        suggestion=row.text("suggestion", ""),
        requirement=row.text_or_none("requirement"),
        where=row.text_or_none("where"),
        evidence=parse_evidence(row.inner("evidence")),
        verified=bool(row.take("verified")),
        by=by,
        state=FindingState.OPEN,
        unverified_because=row.text_or_none("unverified_because"),
        comment=row.text_or_none("comment"),
    )

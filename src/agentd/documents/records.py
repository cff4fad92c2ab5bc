"""The record of a review round: `reviews/challenge-<n>.yaml` or `reviews/review-<n>.yaml`.

A record is written once; only `answers` and `edits` are added later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeVar

from agentd.domain import FieldReader, FindingState, Severity, StateError, yaml12

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for a finding: a place in a file, or a check."""

    file: str | None = None
    check: str | None = None
    line: int | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    id: str
    severity: Severity
    title: str
    what: str
    suggestion: str
    requirement: str | None
    where: str | None
    evidence: Evidence | None
    verified: bool
    unverified_because: str | None = None
    by: str
    state: FindingState
    comment: str | None = None  # id of the person's comment it was made from


@dataclass(frozen=True, slots=True)
class PreviousFinding:
    """The judge's decision on an earlier finding, with the maker's answer."""

    id: str
    severity: Severity
    title: str
    answer: FindingState | None
    answer_note: str | None
    answered_by: str | None
    state: FindingState
    note: str


@dataclass(frozen=True, slots=True)
class FindingAnswer:
    id: str
    answer: FindingState
    note: str
    files: tuple[str, ...]
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class FindingEdit:
    """An edit a person made in CHALLENGE.md or REVIEW.md."""

    id: str
    field: str
    to: Any
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    change_id: str
    kind: str  # challenge or review
    round: int
    verdict: str
    reported: str
    overruled: str | None
    summary: str
    by: str
    model: str | None
    session: str | None
    made_by: str
    at: str
    judged: Mapping[str, str]
    findings: tuple[Finding, ...]
    previous: tuple[PreviousFinding, ...] = ()
    answers: tuple[FindingAnswer, ...] = ()
    edits: tuple[FindingEdit, ...] = ()
    checks: tuple[Mapping[str, Any], ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def parse_record(text: str, name: str) -> ReviewRecord:
    """Parse a record. Raise StateError, with `name` in the message, on errors."""
    try:
        fields = FieldReader(yaml12.load(text), name)
    except yaml12.InvalidYaml as error:
        raise StateError(f"{name} line {error.line}: {error.message}") from None
    if fields.count("schema_version", SCHEMA) > SCHEMA:
        raise StateError(f"{name} was written by a newer agentd", "update agentd")
    has_checks = fields.has("checks")
    return ReviewRecord(
        change_id=fields.text("change_id"),
        kind=fields.text("kind"),
        round=fields.count("round"),
        verdict=fields.text("verdict"),
        reported=fields.text("reported"),
        overruled=fields.text_or_none("overruled"),
        summary=fields.text("summary", ""),
        by=fields.text("by"),
        model=fields.text_or_none("model"),
        session=fields.text_or_none("session"),
        made_by=fields.text("made_by", ""),
        at=fields.text("at"),
        judged=fields.mapping("judged"),
        findings=tuple(parse_finding(row) for row in fields.items("findings")),
        previous=tuple(_previous(row) for row in fields.items("previous")),
        answers=tuple(_answer(row) for row in fields.items("answers")),
        edits=tuple(_edit(row) for row in fields.items("edits")),
        checks=tuple(row.rest() for row in fields.items("checks")) if has_checks else None,
        extra=fields.rest(),
    )


def render_record(record: ReviewRecord) -> str:
    data: dict[str, Any] = {
        "schema_version": SCHEMA,
        **dict(takewhile(lambda item: item[0] != "judged", _as_dict(record).items())),
        "judged": dict(record.judged),
    }
    if record.checks is not None:
        data["checks"] = [dict(check) for check in record.checks]
    data["findings"] = [finding_data(finding) for finding in record.findings]
    data["previous"] = [_as_dict(previous) for previous in record.previous]
    data["answers"] = [_as_dict(answer) for answer in record.answers]
    data["edits"] = [_as_dict(edit) for edit in record.edits]
    return yaml12.dump({**data, **record.extra})


def finding_data(finding: Finding) -> dict[str, Any]:
    data = _as_dict(finding)
    for key in ("unverified_because", "comment"):
        if data[key] is None:
            del data[key]
    if finding.evidence:
        data["evidence"] = {key: value for key, value in _as_dict(finding.evidence).items() if value is not None}
    return data


def _as_dict(value: Any) -> dict[str, Any]:
    return {name: _plain_value(getattr(value, name)) for name in value.__dataclass_fields__}


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return yaml12.FlowList(value)
    return str(value) if isinstance(value, str) else value


def parse_finding(row: FieldReader) -> Finding:
    return Finding(
        id=row.text("id"),
        severity=row.choice("severity", Severity),
        title=row.text("title"),
        what=row.text("what", ""),
        suggestion=row.text("suggestion", ""),
        requirement=row.text_or_none("requirement"),
        where=row.text_or_none("where"),
        evidence=parse_evidence(row.inner("evidence")),
        verified=row.flag("verified"),
        by=row.text("by"),
        state=row.choice("state", FindingState),
        unverified_because=row.text_or_none("unverified_because"),
        comment=row.text_or_none("comment"),
    )


def parse_evidence(row: FieldReader | None) -> Evidence | None:
    if row is None:
        return None
    line = row.count("line")
    return Evidence(row.text_or_none("file"), row.text_or_none("check"), line or None, row.text_or_none("quote"))


def _previous(row: FieldReader) -> PreviousFinding:
    return PreviousFinding(
        id=row.text("id"),
        severity=row.choice("severity", Severity),
        title=row.text("title"),
        answer=row.choice("answer", FindingState) if row.has("answer") else None,
        answer_note=row.text_or_none("answer_note"),
        answered_by=row.text_or_none("answered_by"),
        state=row.choice("state", FindingState),
        note=row.text("note", ""),
    )


def _answer(row: FieldReader) -> FindingAnswer:
    return FindingAnswer(
        id=row.text("id"),
        answer=row.choice("answer", FindingState),
        note=row.text("note", ""),
        files=row.texts("files"),
        by=row.text("by"),
        at=row.text("at", ""),
    )


def _edit(row: FieldReader) -> FindingEdit:
    name = row.text("field")
    choices = {"state": FindingState, "severity": Severity}.get(name)
    to = str(row.choice("to", choices)) if choices else row.take("to")
    return FindingEdit(row.text("id"), name, to, row.text("by"), row.text("at", ""))


T = TypeVar("T", Finding, PreviousFinding)

ADDED = "added"
"""The field of an edit that adds a person's finding; `to` holds its content."""
_EDIT_FIELDS = ("id", "by", "state")  # stored in the edit itself


def current_findings(records: Iterable[ReviewRecord]) -> tuple[Finding, ...]:
    """Return every finding of a change in its state after all rounds. Records must be in order."""
    findings: dict[str, Finding] = {}
    for record in records:
        findings.update((finding.id, finding) for finding in round_findings(record))
        for previous in record.previous:
            if previous.id in findings:
                findings[previous.id] = replace(findings[previous.id], state=previous.state)
        for edit in record.edits:
            if edit.id in findings and edit.field != ADDED:
                findings[edit.id] = _apply_edit(findings[edit.id], edit.field, edit.to)
    return tuple(findings.values())


def closed_by_people(records: Iterable[ReviewRecord]) -> set[str]:
    """Return the ids of findings that were last closed by a person. A judge cannot reopen them."""
    closed: set[str] = set()
    for record in records:
        for previous in record.previous:
            if previous.state.is_open:
                closed.discard(previous.id)
        for edit in record.edits:
            if edit.field == "state":
                (closed.discard if FindingState(edit.to).is_open else closed.add)(edit.id)
    return closed


def count_open(findings: Iterable[Finding]) -> dict[Severity, int]:
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += finding.state.is_open
    return counts


def round_findings(record: ReviewRecord) -> tuple[Finding, ...]:
    """Return the findings of one round and those a person added, with the person's edits applied."""
    added = [_added_finding(edit.id, edit.to, edit.by) for edit in record.edits if edit.field == ADDED]
    return tuple(_apply_edits(finding, record) for finding in (*record.findings, *added))


def previous_findings(record: ReviewRecord) -> tuple[PreviousFinding, ...]:
    """Return the judge's decisions on earlier findings, with the person's edits applied."""
    return tuple(_apply_edits(finding, record) for finding in record.previous)


def edit_content(finding: Finding) -> dict[str, Any]:
    """Return the content of the edit that adds this finding to a record."""
    return {name: value for name, value in finding_data(finding).items() if name not in _EDIT_FIELDS}


def _apply_edits(finding: T, record: ReviewRecord) -> T:
    for edit in record.edits:
        if edit.id == finding.id and edit.field != ADDED:
            finding = _apply_edit(finding, edit.field, edit.to)
    return finding


def _apply_edit(finding: T, name: str, to: Any) -> T:
    if name == "state":
        return replace(finding, state=FindingState(to))
    if isinstance(finding, Finding) and name in ("title", "description"):  # the person reworded a comment
        return replace(finding, title=str(to)) if name == "title" else replace(finding, what=str(to))
    return replace(finding, severity=Severity(to)) if name == "severity" else finding


def _added_finding(id_: str, data: Any, by: str) -> Finding:
    where = f"the finding {id_}"
    content = {key: value for key, value in FieldReader(data, where).rest().items() if value is not None}
    defaults = {"severity": Severity.MEDIUM, "title": "", "verified": False}
    return parse_finding(FieldReader({**defaults, **content, "id": id_, "by": by, "state": FindingState.OPEN}, where))

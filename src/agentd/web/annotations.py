"""Annotations of a document: findings of all rounds and people's comments, at the current position of their text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from agentd.change import (
    Change,
    ChangeState,
    cached_text,
    read_comments,
    read_record,
    readable_documents,
    record_files,
    sort_records,
)
from agentd.documents import (
    ADDED,
    COMMENTS_FILE,
    REQUIREMENT_PATTERN,
    Anchor,
    Comment,
    Finding,
    InvalidDocument,
    MatchKind,
    ReviewRecord,
    anchor_selection,
    current_findings,
    find_anchor,
    misattributed_comments,
    parse_spec,
    resolve_comments,
    round_findings,
)
from agentd.domain import AgentdError


@dataclass(frozen=True, slots=True)
class RecordView:
    """The records of a change. `state` is None if it cannot be read; `problems` lists other unreadable files."""

    state: ChangeState | None
    records: tuple[ReviewRecord, ...]
    problems: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The current findings, followed by those not in a record yet."""
        return (*current_findings(self.records), *(self.state.findings if self.state else ()))

    def of(self, kind: str) -> tuple[ReviewRecord, ...]:
        return tuple(one for one in self.records if one.kind == kind)


def read_record_view(change: Change) -> RecordView:
    problems, records, state = [], [], None
    try:
        state = change.read()
    except AgentdError as error:
        problems.append(error.message)
    for path in sorted(record_files(change.folder)):
        try:
            records.append(read_record(path))
        except (AgentdError, OSError) as error:
            problems.append(str(error))
    return RecordView(state, sort_records(records), tuple(problems))


@dataclass(frozen=True, slots=True)
class AnnotationEntry:
    """One statement about a finding, or one thread entry. `what`: found, fixed, disputed, open, withdrawn, edited."""

    by: str
    at: str
    what: str
    text: str
    round: int = 0
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """`line` 0 is the whole document. `sure`: exact, moved or changed; line or heading if no text is quoted."""

    kind: str  # finding or comment
    id: str
    document: str
    line: int
    last_line: int
    sure: str
    is_orphaned: bool
    severity: str
    title: str
    what: str
    suggestion: str
    requirement: str
    quote: str
    where: str
    unverified_because: str
    by: str
    state: str
    is_open: bool
    first_round: int
    last_round: int
    said: tuple[AnnotationEntry, ...]
    thread: tuple[AnnotationEntry, ...]
    finding: str
    """Of a comment: the finding that it became."""


@dataclass(frozen=True, slots=True)
class _AnnotationPlace:
    document: str
    line: int = 0
    last_line: int = 0
    sure: str = ""
    is_orphaned: bool = False


def document_annotations(
    change: Change, document: str, text: str, pattern: re.Pattern[str] = REQUIREMENT_PATTERN
) -> tuple[Annotation, ...]:
    """Return the annotations in text order; a finding that was a comment is shown as the comment."""
    found = read_record_view(change)
    said = _comments(change, found)
    taken = {one.finding for one in said}
    made = [
        _finding(one, found, _spot(change, found, one, document, text, pattern))
        for one in found.findings
        if one.id not in taken and finding_document(change, one) == document
    ]
    made += [_comment(one, found, text) for one in said if one.document == document]
    return tuple(sorted(made, key=lambda note: (note.line, note.last_line)))


@dataclass(frozen=True, slots=True)
class AnnotationSummary:
    """A finding or a comment in a list; `document` is "" if it concerns none."""

    id: str
    severity: str
    title: str
    by: str
    where: str
    document: str
    is_code: bool
    """It is about a line of code, whatever requirement it concerns."""


def open_annotations(change: Change) -> tuple[AnnotationSummary, ...]:
    """Return everything that is open, findings first, as far as the records and comments can be read."""
    found = read_record_view(change)
    said = _comments(change, found)
    taken = {one.finding for one in said}
    made = [
        AnnotationSummary(
            id=one.id,
            severity=str(one.severity),
            title=one.title,
            by=one.by,
            where=one.where or "",
            document=finding_document(change, one),
            is_code=bool(one.evidence and one.evidence.file)
            and not finding_document(change, replace(one, requirement=None)),
        )
        for one in found.findings
        if one.state.is_open and one.id not in taken
    ]
    return (*made, *(_brief(one) for one in said if one.is_open and one.words))


def finding_documents(change: Change) -> dict[str, str]:
    """Return the document of each finding that belongs to one."""
    found = ((one.id, finding_document(change, one)) for one in read_record_view(change).findings)
    return {id_: document for id_, document in found if document}


def _brief(one: Comment) -> AnnotationSummary:
    return AnnotationSummary(
        one.id, str(one.severity), one.words.split("\n")[0], one.thread[0].by, one.document, one.document, is_code=False
    )


def annotation_problems(change: Change) -> tuple[str, ...]:
    """Return what cannot be read in the records and comments, and comments that claim a finding not made from them."""
    found = read_record_view(change)
    try:
        foreign = misattributed_comments(read_comments(change), found.findings)
    except (AgentdError, OSError) as error:
        return (*found.problems, str(error))
    words = "{}: {} says that it is the finding {:.20}, which was not made of it; that counts for nothing"
    return (*found.problems, *(words.format(COMMENTS_FILE, one.id, one.finding) for one in foreign))


def _comments(change: Change, found: RecordView) -> tuple[Comment, ...]:
    """Return the comments with their current state, or () if they cannot be read."""
    try:
        return resolve_comments(read_comments(change), found.findings)
    except (AgentdError, OSError):
        return ()  # `annotation_problems` reports it


# ---- places


def finding_document(change: Change, one: Finding) -> str:
    """Return the document a finding concerns: that of its evidence, else the spec of its requirement; "" if none."""
    known = readable_documents(change.folder)
    named = [one.evidence.file if one.evidence else None, re.sub(r":\d+$", "", one.where or "")]
    named.append(f"specs/{one.requirement.partition(':')[0]}.md" if one.requirement else None)
    short = ((name or "").removeprefix(f"agentd/changes/{change.id}/") for name in named)
    return next((name for name in short if name in known), "")


def _spot(
    change: Change, found: RecordView, one: Finding, document: str, text: str, pattern: re.Pattern[str]
) -> _AnnotationPlace:
    evidence = one.evidence
    is_here = evidence is not None and (evidence.file or "").removeprefix(f"agentd/changes/{change.id}/") == document
    if evidence and is_here and evidence.quote:
        judged = partial(_as_judged, change, found, one.id, document)
        if spot := _quoted(Anchor(document, evidence.quote, line=evidence.line or 1), text, judged()):
            return spot
        return replace(_heading(one, document, text, pattern), is_orphaned=True)
    line = evidence.line if evidence and is_here else _line_in(one.where or "", document)
    if line:
        last = min(line, text.count("\n") + 1)
        return _AnnotationPlace(document, last, last, "line")
    return _heading(one, document, text, pattern)


def _quoted(anchor: Anchor, text: str, judged: str | None) -> _AnnotationPlace | None:
    """Locate a quote by the text around it when it was judged, if that was kept, else by the quote alone."""
    whole = anchor_selection(anchor.document, judged, anchor.quote, line=anchor.line) if judged else None
    place = find_anchor(whole, text) if whole else None
    if place:
        return _AnnotationPlace(anchor.document, place.line, place.last_line, str(place.kind))
    alone = anchor_selection(anchor.document, text, anchor.quote, line=anchor.line) if whole is None else None
    if alone:
        return _AnnotationPlace(
            anchor.document, alone.line, alone.line + alone.quote.rstrip("\n").count("\n"), str(MatchKind.EXACT)
        )
    return None


def _as_judged(change: Change, found: RecordView, id_: str, document: str) -> str | None:
    record = next((one for one in found.records if any(own.id == id_ for own in round_findings(one))), None)
    return cached_text(change, record.judged.get(document, "")) if record else None


def _heading(one: Finding, document: str, text: str, pattern: re.Pattern[str]) -> _AnnotationPlace:
    name, _, id_ = (one.requirement or "").partition(":")
    if document != f"specs/{name}.md":
        return _AnnotationPlace(document)
    try:
        requirement = parse_spec(text, document, pattern).requirement(id_)
    except InvalidDocument:
        requirement = None
    return (
        _AnnotationPlace(document, requirement.line, requirement.line, "heading")
        if requirement
        else _AnnotationPlace(document)
    )


def _line_in(where: str, document: str) -> int:
    name, _, line = where.rpartition(":")
    return int(line) if name.endswith(document) and line.isdecimal() and len(line) < 8 else 0


# ---- annotations


def _finding(one: Finding, found: RecordView, spot: _AnnotationPlace) -> Annotation:
    said = tuple(_history(one.id, found))
    return Annotation(
        kind="finding",
        id=one.id,
        document=spot.document,
        line=spot.line,
        last_line=spot.last_line,
        sure=spot.sure,
        is_orphaned=spot.is_orphaned,
        severity=str(one.severity),
        title=one.title,
        what=one.what,
        suggestion=one.suggestion,
        requirement=one.requirement or "",
        quote=(one.evidence.quote if one.evidence else None) or "",
        where=one.where or "",
        unverified_because=one.unverified_because or "",
        by=one.by,
        state=str(one.state),
        is_open=one.state.is_open,
        first_round=said[0].round if said else 0,
        last_round=said[-1].round if said else 0,
        said=said,
        thread=(),
        finding="",
    )


def place_finding(one: Finding, found: RecordView, document: str, line: int, is_orphaned: bool = False) -> Annotation:
    """Place a finding at a line of a code file."""
    return _finding(one, found, _AnnotationPlace(document, line, line, "line", is_orphaned))


def _comment(one: Comment, found: RecordView, text: str) -> Annotation:
    place = find_anchor(one.anchor, text)
    said = tuple(_history(one.finding or "", found))
    thread = tuple(AnnotationEntry(entry.by, entry.at, "said", entry.text) for entry in one.thread)
    return Annotation(
        kind="comment",
        id=one.id,
        document=one.document,
        line=place.line if place else 0,
        last_line=place.last_line if place else 0,
        sure=str(place.kind) if place else "",
        is_orphaned=place is None,
        severity=str(one.severity),
        title="",
        what=one.thread[0].text,
        suggestion="",
        requirement="",
        quote=one.anchor.quote,
        where="",
        unverified_because="",
        by=one.thread[0].by,
        state=str(one.state),
        is_open=one.is_open,
        first_round=said[0].round if said else 0,
        last_round=said[-1].round if said else 0,
        said=said,
        thread=thread,
        finding=one.finding or "",
    )


def _history(id_: str, found: RecordView) -> Iterator[AnnotationEntry]:
    """Yield what each round said about a finding, in order: the judge, the author's answer, a person's edit."""
    for record in found.records:
        yield from _in_record(id_, record)


def _in_record(id_: str, record: ReviewRecord) -> Iterator[AnnotationEntry]:
    def word(by: str, at: str, what: str, text: str) -> AnnotationEntry:
        return AnnotationEntry(by, at, what, text, record.round, record.kind)

    for one in record.findings:
        if one.id == id_:
            yield word(one.by, record.at, "found", one.title)
    for earlier in record.previous:
        if earlier.id == id_:
            yield word(record.by, record.at, str(earlier.state), earlier.note)
    for answer in record.answers:
        if answer.id == id_:
            yield word(answer.by, answer.at, str(answer.answer), answer.note)
    for edit in record.edits:
        if edit.id == id_:
            is_new = edit.field == ADDED
            to = "" if is_new else str(edit.to)
            what = "found" if is_new else to if edit.field == "state" else "edited"
            yield word(edit.by, edit.at, what, "" if is_new or edit.field == "state" else f"{edit.field}: {to}")

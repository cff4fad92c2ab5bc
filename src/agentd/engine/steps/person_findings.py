"""What a person changed in CHALLENGE.md or REVIEW.md goes into its record: findings closed, regraded or added.

It moves no phase, and the verdict is the judge's: accepting is a decision of its own.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from agentd.change import Change, link_findings, read_comments
from agentd.documents import (
    ADDED,
    QUOTE_LENGTH,
    AnchorMatch,
    Comment,
    Evidence,
    Finding,
    FindingEdit,
    InvalidDocument,
    MatchKind,
    ReviewRecord,
    current_findings,
    decode_text,
    edit_content,
    find_anchor,
    read_review_edits,
    resolve_comments,
)
from agentd.domain import FindingState, clock, events
from agentd.engine.steps import verdict_record
from agentd.engine.steps.step_context import JUDGE_SPECS, JudgeSpec, StepContext
from agentd.project import git
from agentd.storage import files


def apply_person_edits(ctx: StepContext, record: ReviewRecord) -> ReviewRecord:
    """The record with what is new in the document; the document is rendered again from it."""
    judge_spec = JUDGE_SPECS[record.kind]
    path = ctx.change.folder / judge_spec.page
    if not path.is_file():
        return record
    try:
        text = decode_text(files.read(path), judge_spec.page)
    except InvalidDocument as error:
        _warn(ctx, f"{judge_spec.page} cannot be read, so nothing is taken from it: {error.message}")
        return record
    of = displayed_record(ctx, judge_spec)
    if text == verdict_record.verdict_page(ctx, record) or (of and of.round != record.round):
        return record
    found = read_review_edits(text, record, judge_spec.page)
    for fault in found.faults:
        _warn(ctx, f"{judge_spec.page}:{fault.line}: {fault.message}")
    if found.verdict:
        message = f"the verdict in {judge_spec.page} was edited, which decides nothing"
        _warn(ctx, f'{message}: agentd {judge_spec.command} {ctx.change.id} --accept "REASON" does')
    by, at = f"person:{git.user_name(ctx.change.tree)}", clock.now()
    first = next_person_id(ctx)
    made = [one.edit(by, at) for one in found.changes]
    made += [one.edit(f"P{number}", by, at) for number, one in enumerate(found.added, first)]
    if made or found.verdict:
        return write_edits(ctx, record, made)
    return record  # other words may be edited freely


def displayed_record(ctx: StepContext, judge_spec: JudgeSpec) -> ReviewRecord | None:
    """The record that the document was rendered from, by its own word."""
    try:
        text = files.read(ctx.change.folder / judge_spec.page).decode("utf-8", "replace")
    except (OSError, files.CannotRead):
        return None
    named = re.search(rf"^record: reviews/{judge_spec.kind}-(\d{{1,9}})\.yaml$", text[:2000], re.MULTILINE)
    number = int(named[1]) if named else 0
    return next((one for one in ctx.change.records(judge_spec.kind) if one.round == number), None)


def write_edits(ctx: StepContext, record: ReviewRecord, made: list[FindingEdit]) -> ReviewRecord:
    """Into the record, then into the document that is made of it."""
    new = replace(record, edits=(*record.edits, *made))
    if made:
        verdict_record.save_record(ctx, new)
    verdict_record.render_verdict(ctx, new)
    touched = {edit.id for edit in made}
    for one in current_findings(ctx.change.records()):
        if one.id in touched:
            told = events.FindingReported(
                id=one.id,
                severity=one.severity,
                title=one.title,
                where=one.where,
                verified=one.verified,
                by=made[0].by,
                state=one.state,
            )
            ctx.run.emit(told)
    return new


def next_person_id(ctx: StepContext) -> int:
    """Of the findings that people make; those that wait for a record and those of comments are taken too."""
    known = [one.id for one in (*current_findings(ctx.change.records()), *ctx.change.read().findings)]
    known += [one.finding or "" for one in read_comments(ctx.change)]
    used = [one[1:] for one in known if one.startswith("P")]
    return 1 + max((int(one) for one in used if one.isdigit()), default=0)


def _warn(ctx: StepContext, message: str) -> None:
    if message not in ctx.run.warned:
        ctx.run.warned.add(message)
        ctx.run.emit(events.WarningIssued(code="review-edit", message=message))


_TITLE = 120  # characters


def apply_comments(ctx: StepContext, judge_spec: JudgeSpec) -> None:
    """Into the last record of that judge; where there is none they wait for the first one."""
    said = [one for one in read_comments(ctx.change) if one.words]  # one that is just begun says nothing yet
    if not said:
        return
    waiting, found = ctx.change.read().findings, ctx.change.records(judge_spec.kind)
    all_made = (*current_findings(ctx.change.records()), *waiting)
    said = list(resolve_comments(said, all_made))
    made_before = {one.id for one in all_made}
    new = _linked(ctx, [one for one in said if one.is_open and one.finding not in made_before])
    made = [_finding(ctx.change, one) for one in new]
    known = {one.id: one for one in (current_findings(found) if found else waiting)}
    later = [(one, known[one.finding]) for one in said if one.finding in known and known[one.finding].state.is_open]
    if found:
        changes = [*(_added(one) for one in made), *(word for one in later for word in _words(*one))]
        if changes:
            write_edits(ctx, found[-1], changes)
    else:
        _wait(ctx, made, later)


def _linked(ctx: StepContext, new: Sequence[Comment]) -> list[Comment]:
    """Each with the id of its finding; one that has an id was cut off before its finding was made."""
    first = next_person_id(ctx)
    without = [one.id for one in new if one.finding is None]
    ids = {id_: f"P{number}" for number, id_ in enumerate(without, first)}
    if ids:
        link_findings(ctx.change, ids)
    return [replace(one, finding=one.finding or ids[one.id]) for one in new]


def _wait(ctx: StepContext, made: Sequence[Finding], later: Sequence[tuple[Comment, Finding]]) -> None:
    said = {finding.id: comment for comment, finding in later}
    if not made and not said:
        return

    def waiting(old: Finding) -> Finding:
        comment = said.get(old.id)
        return replace(old, title=_title(comment), what=comment.words) if comment else old

    closed = {id_ for id_, comment in said.items() if not comment.is_open}
    ctx.run.update(
        lambda old: replace(old, findings=(*(waiting(one) for one in old.findings if one.id not in closed), *made))
    )
    for one in made:
        values = {name: getattr(one, name) for name in ("id", "severity", "title", "where", "verified", "by", "state")}
        ctx.run.emit(events.FindingReported(**values))


def _added(one: Finding) -> FindingEdit:
    return FindingEdit(one.id, ADDED, edit_content(one), one.by, clock.now())


def _words(comment: Comment, finding: Finding) -> list[FindingEdit]:
    """What people have said about it since: other words, or that it is settled."""
    by, at = comment.thread[-1].by, clock.now()
    if not comment.is_open:
        return [FindingEdit(finding.id, "state", str(FindingState.WITHDRAWN), comment.resolved_by or by, at)]
    new = {"title": (finding.title, _title(comment)), "description": (finding.what, comment.words)}
    return [FindingEdit(finding.id, name, now, by, at) for name, (before, now) in new.items() if before != now]


def _finding(change: Change, one: Comment) -> Finding:
    assert one.finding
    place = _place(change, one)
    line, because = place.line if place else None, _doubt(one, place)
    return Finding(
        id=one.finding,
        severity=one.severity.severity,
        title=_title(one),
        what=one.words,
        suggestion="",
        requirement=None,
        where=f"{one.document}:{line}" if line else one.document,
        evidence=Evidence(file=one.document, line=line, quote=one.anchor.quote[:QUOTE_LENGTH]),
        verified=because is None,
        by=one.thread[0].by,
        state=FindingState.OPEN,
        unverified_because=because,
        comment=one.id,
    )


def _title(one: Comment) -> str:
    return " ".join(one.words.split("\n")[0].split())[:_TITLE]


def _place(change: Change, one: Comment) -> AnchorMatch | None:
    try:
        text = decode_text(files.read(change.folder / one.document), one.document)
    except (FileNotFoundError, InvalidDocument):
        return None
    return find_anchor(one.anchor, text)


def _doubt(one: Comment, place: AnchorMatch | None) -> str | None:
    if place is None:
        return f"the text that it is about is gone from {one.document}"
    return "the text that it is about has changed since" if place.kind is MatchKind.CHANGED else None

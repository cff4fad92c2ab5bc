"""What people write becomes findings: edits of CHALLENGE.md or REVIEW.md, and comments on documents.

Findings are closed, regraded or added. This moves no phase, and the verdict stays the judge's: accepting is a separate
decision. A comment gets the id of its finding before the finding is made; if agentd is interrupted in between, the
next command makes it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agentd.change import Change, link_findings, read_comments
from agentd.documents import (
    ADDED,
    QUOTE_LENGTH,
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

_TITLE = 120  # characters


def apply_person_edits(ctx: StepContext, record: ReviewRecord) -> ReviewRecord:
    """Return the record with what a person changed in its page; the page is rendered again from it."""
    judge = JUDGE_SPECS[record.kind]
    path = ctx.change.folder / judge.page
    if not path.is_file():
        return record
    try:
        text = decode_text(files.read(path), judge.page)
    except InvalidDocument as error:
        _warn(ctx, f"{judge.page} cannot be read, so nothing is taken from it: {error.message}")
        return record
    shown = displayed_record(ctx, judge)
    if text == verdict_record.page_text(ctx, record) or (shown and shown.round != record.round):
        return record
    edits = read_review_edits(text, record, judge.page)
    for fault in edits.faults:
        _warn(ctx, f"{judge.page}:{fault.line}: {fault.message}")
    if edits.verdict:
        message = f"the verdict in {judge.page} was edited, which decides nothing"
        _warn(ctx, f'{message}: agentd {judge.command} {ctx.change.id} --accept "REASON" does')
    by, at = f"person:{git.user_name(ctx.change.tree)}", clock.now()
    rows = [one.edit(by, at) for one in edits.changes]
    rows += [one.edit(f"P{number}", by, at) for number, one in enumerate(edits.added, next_person_id(ctx))]
    # Other text may be edited freely.
    return write_edits(ctx, record, rows) if rows or edits.verdict else record


def displayed_record(ctx: StepContext, judge: JudgeSpec) -> ReviewRecord | None:
    """Return the record that the page says it was rendered from."""
    try:
        text = files.read(ctx.change.folder / judge.page).decode("utf-8", "replace")
    except (OSError, files.CannotRead):
        return None
    named = re.search(rf"^record: reviews/{judge.kind}-(\d{{1,9}})\.yaml$", text[:2000], re.MULTILINE)
    number = int(named[1]) if named else 0
    return next((one for one in ctx.change.records(judge.kind) if one.round == number), None)


def write_edits(ctx: StepContext, record: ReviewRecord, edits: Sequence[FindingEdit]) -> ReviewRecord:
    """Add edits to the record and render its page."""
    new = replace(record, edits=(*record.edits, *edits))
    if edits:
        verdict_record.save_record(ctx, new)
    verdict_record.render_page(ctx, new)
    ids = {edit.id for edit in edits}
    for one in current_findings(ctx.change.records()):
        if one.id in ids:
            ctx.report_finding(one, by=edits[0].by)
    return new


def next_person_id(ctx: StepContext) -> int:
    """Return the next free number of the findings of people, including those without a record and of comments."""
    ids = [one.id for one in (*current_findings(ctx.change.records()), *ctx.change.read().findings)]
    ids += [one.finding or "" for one in read_comments(ctx.change)]
    return 1 + max((int(one[1:]) for one in ids if re.fullmatch(r"P\d+", one, re.ASCII)), default=0)


def _warn(ctx: StepContext, message: str) -> None:
    if message not in ctx.run.warned:
        ctx.run.warned.add(message)
        ctx.run.emit(events.WarningIssued(code="review-edit", message=message))


# ---- comments


def apply_comments(ctx: StepContext, judge: JudgeSpec) -> None:
    """Write comments into the last record of the judge; without one they wait in STATE.yaml for the first."""
    comments = [one for one in read_comments(ctx.change) if one.words]  # one without text says nothing yet
    if not comments:
        return
    pending, records = ctx.change.read().findings, ctx.change.records(judge.kind)
    all_findings = (*current_findings(ctx.change.records()), *pending)
    comments = list(resolve_comments(comments, all_findings))
    made = {one.id for one in all_findings}
    new = _link_new(ctx, [one for one in comments if one.is_open and one.finding not in made])
    added = [_finding(ctx.change, one) for one in new]
    known = {one.id: one for one in (current_findings(records) if records else pending) if one.state.is_open}
    later = [(one, known[one.finding]) for one in comments if one.finding in known]
    if records:
        edits = [FindingEdit(one.id, ADDED, edit_content(one), one.by, clock.now()) for one in added]
        edits += [edit for comment, finding in later for edit in _later_edits(comment, finding)]
        if edits:
            write_edits(ctx, records[-1], edits)
    elif added or later:
        comment_of = {finding.id: comment for comment, finding in later}
        ctx.run.update(lambda old: replace(old, findings=(*_without_resolved(old.findings, comment_of), *added)))
        for one in added:
            ctx.report_finding(one)


def _link_new(ctx: StepContext, new: Sequence[Comment]) -> list[Comment]:
    """Return comments with the ids of their findings; one that has an id was interrupted before it was made."""
    unlinked = [one.id for one in new if one.finding is None]
    ids = {id_: f"P{number}" for number, id_ in enumerate(unlinked, next_person_id(ctx))}
    if ids:
        link_findings(ctx.change, ids)
    return [replace(one, finding=one.finding or ids[one.id]) for one in new]


def _without_resolved(pending: Sequence[Finding], comment_of: dict[str, Comment]) -> Iterator[Finding]:
    """Yield the pending findings with the current text of their comments."""
    for one in pending:
        comment = comment_of.get(one.id)
        if comment is None:
            yield one
        elif comment.is_open:
            yield replace(one, title=_title(comment), what=comment.words)


def _later_edits(comment: Comment, finding: Finding) -> list[FindingEdit]:
    """Return what people did with the comment since: changed its text, or resolved it."""
    by, at = comment.thread[-1].by, clock.now()
    if not comment.is_open:
        return [FindingEdit(finding.id, "state", str(FindingState.WITHDRAWN), comment.resolved_by or by, at)]
    texts = {"title": (finding.title, _title(comment)), "description": (finding.what, comment.words)}
    return [FindingEdit(finding.id, name, now, by, at) for name, (before, now) in texts.items() if before != now]


def _finding(change: Change, comment: Comment) -> Finding:
    assert comment.finding
    name = comment.document
    try:
        match = find_anchor(comment.anchor, decode_text(files.read(change.folder / name), name))
    except (FileNotFoundError, InvalidDocument):
        match = None
    because = None if match else f"the text that it is about is gone from {name}"
    if match and match.kind is MatchKind.CHANGED:
        because = "the text that it is about has changed since"
    line = match.line if match else None
    return Finding(
        id=comment.finding,
        severity=comment.severity.severity,
        title=_title(comment),
        what=comment.words,
        suggestion="",
        requirement=None,
        where=f"{name}:{line}" if line else name,
        evidence=Evidence(file=name, line=line, quote=comment.anchor.quote[:QUOTE_LENGTH]),
        verified=because is None,
        by=comment.thread[0].by,
        state=FindingState.OPEN,
        unverified_because=because,
        comment=comment.id,
    )


def _title(comment: Comment) -> str:
    return " ".join(comment.words.split("\n")[0].split())[:_TITLE]

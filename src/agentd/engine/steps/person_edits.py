"""What a person changed in CHALLENGE.md or REVIEW.md goes into its record: findings closed, regraded or added.

It moves no phase, and the verdict is the judge's: accepting is a decision of its own.
"""

import re
from dataclasses import replace

from agentd.change import read_comments
from agentd.documents import (
    FindingEdit,
    InvalidDocument,
    ReviewRecord,
    current_findings,
    decode_text,
    read_review_edits,
)
from agentd.domain import clock, events
from agentd.engine.steps import verdict_record
from agentd.engine.steps.judge_spec import JUDGE_SPECS, JudgeSpec
from agentd.engine.steps.step_context import StepContext
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

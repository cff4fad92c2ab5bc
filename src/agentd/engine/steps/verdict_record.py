"""A judge's verdict becomes the record of its round, and from that CHALLENGE.md or REVIEW.md and a transition.

The record is written first and once. What is made of it can be made again, so a run that was killed in between
is finished by the next one.
"""

from dataclasses import replace
from functools import partial

from agentd.change import ChangeState, StepRecord
from agentd.documents import (
    PROPOSAL_FILE,
    Finding,
    ReviewRecord,
    append_block,
    count_open,
    current_findings,
    decode_text,
    find_blocks,
    render_record,
    render_review,
    review_block,
)
from agentd.domain import ReviewVerdict, StepStatus, event_for_verdict, events
from agentd.engine.calls import step_commits
from agentd.engine.steps import check_run, code_trees
from agentd.engine.steps.step_context import CHALLENGER_SPEC, JUDGE_SPECS, REVIEWER_SPEC, JudgeSpec, StepContext
from agentd.storage import files


def save_record(ctx: StepContext, record: ReviewRecord) -> str:
    """Its name in the change's folder."""
    with ctx.change.writing(ctx.run.token):
        files.write(ctx.change.folder / _name(record), render_record(record).encode())
    return _name(record)


def unfinished_record(ctx: StepContext) -> ReviewRecord | None:
    """The record of a round whose verdict has not moved the change: the run that wrote it was killed."""
    for judge_spec in JUDGE_SPECS.values():
        found = ctx.change.records(judge_spec.kind)
        if len(found) > sum(one.event.startswith(f"{judge_spec.kind}-") for one in ctx.change.read().history):
            return found[-1]
    return None


def finish_record(ctx: StepContext, record: ReviewRecord, attempt: int, duration_ms: int = 0) -> None:
    """All that follows from the record; doing it twice changes nothing."""
    name, step = _name(record), record.kind
    render_verdict(ctx, record)
    if step == CHALLENGER_SPEC.kind:
        _append_block(ctx, record)
    elif record.verdict == ReviewVerdict.APPROVED:
        code_trees.mark_done_tasks(ctx, record.judged["base"], record.judged["tree"])
    for finding in record.findings:
        ctx.run.emit(_made(finding, record, attempt))
    outputs = {one: files.hash_bytes(files.read(ctx.change.folder / one)) for one in (name, JUDGE_SPECS[step].page)}
    row = StepRecord(step, record.round, 1, attempt, StepStatus.DONE, outputs, record.at)
    ctx.run.update(partial(_moved, record, row, verdict_reason(ctx, record)))
    ctx.run.emit(
        events.StepFinished(
            step=step,
            round=record.round,
            number=1,
            attempt=attempt,
            status=StepStatus.DONE,
            duration_ms=duration_ms,
            outputs=outputs,
            message=record.verdict,
        )
    )
    step_commits.commit_step(ctx.run, step)


def render_verdict(ctx: StepContext, record: ReviewRecord) -> None:
    with ctx.change.writing(ctx.run.token):
        files.write(ctx.change.folder / JUDGE_SPECS[record.kind].page, verdict_page(ctx, record).encode())


def verdict_page(ctx: StepContext, record: ReviewRecord) -> str:
    return render_review(record, same_vendor=_is_same_vendor(ctx, JUDGE_SPECS[record.kind]))


def verdict_reason(ctx: StepContext, record: ReviewRecord) -> str:
    """How findings stand after the round, over all rounds."""
    counts = count_open(current_findings(ctx.change.records(record.kind)))
    message = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    return f"{message or 'nothing'} open ({_name(record)})"


def _moved(record: ReviewRecord, row: StepRecord, reason: str, old: ChangeState) -> ChangeState:
    taken = {finding.id for finding in record.findings}
    left = tuple(finding for finding in old.findings if finding.id not in taken)
    new = replace(old.with_step(row), round=record.round, findings=left)
    event = event_for_verdict(JUDGE_SPECS[record.kind].verdicts(record.verdict))
    by = check_run.judged_specs(old, record.round) if record.kind == REVIEWER_SPEC.kind else {}
    return new.with_transition(event, by=record.by, why=reason, at=record.at, hashes={**record.judged, **by})


def _append_block(ctx: StepContext, record: ReviewRecord) -> None:
    path = ctx.change.folder / PROPOSAL_FILE
    with ctx.change.writing(ctx.run.token):
        text = decode_text(files.read(path), PROPOSAL_FILE)
        if not any(block.iteration == record.round for block in find_blocks(text)):
            files.write(path, append_block(text, review_block(record)).encode())


def _made(finding: Finding, record: ReviewRecord, attempt: int) -> events.FindingReported:
    return events.FindingReported(
        step=record.kind,
        round=record.round,
        number=1,
        attempt=attempt,
        id=finding.id,
        severity=finding.severity,
        title=finding.title,
        where=finding.where,
        verified=finding.verified,
        by=finding.by,
        state=finding.state,
    )


def _is_same_vendor(ctx: StepContext, judge_spec: JudgeSpec) -> bool:
    maker, judge = (ctx.config.agent_for(role) for role in (judge_spec.maker, judge_spec.judge))
    is_vendor = maker.kind not in ("command", "scripted")  # of others only the name is known
    return maker.name == judge.name or (is_vendor and maker.kind == judge.kind)


def _name(record: ReviewRecord) -> str:
    return f"reviews/{record.kind}-{record.round}.yaml"

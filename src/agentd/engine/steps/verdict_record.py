"""The record of a verdict, and what follows from it: CHALLENGE.md or REVIEW.md and the transition.

The record is written first and once. Everything else can be derived from it again, so the next run finishes what a
killed one left.
"""

from dataclasses import replace
from typing import Any

from agentd.change import ChangeState, StepRecord
from agentd.documents import (
    PROPOSAL_FILE,
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
from agentd.engine.steps.step_context import CHALLENGER_SPEC, JUDGE_SPECS, REVIEWER_SPEC, StepContext
from agentd.storage import files


def save_record(ctx: StepContext, record: ReviewRecord) -> str:
    """Return the name of the record in the change's folder."""
    name = _name(record)
    with ctx.change.writing(ctx.run.token):
        files.write(ctx.change.folder / name, render_record(record).encode())
    return name


def unfinished_record(ctx: StepContext) -> ReviewRecord | None:
    """Return the record of a round whose verdict has not moved the change: the run that wrote it was killed."""
    events_so_far = [str(one.event) for one in ctx.change.read().history]
    for kind in JUDGE_SPECS:
        records = ctx.change.records(kind)
        if len(records) > sum(event.startswith(f"{kind}-") for event in events_so_far):
            return records[-1]
    return None


def finish_record(ctx: StepContext, record: ReviewRecord, attempt: int, duration_ms: int = 0) -> None:
    """Do all that follows from the record; doing it twice changes nothing."""
    judge, name, change = JUDGE_SPECS[record.kind], _name(record), ctx.change
    render_page(ctx, record)
    if judge is CHALLENGER_SPEC:
        with change.writing(ctx.run.token):
            text = decode_text(files.read(change.folder / PROPOSAL_FILE), PROPOSAL_FILE)
            if not any(block.iteration == record.round for block in find_blocks(text)):
                files.write(change.folder / PROPOSAL_FILE, append_block(text, review_block(record)).encode())
    elif record.verdict == ReviewVerdict.APPROVED:
        code_trees.mark_done_tasks(ctx, record.judged["base"], record.judged["tree"])
    names: dict[str, Any] = {"step": judge.kind, "round": record.round, "number": 1, "attempt": attempt}
    for finding in record.findings:
        ctx.report_finding(finding, **names)
    outputs = {one: files.hash_bytes(files.read(change.folder / one)) for one in (name, judge.page)}
    row = StepRecord(judge.kind, record.round, 1, attempt, StepStatus.DONE, outputs, record.at)
    counts = count_open(current_findings(change.records(judge.kind)))
    open_ = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    why = f"{open_ or 'nothing'} open ({name})"

    def move(old: ChangeState) -> ChangeState:
        recorded = {finding.id for finding in record.findings}
        left = tuple(finding for finding in old.findings if finding.id not in recorded)
        specs = code_trees.spec_hashes(check_run.check_outputs(old, record.round)) if judge is REVIEWER_SPEC else {}
        event = event_for_verdict(judge.verdicts(record.verdict))
        new = replace(old.with_step(row), round=record.round, findings=left)
        return new.with_transition(event, by=record.by, why=why, at=record.at, hashes={**record.judged, **specs})

    ctx.run.update(move)
    ctx.run.emit(
        events.StepFinished(
            **names, status=StepStatus.DONE, duration_ms=duration_ms, outputs=outputs, message=record.verdict
        )
    )
    step_commits.commit_step(ctx.run, judge.kind)


def render_page(ctx: StepContext, record: ReviewRecord) -> None:
    with ctx.change.writing(ctx.run.token):
        files.write(ctx.change.folder / JUDGE_SPECS[record.kind].page, page_text(ctx, record).encode())


def page_text(ctx: StepContext, record: ReviewRecord) -> str:
    """Return the text of CHALLENGE.md or REVIEW.md."""
    judge = JUDGE_SPECS[record.kind]
    author, agent = (ctx.config.agent_for(role) for role in (judge.author, judge.role))
    has_vendor = author.kind not in ("command", "scripted")  # of others only the name is known
    same_vendor = author.name == agent.name or (has_vendor and author.kind == agent.kind)
    return render_review(record, same_vendor=same_vendor)


def _name(record: ReviewRecord) -> str:
    return f"reviews/{record.kind}-{record.round}.yaml"

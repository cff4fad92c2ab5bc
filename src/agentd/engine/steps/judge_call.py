"""The call of a judge, and the maker's answers to its findings.

A judge reports through its tool; if it answers in text instead, the verdict and findings are read from that text.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentd.agents import FailureCause
from agentd.change import ChangeState
from agentd.documents import (
    Finding,
    FindingAnswer,
    PreviousFinding,
    ReviewRecord,
    closed_by_people,
    current_findings,
    parse_finding,
    read_review_edits,
    read_verdict,
)
from agentd.domain import (
    AgentFailed,
    ChallengeVerdict,
    FieldReader,
    FindingState,
    ReviewVerdict,
    Severity,
    VerdictUnknown,
    clock,
    events,
)
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.steps import verdict_record
from agentd.engine.steps.step_context import CHALLENGER_SPEC, JudgeSpec, StepContext, plan_complexity
from agentd.engine.tools.judge_tools import REPORT_FILE, split_findings
from agentd.engine.tools.question_tools import ANSWERS
from agentd.storage import files

_ASKED = ("id", "severity", "title", "what", "suggestion", "requirement", "where")


def open_judge_findings(ctx: StepContext, judge_spec: JudgeSpec) -> list[Finding]:
    """Return what the maker must answer. agentd's own new findings wait for the next record."""
    return [one for one in current_findings(ctx.change.records(judge_spec.kind)) if one.state.is_open]


def finding_rows(ctx: StepContext, judge_spec: JudgeSpec, left: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as prompt values, each with the judge's last note on it."""
    notes = {word.id: word.note for record in ctx.change.records(judge_spec.kind) for word in record.previous}
    return [{**{name: str(getattr(one, name) or "") for name in _ASKED}, "note": notes.get(one.id, "")} for one in left]


def finish_answers(
    ctx: StepContext,
    judge_spec: JudgeSpec,
    record: ReviewRecord,
    work: CallRequest,
    done: CallResult,
    left: Sequence[Finding],
    outputs: Mapping[str, str],
    also: Callable[[ChangeState], ChangeState],
) -> None:
    """Store the maker's answers in the judge's record and finish the step."""
    given = ctx.run.folder / ANSWERS
    answers: dict[str, Any] = json.loads(given.read_bytes()) if given.is_file() else {}
    if missing := [one.id for one in left if one.id not in answers]:
        message = f"the {work.role} did not answer {', '.join(missing)}"
        ctx.run.emit(events.WarningIssued(**work.names(done.attempt), code="unanswered", message=message))
    by = f"agent:{ctx.config.agent_for(judge_spec.maker).name}"
    rows = tuple(
        FindingAnswer(one["id"], FindingState(one["answer"]), one["note"], tuple(one["files"]), by, one["at"])
        for one in answers.values()
    )
    name = verdict_record.save_record(ctx, replace(record, answers=rows))
    outputs = {**outputs, name: files.hash_bytes(files.read(ctx.change.folder / name))}
    kinds = Counter(one["answer"] for one in answers.values())
    summary = ", ".join(f"{count} {kind}" for kind, count in kinds.items())  # 2 fixed, 1 disputed
    retries.finish_step(ctx.run, work, done, outputs, summary, also)


_SHOWN = 2000  # characters of a text answer that becomes one finding
_APPROVED = "APPROVED"


def ask_judge(ctx: StepContext, judge_spec: JudgeSpec, round_: int, prompt: str) -> tuple[dict[str, Any], CallResult]:
    """Call the judge in a fresh session; return its report (verdict, reported, summary, findings, previous)."""
    said: list[str] = []

    def is_verdict(text: str) -> bool:
        said.append(text)
        return read_verdict(text, judge_spec.kind).verdict is not None

    report = ctx.run.folder / REPORT_FILE
    work = CallRequest(
        step=judge_spec.kind,
        round=round_,
        role=judge_spec.judge,
        stage=judge_spec.stage,
        prompt=prompt,
        effect=report.is_file,
        answer=is_verdict,
        reminder=ctx.reminder(judge_spec.judge, judge_spec.stage, "You have not reported yet.", "append_review"),
        complexity=plan_complexity(ctx.change),
    )
    try:
        done = retries.perform_call(ctx.run, work)
        told = json.loads(report.read_bytes()) if report.is_file() else _from_text(ctx, judge_spec, done.text)
    except AgentFailed as error:
        if error.cause == FailureCause.DID_NOTHING and said and said[-1].strip():
            raise _unreadable(ctx, judge_spec) from None
        raise
    return told, done


def write_verdict(
    ctx: StepContext,
    judge_spec: JudgeSpec,
    round_: int,
    told: dict[str, Any],
    done: CallResult,
    *,
    overruled: str | None,
    judged: Mapping[str, str],
    findings: Sequence[Finding],
    previous: tuple[PreviousFinding, ...],
    checks: tuple[Mapping[str, Any], ...] | None = None,
) -> ReviewRecord:
    """Save the record of the round and everything that follows from it. `findings` are those agentd adds."""
    model = ctx.config.agent_for(judge_spec.judge).model_for(plan_complexity(ctx.change))
    by = f"agent:{ctx.config.agent_for(judge_spec.judge).name}"
    reported = tuple(parse_finding(FieldReader({**row, "by": by}, REPORT_FILE)) for row in told["findings"])
    overruling = ChallengeVerdict.NEEDS_REVISION if judge_spec is CHALLENGER_SPEC else ReviewVerdict.NEEDS_CHANGES
    record = ReviewRecord(
        change_id=ctx.change.id,
        kind=judge_spec.kind,
        round=round_,
        verdict=str(overruling) if overruled else told["verdict"],
        reported=told["reported"],
        overruled=overruled,
        summary=told["summary"],
        by=by,
        model=model.model if model else None,
        session=done.session,
        made_by=f"agent:{ctx.config.agent_for(judge_spec.maker).name}",
        at=clock.now(),
        judged=dict(judged),
        findings=(*findings, *reported),
        previous=previous,
        checks=checks,
    )
    verdict_record.save_record(ctx, record)
    verdict_record.finish_record(ctx, record, done.attempt, done.duration_ms)
    return record


def previous_rows(records: Sequence[ReviewRecord], judgements: Sequence[dict[str, str]]) -> tuple[PreviousFinding, ...]:
    """Return the judgement on each earlier finding with the maker's answer. A finding not mentioned stays open."""
    answers: dict[str, FindingAnswer] = {one.id: one for record in records for one in record.answers}
    given = {row["id"]: row for row in judgements}
    rows = []
    for one in current_findings(records):
        row = given.get(one.id)
        if row is None and not one.state.is_open:
            continue
        answer = answers.get(one.id)
        rows.append(
            PreviousFinding(
                id=one.id,
                severity=one.severity,
                title=one.title,
                answer=answer.answer if answer else None,
                answer_note=answer.note if answer else None,
                answered_by=answer.by if answer else None,
                state=FindingState(row["state"]) if row else one.state,
                note=row["note"] if row else "Not mentioned, so it stays open.",
            )
        )
    return tuple(rows)


def next_finding_number(records: Sequence[ReviewRecord], prefix: str) -> int:
    """Return the next free number of finding ids with this prefix."""
    used = [one.id.removeprefix(prefix) for one in current_findings(records) if one.id.startswith(prefix)]
    return 1 + max((int(one) for one in used if one.isdigit()), default=0)


def _unreadable(ctx: StepContext, judge_spec: JudgeSpec) -> VerdictUnknown:
    shown = f"agentd log {ctx.change.id} --transcript --step {judge_spec.kind}"
    hint = f"{shown} shows what it answered; then run the command again"
    return VerdictUnknown(f"Could not parse {judge_spec.kind} verdict", hint)


# ---- a judge that answered in text


def _from_text(ctx: StepContext, judge_spec: JudgeSpec, text: str) -> dict[str, Any]:
    """Read verdict and findings from a judge's text answer, in the form of a report."""
    said = str(read_verdict(text, judge_spec.kind).verdict)
    records = ctx.change.records(judge_spec.kind)
    earlier = {one.id: one for one in current_findings(records)}
    empty = ReviewRecord(ctx.change.id, judge_spec.kind, 1, "", "", None, "", "", None, None, "", "", {}, ())
    fields = ("severity", "title", "what", "suggestion", "requirement")
    added = [
        {name: getattr(one, name) for name in fields} for one in read_review_edits(text, empty, "the answer").added
    ]
    rows, again = split_findings(added, earlier)
    first = next_finding_number(records, judge_spec.prefix)
    rows = [_finding(row, f"{judge_spec.prefix}{number}") for number, row in enumerate(rows, first)]
    previous = [{"id": id_, **row} for id_, row in again.items() if id_ not in closed_by_people(records)]
    if said == _APPROVED and any(row["severity"] == Severity.HIGH for row in rows):
        raise _unreadable(ctx, judge_spec)  # approval and a high finding contradict each other
    is_open = previous or any(one.state.is_open for one in earlier.values())
    if said != _APPROVED and not rows and not is_open:
        whole = {"severity": Severity.HIGH, "title": "The judge's answer as a whole", "what": text.strip()[:_SHOWN]}
        rows = [_finding(whole, f"{judge_spec.prefix}{first}")]
    summary = "The judge answered in text, not through its tool."
    return {"verdict": said, "reported": said, "summary": summary, "findings": rows, "previous": previous}


def _finding(row: dict[str, Any], id_: str) -> dict[str, Any]:
    because = "the judge answered in text"
    return {**row, "id": id_, "verified": False, "state": FindingState.OPEN, "unverified_because": because}

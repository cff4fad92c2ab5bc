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

NOTHING_ANSWERED = "No finding has been answered, and nothing was edited."
_APPROVED = "APPROVED"
_FINDING_FIELDS = ("id", "severity", "title", "what", "suggestion", "requirement", "where")
_ANSWER_LENGTH = 2000  # characters of a text answer that becomes one finding


def open_judge_findings(ctx: StepContext, judge: JudgeSpec) -> list[Finding]:
    """Return what the author must answer. agentd's own new findings wait for the next record."""
    return [one for one in current_findings(ctx.change.records(judge.kind)) if one.state.is_open]


def finding_rows(ctx: StepContext, judge: JudgeSpec, findings: Sequence[Finding]) -> list[dict[str, str]]:
    """Return findings as prompt values, each with the judge's last note on it."""
    notes = {row.id: row.note for record in ctx.change.records(judge.kind) for row in record.previous}
    return [
        {**{name: str(getattr(one, name) or "") for name in _FINDING_FIELDS}, "note": notes.get(one.id, "")}
        for one in findings
    ]


def finish_answers(
    ctx: StepContext,
    judge: JudgeSpec,
    record: ReviewRecord,
    request: CallRequest,
    result: CallResult,
    findings: Sequence[Finding],
    outputs: Mapping[str, str],
    also: Callable[[ChangeState], ChangeState],
) -> None:
    """Store the author's answers to `findings` in the judge's record and finish the step."""
    path = ctx.run.folder / ANSWERS
    answers: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    if missing := [one.id for one in findings if one.id not in answers]:
        message = f"the {request.role} did not answer {', '.join(missing)}"
        ctx.run.emit(events.WarningIssued(**request.names(result.attempt), code="unanswered", message=message))
    by = f"agent:{ctx.config.agent_for(judge.author).name}"
    rows = tuple(
        FindingAnswer(one["id"], FindingState(one["answer"]), one["note"], tuple(one["files"]), by, one["at"])
        for one in answers.values()
    )
    name = verdict_record.save_record(ctx, replace(record, answers=rows))
    outputs = {**outputs, name: files.hash_bytes(files.read(ctx.change.folder / name))}
    counts = Counter(one["answer"] for one in answers.values())
    summary = ", ".join(f"{count} {answer}" for answer, count in counts.items())  # 2 fixed, 1 disputed
    retries.finish_step(ctx.run, request, result, outputs, summary, also)


def run_judge(
    ctx: StepContext,
    judge: JudgeSpec,
    round_: int,
    prompt: str,
    *,
    judged: Mapping[str, str],
    overrule: Callable[[Sequence[Finding], Sequence[PreviousFinding]], str | None],
    found: Sequence[Finding] = (),
    merge: Callable[[Sequence[dict[str, str]]], Sequence[dict[str, str]]] = lambda judgements: judgements,
    checks: tuple[Mapping[str, Any], ...] | None = None,
) -> ReviewRecord:
    """Call the judge in a fresh session, save the record of the round and everything that follows from it.

    `found` are agentd's own findings, and `merge` adds its judgements on earlier findings to the judge's. `overrule`
    returns why an approval does not count, given agentd's findings and the earlier ones.
    """
    records = ctx.change.records(judge.kind)
    report, result = _ask_judge(ctx, judge, round_, prompt, next_finding_number(records, judge.prefix) + len(found))
    pending = (*ctx.change.read().findings, *found)  # the former were reported during the calls of this round
    previous = _previous_rows(records, merge(report["previous"]))
    overruled = report.get("overruled")
    if report["verdict"] == _APPROVED:
        overruled = overrule(pending, previous)
    overruling = ChallengeVerdict.NEEDS_REVISION if judge is CHALLENGER_SPEC else ReviewVerdict.NEEDS_CHANGES
    agent, author = (ctx.config.agent_for(role) for role in (judge.role, judge.author))
    model = agent.model_for(plan_complexity(ctx.change))
    by = f"agent:{agent.name}"
    reported = (parse_finding(FieldReader({**row, "by": by}, REPORT_FILE)) for row in report["findings"])
    record = ReviewRecord(
        change_id=ctx.change.id,
        kind=judge.kind,
        round=round_,
        verdict=str(overruling) if overruled else report["verdict"],
        reported=report["reported"],
        overruled=overruled,
        summary=report["summary"],
        by=by,
        model=model.model if model else None,
        session=result.session,
        made_by=f"agent:{author.name}",
        at=clock.now(),
        judged=dict(judged),
        findings=(*pending, *reported),
        previous=previous,
        checks=checks,
    )
    verdict_record.save_record(ctx, record)
    verdict_record.finish_record(ctx, record, result.attempt, result.duration_ms)
    return record


def _ask_judge(
    ctx: StepContext, judge: JudgeSpec, round_: int, prompt: str, first: int
) -> tuple[dict[str, Any], CallResult]:
    """Return the judge's report: verdict, reported, summary, findings, previous. `first` is the first free number."""
    answers: list[str] = []

    def has_verdict(text: str) -> bool:
        answers.append(text)
        return read_verdict(text, judge.kind).verdict is not None

    report = ctx.run.folder / REPORT_FILE
    try:
        _, result = ctx.call_agent(
            judge.role,
            judge.stage,
            step=judge.kind,
            round=round_,
            prompt=prompt,
            effect=report.is_file,
            answer=has_verdict,
            reminder=ctx.reminder(judge.role, judge.stage, "You have not reported yet.", "append_review"),
        )
    except AgentFailed as error:
        if error.cause == FailureCause.DID_NOTHING and answers and answers[-1].strip():
            raise _unreadable(ctx, judge) from None
        raise
    if report.is_file():
        return json.loads(report.read_bytes()), result
    return _read_answer(ctx, judge, result.text, first), result


def _previous_rows(
    records: Sequence[ReviewRecord], judgements: Sequence[dict[str, str]]
) -> tuple[PreviousFinding, ...]:
    """Return the judgement on each earlier finding with the author's answer. A finding not mentioned stays open."""
    answers = {one.id: one for record in records for one in record.answers}
    given = {row["id"]: row for row in judgements}
    rows = []
    for one in current_findings(records):
        row, answer = given.get(one.id), answers.get(one.id)
        if row or one.state.is_open:
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


def _unreadable(ctx: StepContext, judge: JudgeSpec) -> VerdictUnknown:
    command = f"agentd log {ctx.change.id} --transcript --step {judge.kind}"
    hint = f"{command} shows what it answered; then run the command again"
    return VerdictUnknown(f"Could not parse {judge.kind} verdict", hint)


def _read_answer(ctx: StepContext, judge: JudgeSpec, text: str, first: int) -> dict[str, Any]:
    """Return the report of a judge that answered in text: the verdict and findings in that text."""
    verdict = str(read_verdict(text, judge.kind).verdict)
    records = ctx.change.records(judge.kind)
    earlier = {one.id: one for one in current_findings(records)}
    empty = ReviewRecord(ctx.change.id, judge.kind, 1, "", "", None, "", "", None, None, "", "", {}, ())
    fields = ("severity", "title", "what", "suggestion", "requirement")
    added = read_review_edits(text, empty, "the answer").added
    rows, again = split_findings([{name: getattr(one, name) for name in fields} for one in added], earlier)
    previous = [{"id": id_, **row} for id_, row in again.items() if id_ not in closed_by_people(records)]
    if verdict == _APPROVED and any(row["severity"] == Severity.HIGH for row in rows):
        raise _unreadable(ctx, judge)  # approval and a high finding contradict each other
    is_open = previous or any(one.state.is_open for one in earlier.values())
    if verdict != _APPROVED and not rows and not is_open:
        what = text.strip()[:_ANSWER_LENGTH]
        rows = [{"severity": Severity.HIGH, "title": "The judge's answer as a whole", "what": what}]
    common = {"verified": False, "state": FindingState.OPEN, "unverified_because": "the judge answered in text"}
    return {
        "verdict": verdict,
        "reported": verdict,
        "summary": "The judge answered in text, not through its tool.",
        "findings": [{**row, "id": f"{judge.prefix}{number}", **common} for number, row in enumerate(rows, first)],
        "previous": previous,
    }

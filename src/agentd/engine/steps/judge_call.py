"""A judge at work: its report, or its answer in text, as the record of its round says it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentd.agents import FailureCause
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
from agentd.domain import AgentFailed, FieldReader, FindingState, Severity, VerdictUnknown, events
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.steps import plan_facts
from agentd.engine.steps.judge_spec import JudgeSpec
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.judge_tools import REPORT_FILE, split_findings

_ASKED = ("id", "severity", "title", "what", "suggestion", "requirement", "where")


def finding_rows(desk: StepContext, bench: JudgeSpec, left: Sequence[Finding]) -> list[dict[str, Any]]:
    """As the prompt has them, each with what the judge last said about it."""
    notes = {word.id: word.note for record in desk.change.records(bench.kind) for word in record.previous}
    return [{**{name: str(getattr(one, name) or "") for name in _ASKED}, "note": notes.get(one.id, "")} for one in left]


def answers_given(desk: StepContext, bench: JudgeSpec, told: Mapping[str, Any]) -> tuple[FindingAnswer, ...]:
    by = f"agent:{desk.config.agent_for(bench.maker).name}"
    return tuple(
        FindingAnswer(one["id"], FindingState(one["answer"]), one["note"], tuple(one["files"]), by, one["at"])
        for one in told.values()
    )


def warn_unanswered(
    desk: StepContext, work: CallRequest, attempt: int, left: Sequence[Finding], told: Mapping[str, Any]
) -> None:
    silent = [one.id for one in left if one.id not in told]
    if silent:
        words = f"the {work.role} did not answer {', '.join(silent)}"
        desk.run.emit(events.WarningIssued(**work.names(attempt), code="unanswered", message=words))


def summarize_answers(told: Mapping[str, Any]) -> str:
    """2 fixed, 1 disputed."""
    words = [one["answer"] for one in told.values()]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


_SHOWN = 2000  # characters of an answer that is one finding as a whole
_APPROVED = "APPROVED"


def ask_judge(desk: StepContext, bench: JudgeSpec, round_: int, prompt: str) -> tuple[dict[str, Any], CallResult]:
    """In a fresh session. What is told: verdict, reported, summary, findings, previous."""
    said: list[str] = []

    def is_verdict(text: str) -> bool:
        said.append(text)
        return read_verdict(text, bench.kind).verdict is not None

    report = desk.run.folder / REPORT_FILE
    work = CallRequest(
        step=bench.kind,
        round=round_,
        role=bench.judge,
        stage=bench.stage,
        prompt=prompt,
        effect=report.is_file,
        answer=is_verdict,
        reminder=desk.reminder(bench.judge, bench.stage, "You have not reported yet.", "append_review"),
        complexity=plan_facts.plan_complexity(desk.change),
    )
    try:
        done = retries.perform_call(desk.run, work)
        told = json.loads(report.read_bytes()) if report.is_file() else _from_text(desk, bench, done.text)
    except AgentFailed as error:
        if error.cause == FailureCause.DID_NOTHING and said and said[-1].strip():
            raise _unreadable(desk, bench) from None
        raise
    return told, done


def report_findings(desk: StepContext, bench: JudgeSpec, told: dict[str, Any]) -> tuple[Finding, ...]:
    by = f"agent:{desk.config.agent_for(bench.judge).name}"
    return tuple(parse_finding(FieldReader({**row, "by": by}, REPORT_FILE)) for row in told["findings"])


def previous_rows(records: Sequence[ReviewRecord], words: Sequence[dict[str, str]]) -> tuple[PreviousFinding, ...]:
    """The word on each earlier finding beside the maker's answer; one that was left out stays open."""
    answers: dict[str, FindingAnswer] = {one.id: one for record in records for one in record.answers}
    said = {word["id"]: word for word in words}
    spoken = []
    for one in current_findings(records):
        word = said.get(one.id)
        if word is None and not one.state.is_open:
            continue
        answer = answers.get(one.id)
        spoken.append(
            PreviousFinding(
                id=one.id,
                severity=one.severity,
                title=one.title,
                answer=answer.answer if answer else None,
                answer_note=answer.note if answer else None,
                answered_by=answer.by if answer else None,
                state=FindingState(word["state"]) if word else one.state,
                note=word["note"] if word else "Not mentioned, so it stays open.",
            )
        )
    return tuple(spoken)


def next_finding_number(records: Sequence[ReviewRecord], prefix: str) -> int:
    """Of the findings whose ids begin so."""
    used = [one.id.removeprefix(prefix) for one in current_findings(records) if one.id.startswith(prefix)]
    return 1 + max((int(one) for one in used if one.isdigit()), default=0)


def judge_identity(desk: StepContext, bench: JudgeSpec) -> str | None:
    model = desk.config.agent_for(bench.judge).model_for(plan_facts.plan_complexity(desk.change))
    return model.model if model else None


def _unreadable(desk: StepContext, bench: JudgeSpec) -> VerdictUnknown:
    shown = f"agentd log {desk.change.id} --transcript --step {bench.kind}"
    hint = f"{shown} shows what it answered; then run the command again"
    return VerdictUnknown(f"Could not parse {bench.kind} verdict", hint)


# ---- a judge that answered in text


def _from_text(desk: StepContext, bench: JudgeSpec, text: str) -> dict[str, Any]:
    """The verdict and the findings that stand in a judge's answer, as a report would say them."""
    said = str(read_verdict(text, bench.kind).verdict)
    records = desk.change.records(bench.kind)
    earlier = {one.id: one for one in current_findings(records)}
    rows, again = split_findings(_rows(desk, bench, text), earlier)
    first = next_finding_number(records, bench.prefix)
    rows = [_finding(row, f"{bench.prefix}{number}") for number, row in enumerate(rows, first)]
    words = [{"id": id_, **word} for id_, word in again.items() if id_ not in closed_by_people(records)]
    if said == _APPROVED and any(row["severity"] == Severity.HIGH for row in rows):
        raise _unreadable(desk, bench)  # it says both
    is_open = words or any(one.state.is_open for one in earlier.values())
    if said != _APPROVED and not rows and not is_open:
        whole = {"severity": Severity.HIGH, "title": "The judge's answer as a whole", "what": text.strip()[:_SHOWN]}
        rows = [_finding(whole, f"{bench.prefix}{first}")]
    summary = "The judge answered in text, not through its tool."
    return {"verdict": said, "reported": said, "summary": summary, "findings": rows, "previous": words}


def _rows(desk: StepContext, bench: JudgeSpec, text: str) -> list[dict[str, Any]]:
    empty = ReviewRecord(desk.change.id, bench.kind, 1, "", "", None, "", "", None, None, "", "", {}, ())
    return [
        {
            "severity": one.severity,
            "title": one.title,
            "what": one.what,
            "suggestion": one.suggestion,
            "requirement": one.requirement,
        }
        for one in read_review_edits(text, empty, "the answer").added
    ]


def _finding(row: dict[str, Any], id_: str) -> dict[str, Any]:
    because = "the judge answered in text"
    return {**row, "id": id_, "verified": False, "state": FindingState.OPEN, "unverified_because": because}

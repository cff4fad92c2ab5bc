"""The challenger judges the plan: in a fresh session, by its report, for the content that it judged."""

from typing import Any

from agentd.change import cache_plan
from agentd.documents import Finding, PreviousFinding, ReviewRecord
from agentd.domain import ChallengeVerdict, Severity, clock
from agentd.engine.calls.call_request import CallResult
from agentd.engine.steps import judge_call, verdict_record
from agentd.engine.steps.judge_spec import CHALLENGER_SPEC
from agentd.engine.steps.step_context import StepContext

STEP = CHALLENGER_SPEC.kind


def run_challenge_step(desk: StepContext) -> ReviewRecord:
    desk.write_context(CHALLENGER_SPEC.judge, CHALLENGER_SPEC.stage)
    judged = desk.change.hashes()
    cache_plan(desk.change)
    paths = [desk.path(name) for name in judged]
    prompt = desk.prompt(STEP, CHALLENGER_SPEC.judge, CHALLENGER_SPEC.stage, round=desk.round, documents=paths)
    told, done = judge_call.ask_judge(desk, CHALLENGER_SPEC, desk.round, prompt)
    record = _record(desk, told, done, judged)
    verdict_record.save_record(desk, record)
    verdict_record.finish_record(desk, record, done.attempt, done.duration_ms)
    return record


def _record(desk: StepContext, told: dict[str, Any], done: CallResult, judged: dict[str, str]) -> ReviewRecord:
    waiting = desk.change.read().findings  # agentd's own, from around the calls of this round
    previous = judge_call.previous_rows(desk.change.records(STEP), told["previous"])
    overruled = _overruled(told["verdict"], waiting, previous)
    return ReviewRecord(
        change_id=desk.change.id,
        kind=STEP,
        round=desk.round,
        verdict=str(ChallengeVerdict.NEEDS_REVISION) if overruled else told["verdict"],
        reported=told["reported"],
        overruled=overruled,
        summary=told["summary"],
        by=f"agent:{desk.config.agent_for(CHALLENGER_SPEC.judge).name}",
        model=judge_call.judge_identity(desk, CHALLENGER_SPEC),
        session=done.session,
        made_by=f"agent:{desk.config.agent_for(CHALLENGER_SPEC.maker).name}",
        at=clock.now(),
        judged=judged,
        findings=(*waiting, *judge_call.report_findings(desk, CHALLENGER_SPEC, told)),
        previous=previous,
    )


def _overruled(reported: str, waiting: tuple[Finding, ...], previous: tuple[PreviousFinding, ...]) -> str | None:
    """What an agent changed without leave is to be looked at first; a judge that answers in text settles nothing."""
    if reported != ChallengeVerdict.APPROVED:
        return None
    high = [one for one in waiting if one.severity is Severity.HIGH and one.state.is_open]
    if names := [one.id for one in high if one.by.startswith("person:")]:
        return f"What a person asks for must be answered first ({', '.join(names)})."
    if names := [one.id for one in high if not _is_of_plan(one)]:
        return f"What an agent changed without leave must be settled first ({', '.join(names)})."
    left = [one.id for one in previous if one.severity is Severity.HIGH and one.state.is_open]
    return f"Findings of high severity are still open ({', '.join(left)})." if left else None


def _is_of_plan(one: Finding) -> bool:
    """About a file of the change itself: it was put back, and may have been a person's edit at the wrong moment."""
    return (one.where or "").startswith("agentd/changes/")

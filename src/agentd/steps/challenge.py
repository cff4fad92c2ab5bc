"""The challenger judges the plan: in a fresh session, by its report, for the content that it judged."""

from typing import Any

from agentd.calls.work import Done
from agentd.change import text_cache
from agentd.documents.records import Finding, PreviousFinding, ReviewRecord
from agentd.domain import clock
from agentd.domain.terms import ChallengeVerdict, Severity
from agentd.steps import judging, recording
from agentd.steps.bench import PLAN
from agentd.steps.desk import Desk

STEP = PLAN.kind


def challenge(desk: Desk) -> ReviewRecord:
    desk.write_context(PLAN.judge, PLAN.stage)
    judged = desk.change.hashes()
    text_cache.cache_plan(desk.change)
    paths = [desk.path(name) for name in judged]
    prompt = desk.prompt(STEP, PLAN.judge, PLAN.stage, round=desk.round, documents=paths)
    told, done = judging.ask(desk, PLAN, desk.round, prompt)
    record = _record(desk, told, done, judged)
    recording.keep(desk, record)
    recording.finish(desk, record, done.attempt, done.duration_ms)
    return record


def _record(desk: Desk, told: dict[str, Any], done: Done, judged: dict[str, str]) -> ReviewRecord:
    waiting = desk.change.read().findings  # agentd's own, from around the calls of this round
    previous = judging.previous(desk.change.records(STEP), told["previous"])
    overruled = _overruled(told["verdict"], waiting, previous)
    return ReviewRecord(
        change_id=desk.change.id,
        kind=STEP,
        round=desk.round,
        verdict=str(ChallengeVerdict.NEEDS_REVISION) if overruled else told["verdict"],
        reported=told["reported"],
        overruled=overruled,
        summary=told["summary"],
        by=f"agent:{desk.config.agent_for(PLAN.judge).name}",
        model=judging.of_model(desk, PLAN),
        session=done.session,
        made_by=f"agent:{desk.config.agent_for(PLAN.maker).name}",
        at=clock.now(),
        judged=judged,
        findings=(*waiting, *judging.found(desk, PLAN, told)),
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

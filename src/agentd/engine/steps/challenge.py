"""The challenger judges the plan: in a fresh session, by its report, for the content that it judged."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentd.change import ChangeState, cache_plan
from agentd.documents import Finding, PreviousFinding, ReviewRecord, current_findings
from agentd.domain import ChallengeVerdict, Role, Severity, clock
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallResult
from agentd.engine.steps import judge_call, verdict_record
from agentd.engine.steps.judge_spec import CHALLENGER_SPEC
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.question_tools import ANSWERS
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files

CHALLENGE_STEP = CHALLENGER_SPEC.kind


def run_challenge_step(desk: StepContext) -> ReviewRecord:
    desk.write_context(CHALLENGER_SPEC.judge, CHALLENGER_SPEC.stage)
    judged = desk.change.hashes()
    cache_plan(desk.change)
    paths = [desk.path(name) for name in judged]
    prompt = desk.prompt(
        CHALLENGE_STEP, CHALLENGER_SPEC.judge, CHALLENGER_SPEC.stage, round=desk.round, documents=paths
    )
    told, done = judge_call.ask_judge(desk, CHALLENGER_SPEC, desk.round, prompt)
    record = _record(desk, told, done, judged)
    verdict_record.save_record(desk, record)
    verdict_record.finish_record(desk, record, done.attempt, done.duration_ms)
    return record


def _record(desk: StepContext, told: dict[str, Any], done: CallResult, judged: dict[str, str]) -> ReviewRecord:
    waiting = desk.change.read().findings  # agentd's own, from around the calls of this round
    previous = judge_call.previous_rows(desk.change.records(CHALLENGE_STEP), told["previous"])
    overruled = _overruled(told["verdict"], waiting, previous)
    return ReviewRecord(
        change_id=desk.change.id,
        kind=CHALLENGE_STEP,
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


REPROPOSAL_STEP = "reproposal"


def findings_for_planner(desk: StepContext) -> list[Finding]:
    """What the planner is to answer; agentd's own wait for the record of the next challenge."""
    return [one for one in current_findings(desk.change.records(CHALLENGER_SPEC.kind)) if one.state.is_open]


def run_reproposal_step(
    desk: StepContext, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """`record` is the last challenge: the answers are kept in it. `also` is written as one with the step's end."""
    resume = desk.planner_session()
    if resume is None:
        desk.write_context(Role.PLANNER, Stage.PLAN)
    left = findings_for_planner(desk)
    before = desk.change.hashes()
    given = desk.run.folder / ANSWERS
    work = desk.planner_work(
        REPROPOSAL_STEP,
        desk.prompt(
            REPROPOSAL_STEP,
            Role.PLANNER,
            Stage.PLAN,
            findings=judge_call.finding_rows(desk, CHALLENGER_SPEC, left),
            fresh=resume is None,
        ),
        effect=lambda: given.is_file() or desk.change.hashes() != before,
        reminder=desk.reminder(
            Role.PLANNER, Stage.PLAN, "No finding is answered yet, and nothing was edited.", "answer_finding"
        ),
        resume=resume,
        on_session=None if resume else desk.keep_session,
    )
    done = retries.perform_call(desk.run, work)
    desk.mend()
    told = json.loads(given.read_bytes()) if given.is_file() else {}
    judge_call.warn_unanswered(desk, work, done.attempt, left, told)
    name = verdict_record.save_record(
        desk, replace(record, answers=judge_call.answers_given(desk, CHALLENGER_SPEC, told))
    )
    after = desk.change.hashes()
    outputs = {one: digest for one, digest in after.items() if before.get(one) != digest}
    outputs[name] = files.hash_bytes(files.read(desk.change.folder / name))
    retries.finish_step(desk.run, work, done, outputs, judge_call.summarize_answers(told), also)

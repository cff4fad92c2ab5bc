"""The last verdicts on a change, and whether they are about its current content."""

from agentd.change import Change, ChangeState, StepRecord
from agentd.documents import Finding, ReviewRecord, current_findings
from agentd.domain import NoticeIssued, Phase, StepStatus
from agentd.engine.steps.step_context import CHALLENGER_SPEC, JUDGE_SPECS, REVIEWER_SPEC, JudgeSpec

CHALLENGE_PHASES = (Phase.PROPOSED, Phase.CHALLENGED, Phase.REJECTED)  # in which a plan can be challenged


def challenges(change: Change) -> list[ReviewRecord]:
    return list(change.records(CHALLENGER_SPEC.kind))


def last_record(change: Change, judge_spec: JudgeSpec = CHALLENGER_SPEC) -> ReviewRecord | None:
    """Return the judge's last record."""
    found = change.records(judge_spec.kind)
    return found[-1] if found else None


def is_plan_judged(change: Change) -> bool:
    """Whether the last verdict is about the current plan, and the planner has answered nothing since."""
    found = challenges(change)
    if not found or is_answered(change, len(found) + 1):
        return False
    state = change.read()
    moves = [number for number, one in enumerate(state.history, 1) if one.event.startswith(f"{CHALLENGER_SPEC.kind}-")]
    return not state.changed_documents(found[-1].judged, change.hashes(), moves[-1] if moves else 0)


def already_judged_notice(change: Change, judge_spec: JudgeSpec, command: str) -> NoticeIssued:
    """Say that the content was judged already; `command` judges it again."""
    record = last_record(change, judge_spec)
    assert record
    when = record.at[:16].replace("T", " ")
    message = f"this was judged already, in round {record.round} on {when} UTC; {command} judges it again"
    return NoticeIssued(code="judged-already", message=message)


def is_plan_as_decided(change: Change) -> bool:
    """Whether the plan is unchanged since a judge or a person moved the change to its phase."""
    state = change.read()
    history = state.history
    return bool(history) and not state.changed_documents(history[-1].hashes, change.hashes(), len(history))


def is_plan_edited(change: Change) -> bool:
    """Whether the plan was edited since; older files do not record its hashes."""
    history = change.read().history
    return bool(history) and bool(history[-1].hashes) and not is_plan_as_decided(change)


def is_answered(change: Change, round_: int, step: str = CHALLENGER_SPEC.answer) -> bool:
    """Whether the author has done its part of the round."""
    return any((row.name, row.round, row.status) == (step, round_, StepStatus.DONE) for row in change.read().steps)


def rounds_used(state: ChangeState) -> int:
    """Return how many rounds the current command has used: those in which the author answered."""
    return sum(step.name in (CHALLENGER_SPEC.answer, REVIEWER_SPEC.answer) for step in _done(state))


def has_judged(state: ChangeState) -> bool:
    """Whether the current command has reached a verdict."""
    return any(step.name in (CHALLENGER_SPEC.kind, REVIEWER_SPEC.kind) for step in _done(state))


def is_answering(change: Change) -> bool:
    """Whether findings wait for the planner, or its answers for the judge."""
    found = challenges(change)
    begun = any((step.name, step.round) == (CHALLENGER_SPEC.answer, len(found) + 1) for step in change.read().steps)
    return bool(found) and (begun or (is_plan_judged(change) and bool(open_findings(change))))


def open_findings(change: Change) -> list[Finding]:
    """Return the open findings of the plan, or of the code once it exists, including those not in a record yet."""
    state = change.read()
    known = (*current_findings(change.records(judge_spec_for(state.phase).kind)), *state.findings)
    return [one for one in known if one.state.is_open]


def judge_spec_for(phase: Phase) -> JudgeSpec:
    return JUDGE_SPECS[phase.judged_by]


def made_no_progress(change: Change, judge_spec: JudgeSpec = CHALLENGER_SPEC) -> bool:
    """Whether the last round of this command closed no finding although the author answered."""
    found, state = change.records(judge_spec.kind), change.read()
    since = state.run.steps_before if state.run else 0
    is_ours = any((step.name, step.round) == (judge_spec.kind, len(found)) for step in state.steps[since:])
    if len(found) < 2 or not is_ours or not is_answered(change, len(found), judge_spec.answer):
        return False
    before = {one.id for one in current_findings(found[:-1]) if one.state.is_open}
    after = {one.id for one in current_findings(found) if one.state.is_open}
    return before <= after


def _done(state: ChangeState) -> list[StepRecord]:
    """Return the steps the current command has finished."""
    rows = state.steps[state.run.steps_before :] if state.run else ()
    return [step for step in rows if step.status is StepStatus.DONE]

"""How a plan stands with its judge: the last verdict, and whether it is on the plan as it is now."""

from agentd.change import Change, ChangeState, StepRecord
from agentd.documents import Finding, ReviewRecord, current_findings
from agentd.domain import NoticeIssued, Phase, StepStatus
from agentd.engine.steps.step_context import CHALLENGER_SPEC, JUDGE_SPECS, REVIEWER_SPEC, JudgeSpec

JUDGED_EVENTS = (Phase.PROPOSED, Phase.CHALLENGED, Phase.REJECTED)  # where a challenge can be


def challenges(change: Change) -> list[ReviewRecord]:
    return list(change.records(CHALLENGER_SPEC.kind))


def last_record(change: Change, judge_spec: JudgeSpec = CHALLENGER_SPEC) -> ReviewRecord | None:
    """The last verdict of that judge."""
    found = change.records(judge_spec.kind)
    return found[-1] if found else None


def is_plan_judged(change: Change) -> bool:
    """The last verdict is on the plan as it is now, and the planner has answered nothing since."""
    found = challenges(change)
    if not found or is_answered(change, len(found) + 1):
        return False
    state = change.read()
    moves = [number for number, one in enumerate(state.history, 1) if one.event.startswith(f"{CHALLENGER_SPEC.kind}-")]
    return not state.changed_documents(found[-1].judged, change.hashes(), moves[-1] if moves else 0)


def already_judged_notice(change: Change, judge_spec: JudgeSpec, again: str) -> NoticeIssued:
    """A verdict that is told anew is not a new one; `again` is the command that asks for one."""
    record = last_record(change, judge_spec)
    assert record
    when = record.at[:16].replace("T", " ")
    message = f"this was judged already, in round {record.round} on {when} UTC; {again} judges it again"
    return NoticeIssued(code="judged-already", message=message)


def is_plan_as_decided(change: Change) -> bool:
    """The plan is what it was when a judge or a person brought the change to its phase."""
    state = change.read()
    history = state.history
    return bool(history) and not state.changed_documents(history[-1].hashes, change.hashes(), len(history))


def is_plan_edited(change: Change) -> bool:
    """The plan is known not to be that any more; older files do not say what it was."""
    history = change.read().history
    return bool(history) and bool(history[-1].hashes) and not is_plan_as_decided(change)


def is_answered(change: Change, round_: int, step: str = CHALLENGER_SPEC.answer) -> bool:
    """The maker has done its part of the round."""
    return any((row.name, row.round, row.status) == (step, round_, StepStatus.DONE) for row in change.read().steps)


def rounds_used(state: ChangeState) -> int:
    """By the command under way: the rounds in which its maker has answered."""
    return sum(step.name in (CHALLENGER_SPEC.answer, REVIEWER_SPEC.answer) for step in _done(state))


def has_judged(state: ChangeState) -> bool:
    """The command under way has come to a verdict."""
    return any(step.name in (CHALLENGER_SPEC.kind, REVIEWER_SPEC.kind) for step in _done(state))


def is_answering(change: Change) -> bool:
    """Findings wait for the planner, it is at work on them, or its answers wait for the judge."""
    found = challenges(change)
    begun = any((step.name, step.round) == (CHALLENGER_SPEC.answer, len(found) + 1) for step in change.read().steps)
    return bool(found) and (begun or (is_plan_judged(change) and bool(open_findings(change))))


def open_findings(change: Change) -> list[Finding]:
    """Of the plan, or of the code once there is some; agentd's own, which no record has taken up yet, among them."""
    state = change.read()
    known = (*current_findings(change.records(judge_spec_for(state.phase).kind)), *state.findings)
    return [one for one in known if one.state.is_open]


def judge_spec_for(phase: Phase) -> JudgeSpec:
    return JUDGE_SPECS[phase.judged_by]


def made_no_progress(change: Change, judge_spec: JudgeSpec = CHALLENGER_SPEC) -> bool:
    """The last round was this command's, the maker had its turn in it, and every finding is as open as before."""
    found, state = change.records(judge_spec.kind), change.read()
    since = state.run.steps_before if state.run else 0
    is_ours = any((step.name, step.round) == (judge_spec.kind, len(found)) for step in state.steps[since:])
    if len(found) < 2 or not is_ours or not is_answered(change, len(found), judge_spec.answer):
        return False
    before = {one.id for one in current_findings(found[:-1]) if one.state.is_open}
    after = {one.id for one in current_findings(found) if one.state.is_open}
    return before <= after


def _done(state: ChangeState) -> list[StepRecord]:
    """The steps that the command under way has finished."""
    rows = state.steps[state.run.steps_before :] if state.run else ()
    return [step for step in rows if step.status is StepStatus.DONE]

"""Decisions by a person about a plan or code: accept, reject, send back, plan is wrong."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from agentd.change import Change, ChangeState, Decision, Inbox
from agentd.checks import CheckResult
from agentd.documents import ADDED, Finding, FindingEdit, ReviewRecord, current_findings, edit_content
from agentd.domain import (
    CheckStatus,
    FindingState,
    FormatInvalid,
    Phase,
    Refusal,
    Severity,
    TransitionEvent,
    WrongPhase,
    clock,
    join_words,
)
from agentd.engine.steps import check_run, code_trees, judge_call, person_findings, planner
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.step_context import CHALLENGER_SPEC, REVIEWER_SPEC, JudgeSpec, StepContext
from agentd.engine.workflows import read_digest
from agentd.engine.workflows.impl_start import refuse_conflict_markers
from agentd.engine.workflows.read_digest import differing_names
from agentd.engine.workflows.verdict_status import last_record

_TITLE = 120  # characters of a reason used as a finding's title


def accept_plan(ctx: StepContext, reason: str, by: str, seen: Mapping[str, str]) -> None:
    """Accept the plan and its open findings; a malformed plan cannot be accepted."""
    _check_plan(ctx, TransitionEvent.ACCEPTED)
    if changed := differing_names(seen, ctx.change.hashes()):
        raise Refusal(f"{', '.join(changed)} changed while this was decided", "read it again")
    if faults := planner.format_faults(ctx):
        first = faults[0]
        raise FormatInvalid(
            f"the plan cannot be accepted as it is: {first.file}:{first.line} {first.message}",
            f"agentd validate {ctx.change.id} lists what is wrong",
        )
    hashes = ctx.change.hashes()  # after mechanical format fixes
    at, waiting = clock.now(), ctx.change.read().findings
    left = [one for one in current_findings(ctx.change.records(CHALLENGER_SPEC.kind)) if one.state.is_open]
    record = last_record(ctx.change)
    if record:
        made = [FindingEdit(one.id, ADDED, edit_content(one), one.by, at) for one in waiting]
        made += [FindingEdit(one.id, "state", str(FindingState.ACCEPTED), by, at) for one in (*left, *waiting)]
        if made:
            person_findings.write_edits(ctx, record, made)
    kept = () if record else accept_waiting(waiting)
    ctx.run.update(lambda old: replace(old, findings=kept))
    _move(ctx, TransitionEvent.ACCEPTED, reason, by, hashes)


def reject_plan(ctx: StepContext, reason: str, by: str, seen: Mapping[str, str]) -> None:
    _check_plan(ctx, TransitionEvent.REJECTED)
    _move(ctx, TransitionEvent.REJECTED, reason, by, seen)


def send_back_plan(ctx: StepContext, reason: str, by: str, seen: Mapping[str, str]) -> None:
    """Send the plan back; the reason becomes a finding the planner must answer."""
    _check_plan(ctx, TransitionEvent.SENT_BACK)
    record = last_record(ctx.change)
    if record is None:
        raise WrongPhase(f"{ctx.change.id} was never challenged", f"agentd challenge {ctx.change.id}")
    if edit := add_reason_finding(ctx, record, reason, by):
        person_findings.write_edits(ctx, record, [edit])
    _move(ctx, TransitionEvent.SENT_BACK, reason, by, seen)


def add_reason_finding(ctx: StepContext, record: ReviewRecord, reason: str, by: str) -> FindingEdit | None:
    """Return the reason as a new finding; None if an interrupted attempt has added it already."""
    title = " ".join(reason.split())[:_TITLE]
    if any((one.title, one.by, one.state) == (title, by, FindingState.OPEN) for one in current_findings([record])):
        return None
    what = {"severity": str(Severity.HIGH), "title": title, "what": reason, "suggestion": "", "requirement": None}
    return FindingEdit(f"P{person_findings.next_person_id(ctx)}", ADDED, what, by, clock.now())


# Each receives the hashes of the plan the person read, so that a concurrent edit is not decided upon.
PLAN_DECISIONS: dict[str, Callable[[StepContext, str, str, Mapping[str, str]], None]] = {
    "accept": accept_plan,
    "reject": reject_plan,
    "send-back": send_back_plan,
}


def person_finding(reason: str, by: str) -> Finding:
    return Finding(
        id="P1",
        severity=Severity.HIGH,
        title=" ".join(reason.split())[:_TITLE],
        what=reason,
        suggestion="",
        requirement=None,
        where=None,
        evidence=None,
        verified=False,
        by=by,
        state=FindingState.OPEN,
    )


def accept_waiting(waiting: Iterable[Finding]) -> tuple[Finding, ...]:
    """Mark findings that wait for a record as accepted."""
    return tuple(replace(one, state=FindingState.ACCEPTED) for one in waiting)


def _check_plan(ctx: StepContext, event: TransitionEvent) -> None:
    """Refuse a decision in the wrong phase."""
    phase = ctx.change.read().phase
    if phase not in (Phase.PROPOSED, Phase.CHALLENGED):
        message = f"{ctx.change.id} is {phase}, so its plan cannot be {event.replace('-', ' ')}"
        raise WrongPhase(message, f"agentd status {ctx.change.id}")


def _move(ctx: StepContext, event: TransitionEvent, reason: str, by: str, hashes: Mapping[str, str]) -> None:
    ctx.run.update(partial(_with_decision, event, reason, by, hashes))


def _with_decision(
    event: TransitionEvent, reason: str, by: str, hashes: Mapping[str, str], old: ChangeState
) -> ChangeState:
    return old.with_transition(event, by=by, why=reason, at=clock.now(), hashes=hashes)


def accept_code(ctx: StepContext, reason: str, by: str, read: str) -> None:
    """Accept the current code, never over a failed required check; `read` is the tree the person read."""
    _check_code(ctx, Phase.IMPLEMENTING, "accepted")
    refuse_conflict_markers(ctx.change)
    base = ctx.change.read().base.tree
    assert base
    proof = check_run.run_checks(ctx, len(ctx.change.records(REVIEWER_SPEC.kind)) + 1)
    if proof.blocking:
        failing = "check {} fails" if len(proof.blocking) == 1 else "checks {} fail"
        message = f"the required {failing.format(join_words(proof.blocking))}, so the code cannot be accepted"
        failed_before = any(
            before and before.status is CheckStatus.FAILED for before in _before_code_decision(ctx, proof)
        )
        known = f', or agentd impl {ctx.change.id} --known-failures "REASON"' if failed_before else ""
        raise Refusal(message, f"agentd impl {ctx.change.id}, or fix the check{known}")
    if read and read_digest.code_tree_without_agentd(ctx.change, proof.tree) != read:
        message = f"the code of {ctx.change.id} changed while its checks ran, so it was not accepted"
        raise Refusal(message, "read it again; files written by the checks belong in .gitignore")
    at, waiting = clock.now(), ctx.change.read().findings
    record = last_record(ctx.change, REVIEWER_SPEC)
    if record:
        made = [FindingEdit(one.id, ADDED, edit_content(one), one.by, at) for one in waiting]
        left = (*judge_call.open_judge_findings(ctx, REVIEWER_SPEC), *waiting)
        made += [FindingEdit(one.id, "state", str(FindingState.ACCEPTED), by, at) for one in left]
        if made:
            person_findings.write_edits(ctx, record, made)
    code_trees.mark_done_tasks(ctx, base, proof.tree)
    waived = code_trees.waive_tasks(ctx)
    hashes = {"tree": proof.tree, "base": base, **code_trees.spec_hashes(ctx.change.hashes())}
    kept = () if record else accept_waiting(waiting)
    ctx.run.update(
        lambda old: _with_decision(
            TransitionEvent.ACCEPTED, reason, by, hashes, replace(old, findings=kept, waived=tuple(waived))
        )
    )


def send_back_code(ctx: StepContext, reason: str, by: str, read: str) -> None:
    """Send the code back; the reason becomes a finding the implementer must answer."""
    _check_code(ctx, Phase.COMPLETE, "sent back")
    _add_code_finding(ctx, REVIEWER_SPEC, reason, by)
    code_trees.reclaim_tasks(ctx, ctx.change.read().waived)
    record = last_record(ctx.change, REVIEWER_SPEC)
    hashes = dict(record.judged) if record else {}
    ctx.run.update(lambda old: _with_decision(TransitionEvent.SENT_BACK, reason, by, hashes, replace(old, waived=())))


def plan_wrong(ctx: StepContext, reason: str, by: str, read: str) -> None:
    """Return to planning; the reason becomes a finding the planner must answer. The code stays as it is."""
    _check_code(ctx, Phase.IMPLEMENTING, "said to have a wrong plan")
    _add_code_finding(ctx, CHALLENGER_SPEC, reason, by)
    code_trees.reset_tasks(ctx)
    _move(ctx, TransitionEvent.PLAN_WRONG, reason, by, ctx.change.hashes())


def _before_code_decision(ctx: StepContext, proof: CheckRun) -> list[CheckResult | None]:
    """Return the results of the blocking checks before the first edit."""
    state = ctx.change.read()
    return [check_run.check_before(state, one) for one in ctx.config.checks if one.name in proof.blocking]


# Each receives the code tree the person read, or "" if unknown.
CODE_DECISIONS: dict[str, Callable[[StepContext, str, str, str], None]] = {
    "accept": accept_code,
    "send-back": send_back_code,
    "plan-wrong": plan_wrong,
}


def _add_code_finding(ctx: StepContext, judge: JudgeSpec, reason: str, by: str) -> None:
    """Add the reason as a finding; without a record yet, it waits in STATE.yaml for the first one."""
    record = last_record(ctx.change, judge)
    if record is None:
        found = replace(person_finding(reason, by), id=f"P{person_findings.next_person_id(ctx)}")
        ctx.run.update(lambda old: replace(old, findings=(*old.findings, found)))
    elif edit := add_reason_finding(ctx, record, reason, by):
        person_findings.write_edits(ctx, record, [edit])


def _check_code(ctx: StepContext, wanted: Phase, what: str) -> None:
    """Refuse a decision in the wrong phase."""
    phase = ctx.change.read().phase
    if phase is not wanted:
        message = f"{ctx.change.id} is {phase}; only a change that is {wanted} can be {what}"
        raise WrongPhase(message, f"agentd status {ctx.change.id}")


_PATIENCE = 60.0  # seconds, for a busy machine; a waiting run polls several times a second
_MOVES = {*PLAN_DECISIONS, *CODE_DECISIONS}


def pending_question(change: Change) -> dict[str, Any] | None:
    """Return the question an active run is waiting with."""
    return Inbox(change).asked() if change.active_run() else None


def belongs_to_workflow(command: str, question: str) -> bool:
    """Whether the question is about the command's workflow."""
    return question.startswith("after-challenge-" if command == "plan" else "after-review-")


def deliver_decision(change: Change, decision: Decision) -> None:
    """Deliver the decision to the waiting run and wait until it has been applied or refused."""
    inbox, before = Inbox(change), len(change.read().history)
    name = inbox.post(decision)
    _wait(lambda: inbox.has_reply(name) or inbox.asked() is None)
    reply = inbox.reply_to(name)
    hint = f"agentd status {change.id}"
    if reply is None:
        inbox.withdraw(name)
        raise Refusal(f"the run of {change.id} does not accept decisions right now", hint)
    if not reply.taken:
        raise Refusal(f"the decision was refused: {reply.why}", hint)
    if decision.answer not in _MOVES:
        return  # the run continues or stops by itself
    _wait(lambda: len(change.read().history) > before or change.active_run() is None)
    if len(change.read().history) == before:
        raise Refusal("the decision was delivered, but the run ended before applying it", f"agentd log {change.id}")


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)

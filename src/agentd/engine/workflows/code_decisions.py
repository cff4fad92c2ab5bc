"""What a person decides about code: accept it in spite of findings, send it back, or say that the plan is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from agentd.change import ChangeState
from agentd.checks import CheckResult
from agentd.documents import ADDED, FindingEdit, edit_content
from agentd.domain import CheckStatus, FindingState, Phase, Refusal, TransitionEvent, WrongPhase, clock, join_words
from agentd.engine.steps import check_run, code_trees, person_edits, resolve, task_status
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.judge_spec import CHALLENGER_SPEC, REVIEWER_SPEC, JudgeSpec
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows import read_digest
from agentd.engine.workflows.impl_start import refuse_conflict_markers
from agentd.engine.workflows.plan_decisions import accept_waiting, add_reason_finding, person_finding
from agentd.engine.workflows.verdict_status import last_record


def accept_code(desk: StepContext, reason: str, by: str, read: str) -> None:
    """Never over a failed required check, on the tree as it is now: the one that was read, where somebody says."""
    _check(desk, Phase.IMPLEMENTING, "accepted")
    refuse_conflict_markers(desk.change)
    base = desk.change.read().base.tree
    assert base
    proof = check_run.run_checks(desk, len(desk.change.records(REVIEWER_SPEC.kind)) + 1)
    if proof.blocking:
        failing = "check {} fails" if len(proof.blocking) == 1 else "checks {} fail"
        words = f"the required {failing.format(join_words(proof.blocking))}, and no acceptance goes over that"
        failed_before = any(before and before.status is CheckStatus.FAILED for before in _before(desk, proof))
        known = f', or agentd impl {desk.change.id} --known-failures "REASON"' if failed_before else ""
        raise Refusal(words, f"agentd impl {desk.change.id}, or mend the check{known}")
    if read and read_digest.code_tree_without_agentd(desk.change, proof.tree) != read:
        words = f"the code of {desk.change.id} changed while its checks ran, so it was not accepted"
        raise Refusal(words, "read it again; what the checks write themselves belongs into .gitignore")
    at, waiting = clock.now(), desk.change.read().findings
    record = last_record(desk.change, REVIEWER_SPEC)
    if record:
        made = [FindingEdit(one.id, ADDED, edit_content(one), one.by, at) for one in waiting]
        left = (*resolve.findings_for_implementer(desk), *waiting)
        made += [FindingEdit(one.id, "state", str(FindingState.ACCEPTED), by, at) for one in left]
        if made:
            person_edits.write_edits(desk, record, made)
    task_status.mark_done_tasks(desk, base, proof.tree)
    waived = task_status.waive_tasks(desk)
    hashes = {"tree": proof.tree, "base": base, **code_trees.spec_hashes(desk.change.hashes())}
    kept = () if record else accept_waiting(waiting)
    desk.run.update(
        lambda old: _moved(
            TransitionEvent.ACCEPTED, reason, by, hashes, replace(old, findings=kept, waived=tuple(waived))
        )
    )


def send_back_code(desk: StepContext, reason: str, by: str, read: str) -> None:
    """The reason is a finding that the implementer must answer."""
    _check(desk, Phase.COMPLETE, "sent back")
    _find(desk, REVIEWER_SPEC, reason, by)
    task_status.reclaim_tasks(desk, desk.change.read().waived)
    record = last_record(desk.change, REVIEWER_SPEC)
    hashes = dict(record.judged) if record else {}
    desk.run.update(lambda old: _moved(TransitionEvent.SENT_BACK, reason, by, hashes, replace(old, waived=())))


def plan_wrong(desk: StepContext, reason: str, by: str, read: str) -> None:
    """The reason is a finding that the planner must answer; the code stays as it is."""
    _check(desk, Phase.IMPLEMENTING, "said to have a wrong plan")
    _find(desk, CHALLENGER_SPEC, reason, by)
    task_status.reset_tasks(desk)
    desk.run.update(partial(_moved, TransitionEvent.PLAN_WRONG, reason, by, desk.change.hashes()))


def _before(desk: StepContext, proof: CheckRun) -> list[CheckResult | None]:
    """How those that stand in the way were before the first edit."""
    state = desk.change.read()
    return [check_run.check_before(state, one) for one in desk.config.checks if one.name in proof.blocking]


# Each is given the code as whoever decides has read it, as `seen` knows it; "" where nobody says.
CODE_DECISIONS: dict[str, Callable[[StepContext, str, str, str], None]] = {
    "accept": accept_code,
    "send-back": send_back_code,
    "plan-wrong": plan_wrong,
}


def _find(desk: StepContext, bench: JudgeSpec, reason: str, by: str) -> None:
    """Where nobody has judged yet it waits for the first record, as agentd's own findings do."""
    record = last_record(desk.change, bench)
    if record is None:
        found = replace(person_finding(reason, by), id=f"P{person_edits.next_person_id(desk)}")
        desk.run.update(lambda old: replace(old, findings=(*old.findings, found)))
    elif edit := add_reason_finding(desk, record, reason, by):
        person_edits.write_edits(desk, record, [edit])


def _check(desk: StepContext, wanted: Phase, what: str) -> None:
    """Before anything is written."""
    phase = desk.change.read().phase
    if phase is not wanted:
        words = f"{desk.change.id} is {phase}; only a change that is {wanted} can be {what}"
        raise WrongPhase(words, f"agentd status {desk.change.id}")


def _moved(event: TransitionEvent, reason: str, by: str, hashes: Mapping[str, str], old: ChangeState) -> ChangeState:
    return old.moved(event, by=by, why=reason, at=clock.now(), hashes=hashes)

"""What a person decides about code: accept it in spite of findings, send it back, or say that the plan is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from agentd.change.state import ChangeState
from agentd.checks.result import CheckResult
from agentd.documents.finding_status import ADDED, edit_content
from agentd.documents.records import FindingEdit
from agentd.domain import clock
from agentd.domain.errors import Refusal, WrongPhase
from agentd.domain.formatting import join_words
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import CheckStatus, FindingState, Phase
from agentd.steps import code, edits, proving, resolve, ticking
from agentd.steps.bench import CODE, PLAN, Bench
from agentd.steps.desk import Desk
from agentd.steps.proving import Proof
from agentd.workflows import seen
from agentd.workflows.decisions import accepted, added, of_person
from agentd.workflows.starting import refuse_marks
from agentd.workflows.verdict import last


def accept(desk: Desk, reason: str, by: str, read: str) -> None:
    """Never over a failed required check, on the tree as it is now: the one that was read, where somebody says."""
    _check(desk, Phase.IMPLEMENTING, "accepted")
    refuse_marks(desk.change)
    base = desk.change.read().base.tree
    assert base
    proof = proving.prove(desk, len(desk.change.records(CODE.kind)) + 1)
    if proof.blocking:
        failing = "check {} fails" if len(proof.blocking) == 1 else "checks {} fail"
        words = f"the required {failing.format(join_words(proof.blocking))}, and no acceptance goes over that"
        failed_before = any(before and before.status is CheckStatus.FAILED for before in _before(desk, proof))
        known = f', or agentd impl {desk.change.id} --known-failures "REASON"' if failed_before else ""
        raise Refusal(words, f"agentd impl {desk.change.id}, or mend the check{known}")
    if read and seen.code(desk.change, proof.tree) != read:
        words = f"the code of {desk.change.id} changed while its checks ran, so it was not accepted"
        raise Refusal(words, "read it again; what the checks write themselves belongs into .gitignore")
    at, waiting = clock.now(), desk.change.read().findings
    record = last(desk.change, CODE)
    if record:
        made = [FindingEdit(one.id, ADDED, edit_content(one), one.by, at) for one in waiting]
        left = (*resolve.open_findings(desk), *waiting)
        made += [FindingEdit(one.id, "state", str(FindingState.ACCEPTED), by, at) for one in left]
        if made:
            edits.write(desk, record, made)
    ticking.tick(desk, base, proof.tree)
    waived = ticking.waive(desk)
    hashes = {"tree": proof.tree, "base": base, **code.specs_of(desk.change.hashes())}
    kept = () if record else accepted(waiting)
    desk.run.update(
        lambda old: _moved(
            TransitionEvent.ACCEPTED, reason, by, hashes, replace(old, findings=kept, waived=tuple(waived))
        )
    )


def send_back(desk: Desk, reason: str, by: str, read: str) -> None:
    """The reason is a finding that the implementer must answer."""
    _check(desk, Phase.COMPLETE, "sent back")
    _find(desk, CODE, reason, by)
    ticking.claim(desk, desk.change.read().waived)
    record = last(desk.change, CODE)
    hashes = dict(record.judged) if record else {}
    desk.run.update(lambda old: _moved(TransitionEvent.SENT_BACK, reason, by, hashes, replace(old, waived=())))


def plan_wrong(desk: Desk, reason: str, by: str, read: str) -> None:
    """The reason is a finding that the planner must answer; the code stays as it is."""
    _check(desk, Phase.IMPLEMENTING, "said to have a wrong plan")
    _find(desk, PLAN, reason, by)
    ticking.untick(desk)
    desk.run.update(partial(_moved, TransitionEvent.PLAN_WRONG, reason, by, desk.change.hashes()))


def _before(desk: Desk, proof: Proof) -> list[CheckResult | None]:
    """How those that stand in the way were before the first edit."""
    state = desk.change.read()
    return [proving.before_of(state, one) for one in desk.config.checks if one.name in proof.blocking]


# Each is given the code as whoever decides has read it, as `seen` knows it; "" where nobody says.
BY_NAME: dict[str, Callable[[Desk, str, str, str], None]] = {
    "accept": accept,
    "send-back": send_back,
    "plan-wrong": plan_wrong,
}


def _find(desk: Desk, bench: Bench, reason: str, by: str) -> None:
    """Where nobody has judged yet it waits for the first record, as agentd's own findings do."""
    record = last(desk.change, bench)
    if record is None:
        found = replace(of_person(reason, by), id=f"P{edits.next_id(desk)}")
        desk.run.update(lambda old: replace(old, findings=(*old.findings, found)))
    elif edit := added(desk, record, reason, by):
        edits.write(desk, record, [edit])


def _check(desk: Desk, wanted: Phase, what: str) -> None:
    """Before anything is written."""
    phase = desk.change.read().phase
    if phase is not wanted:
        words = f"{desk.change.id} is {phase}; only a change that is {wanted} can be {what}"
        raise WrongPhase(words, f"agentd status {desk.change.id}")


def _moved(event: TransitionEvent, reason: str, by: str, hashes: Mapping[str, str], old: ChangeState) -> ChangeState:
    return old.moved(event, by=by, why=reason, at=clock.now(), hashes=hashes)

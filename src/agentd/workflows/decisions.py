"""What a person decides about a plan: accept it in spite of findings, send it back, reject it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from agentd.change.state import ChangeState
from agentd.documents.finding_status import ADDED, current_findings, edit_content
from agentd.documents.records import Finding, FindingEdit, ReviewRecord
from agentd.domain import clock
from agentd.domain.errors import FormatInvalid, Refusal, WrongPhase
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import FindingState, Phase, Severity
from agentd.steps import edits, form
from agentd.steps.bench import PLAN
from agentd.steps.desk import Desk
from agentd.workflows.seen import differing
from agentd.workflows.verdict import last

_TITLE = 120  # characters of a reason that is a finding's title


def accept(desk: Desk, reason: str, by: str, seen: Mapping[str, str]) -> None:
    """The open findings are accepted with it; a plan that does not keep to its form cannot be built."""
    _check(desk, TransitionEvent.ACCEPTED)
    if changed := differing(seen, desk.change.hashes()):
        raise Refusal(f"{', '.join(changed)} changed while this was decided", "read it again")
    if faults := form.faults(desk):
        first = faults[0]
        raise FormatInvalid(
            f"the plan cannot be accepted as it is: {first.file}:{first.line} {first.message}",
            f"agentd validate {desk.change.id} lists what is wrong",
        )
    mended = desk.change.hashes()  # the form only
    at, waiting = clock.now(), desk.change.read().findings
    left = [one for one in current_findings(desk.change.records(PLAN.kind)) if one.state.is_open]
    record = last(desk.change)
    if record:
        made = [FindingEdit(one.id, ADDED, edit_content(one), one.by, at) for one in waiting]
        made += [FindingEdit(one.id, "state", str(FindingState.ACCEPTED), by, at) for one in (*left, *waiting)]
        if made:
            edits.write(desk, record, made)
    kept = () if record else accepted(waiting)
    desk.run.update(lambda old: replace(old, findings=kept))
    _move(desk, TransitionEvent.ACCEPTED, reason, by, mended)


def reject(desk: Desk, reason: str, by: str, seen: Mapping[str, str]) -> None:
    _check(desk, TransitionEvent.REJECTED)
    _move(desk, TransitionEvent.REJECTED, reason, by, seen)


def send_back(desk: Desk, reason: str, by: str, seen: Mapping[str, str]) -> None:
    """The reason is a finding that the planner must answer."""
    _check(desk, TransitionEvent.SENT_BACK)
    record = last(desk.change)
    if record is None:
        raise WrongPhase(f"{desk.change.id} was never challenged", f"agentd challenge {desk.change.id}")
    if edit := added(desk, record, reason, by):
        edits.write(desk, record, [edit])
    _move(desk, TransitionEvent.SENT_BACK, reason, by, seen)


def added(desk: Desk, record: ReviewRecord, reason: str, by: str) -> FindingEdit | None:
    """The person's reason as a finding; None if it is one already: an earlier try was cut off."""
    title = " ".join(reason.split())[:_TITLE]
    if any((one.title, one.by, one.state) == (title, by, FindingState.OPEN) for one in current_findings([record])):
        return None
    what = {"severity": str(Severity.HIGH), "title": title, "what": reason, "suggestion": "", "requirement": None}
    return FindingEdit(f"P{edits.next_id(desk)}", ADDED, what, by, clock.now())


# Each is given the plan as whoever decides has read it, by hash: an edit in the same moment is not decided upon.
BY_NAME: dict[str, Callable[[Desk, str, str, Mapping[str, str]], None]] = {
    "accept": accept,
    "reject": reject,
    "send-back": send_back,
}


def of_person(reason: str, by: str) -> Finding:
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


def accepted(waiting: Iterable[Finding]) -> tuple[Finding, ...]:
    """They wait on for a record that takes them up, and ask for nothing."""
    return tuple(replace(one, state=FindingState.ACCEPTED) for one in waiting)


def _check(desk: Desk, event: TransitionEvent) -> None:
    """Before anything is written."""
    phase = desk.change.read().phase
    if phase not in (Phase.PROPOSED, Phase.CHALLENGED):
        words = f"{desk.change.id} is {phase}, so its plan cannot be {event.replace('-', ' ')}"
        raise WrongPhase(words, f"agentd status {desk.change.id}")


def _move(desk: Desk, event: TransitionEvent, reason: str, by: str, seen: Mapping[str, str]) -> None:
    desk.run.update(partial(_moved, event, reason, by, seen))


def _moved(event: TransitionEvent, reason: str, by: str, hashes: Mapping[str, str], old: ChangeState) -> ChangeState:
    return old.moved(event, by=by, why=reason, at=clock.now(), hashes=hashes)

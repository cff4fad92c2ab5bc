"""What a person decides about a plan: accept it in spite of findings, send it back, reject it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from agentd.change import ChangeState
from agentd.documents import ADDED, Finding, FindingEdit, ReviewRecord, current_findings, edit_content
from agentd.domain import FindingState, FormatInvalid, Phase, Refusal, Severity, TransitionEvent, WrongPhase, clock
from agentd.engine.steps import format_fix, person_edits
from agentd.engine.steps.judge_spec import CHALLENGER_SPEC
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows.read_digest import differing_names
from agentd.engine.workflows.verdict_status import last_record

_TITLE = 120  # characters of a reason that is a finding's title


def accept_plan(desk: StepContext, reason: str, by: str, seen: Mapping[str, str]) -> None:
    """The open findings are accepted with it; a plan that does not keep to its form cannot be built."""
    _check(desk, TransitionEvent.ACCEPTED)
    if changed := differing_names(seen, desk.change.hashes()):
        raise Refusal(f"{', '.join(changed)} changed while this was decided", "read it again")
    if faults := format_fix.format_faults(desk):
        first = faults[0]
        raise FormatInvalid(
            f"the plan cannot be accepted as it is: {first.file}:{first.line} {first.message}",
            f"agentd validate {desk.change.id} lists what is wrong",
        )
    mended = desk.change.hashes()  # the form only
    at, waiting = clock.now(), desk.change.read().findings
    left = [one for one in current_findings(desk.change.records(CHALLENGER_SPEC.kind)) if one.state.is_open]
    record = last_record(desk.change)
    if record:
        made = [FindingEdit(one.id, ADDED, edit_content(one), one.by, at) for one in waiting]
        made += [FindingEdit(one.id, "state", str(FindingState.ACCEPTED), by, at) for one in (*left, *waiting)]
        if made:
            person_edits.write_edits(desk, record, made)
    kept = () if record else accept_waiting(waiting)
    desk.run.update(lambda old: replace(old, findings=kept))
    _move(desk, TransitionEvent.ACCEPTED, reason, by, mended)


def reject_plan(desk: StepContext, reason: str, by: str, seen: Mapping[str, str]) -> None:
    _check(desk, TransitionEvent.REJECTED)
    _move(desk, TransitionEvent.REJECTED, reason, by, seen)


def send_back_plan(desk: StepContext, reason: str, by: str, seen: Mapping[str, str]) -> None:
    """The reason is a finding that the planner must answer."""
    _check(desk, TransitionEvent.SENT_BACK)
    record = last_record(desk.change)
    if record is None:
        raise WrongPhase(f"{desk.change.id} was never challenged", f"agentd challenge {desk.change.id}")
    if edit := add_reason_finding(desk, record, reason, by):
        person_edits.write_edits(desk, record, [edit])
    _move(desk, TransitionEvent.SENT_BACK, reason, by, seen)


def add_reason_finding(desk: StepContext, record: ReviewRecord, reason: str, by: str) -> FindingEdit | None:
    """The person's reason as a finding; None if it is one already: an earlier try was cut off."""
    title = " ".join(reason.split())[:_TITLE]
    if any((one.title, one.by, one.state) == (title, by, FindingState.OPEN) for one in current_findings([record])):
        return None
    what = {"severity": str(Severity.HIGH), "title": title, "what": reason, "suggestion": "", "requirement": None}
    return FindingEdit(f"P{person_edits.next_person_id(desk)}", ADDED, what, by, clock.now())


# Each is given the plan as whoever decides has read it, by hash: an edit in the same moment is not decided upon.
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
    """They wait on for a record that takes them up, and ask for nothing."""
    return tuple(replace(one, state=FindingState.ACCEPTED) for one in waiting)


def _check(desk: StepContext, event: TransitionEvent) -> None:
    """Before anything is written."""
    phase = desk.change.read().phase
    if phase not in (Phase.PROPOSED, Phase.CHALLENGED):
        words = f"{desk.change.id} is {phase}, so its plan cannot be {event.replace('-', ' ')}"
        raise WrongPhase(words, f"agentd status {desk.change.id}")


def _move(desk: StepContext, event: TransitionEvent, reason: str, by: str, seen: Mapping[str, str]) -> None:
    desk.run.update(partial(_moved, event, reason, by, seen))


def _moved(event: TransitionEvent, reason: str, by: str, hashes: Mapping[str, str], old: ChangeState) -> ChangeState:
    return old.moved(event, by=by, why=reason, at=clock.now(), hashes=hashes)

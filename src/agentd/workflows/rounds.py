"""Challenge, answer, challenge again: until the plan is approved, a rule says stop, or a person does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from agentd.change.state import ChangeState
from agentd.domain.errors import ChangeNotReady, WrongPhase
from agentd.domain.events import NoticeIssued, WarningIssued
from agentd.domain.terms import Phase
from agentd.steps import challenge, edits, remarks, reproposal
from agentd.steps.bench import PLAN
from agentd.steps.desk import Desk
from agentd.workflows import decisions, seen
from agentd.workflows.asking import Person, decide
from agentd.workflows.forming import settle_form
from agentd.workflows.meeting import tell_overlaps
from agentd.workflows.questions import after_challenge
from agentd.workflows.result import standing
from agentd.workflows.under_way import one_round_less
from agentd.workflows.verdict import (
    JUDGED,
    closed_nothing,
    has_judged,
    is_answered,
    is_as_decided,
    is_judged,
    last,
)
from agentd.workflows.wishes import Wishes

Next = Literal["fix", "look again", "stop"]


def judge(desk: Desk, wishes: Wishes) -> bool:
    """One verdict on the plan as it is. False: it was judged so already, and judging it again is not wished."""
    check_phase(desk, *JUDGED)
    take_up_edits(desk)
    if desk.change.read().phase is Phase.REJECTED and is_as_decided(desk.change):
        hint = f"read {desk.path('CHALLENGE.md')}, edit the plan, then: agentd plan {desk.change.id} --rechallenge"
        raise WrongPhase(f"{desk.change.id} was rejected, and its plan has not changed since", hint)
    is_wished = wishes.rechallenge and not has_judged(desk.change.read())  # a resumed command has it already
    is_due = is_wished or not is_judged(desk.change)
    if is_due:
        settle_form(desk, wishes)
        tell_overlaps(desk)
        challenge.challenge(desk)
    return is_due


def repropose(desk: Desk, wishes: Wishes, also: Callable[[ChangeState], ChangeState] = lambda old: old) -> None:
    """The planner's part of a round; `also` is written as one with its end."""
    check_phase(desk, Phase.PROPOSED)
    take_up_edits(desk)
    record, left = last(desk.change), reproposal.open_findings(desk)
    if record is None or not left:
        what = "was never challenged" if record is None else "has no open finding"
        raise ChangeNotReady(f"{desk.change.id} {what}", f"agentd challenge {desk.change.id}")
    if not is_answered(desk.change, desk.round):
        reproposal.repropose(desk, record, also)
    settle_form(desk, wishes)


def until_settled(desk: Desk, wishes: Wishes) -> None:
    """Rounds, as many as the command may use."""
    judge(desk, wishes)
    while desk.change.read().phase is Phase.PROPOSED:
        take_up_edits(desk)
        if not reproposal.open_findings(desk):
            words = f"no finding is open any more; agentd plan {desk.change.id} --rechallenge, or --accept"
            desk.run.emit(NoticeIssued(code="nothing-open", message=words))
            return
        match _next(desk, wishes):
            case "stop":
                return
            case "fix":
                repropose(desk, wishes, one_round_less)
                judge(desk, replace(wishes, rechallenge=False))


def take_up_edits(desk: Desk) -> None:
    if record := last(desk.change):
        edits.take_up(desk, record)
    remarks.take_up(desk, PLAN)


def check_phase(desk: Desk, *phases: Phase) -> None:
    phase = desk.change.read().phase
    if phase in phases:
        return
    if phase is Phase.DRAFTING:
        raise ChangeNotReady(f"{desk.change.id} has no plan to challenge yet", f"agentd plan {desk.change.id}")
    raise WrongPhase(f"{desk.change.id} is {phase}", f"agentd status {desk.change.id}")


def _next(desk: Desk, wishes: Wishes) -> Next:
    """Whether the planner is to answer and the challenger to judge again."""
    state = desk.change.read()
    assert state.run
    is_stuck = closed_nothing(desk.change)
    if is_stuck:
        _warn_once(desk, "stuck", f"round {state.round} closed no finding")
    if wishes.rounds is None and wishes.person and desk.config.workflow.human_in_loop:
        return _decided(desk, wishes.person, is_stuck)
    if is_stuck:
        return "stop"
    granted = wishes.granted(state.lane, desk.config.workflow.planning_iterations)
    if state.run.rounds_left == 0 and granted:
        words = f"all rounds of this command are used; the same command grants {granted} more"
        _warn_once(desk, "rounds-used", words)
    return "fix" if state.run.rounds_left else "stop"


def _decided(desk: Desk, person: Person, is_stuck: bool) -> Next:
    """What the person at the terminal, or in the viewer, says."""
    before = seen.seen(desk.change)
    question = after_challenge(desk.change, "view" if is_stuck else "fix")
    answer = decide(desk.run, replace(question, about=standing(desk.change)), person)
    assert answer
    if answer.id == "view":
        person.show(str(desk.change.folder / "CHALLENGE.md"))
        return "look again"
    if answer.id not in decisions.BY_NAME:
        return "fix" if answer.id == "fix" else "stop"
    now = seen.seen(desk.change)
    if answer.via == "terminal" and now != before:
        changed = seen.in_words(seen.differing(before, now), now)
        words = f"{changed} while the question was open, so it is asked again"
        desk.run.emit(WarningIssued(code="stale", message=words))
        return "look again"
    take_up_edits(desk)  # what was shown with it
    decisions.BY_NAME[answer.id](desk, answer.reason, answer.by, seen.documents(now))
    return "fix" if answer.id == "send-back" else "stop"


def _warn_once(desk: Desk, code: str, message: str) -> None:
    if message not in desk.run.warned:
        desk.run.warned.add(message)
        desk.run.emit(WarningIssued(code=code, message=message))

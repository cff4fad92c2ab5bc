"""Challenge, answer, challenge again: until the plan is approved, a rule says stop, or a person does."""

from collections.abc import Callable
from dataclasses import replace

from agentd.change.state import State
from agentd.errors import ChangeNotReady, WrongPhase
from agentd.events import Noted, Warned
from agentd.steps import challenge, edits, reproposal
from agentd.steps.desk import Desk
from agentd.terms import Phase
from agentd.workflows import decisions
from agentd.workflows.asking import decide
from agentd.workflows.forming import settle_form
from agentd.workflows.questions import after_challenge
from agentd.workflows.verdict import JUDGED, closed_nothing, is_answered, is_judged, last_challenge, left_open
from agentd.workflows.wishes import Wishes


def judge(desk: Desk, wishes: Wishes) -> None:
    """One verdict on the plan as it is; one that was judged so already is not judged again, unless that is wished."""
    check_phase(desk, *JUDGED)
    take_up_edits(desk)
    unchanged = is_judged(desk.change)
    if unchanged and desk.change.read().phase is Phase.REJECTED:
        hint = f"read {desk.path('CHALLENGE.md')}, edit the plan, then: agentd plan {desk.change.id} --rechallenge"
        raise WrongPhase(f"{desk.change.id} was rejected, and its plan has not changed since", hint)
    if not unchanged or wishes.rechallenge:
        settle_form(desk, wishes)
        challenge.challenge(desk)


def repropose(desk: Desk, wishes: Wishes, also: Callable[[State], State] = lambda old: old) -> None:
    """The planner's part of a round; `also` is written as one with its end."""
    check_phase(desk, Phase.PROPOSED)
    take_up_edits(desk)
    record, left = last_challenge(desk.change), left_open(desk.change)
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
        if not left_open(desk.change):
            words = f"no finding is open any more; agentd plan {desk.change.id} --rechallenge, or --accept"
            desk.run.emit(Noted(code="nothing-open", message=words))
            return
        if not _goes_on(desk, wishes):
            return
        repropose(desk, wishes, _one_round_less)
        judge(desk, replace(wishes, rechallenge=False))


def take_up_edits(desk: Desk) -> None:
    if record := last_challenge(desk.change):
        edits.take_up(desk, record)


def check_phase(desk: Desk, *phases: Phase) -> None:
    phase = desk.change.read().phase
    if phase in phases:
        return
    if phase is Phase.DRAFTING:
        raise ChangeNotReady(f"{desk.change.id} has no plan to challenge yet", f"agentd plan {desk.change.id}")
    raise WrongPhase(f"{desk.change.id} is {phase}", f"agentd status {desk.change.id}")


def _goes_on(desk: Desk, wishes: Wishes) -> bool:
    """Whether the planner is to answer and the challenger to judge again."""
    state = desk.change.read()
    assert state.run
    is_stuck = closed_nothing(desk.change)
    if is_stuck:
        _warn(desk, "stuck", f"round {state.round} closed no finding")
    if wishes.rounds != 0 and wishes.person and desk.config.workflow.human_in_loop:
        return _decided(desk, wishes, is_stuck)
    if is_stuck:
        return False
    if state.run.rounds_left == 0 and wishes.rounds != 0:
        most = desk.config.workflow.planning_iterations
        words = f"all rounds of this command are used; agentd plan {desk.change.id} grants {most} more"
        _warn(desk, "rounds-used", words)
    return state.run.rounds_left > 0


def _decided(desk: Desk, wishes: Wishes, is_stuck: bool) -> bool:
    """What the person at the terminal, or in the viewer, says."""
    while True:
        seen = desk.change.hashes()
        question = after_challenge(desk.change, "view" if is_stuck else "fix")
        answer = decide(desk.run, question, wishes.person)
        assert answer and wishes.person
        if answer.id == "view":
            wishes.person.show(str(desk.change.folder / "CHALLENGE.md"))
        elif answer.id in decisions.BY_NAME and desk.change.hashes() != seen:
            _warn(desk, "stale", "the plan changed while the question was open, so it is asked again")
        else:
            break
        take_up_edits(desk)
    if answer.id in decisions.BY_NAME:
        decisions.BY_NAME[answer.id](desk, answer.reason, answer.by)
    return answer.id in ("fix", "send-back")


def _one_round_less(old: State) -> State:
    assert old.run
    return replace(old, run=replace(old.run, rounds_left=max(0, old.run.rounds_left - 1)))


def _warn(desk: Desk, code: str, message: str) -> None:
    desk.run.emit(Warned(code=code, message=message))

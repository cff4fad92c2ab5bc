"""`plan`: from a sentence to a judged plan. Running is resuming: STATE.yaml says what comes next."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from agentd import clock
from agentd.change.inbox import Inbox
from agentd.change.state import Run as Begun
from agentd.change.state import State
from agentd.config import WorkflowSettings
from agentd.errors import AnswerIsNo
from agentd.steps import challenge, edits, recording
from agentd.steps.desk import Desk
from agentd.terms import Lane, Phase, Workflow
from agentd.workflows import decisions, rounds
from agentd.workflows.clarifying import is_only_asked
from agentd.workflows.drafting import draft
from agentd.workflows.verdict import rounds_used
from agentd.workflows.wishes import Wishes


def plan(desk: Desk, wishes: Wishes) -> None:
    """The documents, and rounds until a verdict settles them."""
    with _under_way(desk, wishes):
        draft(desk, wishes)
        if desk.change.read().phase is Phase.PROPOSED or wishes.rechallenge:  # else a killed run came to its verdict
            rounds.until_settled(desk, wishes)


def propose(desk: Desk, wishes: Wishes) -> None:
    """The documents only: the phase command `proposal`."""
    with _under_way(desk, wishes):
        draft(desk, wishes)


def judge(desk: Desk, wishes: Wishes) -> None:
    """The verdict only: the phase command `challenge`."""
    with _under_way(desk, wishes):
        rounds.judge(desk, wishes)


def repropose(desk: Desk, wishes: Wishes) -> None:
    """The planner's answers only: the phase command `reproposal`."""
    with _under_way(desk, wishes):
        rounds.repropose(desk, wishes)


def decide(desk: Desk, answer: str, reason: str, by: str) -> None:
    """What a person decides without being asked: `--accept`, `--reject`, `--send-back`."""
    with _under_way(desk, Wishes(rounds=0)):
        rounds.take_up_edits(desk)
        decisions.BY_NAME[answer](desk, reason, by)


@contextmanager
def _under_way(desk: Desk, wishes: Wishes) -> Iterator[None]:
    """STATE.yaml says so while it runs, and still does after a failure: the next command resumes it."""
    Inbox(desk.change).close("the run that asked was killed")
    if record := recording.left_over(desk):
        if of := edits.shown(desk):
            edits.take_up(desk, of)  # before it is rendered anew
        record = recording.left_over(desk) or record
        round_ = (challenge.STEP, record.round)
        rows = [step.attempt for step in desk.change.read().steps if (step.name, step.round) == round_]
        recording.finish(desk, record, max(rows, default=1))
    desk.run.update(lambda old: _begun(old, desk.config.workflow, wishes))
    try:
        yield
    except AnswerIsNo:
        desk.run.update(_over)
        raise
    desk.run.update(_over)


def _begun(old: State, settings: WorkflowSettings, wishes: Wishes) -> State:
    """A command that was interrupted goes on: the rounds that it has used count."""
    lane = old.lane
    if old.phase is Phase.DRAFTING and (not old.steps or (wishes.light and is_only_asked(old))):
        lane = Lane.LIGHT if wishes.light else Lane.FULL if settings.human_in_loop else Lane.AUTOMATED
    run = old.run or Begun(Workflow.PLAN, clock.now(), steps_before=len(old.steps))
    left = wishes.granted(lane, settings.planning_iterations) - rounds_used(old)
    run = replace(run, rounds_left=max(0, left))
    return replace(old, lane=lane, run=run, session_id=None if wishes.new_session else old.session_id)


def _over(old: State) -> State:
    return replace(old, run=None)

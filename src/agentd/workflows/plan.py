"""`plan`: from a sentence to a judged plan. Running is resuming: STATE.yaml says what comes next."""

from contextlib import AbstractContextManager
from dataclasses import replace

from agentd.change.state import ChangeState
from agentd.domain.terms import Lane, Phase, Workflow
from agentd.project.config import WorkflowSettings
from agentd.steps.bench import PLAN
from agentd.steps.desk import Desk
from agentd.workflows import decisions, dependence, rounds, seen
from agentd.workflows.clarifying import is_only_asked
from agentd.workflows.drafting import draft
from agentd.workflows.under_way import begun, under_way
from agentd.workflows.verdict import judged_already
from agentd.workflows.wishes import Wishes


def plan(desk: Desk, wishes: Wishes) -> None:
    """The documents, and rounds until a verdict settles them."""
    with _planning(desk, wishes):
        dependence.warn(desk)
        draft(desk, wishes)
        if desk.change.read().phase is Phase.PROPOSED or wishes.rechallenge:  # else a killed run came to its verdict
            rounds.until_settled(desk, wishes)


def propose(desk: Desk, wishes: Wishes) -> None:
    """The documents only: the phase command `proposal`."""
    with _planning(desk, wishes):
        draft(desk, wishes)


def judge(desk: Desk, wishes: Wishes) -> None:
    """The verdict only: the phase command `challenge`."""
    with _planning(desk, wishes):
        if not rounds.judge(desk, wishes):
            desk.run.emit(judged_already(desk.change, PLAN, f"agentd plan {desk.change.id} --rechallenge"))


def repropose(desk: Desk, wishes: Wishes) -> None:
    """The planner's answers only: the phase command `reproposal`."""
    with _planning(desk, wishes):
        rounds.repropose(desk, wishes)


def decide(desk: Desk, answer: str, reason: str, by: str, read: str = "") -> None:
    """What a person decides without being asked: `--accept`, `--reject`, `--send-back`.

    `read` is the digest of what they have read (`seen`): nothing is written if that is not what is there.
    """
    hashes = desk.change.hashes()
    seen.check(desk.change, read)
    with _planning(desk, Wishes(rounds=0)):
        rounds.take_up_edits(desk)
        seen.check(desk.change, read)  # a comment may have come in between
        decisions.BY_NAME[answer](desk, reason, by, hashes)


def _planning(desk: Desk, wishes: Wishes) -> AbstractContextManager[None]:
    return under_way(desk, lambda old: _begun(old, desk.config.workflow, wishes))


def _begun(old: ChangeState, settings: WorkflowSettings, wishes: Wishes) -> ChangeState:
    lane = old.lane
    if old.phase is Phase.DRAFTING and (not old.steps or (wishes.light and is_only_asked(old))):
        lane = Lane.LIGHT if wishes.light else Lane.FULL if settings.human_in_loop else Lane.AUTOMATED
    new = begun(old, Workflow.PLAN, wishes.granted(lane, settings.planning_iterations))
    return replace(new, lane=lane, session_id=None if wishes.new_session else old.session_id)

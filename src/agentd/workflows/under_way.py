"""A command at work: STATE.yaml says so, and still does after a failure, so that the next command resumes it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from agentd.calls import committing
from agentd.change.inbox import Inbox
from agentd.change.state import ChangeState
from agentd.change.state import RunState as Begun
from agentd.domain import clock
from agentd.domain.errors import Refusal
from agentd.domain.terms import Workflow
from agentd.steps import edits, recording
from agentd.steps.bench import BY_KIND
from agentd.steps.desk import Desk
from agentd.workflows.verdict import rounds_used


@contextmanager
def under_way(desk: Desk, begin: Callable[[ChangeState], ChangeState]) -> Iterator[None]:
    Inbox(desk.change).close("the run that asked was killed")
    if record := recording.left_over(desk):
        if of := edits.shown(desk, BY_KIND[record.kind]):
            edits.take_up(desk, of)  # before it is rendered anew
        record = recording.left_over(desk) or record
        round_ = (record.kind, record.round)
        rows = [step.attempt for step in desk.change.read().steps if (step.name, step.round) == round_]
        recording.finish(desk, record, max(rows, default=1))
    desk.run.update(begin)
    try:
        yield
    except Refusal:
        desk.run.update(_over)
        raise
    workflow = desk.change.read().run
    desk.run.update(_over)
    committing.commit(desk.run, f"end of {workflow.workflow}" if workflow else "end")


def begun(old: ChangeState, workflow: Workflow, granted: int) -> ChangeState:
    """A command that was interrupted goes on: the rounds that it has used count."""
    is_same = old.run is not None and old.run.workflow == workflow
    run = old.run if is_same and old.run else Begun(workflow, clock.now(), steps_before=len(old.steps))
    used = rounds_used(replace(old, run=run))
    return replace(old, run=replace(run, rounds_left=max(0, granted - used)))


def one_round_less(old: ChangeState) -> ChangeState:
    assert old.run
    return replace(old, run=replace(old.run, rounds_left=max(0, old.run.rounds_left - 1)))


def _over(old: ChangeState) -> ChangeState:
    return replace(old, run=None)

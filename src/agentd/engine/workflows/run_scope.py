"""A command at work: STATE.yaml says so, and still does after a failure, so that the next command resumes it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from agentd.change import ChangeState, Inbox
from agentd.change import RunState as Begun
from agentd.domain import Refusal, Workflow, clock
from agentd.engine.calls import step_commits
from agentd.engine.steps import person_edits, verdict_record
from agentd.engine.steps.judge_spec import JUDGE_SPECS
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows.verdict_status import rounds_used


@contextmanager
def run_scope(desk: StepContext, begin: Callable[[ChangeState], ChangeState]) -> Iterator[None]:
    Inbox(desk.change).close("the run that asked was killed")
    if record := verdict_record.unfinished_record(desk):
        if of := person_edits.displayed_record(desk, JUDGE_SPECS[record.kind]):
            person_edits.apply_person_edits(desk, of)  # before it is rendered anew
        record = verdict_record.unfinished_record(desk) or record
        round_ = (record.kind, record.round)
        rows = [step.attempt for step in desk.change.read().steps if (step.name, step.round) == round_]
        verdict_record.finish_record(desk, record, max(rows, default=1))
    desk.run.update(begin)
    try:
        yield
    except Refusal:
        desk.run.update(_over)
        raise
    workflow = desk.change.read().run
    desk.run.update(_over)
    step_commits.commit_step(desk.run, f"end of {workflow.workflow}" if workflow else "end")


def begin_run_state(old: ChangeState, workflow: Workflow, granted: int) -> ChangeState:
    """A command that was interrupted goes on: the rounds that it has used count."""
    is_same = old.run is not None and old.run.workflow == workflow
    run = old.run if is_same and old.run else Begun(workflow, clock.now(), steps_before=len(old.steps))
    used = rounds_used(replace(old, run=run))
    return replace(old, run=replace(run, rounds_left=max(0, granted - used)))


def use_round(old: ChangeState) -> ChangeState:
    assert old.run
    return replace(old, run=replace(old.run, rounds_left=max(0, old.run.rounds_left - 1)))


def _over(old: ChangeState) -> ChangeState:
    return replace(old, run=None)

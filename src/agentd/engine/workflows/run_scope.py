"""The scope of a run in STATE.yaml: it stays recorded after a failure, so that the next command resumes it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from agentd.change import BudgetIncrease, ChangeState, Inbox, RunState
from agentd.domain import Refusal, UsageError, Workflow, clock, events
from agentd.engine.calls import step_commits
from agentd.engine.calls.run_context import RunContext
from agentd.engine.steps import person_findings, verdict_record
from agentd.engine.steps.step_context import JUDGE_SPECS, StepContext
from agentd.engine.workflows.verdict_status import rounds_used


def raise_budget(run: RunContext, amount: float, by: str) -> None:
    """Raise the budget of this change. The same amount again changes nothing, so a command can be repeated."""
    limit = run.limits.per_change
    if amount == limit:
        return
    if amount < limit or not limit:
        now = f"may already cost {limit:.10g} USD" if limit else "has no limit"
        raise UsageError(f"{run.change.id} {now}, so {amount:.10g} USD is not more", "leave --raise-budget out")

    def raised(old: ChangeState) -> ChangeState:
        extra = old.budget.extra if old.budget else {}
        return replace(old, budget=BudgetIncrease(amount, by, clock.now(), extra))

    run.update(raised)
    run.emit(events.DecisionMade(id="budget", answer=f"{amount:.10g}", reason=None, by=by, via="flag"))


@contextmanager
def run_scope(ctx: StepContext, begin: Callable[[ChangeState], ChangeState]) -> Iterator[None]:
    Inbox(ctx.change).close("the run that asked was killed")
    if record := verdict_record.unfinished_record(ctx):
        if of := person_findings.displayed_record(ctx, JUDGE_SPECS[record.kind]):
            person_findings.apply_person_edits(ctx, of)  # before it is rendered anew
        record = verdict_record.unfinished_record(ctx) or record
        round_ = (record.kind, record.round)
        rows = [step.attempt for step in ctx.change.read().steps if (step.name, step.round) == round_]
        verdict_record.finish_record(ctx, record, max(rows, default=1))
    ctx.run.update(begin)
    try:
        yield
    except Refusal:
        ctx.run.update(_over)
        raise
    workflow = ctx.change.read().run
    ctx.run.update(_over)
    step_commits.commit_step(ctx.run, f"end of {workflow.workflow}" if workflow else "end")


def begin_run_state(old: ChangeState, workflow: Workflow, granted: int) -> ChangeState:
    """Start or resume a command; the rounds an interrupted one has used count."""
    is_same = old.run is not None and old.run.workflow == workflow
    run = old.run if is_same and old.run else RunState(workflow, clock.now(), steps_before=len(old.steps))
    used = rounds_used(replace(old, run=run))
    return replace(old, run=replace(run, rounds_left=max(0, granted - used)))


def use_round(old: ChangeState) -> ChangeState:
    assert old.run
    return replace(old, run=replace(old.run, rounds_left=max(0, old.run.rounds_left - 1)))


def _over(old: ChangeState) -> ChangeState:
    return replace(old, run=None)

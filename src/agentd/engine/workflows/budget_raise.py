"""A person allows one change to cost more than the configuration says."""

from dataclasses import replace

from agentd.change import BudgetIncrease, ChangeState
from agentd.domain import UsageError, clock, events
from agentd.engine.calls.run_context import RunContext


def raise_budget(run: RunContext, amount: float, by: str) -> None:
    """From now on, for this change; the same amount again changes nothing, so a command can be repeated."""
    limit = run.limits.per_change
    if amount == limit:
        return
    if amount < limit or not limit:
        now = f"may cost {limit:.10g} USD already" if limit else "has no limit"
        raise UsageError(f"{run.change.id} {now}, so {amount:.10g} USD is no more", "leave --raise-budget out")

    def raised(old: ChangeState) -> ChangeState:
        extra = old.budget.extra if old.budget else {}
        return replace(old, budget=BudgetIncrease(amount, by, clock.now(), extra))

    run.update(raised)
    run.emit(events.DecisionMade(id="budget", answer=f"{amount:.10g}", reason=None, by=by, via="flag"))

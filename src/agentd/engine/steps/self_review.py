"""The planner looks over what it wrote, and mends it. It judges nothing: the challenge does."""

from dataclasses import dataclass
from typing import Any

from agentd.change import ChangeState, StepRecord
from agentd.documents import SelfReviewResult, read_self_review
from agentd.domain import Role, StepStatus, clock, events
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.steps.generate import PROPOSAL, TASKS, spec_values, tasks_values
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.tool_table import Stage


@dataclass(frozen=True)
class SelfReviewPass:
    """One look at some documents, the `number`-th of at most `most`."""

    names: tuple[str, ...]
    number: int
    most: int


def run_self_review(ctx: StepContext, kind: str, spec: str, number: int, most: int) -> None:
    """In a fresh session; in automated mode in the one that wrote them all."""
    step = f"{kind}-{spec}" if spec else kind
    names = _names(ctx, kind, spec)
    wanted = SelfReviewPass(names, number, most)
    ctx.write_context(Role.PLANNER, Stage.PLAN)
    resume = ctx.planner_session() if kind == "plan-review" else None
    work = ctx.planner_work(
        step,
        ctx.prompt(kind, Role.PLANNER, Stage.PLAN, **_values(ctx, kind, spec, names, resume is None)),
        number=number,
        effect=None,
        resume=resume,
    )
    before = ctx.change.hashes()
    done = retries.perform_call(ctx.run, work)
    ctx.fix_format()
    after = ctx.change.hashes()
    said = read_self_review(done.text.replace(work.prompt.strip(), ""))  # a repeated prompt is not its own word
    message, warnings = self_review_outcome(said, before != after, wanted)
    for code, warning in warnings:
        ctx.run.emit(events.WarningIssued(**work.names(done.attempt), code=code, message=warning))
    outputs = {name: after[name] for name in names if name in after}
    is_last = said is not SelfReviewResult.NEEDS_REVISION
    retries.finish_step(
        ctx.run, work, done, outputs, message, lambda old: _without_more(old, work, most) if is_last else old
    )


def _names(ctx: StepContext, kind: str, spec: str) -> tuple[str, ...]:
    if spec:
        return (f"specs/{spec}.md",)
    return {"proposal-review": (PROPOSAL,), "tasks-review": (TASKS,)}.get(kind) or tuple(ctx.change.hashes())


def _values(ctx: StepContext, kind: str, spec: str, names: tuple[str, ...], fresh: bool) -> dict[str, Any]:
    """What the prompt of that kind asks for."""
    if kind == "plan-review":
        return {"documents": [ctx.path(name) for name in names], "fresh": fresh}
    one = {"document": ctx.path(names[0])}
    if kind == "spec-review":
        return one | spec_values(ctx, spec)
    return one | tasks_values(ctx) if kind == "tasks-review" else one


def self_review_outcome(
    said: SelfReviewResult, changed: bool, wanted: SelfReviewPass
) -> tuple[str, list[tuple[str, str]]]:
    """What came of it in words, and what is to be warned of."""
    head = f"Review {wanted.number}"
    names = wanted.names[0] if len(wanted.names) == 1 else "the documents"
    if said is SelfReviewResult.MISSING:
        return f"{head}: PASS", [("review-marker", f"{head} of {names} ended without its marker; taken as PASS")]
    if said is SelfReviewResult.PASS:
        return f"{head}: PASS", []
    warnings = []
    if not changed:
        warnings.append(("review-unchanged", f"{head} says NEEDS_REVISION, but nothing in {names} was changed"))
    if wanted.number == wanted.most:
        looks = "1 review" if wanted.most == 1 else f"{wanted.most} reviews"
        warnings.append(("review-limit", f"{names}: {looks}, and the last one still asked for changes"))
    return f"{head}: NEEDS_REVISION{' (auto-fixed)' if changed else ''}", warnings


def _without_more(old: ChangeState, work: CallRequest, most: int) -> ChangeState:
    """The looks that are not needed any more, so that a resumed run does not take them."""
    for number in range(work.number + 1, most + 1):
        old = old.with_step(StepRecord(work.step, work.round, number, 1, StepStatus.SKIPPED, {}, clock.now()))
    return old

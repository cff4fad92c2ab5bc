"""The form of a plan: what the rules find in it, and the planner mending that in its own session."""

from collections.abc import Iterable

from agentd.change import ChangeState, StepRecord, check_plan
from agentd.domain import Phase, Role, Severity, StepStatus, events
from agentd.engine.calls import retries
from agentd.engine.steps import clarify
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.tool_table import Stage
from agentd.validation import RuleFinding

FORMAT_STEP = "format-fix"


def is_format_due(ctx: StepContext) -> bool:
    """A planner has written something."""
    rows = ctx.change.read().steps
    return any(step.status is StepStatus.DONE and step.name != clarify.CLARIFY_STEP for step in rows)


def format_faults(ctx: StepContext) -> tuple[RuleFinding, ...]:
    """What is left to mend after agentd has put right what it can: findings of high severity."""
    change = ctx.change
    there = [(change.folder / name).is_file() for name in ("proposal.md", "tasks.md")]
    complete = change.read().phase is not Phase.DRAFTING or there != [True, False]  # a proposal alone is a beginning
    ctx.fix_format()
    found = check_plan(change, ctx.config.validation, complete=complete)
    return tuple(one for one in found if one.severity is Severity.HIGH)


def report_faults(ctx: StepContext, found: Iterable[RuleFinding]) -> None:
    for one in found:
        made = events.FindingReported(
            id="",
            severity=one.severity,
            title=one.message,
            where=f"{one.file}:{one.line}",
            verified=True,
            by=f"rule:{one.rule}",
            state="open",
        )
        ctx.run.emit(made)


def fixes_used(state: ChangeState) -> int:
    """How often the planner has mended since the last other step, within this command."""
    since = state.run.steps_before if state.run else 0
    count = 0
    for step in reversed(state.steps[since:]):
        if step.name != FORMAT_STEP:
            break
        count += step.status is StepStatus.DONE
    return count


def run_format_fix(ctx: StepContext, found: Iterable[RuleFinding]) -> None:
    resume = ctx.planner_session()
    if resume is None:
        ctx.write_context(Role.PLANNER, Stage.PLAN)
    findings = [
        {"file": ctx.path(one.file), "line": one.line, "rule": one.rule, "message": one.message, "hint": one.hint}
        for one in found
    ]
    before = ctx.change.hashes()
    work = ctx.planner_work(
        FORMAT_STEP,
        ctx.prompt(FORMAT_STEP, Role.PLANNER, Stage.PLAN, findings=findings, fresh=resume is None),
        number=_number(ctx.change.read().steps, ctx.round),
        effect=None,  # what is left is validated again
        resume=resume,
        on_session=None if resume else ctx.keep_session,
    )
    done = retries.perform_call(ctx.run, work)
    ctx.fix_format()
    after = ctx.change.hashes()
    retries.finish_step(ctx.run, work, done, {name: one for name, one in after.items() if before.get(name) != one})


def _number(steps: Iterable[StepRecord], round_: int) -> int:
    """The next one; one that was cut off is done again under its number."""
    rows = [step for step in steps if (step.name, step.round) == (FORMAT_STEP, round_)]
    last = max((step.number for step in rows), default=0)
    is_done = any(step.number == last and step.status is StepStatus.DONE for step in rows)
    return last + 1 if is_done or not rows else last

"""The challenger judges the plan in a fresh session; the planner answers its findings in its own."""

from collections.abc import Callable

from agentd.change import ChangeState, cache_plan
from agentd.documents import Finding, PreviousFinding, ReviewRecord
from agentd.domain import ChallengeVerdict, Role, Severity
from agentd.engine.calls import retries
from agentd.engine.steps import judge_call
from agentd.engine.steps.step_context import CHALLENGER_SPEC, StepContext
from agentd.engine.tools.question_tools import ANSWERS
from agentd.engine.tools.tool_table import Stage

CHALLENGE_STEP = CHALLENGER_SPEC.kind
REPROPOSAL_STEP = "reproposal"


def run_challenge_step(ctx: StepContext) -> ReviewRecord:
    ctx.write_context(CHALLENGER_SPEC.judge, CHALLENGER_SPEC.stage)
    judged = ctx.change.hashes()
    cache_plan(ctx.change)
    paths = [ctx.path(name) for name in judged]
    prompt = ctx.prompt(CHALLENGE_STEP, CHALLENGER_SPEC.judge, CHALLENGER_SPEC.stage, round=ctx.round, documents=paths)
    told, done = judge_call.ask_judge(ctx, CHALLENGER_SPEC, ctx.round, prompt)
    waiting = ctx.change.read().findings  # agentd's own, from the calls of this round
    previous = judge_call.previous_rows(ctx.change.records(CHALLENGE_STEP), told["previous"])
    return judge_call.write_verdict(
        ctx,
        CHALLENGER_SPEC,
        ctx.round,
        told,
        done,
        overruled=_overruled(told["verdict"], waiting, previous),
        judged=judged,
        findings=waiting,
        previous=previous,
    )


def _overruled(reported: str, waiting: tuple[Finding, ...], previous: tuple[PreviousFinding, ...]) -> str | None:
    """Return why an approval does not count: high findings that nobody has settled yet."""
    if reported != ChallengeVerdict.APPROVED:
        return None
    high = [one for one in waiting if one.severity is Severity.HIGH and one.state.is_open]
    if names := [one.id for one in high if one.by.startswith("person:")]:
        return f"What a person asked for must be answered first ({', '.join(names)})."
    # A file of the change itself was restored, and may have been a person's edit at the wrong moment.
    if names := [one.id for one in high if not (one.where or "").startswith("agentd/changes/")]:
        return f"What an agent changed without permission must be settled first ({', '.join(names)})."
    left = [one.id for one in previous if one.severity is Severity.HIGH and one.state.is_open]
    return f"Findings of high severity are still open ({', '.join(left)})." if left else None


def run_reproposal_step(
    ctx: StepContext, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """Let the planner answer the last challenge, `record`. `also` is written together with the end of the step."""
    resume = ctx.planner_session()
    if resume is None:
        ctx.write_context(Role.PLANNER, Stage.PLAN)
    left = judge_call.open_judge_findings(ctx, CHALLENGER_SPEC)
    before = ctx.change.hashes()
    rows = judge_call.finding_rows(ctx, CHALLENGER_SPEC, left)
    missing = "No finding is answered yet, and nothing was edited."
    work = ctx.planner_work(
        REPROPOSAL_STEP,
        ctx.prompt(REPROPOSAL_STEP, Role.PLANNER, Stage.PLAN, findings=rows, fresh=resume is None),
        effect=lambda: (ctx.run.folder / ANSWERS).is_file() or ctx.change.hashes() != before,
        reminder=ctx.reminder(Role.PLANNER, Stage.PLAN, missing, "answer_finding"),
        resume=resume,
        on_session=None if resume else ctx.keep_session,
    )
    done = retries.perform_call(ctx.run, work)
    ctx.fix_format()
    outputs = {name: digest for name, digest in ctx.change.hashes().items() if before.get(name) != digest}
    judge_call.finish_answers(ctx, CHALLENGER_SPEC, record, work, done, left, outputs, also)

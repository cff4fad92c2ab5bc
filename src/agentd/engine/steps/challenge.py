"""The challenger judges the plan in a fresh session; the planner answers its findings in its own session."""

from collections.abc import Callable, Sequence

from agentd.change import ChangeState, cache_plan
from agentd.documents import Finding, PreviousFinding, ReviewRecord
from agentd.domain import Role, Severity
from agentd.engine.steps import judge_call
from agentd.engine.steps.planner import call_planner
from agentd.engine.steps.step_context import CHALLENGER_SPEC, StepContext
from agentd.engine.tools.question_tools import ANSWERS
from agentd.engine.tools.tool import Stage

REPROPOSAL_STEP = CHALLENGER_SPEC.answer


def run_challenge_step(ctx: StepContext) -> ReviewRecord:
    ctx.write_context(Role.CHALLENGER, Stage.CHALLENGE)
    judged = ctx.change.hashes()
    cache_plan(ctx.change)
    paths = [ctx.path(name) for name in judged]
    prompt = ctx.prompt(CHALLENGER_SPEC.kind, Role.CHALLENGER, Stage.CHALLENGE, round=ctx.round, documents=paths)
    return judge_call.run_judge(ctx, CHALLENGER_SPEC, ctx.round, prompt, judged=judged, overrule=_overrule)


def _overrule(pending: Sequence[Finding], previous: Sequence[PreviousFinding]) -> str | None:
    """Return why an approval does not count: high findings that nobody has settled yet."""
    high = [one for one in pending if one.severity is Severity.HIGH and one.state.is_open]
    if ids := [one.id for one in high if one.by.startswith("person:")]:
        return f"What a person asked for must be answered first ({', '.join(ids)})."
    # A file of the change itself was restored, and may have been a person's edit at the wrong moment.
    if ids := [one.id for one in high if not (one.where or "").startswith("agentd/changes/")]:
        return f"What an agent changed without permission must be settled first ({', '.join(ids)})."
    ids = [one.id for one in previous if one.severity is Severity.HIGH and one.state.is_open]
    return f"Findings of high severity are still open ({', '.join(ids)})." if ids else None


def run_reproposal_step(
    ctx: StepContext, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """Let the planner answer the last challenge, `record`. `also` is written together with the end of the step."""
    resume, before = ctx.planner_session(), ctx.change.hashes()
    findings = judge_call.open_judge_findings(ctx, CHALLENGER_SPEC)
    rows = judge_call.finding_rows(ctx, CHALLENGER_SPEC, findings)
    request, result = call_planner(
        ctx,
        REPROPOSAL_STEP,
        REPROPOSAL_STEP,
        {"findings": rows, "fresh": resume is None},
        effect=lambda: (ctx.run.folder / ANSWERS).is_file() or ctx.change.hashes() != before,
        missing=judge_call.NOTHING_ANSWERED,
        tool="answer_finding",
        resume=resume,
        saves_session=True,
    )
    outputs = ctx.changed_since(before)
    judge_call.finish_answers(ctx, CHALLENGER_SPEC, record, request, result, findings, outputs, also)

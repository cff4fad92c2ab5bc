"""The reviewer judges the code in a fresh, read-only session; the implementer answers its findings.

Code is judged as git trees: the base tree under `refs/agentd/<id>/` and the tree the checks ran on. All diffs are
between trees, so commits made meanwhile do not matter.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from agentd.agents import get_adapter
from agentd.change import ChangeState
from agentd.documents import Finding, PreviousFinding, ReviewRecord
from agentd.domain import CheckStatus, ReviewVerdict, Role, Severity
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.context.context_files import diff_fits, reviewer_context
from agentd.engine.steps import code_trees, engine_findings, judge_call
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.implement import allowed_commands, check_commands, files_named_by
from agentd.engine.steps.step_context import JUDGE, REVIEWER_SPEC, StepContext, plan_complexity
from agentd.engine.tools.judge_tools import RUN_FILE, overruled_because
from agentd.engine.tools.question_tools import ANSWERS
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files

RESOLVE_STEP = REVIEWER_SPEC.answer
_TAIL = 3000  # characters of a failed check's output


def run_resolve_step(
    ctx: StepContext, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """Let the implementer answer the last review, `record`. `also` is written together with the end of the step."""
    left = judge_call.open_judge_findings(ctx, REVIEWER_SPEC)
    before = record.judged["tree"]  # edits of an interrupted call count too
    given = ctx.run.folder / ANSWERS
    work = CallRequest(
        step=RESOLVE_STEP,
        round=record.round + 1,
        role=Role.IMPLEMENTER,
        stage=Stage.IMPLEMENT,
        prompt=ctx.prompt(
            RESOLVE_STEP,
            Role.IMPLEMENTER,
            Stage.IMPLEMENT,
            findings=judge_call.finding_rows(ctx, REVIEWER_SPEC, left),
            commands=check_commands(ctx),
            checks=_failed(record),
            round=record.round + 1,
        ),
        effect=lambda: (
            given.is_file() or bool(code_trees.changed_paths(ctx.change, before, code_trees.current_tree(ctx.change)))
        ),
        reminder=ctx.reminder(
            Role.IMPLEMENTER, Stage.IMPLEMENT, "No finding is answered yet, and nothing was edited.", "answer_finding"
        ),
        complexity=plan_complexity(ctx.change),
        commands=allowed_commands(ctx),
        may_edit=files_named_by(code_trees.read_change_tasks(ctx.change)),
    )
    done = retries.perform_call(ctx.run, work)
    outputs = {"tree": code_trees.current_tree(ctx.change)}
    judge_call.finish_answers(ctx, REVIEWER_SPEC, record, work, done, left, outputs, also)


def _failed(record: ReviewRecord) -> list[dict[str, Any]]:
    rows = record.checks or ()
    return [
        {"name": str(row["name"]), "command": str(row["command"]), "tail": str(row.get("tail") or "")[-_TAIL:]}
        for row in rows
        if row.get("status") != CheckStatus.PASSED
    ]


REVIEW_STEP = REVIEWER_SPEC.kind


def run_review_step(ctx: StepContext, proof: CheckRun) -> ReviewRecord:
    base = ctx.change.read().base.tree
    assert base
    records = ctx.change.records(REVIEW_STEP)
    round_ = len(records) + 1
    code_trees.keep_tree(ctx.change, f"review-{round_}", proof.tree)
    found = engine_findings.find_problems(ctx, proof, base)
    own, judgements = engine_findings.split_by_round(
        ctx, found, judge_call.next_finding_number(records, REVIEWER_SPEC.prefix)
    )
    last = judge_call.next_finding_number(records, REVIEWER_SPEC.prefix) + len(own) - 1
    known = {
        "base": base,
        "tree": proof.tree,
        "failed_checks": proof.blocking,
        "last_id": last,
        "own": [str(one.severity) for one in own],
        "settled": {row["id"]: row["state"] for row in judgements},
    }
    files.write(ctx.run.folder / RUN_FILE, json.dumps(known).encode())
    _write_context(ctx, proof, base)
    told, done = judge_call.ask_judge(ctx, REVIEWER_SPEC, round_, _prompt(ctx, proof, base, round_))
    waiting = ctx.change.read().findings  # the guard's, from the calls of this round
    previous = judge_call.previous_rows(records, _merge_judgements(ctx, told["previous"], judgements))
    return judge_call.write_verdict(
        ctx,
        REVIEWER_SPEC,
        round_,
        told,
        done,
        overruled=told.get("overruled") or _overruled(told["verdict"], proof, (*waiting, *own), previous),
        judged={"tree": proof.tree, "base": base},
        findings=(*waiting, *own),
        previous=previous,
        checks=proof.rows,
    )


def _write_context(ctx: StepContext, proof: CheckRun, base: str) -> None:
    tools = ctx.tools(REVIEWER_SPEC.judge, REVIEWER_SPEC.stage)
    brought = get_adapter(ctx.config.agent_for(REVIEWER_SPEC.judge).kind).brings
    text = reviewer_context(ctx.change, tools=tools, brought=brought, checks=proof.rows, base=base, tree=proof.tree)
    with ctx.change.writing(ctx.run.token):
        files.write(ctx.change.folder / JUDGE, text.encode())


def _prompt(ctx: StepContext, proof: CheckRun, base: str, round_: int) -> str:
    checks = [
        {
            "name": result.name,
            "required": result.required,
            "status": str(result.status),
            "command": result.command,
            "failed_tests": list(result.failed_tests),
            "known": bool(comparison.known) and not comparison.new,
        }
        for result, comparison in proof.results
    ]
    return ctx.prompt(
        REVIEW_STEP,
        REVIEWER_SPEC.judge,
        REVIEWER_SPEC.stage,
        round=round_,
        documents=[ctx.path(name) for name in ctx.change.hashes()],
        checks=checks,
        base=base[:12],
        tree=proof.tree[:12],
        has_diff=diff_fits(ctx.change, base, proof.tree),
    )


def _merge_judgements(
    ctx: StepContext, judge: Sequence[dict[str, str]], own: Sequence[dict[str, str]]
) -> list[dict[str, str]]:
    """agentd alone judges its facts; the judge's judgement counts for everything else."""
    facts = {one.id for one in engine_findings.recorded_engine_findings(ctx) if engine_findings.is_fact(one)}
    merged = {row["id"]: row for row in own}
    merged |= {row["id"]: row for row in judge if row["id"] not in facts}
    return list(merged.values())


def _overruled(
    verdict: str, proof: CheckRun, found: Sequence[Finding], previous: Sequence[PreviousFinding]
) -> str | None:
    """Return why an approval does not count."""
    if verdict != ReviewVerdict.APPROVED:
        return None
    if proof.blocking:
        return overruled_because(proof.blocking)
    high = [one.id for one in found if one.severity is Severity.HIGH and one.state.is_open]
    high += [one.id for one in previous if one.severity is Severity.HIGH and one.state.is_open]
    return f"Findings of high severity are open ({', '.join(high)}), so the verdict is NEEDS_CHANGES." if high else None

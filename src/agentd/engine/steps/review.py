"""The reviewer judges the code: fresh, read-only, with the diff and what the checks said. agentd has the last word."""

import json
from collections.abc import Sequence
from typing import Any

from agentd.agents import get_adapter
from agentd.documents import Finding, PreviousFinding, ReviewRecord
from agentd.domain import ReviewVerdict, Severity, clock
from agentd.engine.calls.call_request import CallResult
from agentd.engine.context.context_files import reviewer_context
from agentd.engine.context.review_material import diff_fits
from agentd.engine.steps import code_trees, engine_findings, judge_call, verdict_record
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.judge_spec import REVIEWER_SPEC
from agentd.engine.steps.step_context import JUDGE, StepContext
from agentd.engine.tools.judge_tools import RUN_FILE, overruled_because
from agentd.storage import files

STEP = REVIEWER_SPEC.kind


def run_review_step(desk: StepContext, proof: CheckRun) -> ReviewRecord:
    base = desk.change.read().base.tree
    assert base
    records = desk.change.records(STEP)
    round_ = len(records) + 1
    code_trees.keep_tree(desk.change, f"review-{round_}", proof.tree)
    found = engine_findings.find_problems(desk, proof, base)
    own, words = engine_findings.split_by_round(
        desk, found, judge_call.next_finding_number(records, REVIEWER_SPEC.prefix)
    )
    last = judge_call.next_finding_number(records, REVIEWER_SPEC.prefix) + len(own) - 1
    known = {
        "base": base,
        "tree": proof.tree,
        "failed_checks": proof.blocking,
        "last_id": last,
        "own": [str(one.severity) for one in own],
        "settled": {word["id"]: word["state"] for word in words},
    }
    files.write(desk.run.folder / RUN_FILE, json.dumps(known).encode())
    _write_context(desk, proof, base)
    told, done = judge_call.ask_judge(desk, REVIEWER_SPEC, round_, _prompt(desk, proof, base, round_))
    record = _record(desk, told, done, proof, round_, own, words)
    verdict_record.save_record(desk, record)
    verdict_record.finish_record(desk, record, done.attempt, done.duration_ms)
    return record


def _write_context(desk: StepContext, proof: CheckRun, base: str) -> None:
    tools = desk.tools(REVIEWER_SPEC.judge, REVIEWER_SPEC.stage)
    brought = get_adapter(desk.config.agent_for(REVIEWER_SPEC.judge).kind).brings
    text = reviewer_context(desk.change, tools=tools, brought=brought, checks=proof.rows, base=base, tree=proof.tree)
    with desk.change.writing(desk.run.token):
        files.write(desk.change.folder / JUDGE, text.encode())


def _prompt(desk: StepContext, proof: CheckRun, base: str, round_: int) -> str:
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
    return desk.prompt(
        STEP,
        REVIEWER_SPEC.judge,
        REVIEWER_SPEC.stage,
        round=round_,
        documents=[desk.path(name) for name in desk.change.hashes()],
        checks=checks,
        base=base[:12],
        tree=proof.tree[:12],
        has_diff=diff_fits(desk.change, base, proof.tree),
    )


def _record(
    desk: StepContext,
    told: dict[str, Any],
    done: CallResult,
    proof: CheckRun,
    round_: int,
    own: Sequence[Finding],
    words: Sequence[dict[str, str]],
) -> ReviewRecord:
    state = desk.change.read()
    waiting = state.findings  # the guard's, from around the calls of this round
    previous = judge_call.previous_rows(desk.change.records(STEP), _said(desk, told["previous"], words))
    overruled = told.get("overruled") or _overruled(told["verdict"], proof, (*waiting, *own), previous)
    return ReviewRecord(
        change_id=desk.change.id,
        kind=STEP,
        round=round_,
        verdict=str(ReviewVerdict.NEEDS_CHANGES) if overruled else told["verdict"],
        reported=told["reported"],
        overruled=overruled,
        summary=told["summary"],
        by=f"agent:{desk.config.agent_for(REVIEWER_SPEC.judge).name}",
        model=judge_call.judge_identity(desk, REVIEWER_SPEC),
        session=done.session,
        made_by=f"agent:{desk.config.agent_for(REVIEWER_SPEC.maker).name}",
        at=clock.now(),
        judged={"tree": proof.tree, "base": str(state.base.tree)},
        findings=(*waiting, *own, *judge_call.report_findings(desk, REVIEWER_SPEC, told)),
        previous=previous,
        checks=proof.rows,
    )


def _said(desk: StepContext, judge: Sequence[dict[str, str]], own: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """agentd's word on its own findings, and the judge's on the others, and on what can be seen in two ways."""
    facts = {one.id for one in engine_findings.recorded_engine_findings(desk) if engine_findings.is_fact(one)}
    said = {word["id"]: word for word in own}
    said |= {word["id"]: word for word in judge if word["id"] not in facts}
    return list(said.values())


def _overruled(
    verdict: str, proof: CheckRun, found: Sequence[Finding], previous: Sequence[PreviousFinding]
) -> str | None:
    """No judge approves over what agentd knows."""
    if verdict != ReviewVerdict.APPROVED:
        return None
    if proof.blocking:
        return overruled_because(proof.blocking)
    high = [one.id for one in found if one.severity is Severity.HIGH and one.state.is_open]
    high += [one.id for one in previous if one.severity is Severity.HIGH and one.state.is_open]
    return f"Findings of high severity are open ({', '.join(high)}), so the verdict is NEEDS_CHANGES." if high else None

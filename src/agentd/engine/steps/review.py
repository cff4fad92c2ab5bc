"""The reviewer judges the code: fresh, read-only, with the diff and what the checks said. agentd has the last word."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agentd.agents import get_adapter
from agentd.change import ChangeState
from agentd.documents import Finding, PreviousFinding, ReviewRecord, current_findings
from agentd.domain import CheckStatus, ReviewVerdict, Role, Severity, clock
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest, CallResult
from agentd.engine.context.context_files import reviewer_context
from agentd.engine.context.review_material import diff_fits
from agentd.engine.steps import code_trees, engine_findings, judge_call, plan_facts, verdict_record
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.implement import allowed_commands, check_commands, files_named_by
from agentd.engine.steps.judge_spec import REVIEWER_SPEC
from agentd.engine.steps.step_context import JUDGE, StepContext
from agentd.engine.tools.judge_tools import RUN_FILE, overruled_because
from agentd.engine.tools.question_tools import ANSWERS
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files

RESOLVE_STEP = REVIEWER_SPEC.answer
_TAIL = 3000  # characters of a failed check's output


def findings_for_implementer(desk: StepContext) -> list[Finding]:
    return [one for one in current_findings(desk.change.records(REVIEWER_SPEC.kind)) if one.state.is_open]


def run_resolve_step(
    desk: StepContext, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """`record` is the last review: the answers are kept in it. `also` is written as one with the step's end."""
    left, before = findings_for_implementer(desk), record.judged["tree"]  # what a call that was cut off did counts
    given = desk.run.folder / ANSWERS
    work = CallRequest(
        step=RESOLVE_STEP,
        round=record.round + 1,
        role=Role.IMPLEMENTER,
        stage=Stage.IMPLEMENT,
        prompt=desk.prompt(
            RESOLVE_STEP,
            Role.IMPLEMENTER,
            Stage.IMPLEMENT,
            findings=judge_call.finding_rows(desk, REVIEWER_SPEC, left),
            commands=check_commands(desk),
            checks=_failed(record),
            round=record.round + 1,
        ),
        effect=lambda: (
            given.is_file() or bool(code_trees.changed_paths(desk.change, before, code_trees.current_tree(desk.change)))
        ),
        reminder=desk.reminder(
            Role.IMPLEMENTER, Stage.IMPLEMENT, "No finding is answered yet, and nothing was edited.", "answer_finding"
        ),
        complexity=plan_facts.plan_complexity(desk.change),
        commands=allowed_commands(desk),
        may_edit=files_named_by(code_trees.read_change_tasks(desk.change)),
    )
    done = retries.perform_call(desk.run, work)
    told = json.loads(given.read_bytes()) if given.is_file() else {}
    judge_call.warn_unanswered(desk, work, done.attempt, left, told)
    name = verdict_record.save_record(
        desk, replace(record, answers=judge_call.answers_given(desk, REVIEWER_SPEC, told))
    )
    outputs = {
        "tree": code_trees.current_tree(desk.change),
        name: files.hash_bytes(files.read(desk.change.folder / name)),
    }
    retries.finish_step(desk.run, work, done, outputs, judge_call.summarize_answers(told), also)


def _failed(record: ReviewRecord) -> list[dict[str, Any]]:
    rows = record.checks or ()
    return [
        {"name": str(row["name"]), "command": str(row["command"]), "tail": str(row.get("tail") or "")[-_TAIL:]}
        for row in rows
        if row.get("status") != CheckStatus.PASSED
    ]


REVIEW_STEP = REVIEWER_SPEC.kind


def run_review_step(desk: StepContext, proof: CheckRun) -> ReviewRecord:
    base = desk.change.read().base.tree
    assert base
    records = desk.change.records(REVIEW_STEP)
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
        REVIEW_STEP,
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
    previous = judge_call.previous_rows(desk.change.records(REVIEW_STEP), _said(desk, told["previous"], words))
    overruled = told.get("overruled") or _overruled(told["verdict"], proof, (*waiting, *own), previous)
    return ReviewRecord(
        change_id=desk.change.id,
        kind=REVIEW_STEP,
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

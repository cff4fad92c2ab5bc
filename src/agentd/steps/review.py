"""The reviewer judges the code: fresh, read-only, with the diff and what the checks said. agentd has the last word."""

import json
from collections.abc import Sequence
from typing import Any

from agentd.agents.registry import get_adapter
from agentd.calls.work import Done
from agentd.context import diff_fits, reviewer_context
from agentd.documents.records import Finding, PreviousFinding, ReviewRecord
from agentd.domain import clock
from agentd.domain.terms import ReviewVerdict, Severity
from agentd.steps import code, judging, own_findings, recording
from agentd.steps.bench import CODE
from agentd.steps.desk import JUDGE, Desk
from agentd.steps.proving import Proof
from agentd.storage import files
from agentd.tools.judging import RUN, overruled_by

STEP = CODE.kind


def review(desk: Desk, proof: Proof) -> ReviewRecord:
    base = desk.change.read().base.tree
    assert base
    records = desk.change.records(STEP)
    round_ = len(records) + 1
    code.keep(desk.change, f"review-{round_}", proof.tree)
    found = own_findings.look(desk, proof, base)
    own, words = own_findings.apart(desk, found, judging.next_number(records, CODE.prefix))
    last = judging.next_number(records, CODE.prefix) + len(own) - 1
    known = {
        "base": base,
        "tree": proof.tree,
        "failed_checks": proof.blocking,
        "last_id": last,
        "own": [str(one.severity) for one in own],
        "settled": {word["id"]: word["state"] for word in words},
    }
    files.write(desk.run.folder / RUN, json.dumps(known).encode())
    _write_context(desk, proof, base)
    told, done = judging.ask(desk, CODE, round_, _prompt(desk, proof, base, round_))
    record = _record(desk, told, done, proof, round_, own, words)
    recording.keep(desk, record)
    recording.finish(desk, record, done.attempt, done.duration_ms)
    return record


def _write_context(desk: Desk, proof: Proof, base: str) -> None:
    tools = desk.tools(CODE.judge, CODE.stage)
    brought = get_adapter(desk.config.agent_for(CODE.judge).kind).brings
    text = reviewer_context(desk.change, tools=tools, brought=brought, checks=proof.rows, base=base, tree=proof.tree)
    with desk.change.writing(desk.run.token):
        files.write(desk.change.folder / JUDGE, text.encode())


def _prompt(desk: Desk, proof: Proof, base: str, round_: int) -> str:
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
        CODE.judge,
        CODE.stage,
        round=round_,
        documents=[desk.path(name) for name in desk.change.hashes()],
        checks=checks,
        base=base[:12],
        tree=proof.tree[:12],
        has_diff=diff_fits(desk.change, base, proof.tree),
    )


def _record(
    desk: Desk,
    told: dict[str, Any],
    done: Done,
    proof: Proof,
    round_: int,
    own: Sequence[Finding],
    words: Sequence[dict[str, str]],
) -> ReviewRecord:
    state = desk.change.read()
    waiting = state.findings  # the guard's, from around the calls of this round
    previous = judging.previous(desk.change.records(STEP), _said(desk, told["previous"], words))
    overruled = told.get("overruled") or _overruled(told["verdict"], proof, (*waiting, *own), previous)
    return ReviewRecord(
        change_id=desk.change.id,
        kind=STEP,
        round=round_,
        verdict=str(ReviewVerdict.NEEDS_CHANGES) if overruled else told["verdict"],
        reported=told["reported"],
        overruled=overruled,
        summary=told["summary"],
        by=f"agent:{desk.config.agent_for(CODE.judge).name}",
        model=judging.of_model(desk, CODE),
        session=done.session,
        made_by=f"agent:{desk.config.agent_for(CODE.maker).name}",
        at=clock.now(),
        judged={"tree": proof.tree, "base": str(state.base.tree)},
        findings=(*waiting, *own, *judging.found(desk, CODE, told)),
        previous=previous,
        checks=proof.rows,
    )


def _said(desk: Desk, judge: Sequence[dict[str, str]], own: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """agentd's word on its own findings, and the judge's on the others, and on what can be seen in two ways."""
    facts = {one.id for one in own_findings.of_record(desk) if own_findings.is_fact(one)}
    said = {word["id"]: word for word in own}
    said |= {word["id"]: word for word in judge if word["id"] not in facts}
    return list(said.values())


def _overruled(verdict: str, proof: Proof, found: Sequence[Finding], previous: Sequence[PreviousFinding]) -> str | None:
    """No judge approves over what agentd knows."""
    if verdict != ReviewVerdict.APPROVED:
        return None
    if proof.blocking:
        return overruled_by(proof.blocking)
    high = [one.id for one in found if one.severity is Severity.HIGH and one.state.is_open]
    high += [one.id for one in previous if one.severity is Severity.HIGH and one.state.is_open]
    return f"Findings of high severity are open ({', '.join(high)}), so the verdict is NEEDS_CHANGES." if high else None

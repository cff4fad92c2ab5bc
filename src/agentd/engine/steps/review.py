"""The reviewer judges the code in a fresh, read-only session.

Code is judged as git trees: the base tree under `refs/agentd/<id>/` and the tree the checks ran on. All diffs are
between trees, so commits made meanwhile do not matter.
"""

import json
from collections.abc import Sequence

from agentd.documents import Finding, PreviousFinding, ReviewRecord
from agentd.domain import Role, Severity
from agentd.engine.context.context_files import diff_fits
from agentd.engine.steps import code_trees, engine_findings, judge_call
from agentd.engine.steps.check_run import CheckRun
from agentd.engine.steps.step_context import REVIEWER_SPEC, StepContext
from agentd.engine.tools.judge_tools import RUN_FILE, overruled_because
from agentd.engine.tools.tool import Stage
from agentd.storage import files


def run_review_step(ctx: StepContext, proof: CheckRun) -> ReviewRecord:
    base, tree = ctx.change.read().base.tree, proof.tree
    assert base
    records = ctx.change.records(REVIEWER_SPEC.kind)
    round_ = len(records) + 1
    code_trees.keep_tree(ctx.change, f"review-{round_}", tree)
    first = judge_call.next_finding_number(records, REVIEWER_SPEC.prefix)
    found, judgements = engine_findings.split_by_round(ctx, engine_findings.find_problems(ctx, proof, base), first)
    known = {
        "base": base,
        "tree": tree,
        "failed_checks": proof.blocking,
        "last_id": first + len(found) - 1,
        "own": [str(one.severity) for one in found],
        "settled": {row["id"]: row["state"] for row in judgements},
    }
    files.write(ctx.run.folder / RUN_FILE, json.dumps(known).encode())
    ctx.write_context(Role.REVIEWER, Stage.REVIEW, checks=proof.rows, base=base, tree=tree)

    def merge(judge: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        """agentd alone judges its facts; the judge's judgement counts for everything else."""
        facts = {one.id for one in engine_findings.recorded_engine_findings(ctx) if engine_findings.is_fact(one)}
        merged = {row["id"]: row for row in judgements}
        return list((merged | {row["id"]: row for row in judge if row["id"] not in facts}).values())

    def overrule(pending: Sequence[Finding], previous: Sequence[PreviousFinding]) -> str | None:
        if proof.blocking:
            return overruled_because(proof.blocking)
        findings: list[Finding | PreviousFinding] = [*pending, *previous]
        high = [one.id for one in findings if one.severity is Severity.HIGH and one.state.is_open]
        message = f"Findings of high severity are open ({', '.join(high)}), so the verdict is NEEDS_CHANGES."
        return message if high else None

    return judge_call.run_judge(
        ctx,
        REVIEWER_SPEC,
        round_,
        _prompt(ctx, proof, base, round_),
        judged={"tree": tree, "base": base},
        overrule=overrule,
        found=found,
        merge=merge,
        checks=proof.rows,
    )


def _prompt(ctx: StepContext, proof: CheckRun, base: str, round_: int) -> str:
    fields = ("name", "required", "status", "command", "failed_tests")
    checks = [
        {**{name: row[name] for name in fields}, "known": bool(comparison.known) and not comparison.new}
        for row, (_, comparison) in zip(proof.rows, proof.results, strict=True)
    ]
    return ctx.prompt(
        REVIEWER_SPEC.kind,
        Role.REVIEWER,
        Stage.REVIEW,
        round=round_,
        documents=[ctx.path(name) for name in ctx.change.hashes()],
        checks=checks,
        base=base[:12],
        tree=proof.tree[:12],
        has_diff=diff_fits(ctx.change, base, proof.tree),
    )

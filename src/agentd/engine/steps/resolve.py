"""The implementer answers the findings of a review: each with an edit or a reason, in a fresh session."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentd.change import ChangeState
from agentd.documents import Finding, ReviewRecord, current_findings
from agentd.domain import CheckStatus, Role
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.steps import code_trees, finding_answers, plan_facts, verdict_record
from agentd.engine.steps.implement import allowed_commands, check_commands, files_named_by
from agentd.engine.steps.judge_spec import REVIEWER_SPEC
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.answer_tool import ANSWERS
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files

STEP = REVIEWER_SPEC.answer
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
        step=STEP,
        round=record.round + 1,
        role=Role.IMPLEMENTER,
        stage=Stage.IMPLEMENT,
        prompt=desk.prompt(
            STEP,
            Role.IMPLEMENTER,
            Stage.IMPLEMENT,
            findings=finding_answers.finding_rows(desk, REVIEWER_SPEC, left),
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
    finding_answers.warn_unanswered(desk, work, done.attempt, left, told)
    name = verdict_record.save_record(
        desk, replace(record, answers=finding_answers.answers_given(desk, REVIEWER_SPEC, told))
    )
    outputs = {
        "tree": code_trees.current_tree(desk.change),
        name: files.hash_bytes(files.read(desk.change.folder / name)),
    }
    retries.finish_step(desk.run, work, done, outputs, finding_answers.summarize_answers(told), also)


def _failed(record: ReviewRecord) -> list[dict[str, Any]]:
    rows = record.checks or ()
    return [
        {"name": str(row["name"]), "command": str(row["command"]), "tail": str(row.get("tail") or "")[-_TAIL:]}
        for row in rows
        if row.get("status") != CheckStatus.PASSED
    ]

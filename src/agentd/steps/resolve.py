"""The implementer answers the findings of a review: each with an edit or a reason, in a fresh session."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentd.calls import attempts
from agentd.calls.work import Work
from agentd.change.state import ChangeState
from agentd.documents.finding_status import current_findings
from agentd.documents.records import Finding, ReviewRecord
from agentd.domain.terms import CheckStatus, Role
from agentd.steps import answers, code, facts, recording
from agentd.steps.bench import CODE
from agentd.steps.desk import Desk
from agentd.steps.implement import checks, commands, named_by
from agentd.storage import files
from agentd.tools.answering import ANSWERS
from agentd.tools.table import Stage

STEP = CODE.answer
_TAIL = 3000  # characters of a failed check's output


def open_findings(desk: Desk) -> list[Finding]:
    return [one for one in current_findings(desk.change.records(CODE.kind)) if one.state.is_open]


def resolve(desk: Desk, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old) -> None:
    """`record` is the last review: the answers are kept in it. `also` is written as one with the step's end."""
    left, before = open_findings(desk), record.judged["tree"]  # what a call that was cut off did counts
    given = desk.run.folder / ANSWERS
    work = Work(
        step=STEP,
        round=record.round + 1,
        role=Role.IMPLEMENTER,
        stage=Stage.IMPLEMENT,
        prompt=desk.prompt(
            STEP,
            Role.IMPLEMENTER,
            Stage.IMPLEMENT,
            findings=answers.rows(desk, CODE, left),
            commands=checks(desk),
            checks=_failed(record),
            round=record.round + 1,
        ),
        effect=lambda: given.is_file() or bool(code.changed(desk.change, before, code.now(desk.change))),
        reminder=desk.reminder(
            Role.IMPLEMENTER, Stage.IMPLEMENT, "No finding is answered yet, and nothing was edited.", "answer_finding"
        ),
        complexity=facts.complexity(desk.change),
        commands=commands(desk),
        may_edit=named_by(code.tasks_of(desk.change)),
    )
    done = attempts.perform(desk.run, work)
    told = json.loads(given.read_bytes()) if given.is_file() else {}
    answers.warn_of_silence(desk, work, done.attempt, left, told)
    name = recording.keep(desk, replace(record, answers=answers.given(desk, CODE, told)))
    outputs = {"tree": code.now(desk.change), name: files.hash_bytes(files.read(desk.change.folder / name))}
    attempts.finish(desk.run, work, done, outputs, answers.said(told), also)


def _failed(record: ReviewRecord) -> list[dict[str, Any]]:
    rows = record.checks or ()
    return [
        {"name": str(row["name"]), "command": str(row["command"]), "tail": str(row.get("tail") or "")[-_TAIL:]}
        for row in rows
        if row.get("status") != CheckStatus.PASSED
    ]

"""The planner answers the findings of a challenge: in its own session, each with an edit or a reason."""

import json
from collections.abc import Callable
from dataclasses import replace

from agentd.calls import attempts
from agentd.change.state import ChangeState
from agentd.documents.finding_status import current_findings
from agentd.documents.records import Finding, ReviewRecord
from agentd.domain.terms import Role
from agentd.steps import answers, recording
from agentd.steps.bench import PLAN
from agentd.steps.desk import Desk
from agentd.storage import files
from agentd.tools.answering import ANSWERS
from agentd.tools.table import Stage

STEP = "reproposal"


def open_findings(desk: Desk) -> list[Finding]:
    """What the planner is to answer; agentd's own wait for the record of the next challenge."""
    return [one for one in current_findings(desk.change.records(PLAN.kind)) if one.state.is_open]


def repropose(desk: Desk, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old) -> None:
    """`record` is the last challenge: the answers are kept in it. `also` is written as one with the step's end."""
    resume = desk.planner_session()
    if resume is None:
        desk.write_context(Role.PLANNER, Stage.PLAN)
    left = open_findings(desk)
    before = desk.change.hashes()
    given = desk.run.folder / ANSWERS
    work = desk.planner_work(
        STEP,
        desk.prompt(STEP, Role.PLANNER, Stage.PLAN, findings=answers.rows(desk, PLAN, left), fresh=resume is None),
        effect=lambda: given.is_file() or desk.change.hashes() != before,
        reminder=desk.reminder(
            Role.PLANNER, Stage.PLAN, "No finding is answered yet, and nothing was edited.", "answer_finding"
        ),
        resume=resume,
        on_session=None if resume else desk.keep_session,
    )
    done = attempts.perform(desk.run, work)
    desk.mend()
    told = json.loads(given.read_bytes()) if given.is_file() else {}
    answers.warn_of_silence(desk, work, done.attempt, left, told)
    name = recording.keep(desk, replace(record, answers=answers.given(desk, PLAN, told)))
    after = desk.change.hashes()
    outputs = {one: digest for one, digest in after.items() if before.get(one) != digest}
    outputs[name] = files.hash_bytes(files.read(desk.change.folder / name))
    attempts.finish(desk.run, work, done, outputs, answers.said(told), also)

"""The planner answers the findings of a challenge: in its own session, each with an edit or a reason."""

import json
from collections.abc import Callable
from dataclasses import replace

from agentd.change import ChangeState
from agentd.documents import Finding, ReviewRecord, current_findings
from agentd.domain import Role
from agentd.engine.calls import retries
from agentd.engine.steps import finding_answers, verdict_record
from agentd.engine.steps.judge_spec import CHALLENGER_SPEC
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.answer_tool import ANSWERS
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files

STEP = "reproposal"


def findings_for_planner(desk: StepContext) -> list[Finding]:
    """What the planner is to answer; agentd's own wait for the record of the next challenge."""
    return [one for one in current_findings(desk.change.records(CHALLENGER_SPEC.kind)) if one.state.is_open]


def run_reproposal_step(
    desk: StepContext, record: ReviewRecord, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """`record` is the last challenge: the answers are kept in it. `also` is written as one with the step's end."""
    resume = desk.planner_session()
    if resume is None:
        desk.write_context(Role.PLANNER, Stage.PLAN)
    left = findings_for_planner(desk)
    before = desk.change.hashes()
    given = desk.run.folder / ANSWERS
    work = desk.planner_work(
        STEP,
        desk.prompt(
            STEP,
            Role.PLANNER,
            Stage.PLAN,
            findings=finding_answers.finding_rows(desk, CHALLENGER_SPEC, left),
            fresh=resume is None,
        ),
        effect=lambda: given.is_file() or desk.change.hashes() != before,
        reminder=desk.reminder(
            Role.PLANNER, Stage.PLAN, "No finding is answered yet, and nothing was edited.", "answer_finding"
        ),
        resume=resume,
        on_session=None if resume else desk.keep_session,
    )
    done = retries.perform_call(desk.run, work)
    desk.mend()
    told = json.loads(given.read_bytes()) if given.is_file() else {}
    finding_answers.warn_unanswered(desk, work, done.attempt, left, told)
    name = verdict_record.save_record(
        desk, replace(record, answers=finding_answers.answers_given(desk, CHALLENGER_SPEC, told))
    )
    after = desk.change.hashes()
    outputs = {one: digest for one, digest in after.items() if before.get(one) != digest}
    outputs[name] = files.hash_bytes(files.read(desk.change.folder / name))
    retries.finish_step(desk.run, work, done, outputs, finding_answers.summarize_answers(told), also)

"""The planner asks, once and read-only, what it must know; what a person answers becomes clarifications.md."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agentd.change import Change, StepRecord
from agentd.documents import CLARIFICATIONS_FILE, Clarification, Clarifications, render_clarifications
from agentd.domain import Role, StepStatus, clock
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.steps.step_context import StepContext
from agentd.engine.tools.question_tools import QUESTIONS
from agentd.engine.tools.tool_table import Stage
from agentd.storage import files

CLARIFY_STEP = "clarify"


@dataclass(frozen=True)
class OpenQuestions:
    """What the planner wants to know (topic, question, why, options, recommended), and the answers so far."""

    questions: Sequence[Mapping[str, Any]]
    answers: tuple[Clarification, ...] = ()


def ask_planner(ctx: StepContext) -> OpenQuestions:
    """Kept until all is answered: a run that is cut off meanwhile neither pays nor asks again."""
    ctx.write_context(Role.PLANNER, Stage.CLARIFY)
    report = ctx.run.folder / QUESTIONS
    work = CallRequest(
        step=CLARIFY_STEP,
        role=Role.PLANNER,
        stage=Stage.CLARIFY,
        prompt=ctx.prompt(CLARIFY_STEP, Role.PLANNER, Stage.CLARIFY),
        effect=report.is_file,
        reminder=ctx.reminder(Role.PLANNER, Stage.CLARIFY, "No questions were sent, not even none.", "ask_questions"),
    )
    done = retries.perform_call(ctx.run, work)
    asked = OpenQuestions(json.loads(report.read_bytes()))
    if asked.questions:
        save_questions(ctx.change, asked)
    count = len(asked.questions)
    retries.finish_step(ctx.run, work, done, {}, f"{count or 'no'} question{'' if count == 1 else 's'}")
    return asked


def saved_questions(change: Change) -> OpenQuestions | None:
    try:
        data = json.loads(change.questions_file.read_bytes())
        if data["created_at"] != change.read().created_at:
            return None  # an earlier change had this id
        return OpenQuestions(data["questions"], tuple(Clarification(**one) for one in data["answers"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None  # then it is asked anew


def save_questions(change: Change, asked: OpenQuestions) -> None:
    answers = [{name: text for name, text in asdict(one).items() if name != "span"} for one in asked.answers]
    data = {"created_at": change.read().created_at, "questions": list(asked.questions), "answers": answers}
    files.write(change.questions_file, json.dumps(data, ensure_ascii=False).encode())


def close_questions(ctx: StepContext, answered: Sequence[Clarification]) -> None:
    """No answers leave no file."""
    if answered:
        text = render_clarifications(Clarifications(ctx.change.id, clock.now()[:10], tuple(answered)))
        with ctx.change.writing(ctx.run.token):
            files.write(ctx.change.folder / CLARIFICATIONS_FILE, text.encode())
    is_there = (ctx.change.folder / CLARIFICATIONS_FILE).is_file()
    outputs = ctx.hashes(CLARIFICATIONS_FILE) if is_there else {}
    rows = [step for step in ctx.change.read().steps if step.name == CLARIFY_STEP]
    asked = any(step.status is StepStatus.DONE for step in rows) or saved_questions(ctx.change) is not None
    status = StepStatus.DONE if asked else StepStatus.SKIPPED
    row = StepRecord(CLARIFY_STEP, 1, 1, max((step.attempt for step in rows), default=1), status, outputs, clock.now())
    ctx.run.update(lambda old: old.with_step(row))
    ctx.change.questions_file.unlink(missing_ok=True)

"""The planner answers the findings of a challenge: in its own session, each with an edit or a reason."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agentd import events, files
from agentd.calls import attempts
from agentd.calls.work import Work
from agentd.change.state import State
from agentd.documents.records import Answer, Finding, Record
from agentd.documents.standing import standing
from agentd.steps import recording
from agentd.steps.desk import Desk
from agentd.terms import FindingState, Role
from agentd.tools.answering import ANSWERS
from agentd.tools.table import Stage

STEP = "reproposal"


def open_findings(desk: Desk) -> list[Finding]:
    """What the planner is to answer; agentd's own wait for the record of the next challenge."""
    return [one for one in standing(desk.change.records()) if one.state.is_open]


def repropose(desk: Desk, record: Record, also: Callable[[State], State] = lambda old: old) -> None:
    """`record` is the last challenge: the answers are kept in it. `also` is written as one with the step's end."""
    resume = desk.planner_session()
    if resume is None:
        desk.write_context(Role.PLANNER, Stage.PLAN)
    left = open_findings(desk)
    before = desk.change.hashes()
    answers = desk.run.folder / ANSWERS
    work = desk.planner_work(
        STEP,
        desk.prompt(STEP, Role.PLANNER, Stage.PLAN, findings=_rows(desk, left), fresh=resume is None),
        effect=lambda: answers.is_file() or desk.change.hashes() != before,
        reminder=desk.reminder(
            Role.PLANNER, Stage.PLAN, "No finding is answered yet, and nothing was edited.", "answer_finding"
        ),
        resume=resume,
        on_session=None if resume else desk.keep_session,
    )
    done = attempts.perform(desk.run, work)
    desk.mend()
    given = json.loads(answers.read_bytes()) if answers.is_file() else {}
    _warn_of_unanswered(desk, work, done.attempt, left, given)
    name = recording.keep(desk, replace(record, answers=_answers(desk, given)))
    after = desk.change.hashes()
    outputs = {one: digest for one, digest in after.items() if before.get(one) != digest}
    outputs[name] = files.digest(files.read(desk.change.folder / name))
    attempts.finish(desk.run, work, done, outputs, _said(given), also)


def _rows(desk: Desk, left: list[Finding]) -> list[dict[str, Any]]:
    """As the prompt has them, each with what the judge last said about it."""
    names = ("id", "severity", "title", "what", "suggestion", "requirement", "where")
    notes = {word.id: word.note for record in desk.change.records() for word in record.previous}
    return [{**{name: str(getattr(one, name) or "") for name in names}, "note": notes.get(one.id, "")} for one in left]


def _answers(desk: Desk, given: Mapping[str, Any]) -> tuple[Answer, ...]:
    by = f"agent:{desk.config.agent_for(Role.PLANNER).name}"
    return tuple(
        Answer(one["id"], FindingState(one["answer"]), one["note"], tuple(one["files"]), by, one["at"])
        for one in given.values()
    )


def _warn_of_unanswered(desk: Desk, work: Work, attempt: int, left: list[Finding], given: Mapping[str, Any]) -> None:
    silent = [one.id for one in left if one.id not in given]
    if silent:
        words = f"the planner did not answer {', '.join(silent)}"
        desk.run.emit(events.Warned(**work.names(attempt), code="unanswered", message=words))


def _said(given: Mapping[str, Any]) -> str:
    """2 fixed, 1 disputed."""
    words = [one["answer"] for one in given.values()]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))

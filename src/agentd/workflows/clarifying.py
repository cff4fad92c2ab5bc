"""What a person should be asked before a change is planned, and how it is answered."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentd.change.state import ChangeState
from agentd.documents import clarifications
from agentd.documents.clarifications import Clarification as Answered
from agentd.documents.text import InvalidDocument, decode_text
from agentd.domain.errors import AnswerRequired, UsageError
from agentd.domain.events import NoticeIssued
from agentd.domain.terms import Phase, StepStatus
from agentd.project.config import Config
from agentd.steps import clarify
from agentd.steps.desk import Desk
from agentd.storage import files
from agentd.workflows.asking import Option, Question, decide
from agentd.workflows.wishes import Wishes

OWN = "Something else"


def clarify_first(desk: Desk, wishes: Wishes) -> None:
    """Once, before anything is written. Cut off, it goes on with the question that was open."""
    state = desk.change.read()
    if not is_due(state, is_open=clarify.kept(desk.change) is not None):
        if wishes.clarifications:
            words = f"{desk.change.id} is past its questions, so the answers of the file are ignored"
            desk.run.emit(NoticeIssued(code="clarifications", message=words))
        return
    refuse_twice(desk.change.id, wishes, desk.change.folder)
    if wishes.clarifications:
        clarify.close(desk, wishes.clarifications)
    elif is_clear(wishes, desk.config, desk.change.folder):
        clarify.close(desk, _answered_so_far(desk))
    elif wishes.person or wishes.yes:
        clarify.close(desk, _answers(desk, wishes))
    else:
        raise nobody_to_ask(desk.change.id)


def is_clear(wishes: Wishes, config: Config, folder: Path) -> bool:
    """The planner need not be asked for questions."""
    is_skipped = wishes.skip_clarify or not config.workflow.human_in_loop
    return is_skipped or bool(wishes.clarifications) or (folder / clarifications.CLARIFICATIONS_FILE).is_file()


def refuse_twice(change_id: str, wishes: Wishes, folder: Path) -> None:
    """A person's words are not written over."""
    path = folder / clarifications.CLARIFICATIONS_FILE
    if not wishes.clarifications or not path.is_file():
        return
    try:
        is_same = (
            clarifications.parse_clarifications(decode_text(files.read(path), path.name)).questions
            == wishes.clarifications
        )
    except InvalidDocument:
        is_same = False
    if not is_same:  # else the same command was cut off
        words = f"{change_id} has {clarifications.CLARIFICATIONS_FILE} already"
        raise UsageError(words, "leave --clarifications out, or edit that file")


def nobody_to_ask(change_id: str) -> AnswerRequired:
    return AnswerRequired(
        f"nobody is here to answer questions about {change_id} before it is planned",
        "add --skip-clarify, --yes (the planner answers its own) or --clarifications FILE.json (your answers)",
    )


def is_due(state: ChangeState, is_open: bool = False) -> bool:
    """`is_open`: questions were asked, and not all of them are answered."""
    ended = any(step.status in (StepStatus.DONE, StepStatus.SKIPPED) for step in state.steps)
    return state.phase is Phase.DRAFTING and is_only_asked(state) and (is_open or not ended)


def is_only_asked(state: ChangeState) -> bool:
    """Nothing is written yet."""
    return all(step.name == clarify.STEP for step in state.steps)


def _answered_so_far(desk: Desk) -> tuple[Answered, ...]:
    """What a person has said counts, also when the rest is skipped; a file of theirs says it better."""
    asked = clarify.kept(desk.change)
    is_there = (desk.change.folder / clarifications.CLARIFICATIONS_FILE).is_file()
    return asked.answers if asked and not is_there else ()


def _answers(desk: Desk, wishes: Wishes) -> tuple[Answered, ...]:
    asked = clarify.kept(desk.change) or clarify.ask(desk)
    total = len(asked.questions)
    for number in range(len(asked.answers) + 1, total + 1):
        answer = _answered(desk, number, total, asked.questions[number - 1], wishes)
        asked = replace(asked, answers=(*asked.answers, answer))
        clarify.keep(desk.change, asked)
    return asked.answers


def _answered(desk: Desk, number: int, total: int, one: Mapping[str, Any], wishes: Wishes) -> Answered:
    """By the person, or as the planner recommends where all questions are answered so."""
    options = {text: Option(text, text) for text in one["options"]}
    if wishes.person:
        options[OWN] = Option(OWN, OWN, asks="Your answer:")
    why = f"Question {number} of {total}. {one['why']}"
    question = Question(f"clarify-{number}", one["question"], tuple(options.values()), one["recommended"], why=why)
    answer = decide(desk.run, question, wishes.person, wishes.yes)
    assert answer
    rationale = one["why"] if wishes.person else f"{one['why']} (the planner's own recommendation)"
    return Answered(one["topic"], one["question"], answer.reason if answer.id == OWN else answer.id, rationale)

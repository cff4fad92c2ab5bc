"""What a person should be asked before a change is planned, and how it is answered."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentd.change import ChangeState
from agentd.documents import CLARIFICATIONS_FILE, InvalidDocument, decode_text, parse_clarifications
from agentd.documents import Clarification as Answered
from agentd.domain import NoticeIssued, Phase, StepStatus, Unanswered, UsageError
from agentd.engine.steps import clarify
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows.decision_questions import Question, QuestionOption, ask_decision
from agentd.engine.workflows.run_scope import RunOptions
from agentd.project import Config
from agentd.storage import files

OWN = "Something else"


def clarify_first(desk: StepContext, wishes: RunOptions) -> None:
    """Once, before anything is written. Cut off, it goes on with the question that was open."""
    state = desk.change.read()
    if not is_clarification_due(state, is_open=clarify.saved_questions(desk.change) is not None):
        if wishes.clarifications:
            words = f"{desk.change.id} is past its questions, so the answers of the file are ignored"
            desk.run.emit(NoticeIssued(code="clarifications", message=words))
        return
    refuse_second_clarification(desk.change.id, wishes, desk.change.folder)
    if wishes.clarifications:
        clarify.close_questions(desk, wishes.clarifications)
    elif needs_no_clarification(wishes, desk.config, desk.change.folder):
        clarify.close_questions(desk, _answered_so_far(desk))
    elif wishes.person or wishes.yes:
        clarify.close_questions(desk, _answers(desk, wishes))
    else:
        raise nobody_to_ask_error(desk.change.id)


def needs_no_clarification(wishes: RunOptions, config: Config, folder: Path) -> bool:
    """The planner need not be asked for questions."""
    is_skipped = wishes.skip_clarify or not config.workflow.human_in_loop
    return is_skipped or bool(wishes.clarifications) or (folder / CLARIFICATIONS_FILE).is_file()


def refuse_second_clarification(change_id: str, wishes: RunOptions, folder: Path) -> None:
    """A person's words are not written over."""
    path = folder / CLARIFICATIONS_FILE
    if not wishes.clarifications or not path.is_file():
        return
    try:
        is_same = parse_clarifications(decode_text(files.read(path), path.name)).questions == wishes.clarifications
    except InvalidDocument:
        is_same = False
    if not is_same:  # else the same command was cut off
        words = f"{change_id} has {CLARIFICATIONS_FILE} already"
        raise UsageError(words, "leave --clarifications out, or edit that file")


def nobody_to_ask_error(change_id: str) -> Unanswered:
    return Unanswered(
        f"nobody is here to answer questions about {change_id} before it is planned",
        "add --skip-clarify, --yes (the planner answers its own) or --clarifications FILE.json (your answers)",
    )


def is_clarification_due(state: ChangeState, is_open: bool = False) -> bool:
    """`is_open`: questions were asked, and not all of them are answered."""
    ended = any(step.status in (StepStatus.DONE, StepStatus.SKIPPED) for step in state.steps)
    return state.phase is Phase.DRAFTING and is_only_clarified(state) and (is_open or not ended)


def is_only_clarified(state: ChangeState) -> bool:
    """Nothing is written yet."""
    return all(step.name == clarify.CLARIFY_STEP for step in state.steps)


def _answered_so_far(desk: StepContext) -> tuple[Answered, ...]:
    """What a person has said counts, also when the rest is skipped; a file of theirs says it better."""
    asked = clarify.saved_questions(desk.change)
    is_there = (desk.change.folder / CLARIFICATIONS_FILE).is_file()
    return asked.answers if asked and not is_there else ()


def _answers(desk: StepContext, wishes: RunOptions) -> tuple[Answered, ...]:
    asked = clarify.saved_questions(desk.change) or clarify.ask_planner(desk)
    total = len(asked.questions)
    for number in range(len(asked.answers) + 1, total + 1):
        answer = _answered(desk, number, total, asked.questions[number - 1], wishes)
        asked = replace(asked, answers=(*asked.answers, answer))
        clarify.save_questions(desk.change, asked)
    return asked.answers


def _answered(desk: StepContext, number: int, total: int, one: Mapping[str, Any], wishes: RunOptions) -> Answered:
    """By the person, or as the planner recommends where all questions are answered so."""
    options = {text: QuestionOption(text, text) for text in one["options"]}
    if wishes.person:
        options[OWN] = QuestionOption(OWN, OWN, asks="Your answer:")
    why = f"Question {number} of {total}. {one['why']}"
    question = Question(f"clarify-{number}", one["question"], tuple(options.values()), one["recommended"], why=why)
    answer = ask_decision(desk.run, question, wishes.person, wishes.yes)
    assert answer
    rationale = one["why"] if wishes.person else f"{one['why']} (the planner's own recommendation)"
    return Answered(one["topic"], one["question"], answer.reason if answer.id == OWN else answer.id, rationale)

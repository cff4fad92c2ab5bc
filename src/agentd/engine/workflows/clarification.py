"""The planner's questions before a change is planned, and their answers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentd.change import ChangeState
from agentd.documents import CLARIFICATIONS_FILE, InvalidDocument, decode_text, parse_clarifications
from agentd.documents import Clarification as Answered
from agentd.domain import NoticeIssued, Phase, StepStatus, Unanswered, UsageError
from agentd.engine.steps import planner
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows.decision_questions import Question, QuestionOption, ask_decision
from agentd.engine.workflows.run_request import RunOptions
from agentd.project import Config
from agentd.storage import files

OWN = "Something else"


def clarify_first(ctx: StepContext, options: RunOptions) -> None:
    """Ask once, before anything is written; after an interruption, continue with the open question."""
    state = ctx.change.read()
    if not is_clarification_due(state, is_open=planner.saved_questions(ctx.change) is not None):
        if options.clarifications:
            message = f"{ctx.change.id} is past its questions, so the answers in the file are ignored"
            ctx.run.emit(NoticeIssued(code="clarifications", message=message))
        return
    refuse_second_clarification(ctx.change.id, options, ctx.change.folder)
    if options.clarifications:
        planner.close_questions(ctx, options.clarifications)
    elif needs_no_clarification(options, ctx.config, ctx.change.folder):
        planner.close_questions(ctx, _answered_so_far(ctx))
    elif options.person or options.yes:
        planner.close_questions(ctx, _answers(ctx, options))
    else:
        raise nobody_to_ask_error(ctx.change.id)


def needs_no_clarification(options: RunOptions, config: Config, folder: Path) -> bool:
    """Whether the planner need not be asked for questions."""
    is_skipped = options.skip_clarify or not config.workflow.human_in_loop
    return is_skipped or bool(options.clarifications) or (folder / CLARIFICATIONS_FILE).is_file()


def refuse_second_clarification(change_id: str, options: RunOptions, folder: Path) -> None:
    """Refuse to overwrite a person's answers."""
    path = folder / CLARIFICATIONS_FILE
    if not options.clarifications or not path.is_file():
        return
    try:
        is_same = parse_clarifications(decode_text(files.read(path), path.name)).questions == options.clarifications
    except InvalidDocument:
        is_same = False
    if not is_same:  # otherwise the same command was interrupted
        message = f"{change_id} has {CLARIFICATIONS_FILE} already"
        raise UsageError(message, "leave --clarifications out, or edit that file")


def nobody_to_ask_error(change_id: str) -> Unanswered:
    return Unanswered(
        f"nobody is available to answer questions about {change_id} before it is planned",
        "add --skip-clarify, --yes (the planner answers its own) or --clarifications FILE.json (your answers)",
    )


def is_clarification_due(state: ChangeState, is_open: bool = False) -> bool:
    """Whether clarification comes next. `is_open`: some questions are not answered yet."""
    ended = any(step.status in (StepStatus.DONE, StepStatus.SKIPPED) for step in state.steps)
    return state.phase is Phase.DRAFTING and is_only_clarified(state) and (is_open or not ended)


def is_only_clarified(state: ChangeState) -> bool:
    """Whether nothing has been written yet."""
    return all(step.name == planner.CLARIFY_STEP for step in state.steps)


def _answered_so_far(ctx: StepContext) -> tuple[Answered, ...]:
    """Return the answers given before the rest was skipped; an existing file takes precedence."""
    asked = planner.saved_questions(ctx.change)
    is_there = (ctx.change.folder / CLARIFICATIONS_FILE).is_file()
    return asked.answers if asked and not is_there else ()


def _answers(ctx: StepContext, options: RunOptions) -> tuple[Answered, ...]:
    asked = planner.saved_questions(ctx.change) or planner.ask_planner(ctx)
    total = len(asked.questions)
    for number in range(len(asked.answers) + 1, total + 1):
        answer = _answered(ctx, number, total, asked.questions[number - 1], options)
        asked = replace(asked, answers=(*asked.answers, answer))
        planner.save_questions(ctx.change, asked)
    return asked.answers


def _answered(ctx: StepContext, number: int, total: int, one: Mapping[str, Any], options: RunOptions) -> Answered:
    """Ask the person, or take the planner's recommendation."""
    choices = {text: QuestionOption(text, text) for text in one["options"]}
    if options.person:
        choices[OWN] = QuestionOption(OWN, OWN, asks="Your answer:")
    why = f"Question {number} of {total}. {one['why']}"
    question = Question(f"clarify-{number}", one["question"], tuple(choices.values()), one["recommended"], why=why)
    answer = ask_decision(ctx.run, question, options.person, options.yes)
    assert answer
    rationale = one["why"] if options.person else f"{one['why']} (the planner's own recommendation)"
    return Answered(one["topic"], one["question"], answer.reason if answer.id == OWN else answer.id, rationale)

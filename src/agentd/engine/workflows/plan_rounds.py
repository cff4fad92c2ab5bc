"""Rounds of challenge and revision, until the plan is approved, a stop rule applies, or a person stops."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from agentd.change import ChangeLocator, ChangeState, build_overlap_index, format_names, read_touched
from agentd.domain import ChangeNotReady, FormatInvalid, NoticeIssued, Phase, WarningIssued, WrongPhase
from agentd.engine.steps import challenge, judge_call, person_findings, planner
from agentd.engine.steps.step_context import CHALLENGER_SPEC, StepContext
from agentd.engine.workflows import person_decisions, read_digest
from agentd.engine.workflows.decision_questions import Person, Question, QuestionOption, after_challenge, ask_decision
from agentd.engine.workflows.run_request import RunOptions
from agentd.engine.workflows.run_result import decision_summary
from agentd.engine.workflows.run_scope import use_round
from agentd.engine.workflows.verdict_status import (
    CHALLENGE_PHASES,
    has_judged,
    is_answered,
    is_plan_as_decided,
    is_plan_judged,
    last_record,
    made_no_progress,
)
from agentd.validation import RuleFinding

_NAMED = 5  # faults listed in an error; `agentd validate` lists them all


def repair_format(ctx: StepContext, options: RunOptions) -> None:
    """Validate the documents; the planner or the person fixes what is left."""
    most = ctx.config.workflow.format_iterations
    while found := planner.format_faults(ctx):
        planner.report_faults(ctx, found)
        if options.person:
            options.person.tell(_lines(found))
        answered = ask_decision(ctx.run, _form_question(ctx, found), options.person)
        answer = answered.id if answered else "planner"
        if answer == "stop":
            raise _unformed(f"Stopped with {_faults(found)} left in the plan", ctx.change.id, found)
        if answer == "person" and options.person:
            options.person.wait(f"Fix {_files(found)}, then press Enter")
        elif options.person is None and planner.fixes_used(ctx.change.read()) >= most:
            raise _unformed(f"Format validation still failing after {most} iterations", ctx.change.id, found)
        else:
            planner.run_format_fix(ctx, found)


def _form_question(ctx: StepContext, found: Sequence[RuleFinding]) -> Question:
    choices = (
        QuestionOption("planner", "Let the planner fix it"),
        QuestionOption("person", "I will fix it myself"),
        QuestionOption("stop", "Stop here"),
    )
    number = planner.fixes_used(ctx.change.read()) + 1
    return Question(f"format-{number}", f"The plan has {_faults(found)}. What next?", choices, "planner")


def _unformed(message: str, change_id: str, found: Sequence[RuleFinding]) -> FormatInvalid:
    hint = f"fix them (agentd validate {change_id} lists all), then: agentd plan {change_id}"
    return FormatInvalid("\n".join([message, *_lines(found)]), hint)


def _lines(found: Sequence[RuleFinding]) -> list[str]:
    lines = [f"  {one.file}:{one.line} {one.rule}: {one.message}" for one in found[:_NAMED]]
    return [*lines, f"  and {len(found) - _NAMED} more"] if len(found) > _NAMED else lines


def _faults(found: Sequence[RuleFinding]) -> str:
    return "1 fault" if len(found) == 1 else f"{len(found)} faults"


def _files(found: Sequence[RuleFinding]) -> str:
    return ", ".join(dict.fromkeys(one.file for one in found))


def warn_overlaps(ctx: StepContext) -> None:
    """Warn once per run about requirements that another open change modifies too."""
    change, warned = ctx.change, ctx.run.warned
    touches = read_touched(str(change.folder), ctx.config.validation.requirement_pattern)
    if not touches:
        return
    for rival in build_overlap_index(ChangeLocator(change.project).open()).find_overlapping(change.id, touches):
        names = [name for name in rival.requirements if f"{rival.id} {name}" not in warned]
        warned.update(f"{rival.id} {name}" for name in names)
        if names:
            verb = "is" if len(names) == 1 else "are"
            message = f"{format_names(names)} {verb} changed by {rival.id} ({rival.phase}) too"
            ctx.run.emit(WarningIssued(code="overlap", message=f"{message}; the second to archive may have to rebase"))


NextRound = Literal["fix", "ask again", "stop"]


def judge_plan(ctx: StepContext, options: RunOptions) -> bool:
    """Challenge the current plan. Returns False if it was challenged already and no new challenge is requested."""
    check_phase(ctx, *CHALLENGE_PHASES)
    apply_plan_edits(ctx)
    if ctx.change.read().phase is Phase.REJECTED and is_plan_as_decided(ctx.change):
        hint = f"read {ctx.path('CHALLENGE.md')}, edit the plan, then: agentd plan {ctx.change.id} --rechallenge"
        raise WrongPhase(f"{ctx.change.id} was rejected, and its plan has not changed since", hint)
    is_requested = options.rechallenge and not has_judged(ctx.change.read())  # a resumed command may have done it
    is_due = is_requested or not is_plan_judged(ctx.change)
    if is_due:
        repair_format(ctx, options)
        warn_overlaps(ctx)
        challenge.run_challenge_step(ctx)
    return is_due


def answer_challenge(
    ctx: StepContext, options: RunOptions, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """Let the planner answer the findings; `also` is applied in the same write as the end of the step."""
    check_phase(ctx, Phase.PROPOSED)
    apply_plan_edits(ctx)
    record, left = last_record(ctx.change), judge_call.open_judge_findings(ctx, CHALLENGER_SPEC)
    if record is None or not left:
        what = "was never challenged" if record is None else "has no open finding"
        raise ChangeNotReady(f"{ctx.change.id} {what}", f"agentd challenge {ctx.change.id}")
    if not is_answered(ctx.change, ctx.round):
        challenge.run_reproposal_step(ctx, record, also)
    repair_format(ctx, options)


def run_plan_rounds(ctx: StepContext, options: RunOptions) -> None:
    """Run as many rounds as the command may use."""
    judge_plan(ctx, options)
    while ctx.change.read().phase is Phase.PROPOSED:
        apply_plan_edits(ctx)
        if not judge_call.open_judge_findings(ctx, CHALLENGER_SPEC):
            message = f"no finding is open; agentd plan {ctx.change.id} --rechallenge, or --accept"
            ctx.run.emit(NoticeIssued(code="nothing-open", message=message))
            return
        match _next(ctx, options):
            case "stop":
                return
            case "fix":
                answer_challenge(ctx, options, use_round)
                judge_plan(ctx, replace(options, rechallenge=False))


def apply_plan_edits(ctx: StepContext) -> None:
    if record := last_record(ctx.change):
        person_findings.apply_person_edits(ctx, record)
    person_findings.apply_comments(ctx, CHALLENGER_SPEC)


def check_phase(ctx: StepContext, *phases: Phase) -> None:
    phase = ctx.change.read().phase
    if phase in phases:
        return
    if phase is Phase.DRAFTING:
        raise ChangeNotReady(f"{ctx.change.id} has no plan to challenge yet", f"agentd plan {ctx.change.id}")
    raise WrongPhase(f"{ctx.change.id} is {phase}", f"agentd status {ctx.change.id}")


def _next(ctx: StepContext, options: RunOptions) -> NextRound:
    """Decide whether to run another round."""
    state = ctx.change.read()
    assert state.run
    is_stuck = made_no_progress(ctx.change)
    if is_stuck:
        _warn_once(ctx, "stuck", f"round {state.round} closed no finding")
    if options.rounds is None and options.person and ctx.config.workflow.human_in_loop:
        return _decided(ctx, options.person, is_stuck)
    if is_stuck:
        return "stop"
    granted = options.granted_rounds(state.lane, ctx.config.workflow.planning_iterations)
    if state.run.rounds_left == 0 and granted:
        message = f"all rounds of this command are used; the same command grants {granted} more"
        _warn_once(ctx, "rounds-used", message)
    return "fix" if state.run.rounds_left else "stop"


def _decided(ctx: StepContext, person: Person, is_stuck: bool) -> NextRound:
    """Ask the person at the terminal or in the browser."""
    before = read_digest.current_reading(ctx.change)
    question = after_challenge(ctx.change, "view" if is_stuck else "fix")
    answer = ask_decision(ctx.run, replace(question, about=decision_summary(ctx.change)), person)
    assert answer
    if answer.id == "view":
        person.show(str(ctx.change.folder / "CHALLENGE.md"))
        return "ask again"
    if answer.id not in person_decisions.PLAN_DECISIONS:
        return "fix" if answer.id == "fix" else "stop"
    now = read_digest.current_reading(ctx.change)
    if answer.via == "terminal" and now != before:
        changed = read_digest.describe_differences(read_digest.differing_names(before, now), now)
        message = f"{changed} while the question was open, so it is asked again"
        ctx.run.emit(WarningIssued(code="stale", message=message))
        return "ask again"
    apply_plan_edits(ctx)  # edits shown with the question
    person_decisions.PLAN_DECISIONS[answer.id](ctx, answer.reason, answer.by, read_digest.plan_hashes_of(now))
    return "fix" if answer.id == "send-back" else "stop"


def _warn_once(ctx: StepContext, code: str, message: str) -> None:
    if message not in ctx.run.warned:
        ctx.run.warned.add(message)
        ctx.run.emit(WarningIssued(code=code, message=message))

"""Challenge, answer, challenge again: until the plan is approved, a rule says stop, or a person does."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from agentd.change import ChangeLocator, ChangeState, build_overlap_index, format_names, read_touched
from agentd.domain import ChangeNotReady, FormatInvalid, NoticeIssued, Phase, WarningIssued, WrongPhase
from agentd.engine.steps import challenge, comment_findings, format_fix, person_edits
from agentd.engine.steps.judge_spec import CHALLENGER_SPEC
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows import person_decisions, read_digest
from agentd.engine.workflows.decision_questions import Person, Question, QuestionOption, after_challenge, ask_decision
from agentd.engine.workflows.run_result import decision_summary
from agentd.engine.workflows.run_scope import RunOptions, use_round
from agentd.engine.workflows.verdict_status import (
    JUDGED_EVENTS,
    has_judged,
    is_answered,
    is_plan_as_decided,
    is_plan_judged,
    last_record,
    made_no_progress,
)
from agentd.validation import RuleFinding

_NAMED = 5  # faults named in an error; `agentd validate` lists them all


def repair_format(desk: StepContext, wishes: RunOptions) -> None:
    """Validation without an agent; what is left is mended by the planner or by the person."""
    most = desk.config.workflow.format_iterations
    while found := format_fix.format_faults(desk):
        format_fix.report_faults(desk, found)
        if wishes.person:
            wishes.person.tell(_lines(found))
        answered = ask_decision(desk.run, _form_question(desk, found), wishes.person)
        answer = answered.id if answered else "planner"
        if answer == "stop":
            raise _unformed(f"Stopped with {_faults(found)} left in the plan", desk.change.id, found)
        if answer == "person" and wishes.person:
            wishes.person.wait(f"Mend {_files(found)}, then press Enter")
        elif wishes.person is None and format_fix.fixes_used(desk.change.read()) >= most:
            raise _unformed(f"Format validation still failing after {most} iterations", desk.change.id, found)
        else:
            format_fix.run_format_fix(desk, found)


def _form_question(desk: StepContext, found: Sequence[RuleFinding]) -> Question:
    options = (
        QuestionOption("planner", "The planner mends it"),
        QuestionOption("person", "I mend it"),
        QuestionOption("stop", "Stop here"),
    )
    number = format_fix.fixes_used(desk.change.read()) + 1
    return Question(f"format-{number}", f"The plan has {_faults(found)} in its form. What next?", options, "planner")


def _unformed(message: str, change_id: str, found: Sequence[RuleFinding]) -> FormatInvalid:
    hint = f"mend them (agentd validate {change_id} lists all), then: agentd plan {change_id}"
    return FormatInvalid("\n".join([message, *_lines(found)]), hint)


def _lines(found: Sequence[RuleFinding]) -> list[str]:
    lines = [f"  {one.file}:{one.line} {one.rule}: {one.message}" for one in found[:_NAMED]]
    return [*lines, f"  and {len(found) - _NAMED} more"] if len(found) > _NAMED else lines


def _faults(found: Sequence[RuleFinding]) -> str:
    return "1 fault" if len(found) == 1 else f"{len(found)} faults"


def _files(found: Sequence[RuleFinding]) -> str:
    return ", ".join(dict.fromkeys(one.file for one in found))


def warn_overlaps(desk: StepContext) -> None:
    """A word of warning, once in a run for each thing that both change. It is no finding and stops nothing."""
    change, warned = desk.change, desk.run.warned
    touches = read_touched(str(change.folder), desk.config.validation.requirement_pattern)
    if not touches:
        return
    for rival in build_overlap_index(ChangeLocator(change.project).open()).find_overlapping(change.id, touches):
        names = [name for name in rival.requirements if f"{rival.id} {name}" not in warned]
        warned.update(f"{rival.id} {name}" for name in names)
        if names:
            verb = "is" if len(names) == 1 else "are"
            words = f"{format_names(names)} {verb} changed by {rival.id} ({rival.phase}) too"
            desk.run.emit(WarningIssued(code="overlap", message=f"{words}; whoever archives second may have to rebase"))


NextRound = Literal["fix", "look again", "stop"]


def judge_plan(desk: StepContext, wishes: RunOptions) -> bool:
    """One verdict on the plan as it is. False: it was judged so already, and judging it again is not wished."""
    check_phase(desk, *JUDGED_EVENTS)
    apply_plan_edits(desk)
    if desk.change.read().phase is Phase.REJECTED and is_plan_as_decided(desk.change):
        hint = f"read {desk.path('CHALLENGE.md')}, edit the plan, then: agentd plan {desk.change.id} --rechallenge"
        raise WrongPhase(f"{desk.change.id} was rejected, and its plan has not changed since", hint)
    is_wished = wishes.rechallenge and not has_judged(desk.change.read())  # a resumed command has it already
    is_due = is_wished or not is_plan_judged(desk.change)
    if is_due:
        repair_format(desk, wishes)
        warn_overlaps(desk)
        challenge.run_challenge_step(desk)
    return is_due


def answer_challenge(
    desk: StepContext, wishes: RunOptions, also: Callable[[ChangeState], ChangeState] = lambda old: old
) -> None:
    """The planner's part of a round; `also` is written as one with its end."""
    check_phase(desk, Phase.PROPOSED)
    apply_plan_edits(desk)
    record, left = last_record(desk.change), challenge.findings_for_planner(desk)
    if record is None or not left:
        what = "was never challenged" if record is None else "has no open finding"
        raise ChangeNotReady(f"{desk.change.id} {what}", f"agentd challenge {desk.change.id}")
    if not is_answered(desk.change, desk.round):
        challenge.run_reproposal_step(desk, record, also)
    repair_format(desk, wishes)


def run_plan_rounds(desk: StepContext, wishes: RunOptions) -> None:
    """Rounds, as many as the command may use."""
    judge_plan(desk, wishes)
    while desk.change.read().phase is Phase.PROPOSED:
        apply_plan_edits(desk)
        if not challenge.findings_for_planner(desk):
            words = f"no finding is open any more; agentd plan {desk.change.id} --rechallenge, or --accept"
            desk.run.emit(NoticeIssued(code="nothing-open", message=words))
            return
        match _next(desk, wishes):
            case "stop":
                return
            case "fix":
                answer_challenge(desk, wishes, use_round)
                judge_plan(desk, replace(wishes, rechallenge=False))


def apply_plan_edits(desk: StepContext) -> None:
    if record := last_record(desk.change):
        person_edits.apply_person_edits(desk, record)
    comment_findings.apply_comments(desk, CHALLENGER_SPEC)


def check_phase(desk: StepContext, *phases: Phase) -> None:
    phase = desk.change.read().phase
    if phase in phases:
        return
    if phase is Phase.DRAFTING:
        raise ChangeNotReady(f"{desk.change.id} has no plan to challenge yet", f"agentd plan {desk.change.id}")
    raise WrongPhase(f"{desk.change.id} is {phase}", f"agentd status {desk.change.id}")


def _next(desk: StepContext, wishes: RunOptions) -> NextRound:
    """Whether the planner is to answer and the challenger to judge again."""
    state = desk.change.read()
    assert state.run
    is_stuck = made_no_progress(desk.change)
    if is_stuck:
        _warn_once(desk, "stuck", f"round {state.round} closed no finding")
    if wishes.rounds is None and wishes.person and desk.config.workflow.human_in_loop:
        return _decided(desk, wishes.person, is_stuck)
    if is_stuck:
        return "stop"
    granted = wishes.granted(state.lane, desk.config.workflow.planning_iterations)
    if state.run.rounds_left == 0 and granted:
        words = f"all rounds of this command are used; the same command grants {granted} more"
        _warn_once(desk, "rounds-used", words)
    return "fix" if state.run.rounds_left else "stop"


def _decided(desk: StepContext, person: Person, is_stuck: bool) -> NextRound:
    """What the person at the terminal, or in the viewer, says."""
    before = read_digest.current_reading(desk.change)
    question = after_challenge(desk.change, "view" if is_stuck else "fix")
    answer = ask_decision(desk.run, replace(question, about=decision_summary(desk.change)), person)
    assert answer
    if answer.id == "view":
        person.show(str(desk.change.folder / "CHALLENGE.md"))
        return "look again"
    if answer.id not in person_decisions.PLAN_DECISIONS:
        return "fix" if answer.id == "fix" else "stop"
    now = read_digest.current_reading(desk.change)
    if answer.via == "terminal" and now != before:
        changed = read_digest.describe_differences(read_digest.differing_names(before, now), now)
        words = f"{changed} while the question was open, so it is asked again"
        desk.run.emit(WarningIssued(code="stale", message=words))
        return "look again"
    apply_plan_edits(desk)  # what was shown with it
    person_decisions.PLAN_DECISIONS[answer.id](desk, answer.reason, answer.by, read_digest.plan_hashes_of(now))
    return "fix" if answer.id == "send-back" else "stop"


def _warn_once(desk: StepContext, code: str, message: str) -> None:
    if message not in desk.run.warned:
        desk.run.warned.add(message)
        desk.run.emit(WarningIssued(code=code, message=message))

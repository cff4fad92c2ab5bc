"""`impl`: from an approved plan to code that is proved and reviewed. Running is resuming."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from agentd.change import ChangeState
from agentd.documents import Task
from agentd.domain import ChangeNotReady, CheckStatus, Phase, ReviewVerdict, Workflow, WrongPhase, events
from agentd.engine.steps import check_run, code_trees, comment_findings, person_edits, review
from agentd.engine.steps import review as reviewing
from agentd.engine.steps.implement import run_implement_step
from agentd.engine.steps.judge_spec import REVIEWER_SPEC
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows import dependencies, impl_start, person_decisions, read_digest, task_batches
from agentd.engine.workflows.impl_start import refuse_conflict_markers
from agentd.engine.workflows.run_scope import RunOptions, begin_run_state, run_scope, use_round
from agentd.engine.workflows.verdict_status import (
    already_judged_notice,
    has_judged,
    is_answered,
    last_record,
    made_no_progress,
)
from agentd.project import git

_REVIEWED = (Phase.IMPLEMENTING, Phase.COMPLETE)


def build_tasks(desk: StepContext, wishes: RunOptions) -> None:
    """The tasks that are left, run by run."""
    tasks = wanted_tasks(desk, wishes)
    is_sequential = desk.config.workflow.sequential_implementation
    while runs := task_batches.remaining_batches(desk.change.read(), tasks, is_sequential):
        first = runs[0]
        done = sorted(task_batches.built_tasks(desk.change.read()))
        run_implement_step(
            desk, first.step, first.number, first.tasks, done, is_last=len(runs) == 1 and not wishes.tasks
        )


def wanted_tasks(desk: StepContext, wishes: RunOptions) -> tuple[Task, ...]:
    """All tasks in their order, or those of `--tasks`."""
    tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(desk.change), desk.change.id)
    return (
        task_batches.select_tasks(tasks, wishes.tasks, task_batches.built_tasks(desk.change.read()))
        if wishes.tasks
        else tasks
    )


def judge_code(desk: StepContext, wishes: RunOptions) -> bool:
    """One verdict on the code as it is. False: that tree was judged already, and judging it again is not wished."""
    if desk.change.read().phase not in _REVIEWED:
        raise ChangeNotReady(f"{desk.change.id} has no code to review yet", f"agentd impl {desk.change.id}")
    task_batches.tasks_in_order(
        code_trees.read_change_tasks(desk.change), desk.change.id
    )  # without tasks nothing says what is done
    refuse_conflict_markers(desk.change)
    base = desk.change.read().base.tree
    if base and not code_trees.changed_paths(desk.change, base, code_trees.current_tree(desk.change)):
        raise ChangeNotReady(f"no code of {desk.change.id} has changed yet", f"agentd impl {desk.change.id}")
    apply_code_edits(desk)
    is_wished = wishes.review and not has_judged(desk.change.read())  # a resumed command has it already
    is_due = is_wished or not is_code_judged(desk)
    if is_due:
        round_ = len(desk.change.records(REVIEWER_SPEC.kind)) + 1
        reviewing.run_review_step(desk, check_run.run_checks(desk, round_))
    return is_due


def answer_review(desk: StepContext) -> None:
    """The implementer's part of a round."""
    if desk.change.read().phase is not Phase.IMPLEMENTING:
        raise WrongPhase(f"{desk.change.id} is {desk.change.read().phase}", f"agentd status {desk.change.id}")
    apply_code_edits(desk)
    record = last_record(desk.change, REVIEWER_SPEC)
    if record is None or not review.findings_for_implementer(desk):
        what = "was never reviewed" if record is None else "has no open finding"
        raise ChangeNotReady(f"{desk.change.id} {what}", f"agentd review {desk.change.id}")
    if not is_answered(desk.change, record.round + 1, REVIEWER_SPEC.answer):
        review.run_resolve_step(desk, record, use_round)


def run_review_rounds(desk: StepContext, wishes: RunOptions) -> None:
    if wishes.review or not _is_cut_off(desk):
        judge_code(desk, wishes)
    while desk.change.read().phase is Phase.IMPLEMENTING and _goes_on(desk, wishes):
        answer_review(desk)
        judge_code(desk, replace(wishes, review=False))


def is_code_judged(desk: StepContext) -> bool:
    """The last verdict is on the tree as it is, and the implementer has answered nothing since."""
    record = last_record(desk.change, REVIEWER_SPEC)
    if record is None or is_answered(desk.change, record.round + 1, REVIEWER_SPEC.answer):
        return False
    if record.at < task_batches.implementation_start(desk.change.read()):
        return False  # it was the code of another plan
    now, left = code_trees.current_tree(desk.change), check_run.tree_left_by_checks(desk.change.read(), record.round)
    return any(not code_trees.changed_paths(desk.change, tree, now) for tree in (record.judged["tree"], left) if tree)


def apply_code_edits(desk: StepContext) -> None:
    if record := last_record(desk.change, REVIEWER_SPEC):
        person_edits.apply_person_edits(desk, record)
    comment_findings.apply_comments(desk, REVIEWER_SPEC)


def accept_known_failures(desk: StepContext, reason: str, by: str) -> None:
    """A person says that what failed before the first edit was there before."""

    def known(old: ChangeState) -> ChangeState:
        said = {"known": f"{reason} ({by})"}
        return check_run.with_baseline(
            old, [{**row, **(said if _failed(row) else {})} for row in check_run.check_baseline(old)]
        )

    if not any(_failed(row) for row in check_run.check_baseline(desk.change.read())):
        words = "no check failed before the first edit, so --known-failures has nothing to say"
        raise WrongPhase(words, f"leave it out: agentd impl {desk.change.id}")
    desk.run.update(known)
    made = events.DecisionMade(id="known-failures", answer="known", reason=reason, by=f"person:{by}", via="flag")
    desk.run.emit(made)


def _failed(row: Mapping[str, Any]) -> bool:
    return row.get("status") == CheckStatus.FAILED


def _is_cut_off(desk: StepContext) -> bool:
    """The implementer was at work on the findings when the run ended: half of that is not judged."""
    state, record = desk.change.read(), last_record(desk.change, REVIEWER_SPEC)
    if record is None or not state.run or not state.run.rounds_left:
        return False
    begun = any((row.name, row.round) == (REVIEWER_SPEC.answer, record.round + 1) for row in state.steps)
    return (
        begun
        and not is_answered(desk.change, record.round + 1, REVIEWER_SPEC.answer)
        and bool(review.findings_for_implementer(desk))
    )


def _goes_on(desk: StepContext, wishes: RunOptions) -> bool:
    """Whether the implementer is to answer and the reviewer to judge again."""
    state, record = desk.change.read(), last_record(desk.change, REVIEWER_SPEC)
    assert state.run and record
    if not review.findings_for_implementer(desk):
        words = f'no finding is open any more; agentd impl {desk.change.id} --review, or --accept "REASON"'
        desk.run.emit(events.NoticeIssued(code="nothing-open", message=words))
        return False
    if record.verdict == ReviewVerdict.MAJOR_ISSUES and has_judged(state):
        return False
    if made_no_progress(desk.change, REVIEWER_SPEC):
        desk.run.emit(events.WarningIssued(code="stuck", message=f"round {state.round} closed no finding"))
        return False
    granted = wishes.rounds if wishes.rounds is not None else desk.config.workflow.implementation_iterations
    if state.run.rounds_left == 0 and granted:
        words = f"all rounds of this command are used; the same command grants {granted} more"
        desk.run.emit(events.WarningIssued(code="rounds-used", message=words))
    return state.run.rounds_left > 0


def run_impl(desk: StepContext, wishes: RunOptions) -> None:
    """The code of all tasks, and rounds until a verdict settles it; of some tasks, and no more."""
    with _implementing(desk, wishes):
        if desk.change.read().phase is Phase.COMPLETE and not wishes.review:
            return  # a killed run came to its verdict
        dependencies.warn_dependencies(desk)
        wanted_tasks(desk, wishes)  # refused before anything runs
        _start(desk, wishes)
        if not wishes.review:
            build_tasks(desk, wishes)
        if not wishes.tasks:  # what is known to fail makes another verdict of the same tree
            run_review_rounds(desk, replace(wishes, review=wishes.review or bool(wishes.known_failures)))


def run_implement(desk: StepContext, wishes: RunOptions) -> None:
    """The code only: the phase command `implement`."""
    with _implementing(desk, wishes):
        _start(desk, wishes)
        build_tasks(desk, wishes)


def run_review(desk: StepContext, wishes: RunOptions) -> None:
    """Checks and verdict only: the phase command `review`."""
    with _implementing(desk, wishes):
        if not judge_code(desk, wishes):
            desk.run.emit(already_judged_notice(desk.change, REVIEWER_SPEC, f"agentd impl {desk.change.id} --review"))


def run_resolve(desk: StepContext, wishes: RunOptions) -> None:
    """The implementer's answers only: the phase command `resolve-reviews`."""
    with _implementing(desk, wishes):
        answer_review(desk)


def decide_code(desk: StepContext, answer: str, reason: str, by: str, read: str = "") -> None:
    """What a person decides without being asked: `--accept`, `--send-back`, `--plan-wrong`; `read` as for a plan."""
    tree = read_digest.current_reading(desk.change).get(read_digest.CODE_TREE_KEY, "") if read else ""
    read_digest.check_reading(desk.change, read)
    with _implementing(desk, RunOptions(rounds=0)):
        apply_code_edits(desk)
        read_digest.check_reading(desk.change, read)  # a comment may have come in between
        person_decisions.CODE_DECISIONS[answer](desk, reason, by, tree)


def _start(desk: StepContext, wishes: RunOptions) -> None:
    impl_start.start_implementation(desk)
    if wishes.known_failures:
        accept_known_failures(desk, wishes.known_failures, git.user_name(desk.change.tree))


def _implementing(desk: StepContext, wishes: RunOptions) -> AbstractContextManager[None]:
    settings = desk.config.workflow
    granted = wishes.rounds if wishes.rounds is not None else settings.implementation_iterations
    return run_scope(desk, lambda old: begin_run_state(old, Workflow.IMPL, granted))

"""The impl workflow: from an approved plan to tested and reviewed code. Each function resumes where it stopped."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from agentd.change import ChangeState
from agentd.documents import Task
from agentd.domain import ChangeNotReady, CheckStatus, Phase, ReviewVerdict, Workflow, WrongPhase, events
from agentd.engine.steps import check_run, code_trees, judge_call, person_findings, review
from agentd.engine.steps.implement import run_implement_step, run_resolve_step
from agentd.engine.steps.step_context import REVIEWER_SPEC, StepContext
from agentd.engine.workflows import dependencies, impl_start, person_decisions, read_digest, task_batches
from agentd.engine.workflows.impl_start import refuse_conflict_markers
from agentd.engine.workflows.run_request import RunOptions
from agentd.engine.workflows.run_scope import begin_run_state, run_scope, use_round
from agentd.engine.workflows.verdict_status import (
    already_judged_notice,
    has_judged,
    is_answered,
    last_record,
    made_no_progress,
)
from agentd.project import git

_REVIEWED = (Phase.IMPLEMENTING, Phase.COMPLETE)


def build_tasks(ctx: StepContext, options: RunOptions) -> None:
    """Implement the remaining tasks, batch by batch."""
    tasks = wanted_tasks(ctx, options)
    is_sequential = ctx.config.workflow.sequential_implementation
    while batches := task_batches.remaining_batches(ctx.change.read(), tasks, is_sequential):
        first = batches[0]
        done = sorted(task_batches.built_tasks(ctx.change.read()))
        run_implement_step(
            ctx, first.step, first.number, first.tasks, done, is_last=len(batches) == 1 and not options.tasks
        )


def wanted_tasks(ctx: StepContext, options: RunOptions) -> tuple[Task, ...]:
    """Return all tasks in order, or those of `--tasks`."""
    tasks = task_batches.tasks_in_order(code_trees.read_change_tasks(ctx.change), ctx.change.id)
    return (
        task_batches.select_tasks(tasks, options.tasks, task_batches.built_tasks(ctx.change.read()))
        if options.tasks
        else tasks
    )


def judge_code(ctx: StepContext, options: RunOptions) -> bool:
    """Review the current code. Returns False if it was reviewed already and no new review is requested."""
    if ctx.change.read().phase not in _REVIEWED:
        raise ChangeNotReady(f"{ctx.change.id} has no code to review yet", f"agentd impl {ctx.change.id}")
    task_batches.tasks_in_order(code_trees.read_change_tasks(ctx.change), ctx.change.id)  # refuses invalid tasks
    refuse_conflict_markers(ctx.change)
    base = ctx.change.read().base.tree
    if base and not code_trees.changed_paths(ctx.change, base, code_trees.current_tree(ctx.change)):
        raise ChangeNotReady(f"no code of {ctx.change.id} has changed yet", f"agentd impl {ctx.change.id}")
    apply_code_edits(ctx)
    is_requested = options.review and not has_judged(ctx.change.read())  # a resumed command may have done it
    is_due = is_requested or not is_code_judged(ctx)
    if is_due:
        round_ = len(ctx.change.records(REVIEWER_SPEC.kind)) + 1
        review.run_review_step(ctx, check_run.run_checks(ctx, round_))
    return is_due


def answer_review(ctx: StepContext) -> None:
    """Let the implementer answer the findings."""
    if ctx.change.read().phase is not Phase.IMPLEMENTING:
        raise WrongPhase(f"{ctx.change.id} is {ctx.change.read().phase}", f"agentd status {ctx.change.id}")
    apply_code_edits(ctx)
    record = last_record(ctx.change, REVIEWER_SPEC)
    if record is None or not judge_call.open_judge_findings(ctx, REVIEWER_SPEC):
        what = "was never reviewed" if record is None else "has no open finding"
        raise ChangeNotReady(f"{ctx.change.id} {what}", f"agentd review {ctx.change.id}")
    if not is_answered(ctx.change, record.round + 1, REVIEWER_SPEC.answer):
        run_resolve_step(ctx, record, use_round)


def run_review_rounds(ctx: StepContext, options: RunOptions) -> None:
    if options.review or not _is_cut_off(ctx):
        judge_code(ctx, options)
    while ctx.change.read().phase is Phase.IMPLEMENTING and _should_continue(ctx, options):
        answer_review(ctx)
        judge_code(ctx, replace(options, review=False))


def is_code_judged(ctx: StepContext) -> bool:
    """Whether the last verdict is about the current tree, and the implementer has answered nothing since."""
    record = last_record(ctx.change, REVIEWER_SPEC)
    if record is None or is_answered(ctx.change, record.round + 1, REVIEWER_SPEC.answer):
        return False
    if record.at < task_batches.implementation_start(ctx.change.read()):
        return False  # it was about the code of an earlier plan
    now = code_trees.current_tree(ctx.change)
    left = check_run.check_outputs(ctx.change.read(), record.round).get("left")
    return any(not code_trees.changed_paths(ctx.change, tree, now) for tree in (record.judged["tree"], left) if tree)


def apply_code_edits(ctx: StepContext) -> None:
    if record := last_record(ctx.change, REVIEWER_SPEC):
        person_findings.apply_person_edits(ctx, record)
    person_findings.apply_comments(ctx, REVIEWER_SPEC)


def accept_known_failures(ctx: StepContext, reason: str, by: str) -> None:
    """Record a person's decision that checks failing before the first edit are known."""

    def known(old: ChangeState) -> ChangeState:
        note = {"known": f"{reason} ({by})"}
        rows = [{**row, **(note if _failed(row) else {})} for row in check_run.check_baseline(old)]
        return check_run.with_baseline(old, rows)

    if not any(_failed(row) for row in check_run.check_baseline(ctx.change.read())):
        message = "no check failed before the first edit, so --known-failures does not apply"
        raise WrongPhase(message, f"leave it out: agentd impl {ctx.change.id}")
    ctx.run.update(known)
    made = events.DecisionMade(id="known-failures", answer="known", reason=reason, by=f"person:{by}", via="flag")
    ctx.run.emit(made)


def _failed(row: Mapping[str, Any]) -> bool:
    return row.get("status") == CheckStatus.FAILED


def _is_cut_off(ctx: StepContext) -> bool:
    """Whether the run ended while the implementer worked on the findings: half-done work is not reviewed."""
    state, record = ctx.change.read(), last_record(ctx.change, REVIEWER_SPEC)
    if record is None or not state.run or not state.run.rounds_left:
        return False
    begun = any((row.name, row.round) == (REVIEWER_SPEC.answer, record.round + 1) for row in state.steps)
    return (
        begun
        and not is_answered(ctx.change, record.round + 1, REVIEWER_SPEC.answer)
        and bool(judge_call.open_judge_findings(ctx, REVIEWER_SPEC))
    )


def _should_continue(ctx: StepContext, options: RunOptions) -> bool:
    """Whether to run another round."""
    state, record = ctx.change.read(), last_record(ctx.change, REVIEWER_SPEC)
    assert state.run and record
    if not judge_call.open_judge_findings(ctx, REVIEWER_SPEC):
        message = f'no finding is open; agentd impl {ctx.change.id} --review, or --accept "REASON"'
        ctx.run.emit(events.NoticeIssued(code="nothing-open", message=message))
        return False
    if record.verdict == ReviewVerdict.MAJOR_ISSUES and has_judged(state):
        return False
    if made_no_progress(ctx.change, REVIEWER_SPEC):
        ctx.run.emit(events.WarningIssued(code="stuck", message=f"round {state.round} closed no finding"))
        return False
    granted = options.rounds if options.rounds is not None else ctx.config.workflow.implementation_iterations
    if state.run.rounds_left == 0 and granted:
        message = f"all rounds of this command are used; the same command grants {granted} more"
        ctx.run.emit(events.WarningIssued(code="rounds-used", message=message))
    return state.run.rounds_left > 0


def run_impl(ctx: StepContext, options: RunOptions) -> None:
    """Implement all tasks and review them in rounds; with `--tasks`, only implement those."""
    with _implementing(ctx, options):
        if ctx.change.read().phase is Phase.COMPLETE and not options.review:
            return  # a killed run had reached its verdict
        dependencies.warn_dependencies(ctx)
        wanted_tasks(ctx, options)  # refuses invalid tasks before anything runs
        _start(ctx, options)
        if not options.review:
            build_tasks(ctx, options)
        if not options.tasks:  # known failures lead to another verdict on the same tree
            run_review_rounds(ctx, replace(options, review=options.review or bool(options.known_failures)))


def run_implement(ctx: StepContext, options: RunOptions) -> None:
    """Only write the code: the phase command `implement`."""
    with _implementing(ctx, options):
        _start(ctx, options)
        build_tasks(ctx, options)


def run_review(ctx: StepContext, options: RunOptions) -> None:
    """Only run checks and review: the phase command `review`."""
    with _implementing(ctx, options):
        if not judge_code(ctx, options):
            ctx.run.emit(already_judged_notice(ctx.change, REVIEWER_SPEC, f"agentd impl {ctx.change.id} --review"))


def run_resolve(ctx: StepContext, options: RunOptions) -> None:
    """Only answer the findings: the phase command `resolve-reviews`."""
    with _implementing(ctx, options):
        answer_review(ctx)


def decide_code(ctx: StepContext, answer: str, reason: str, by: str, read: str = "") -> None:
    """Apply a decision made without being asked: `--accept`, `--send-back`, `--plan-wrong`; `read` as for a plan."""
    tree = read_digest.current_reading(ctx.change).get(read_digest.CODE_TREE_KEY, "") if read else ""
    read_digest.check_reading(ctx.change, read)
    with _implementing(ctx, RunOptions(rounds=0)):
        apply_code_edits(ctx)
        read_digest.check_reading(ctx.change, read)  # a comment may have been added meanwhile
        person_decisions.CODE_DECISIONS[answer](ctx, reason, by, tree)


def _start(ctx: StepContext, options: RunOptions) -> None:
    impl_start.start_implementation(ctx)
    if options.known_failures:
        accept_known_failures(ctx, options.known_failures, git.user_name(ctx.change.tree))


def _implementing(ctx: StepContext, options: RunOptions) -> AbstractContextManager[None]:
    settings = ctx.config.workflow
    granted = options.rounds if options.rounds is not None else settings.implementation_iterations
    return run_scope(ctx, lambda old: begin_run_state(old, Workflow.IMPL, granted))

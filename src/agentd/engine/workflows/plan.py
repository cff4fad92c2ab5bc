"""The plan workflow: write the documents in order, then challenge and revise them."""

from contextlib import AbstractContextManager
from dataclasses import replace

from agentd.change import Change, ChangeState
from agentd.domain import Lane, NoticeIssued, Phase, TransitionEvent, Workflow, clock
from agentd.engine.steps import planner
from agentd.engine.steps.step_context import CHALLENGER_SPEC, PlanFacts, StepContext, read_plan_facts
from agentd.engine.workflows import dependencies, person_decisions, plan_rounds, read_digest, step_lists
from agentd.engine.workflows.clarification import clarify_first, is_only_clarified
from agentd.engine.workflows.decision_questions import Question, QuestionOption, ask_decision
from agentd.engine.workflows.plan_rounds import repair_format, warn_overlaps
from agentd.engine.workflows.run_request import RunOptions
from agentd.engine.workflows.run_scope import begin_run_state, run_scope
from agentd.engine.workflows.step_lists import PlannedStep
from agentd.engine.workflows.verdict_status import already_judged_notice
from agentd.project import WorkflowSettings


def draft_documents(ctx: StepContext, options: RunOptions) -> None:
    reviews = ctx.config.workflow.self_review_iterations
    if options.light and ctx.change.read().lane is not Lane.LIGHT:
        message = f"{ctx.change.id} was started in the {ctx.change.read().lane} lane and stays in it"
        ctx.run.emit(NoticeIssued(code="lane", message=message))
    clarify_first(ctx, options)
    while ctx.change.read().phase is Phase.DRAFTING:
        if planner.is_format_due(ctx):
            planner.save_base_specs(ctx)
            repair_format(ctx, options)
            warn_overlaps(ctx)
            _offer_light(ctx, options)
        found = read_plan_facts(ctx.change)
        following = step_lists.next_planner_step(ctx.change.read(), reviews, found)
        if following is None:
            ctx.run.update(lambda old: _generated(old, ctx.change))
            return
        if following.kind == "tasks-gen" and found and not found.specs:
            ctx.run.emit(NoticeIssued(code="no-specs", message="No specs required for this change"))
        _run_step(ctx, following, reviews)


def _run_step(ctx: StepContext, step: PlannedStep, reviews: int) -> None:
    match step.kind:
        case "plan-gen":
            planner.generate_plan(ctx)
        case "proposal-gen" | "spec-gen" | "tasks-gen":
            planner.generate_document(ctx, step.kind, step.spec)
        case _:
            planner.run_self_review(ctx, step.kind, step.spec, step.number, reviews)


def _generated(old: ChangeState, change: Change) -> ChangeState:
    found = read_plan_facts(change) or PlanFacts()
    specs = {0: "", 1: ", 1 spec"}.get(len(found.specs), f", {len(found.specs)} specs")
    tasks = "1 task" if found.tasks == 1 else f"{found.tasks} tasks"
    why = f"proposal{specs} and {tasks} generated and valid"
    return old.with_transition(
        TransitionEvent.PLAN_GENERATED, by="agentd", why=why, at=clock.now(), hashes=change.hashes()
    )


def _offer_light(ctx: StepContext, options: RunOptions) -> None:
    """Offer the light lane for a small change, right after its proposal."""
    state, found = ctx.change.read(), read_plan_facts(ctx.change)
    done = [step.name for step in state.steps if step.name not in (planner.CLARIFY_STEP, planner.FORMAT_STEP)]
    if state.lane is not Lane.FULL or set(done) != {"proposal-gen"} or not found or not found.is_small:
        return
    size = "without a spec" if not found.specs else "with 1 spec"
    choices = (
        QuestionOption("light", "Light lane: one session writes the rest, no self-review, one challenge", "--light"),
        QuestionOption("full", "Full lane: a session and a self-review for each document"),
    )
    question = Question("lane", f"The planner calls this a patch {size}. How should it continue?", choices, "light")
    answer = ask_decision(ctx.run, question, options.person, options.yes)
    if answer and answer.id == "light":
        left = options.granted_rounds(Lane.LIGHT, ctx.config.workflow.planning_iterations)
        ctx.run.update(lambda old: _is_light(old, left))


def _is_light(old: ChangeState, rounds_left: int) -> ChangeState:
    return replace(old, lane=Lane.LIGHT, run=old.run and replace(old.run, rounds_left=rounds_left))


def run_plan(ctx: StepContext, options: RunOptions) -> None:
    """Write the documents, then challenge and revise them in rounds."""
    with _planning(ctx, options):
        dependencies.warn_dependencies(ctx)
        draft_documents(ctx, options)
        if (
            ctx.change.read().phase is Phase.PROPOSED or options.rechallenge
        ):  # otherwise a killed run had reached its verdict
            plan_rounds.run_plan_rounds(ctx, options)


def run_proposal(ctx: StepContext, options: RunOptions) -> None:
    """Only write the documents: the phase command `proposal`."""
    with _planning(ctx, options):
        draft_documents(ctx, options)


def run_challenge(ctx: StepContext, options: RunOptions) -> None:
    """Only challenge the plan: the phase command `challenge`."""
    with _planning(ctx, options):
        if not plan_rounds.judge_plan(ctx, options):
            ctx.run.emit(
                already_judged_notice(ctx.change, CHALLENGER_SPEC, f"agentd plan {ctx.change.id} --rechallenge")
            )


def run_reproposal(ctx: StepContext, options: RunOptions) -> None:
    """Only answer the findings: the phase command `reproposal`."""
    with _planning(ctx, options):
        plan_rounds.answer_challenge(ctx, options)


def decide_plan(ctx: StepContext, answer: str, reason: str, by: str, read: str = "") -> None:
    """Apply a decision made without being asked: `--accept`, `--reject`, `--send-back`.

    `read` is the digest of what the person read; nothing is written if the content has changed since.
    """
    hashes = ctx.change.hashes()
    read_digest.check_reading(ctx.change, read)
    with _planning(ctx, RunOptions(rounds=0)):
        plan_rounds.apply_plan_edits(ctx)
        read_digest.check_reading(ctx.change, read)  # a comment may have been added meanwhile
        person_decisions.PLAN_DECISIONS[answer](ctx, reason, by, hashes)


def _planning(ctx: StepContext, options: RunOptions) -> AbstractContextManager[None]:
    return run_scope(ctx, lambda old: _begun(old, ctx.config.workflow, options))


def _begun(old: ChangeState, settings: WorkflowSettings, options: RunOptions) -> ChangeState:
    lane = old.lane
    if old.phase is Phase.DRAFTING and (not old.steps or (options.light and is_only_clarified(old))):
        lane = Lane.LIGHT if options.light else Lane.FULL if settings.human_in_loop else Lane.AUTOMATED
    new = begin_run_state(old, Workflow.PLAN, options.granted_rounds(lane, settings.planning_iterations))
    return replace(new, lane=lane, session_id=None if options.new_session else old.session_id)

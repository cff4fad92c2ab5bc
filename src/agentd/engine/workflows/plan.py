"""The documents of a plan come into being, each after what it builds on."""

from contextlib import AbstractContextManager
from dataclasses import replace

from agentd.change import Change, ChangeState
from agentd.domain import Lane, NoticeIssued, Phase, TransitionEvent, Workflow, clock
from agentd.engine.steps import clarify, format_fix, generate, plan_facts, self_review
from agentd.engine.steps.judge_spec import CHALLENGER_SPEC
from agentd.engine.steps.plan_facts import PlanFacts
from agentd.engine.steps.step_context import StepContext
from agentd.engine.workflows import dependencies, person_decisions, plan_rounds, read_digest, step_lists
from agentd.engine.workflows.clarification import clarify_first, is_only_clarified
from agentd.engine.workflows.decision_questions import Question, QuestionOption, ask_decision
from agentd.engine.workflows.plan_rounds import repair_format, warn_overlaps
from agentd.engine.workflows.run_scope import RunOptions, begin_run_state, run_scope
from agentd.engine.workflows.step_lists import PlannedStep
from agentd.engine.workflows.verdict_status import already_judged_notice
from agentd.project import WorkflowSettings


def draft_documents(desk: StepContext, wishes: RunOptions) -> None:
    looks = desk.config.workflow.self_review_iterations
    if wishes.light and desk.change.read().lane is not Lane.LIGHT:
        words = f"{desk.change.id} was begun in the {desk.change.read().lane} lane and stays in it"
        desk.run.emit(NoticeIssued(code="lane", message=words))
    clarify_first(desk, wishes)
    while desk.change.read().phase is Phase.DRAFTING:
        if format_fix.is_format_due(desk):
            generate.save_base_specs(desk)
            repair_format(desk, wishes)
            warn_overlaps(desk)
            _offer_light(desk, wishes)
        found = plan_facts.read_plan_facts(desk.change)
        following = step_lists.next_planner_step(desk.change.read(), looks, found)
        if following is None:
            desk.run.update(lambda old: _generated(old, desk.change))
            return
        if following.kind == "tasks-gen" and found and not found.specs:
            desk.run.emit(NoticeIssued(code="no-specs", message="No specs required for this change"))
        _make(desk, following, looks)


def _make(desk: StepContext, following: PlannedStep, looks: int) -> None:
    match following.kind:
        case "proposal-gen":
            generate.generate_proposal(desk)
        case "spec-gen":
            generate.generate_spec(desk, following.spec)
        case "tasks-gen":
            generate.generate_tasks(desk)
        case "plan-gen":
            generate.generate_plan(desk)
        case _:
            self_review.run_self_review(desk, following.kind, following.spec, following.number, looks)


def _generated(old: ChangeState, change: Change) -> ChangeState:
    found = plan_facts.read_plan_facts(change) or PlanFacts()
    specs = {0: "", 1: ", 1 spec"}.get(len(found.specs), f", {len(found.specs)} specs")
    tasks = "1 task" if found.tasks == 1 else f"{found.tasks} tasks"
    why = f"proposal{specs} and {tasks} generated and valid"
    return old.with_transition(
        TransitionEvent.PLAN_GENERATED, by="agentd", why=why, at=clock.now(), hashes=change.hashes()
    )


def _offer_light(desk: StepContext, wishes: RunOptions) -> None:
    """Only between the proposal and what follows it: a small change needs no long process."""
    state, found = desk.change.read(), plan_facts.read_plan_facts(desk.change)
    done = [step.name for step in state.steps if step.name not in (clarify.CLARIFY_STEP, format_fix.FORMAT_STEP)]
    if state.lane is not Lane.FULL or set(done) != {"proposal-gen"} or not found or not found.is_small:
        return
    size = "without a spec" if not found.specs else "with 1 spec"
    options = (
        QuestionOption("light", "Light lane: one session writes the rest, no self-review, one challenge", "--light"),
        QuestionOption("full", "Full lane: a session and a self-review for each document"),
    )
    question = Question("lane", f"The planner calls this a patch {size}. Which way?", options, "light")
    answer = ask_decision(desk.run, question, wishes.person, wishes.yes)
    if answer and answer.id == "light":
        left = wishes.granted(Lane.LIGHT, desk.config.workflow.planning_iterations)
        desk.run.update(lambda old: _is_light(old, left))


def _is_light(old: ChangeState, rounds_left: int) -> ChangeState:
    return replace(old, lane=Lane.LIGHT, run=old.run and replace(old.run, rounds_left=rounds_left))


def run_plan(desk: StepContext, wishes: RunOptions) -> None:
    """The documents, and rounds until a verdict settles them."""
    with _planning(desk, wishes):
        dependencies.warn_dependencies(desk)
        draft_documents(desk, wishes)
        if desk.change.read().phase is Phase.PROPOSED or wishes.rechallenge:  # else a killed run came to its verdict
            plan_rounds.run_plan_rounds(desk, wishes)


def run_proposal(desk: StepContext, wishes: RunOptions) -> None:
    """The documents only: the phase command `proposal`."""
    with _planning(desk, wishes):
        draft_documents(desk, wishes)


def run_challenge(desk: StepContext, wishes: RunOptions) -> None:
    """The verdict only: the phase command `challenge`."""
    with _planning(desk, wishes):
        if not plan_rounds.judge_plan(desk, wishes):
            desk.run.emit(
                already_judged_notice(desk.change, CHALLENGER_SPEC, f"agentd plan {desk.change.id} --rechallenge")
            )


def run_reproposal(desk: StepContext, wishes: RunOptions) -> None:
    """The planner's answers only: the phase command `reproposal`."""
    with _planning(desk, wishes):
        plan_rounds.answer_challenge(desk, wishes)


def decide_plan(desk: StepContext, answer: str, reason: str, by: str, read: str = "") -> None:
    """What a person decides without being asked: `--accept`, `--reject`, `--send-back`.

    `read` is the digest of what they have read (`seen`): nothing is written if that is not what is there.
    """
    hashes = desk.change.hashes()
    read_digest.check_reading(desk.change, read)
    with _planning(desk, RunOptions(rounds=0)):
        plan_rounds.apply_plan_edits(desk)
        read_digest.check_reading(desk.change, read)  # a comment may have come in between
        person_decisions.PLAN_DECISIONS[answer](desk, reason, by, hashes)


def _planning(desk: StepContext, wishes: RunOptions) -> AbstractContextManager[None]:
    return run_scope(desk, lambda old: _begun(old, desk.config.workflow, wishes))


def _begun(old: ChangeState, settings: WorkflowSettings, wishes: RunOptions) -> ChangeState:
    lane = old.lane
    if old.phase is Phase.DRAFTING and (not old.steps or (wishes.light and is_only_clarified(old))):
        lane = Lane.LIGHT if wishes.light else Lane.FULL if settings.human_in_loop else Lane.AUTOMATED
    new = begin_run_state(old, Workflow.PLAN, wishes.granted(lane, settings.planning_iterations))
    return replace(new, lane=lane, session_id=None if wishes.new_session else old.session_id)

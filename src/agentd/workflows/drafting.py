"""The documents of a plan come into being, each after what it builds on."""

from dataclasses import replace

from agentd.change.folder import Change
from agentd.change.state import ChangeState
from agentd.domain import clock
from agentd.domain.events import NoticeIssued
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import Lane, Phase
from agentd.steps import clarify, facts, form, generate, self_review
from agentd.steps.desk import Desk
from agentd.steps.facts import Facts
from agentd.workflows import course
from agentd.workflows.asking import Option, Question, decide
from agentd.workflows.clarifying import clarify_first
from agentd.workflows.course import Ahead
from agentd.workflows.forming import settle_form
from agentd.workflows.meeting import tell_overlaps
from agentd.workflows.wishes import Wishes


def draft(desk: Desk, wishes: Wishes) -> None:
    looks = desk.config.workflow.self_review_iterations
    if wishes.light and desk.change.read().lane is not Lane.LIGHT:
        words = f"{desk.change.id} was begun in the {desk.change.read().lane} lane and stays in it"
        desk.run.emit(NoticeIssued(code="lane", message=words))
    clarify_first(desk, wishes)
    while desk.change.read().phase is Phase.DRAFTING:
        if form.is_due(desk):
            generate.keep_bases(desk)
            settle_form(desk, wishes)
            tell_overlaps(desk)
            _offer_light(desk, wishes)
        found = facts.read(desk.change)
        following = course.next_maker(desk.change.read(), looks, found)
        if following is None:
            desk.run.update(lambda old: _generated(old, desk.change))
            return
        if following.kind == "tasks-gen" and found and not found.specs:
            desk.run.emit(NoticeIssued(code="no-specs", message="No specs required for this change"))
        _make(desk, following, looks)


def _make(desk: Desk, following: Ahead, looks: int) -> None:
    match following.kind:
        case "proposal-gen":
            generate.proposal(desk)
        case "spec-gen":
            generate.spec(desk, following.spec)
        case "tasks-gen":
            generate.tasks(desk)
        case "plan-gen":
            generate.whole(desk)
        case _:
            self_review.look(desk, following.kind, following.spec, following.number, looks)


def _generated(old: ChangeState, change: Change) -> ChangeState:
    found = facts.read(change) or Facts()
    specs = {0: "", 1: ", 1 spec"}.get(len(found.specs), f", {len(found.specs)} specs")
    tasks = "1 task" if found.tasks == 1 else f"{found.tasks} tasks"
    why = f"proposal{specs} and {tasks} generated and valid"
    return old.moved(TransitionEvent.PLAN_GENERATED, by="agentd", why=why, at=clock.now(), hashes=change.hashes())


def _offer_light(desk: Desk, wishes: Wishes) -> None:
    """Only between the proposal and what follows it: a small change needs no long process."""
    state, found = desk.change.read(), facts.read(desk.change)
    done = [step.name for step in state.steps if step.name not in (clarify.STEP, form.STEP)]
    if state.lane is not Lane.FULL or set(done) != {"proposal-gen"} or not found or not found.is_small:
        return
    size = "without a spec" if not found.specs else "with 1 spec"
    options = (
        Option("light", "Light lane: one session writes the rest, no self-review, one challenge", "--light"),
        Option("full", "Full lane: a session and a self-review for each document"),
    )
    question = Question("lane", f"The planner calls this a patch {size}. Which way?", options, "light")
    answer = decide(desk.run, question, wishes.person, wishes.yes)
    if answer and answer.id == "light":
        left = wishes.granted(Lane.LIGHT, desk.config.workflow.planning_iterations)
        desk.run.update(lambda old: _light(old, left))


def _light(old: ChangeState, rounds_left: int) -> ChangeState:
    return replace(old, lane=Lane.LIGHT, run=old.run and replace(old.run, rounds_left=rounds_left))

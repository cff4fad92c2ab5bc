"""`plan`: from a sentence to a judged plan. Running is resuming: STATE.yaml says what comes next."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from agentd import clock
from agentd.change.folder import Change
from agentd.change.state import Run as Begun
from agentd.change.state import State, Step
from agentd.documents.records import Record
from agentd.errors import AnswerIsNo, ChangeNotReady, FormatInvalid, WrongPhase
from agentd.events import Noted
from agentd.machine import Event
from agentd.rules import Finding
from agentd.steps import challenge, facts, form, generate, recording, self_review
from agentd.steps.desk import Desk
from agentd.terms import Lane, Phase, StepStatus, Workflow
from agentd.workflows import course
from agentd.workflows.asking import Option, Person, Question, decide
from agentd.workflows.course import Ahead

_NAMED = 5  # faults named in an error; `agentd validate` lists them all
JUDGED = (Phase.PROPOSED, Phase.CHALLENGED, Phase.REJECTED)  # where a challenge can be


@dataclass(frozen=True)
class Wishes:
    """What the command was told: who can be asked, and what is answered already."""

    person: Person | None = None
    yes: bool = False
    light: bool = False
    new_session: bool = False


def plan(desk: Desk, wishes: Wishes) -> None:
    """The documents, and the verdict on them."""
    with _under_way(desk, wishes):
        _draft(desk, wishes)
        if desk.change.read().phase is Phase.PROPOSED:  # else a killed run has come to its verdict, which stands
            _judge(desk, wishes)


def propose(desk: Desk, wishes: Wishes) -> None:
    """The documents only: the phase command `proposal`."""
    with _under_way(desk, wishes):
        _draft(desk, wishes)


def judge(desk: Desk, wishes: Wishes) -> None:
    """The verdict only: the phase command `challenge`."""
    with _under_way(desk, wishes):
        _judge(desk, wishes)


@contextmanager
def _under_way(desk: Desk, wishes: Wishes) -> Iterator[None]:
    """STATE.yaml says so while it runs, and still does after a failure: the next command resumes it."""
    if record := recording.left_over(desk):
        round_ = (challenge.STEP, record.round)
        rows = [step.attempt for step in desk.change.read().steps if (step.name, step.round) == round_]
        recording.finish(desk, record, max(rows, default=1))
    desk.run.update(lambda old: _begun(old, desk, wishes))
    try:
        yield
    except AnswerIsNo:
        desk.run.update(lambda old: replace(old, run=None))
        raise
    desk.run.update(lambda old: replace(old, run=None))


def _begun(old: State, desk: Desk, wishes: Wishes) -> State:
    workflow = desk.config.workflow
    run = old.run or Begun(Workflow.PLAN, clock.now(), workflow.planning_iterations, len(old.steps))
    new = replace(old, run=run, session_id=None if wishes.new_session else old.session_id)
    if old.phase is not Phase.DRAFTING or old.steps:
        return new
    lane = Lane.LIGHT if wishes.light else Lane.FULL if workflow.human_in_loop else Lane.AUTOMATED
    skipped = Step("clarify", 1, 1, 1, StepStatus.SKIPPED, {}, clock.now())
    return replace(new, lane=lane).with_step(skipped)


# ---- the documents


def _draft(desk: Desk, wishes: Wishes) -> None:
    looks = desk.config.workflow.self_review_iterations
    while desk.change.read().phase is Phase.DRAFTING:
        if desk.change.hashes():
            generate.keep_bases(desk)
            _settle_form(desk, wishes)
            _offer_light(desk, wishes)
        found = facts.read(desk.change)
        following = course.next_maker(desk.change.read(), looks, found)
        if following is None:
            desk.run.update(lambda old: _generated(old, desk.change))
            return
        if following.kind == "tasks-gen" and found and not found.specs:
            desk.run.emit(Noted(code="no-specs", message="No specs required for this change"))
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


def _generated(old: State, change: Change) -> State:
    found = facts.read(change)
    assert found
    specs = {0: "", 1: ", 1 spec"}.get(len(found.specs), f", {len(found.specs)} specs")
    tasks = "1 task" if found.tasks == 1 else f"{found.tasks} tasks"
    why = f"proposal{specs} and {tasks} generated and valid"
    return old.moved(Event.PLAN_GENERATED, by="agentd", why=why, at=clock.now(), hashes=change.hashes())


def _offer_light(desk: Desk, wishes: Wishes) -> None:
    """Only between the proposal and what follows it: a small change needs no long process."""
    state, found = desk.change.read(), facts.read(desk.change)
    done = [step.name for step in state.steps if step.name not in ("clarify", form.STEP)]
    if state.lane is not Lane.FULL or set(done) != {"proposal-gen"} or not found or not found.is_small:
        return
    size = "without a spec" if not found.specs else "with 1 spec"
    options = (
        Option("light", "Light lane: one session writes the rest, no self-review, one challenge", "--light"),
        Option("full", "Full lane: a session and a self-review for each document"),
    )
    question = Question("lane", f"The planner calls this a patch {size}. Which way?", options, "light")
    if decide(desk.run, question, wishes.person, wishes.yes) == "light":
        desk.run.update(lambda old: replace(old, lane=Lane.LIGHT))


# ---- their form


def _settle_form(desk: Desk, wishes: Wishes) -> None:
    """Validation without an agent; what is left is mended by the planner or by the person."""
    most = desk.config.workflow.format_iterations
    while found := form.faults(desk):
        form.tell(desk, found)
        answer = decide(desk.run, _form_question(desk, found), wishes.person) or "planner"
        if answer == "stop":
            raise _unformed(f"Stopped with {_faults(found)} left in the plan", desk.change.id, found)
        if answer == "person" and wishes.person:
            wishes.person.wait(f"Mend {_files(found)}, then go on")
        elif wishes.person is None and form.used(desk.change.read()) >= most:
            raise _unformed(f"Format validation still failing after {most} iterations", desk.change.id, found)
        else:
            form.fix(desk, found)


def _form_question(desk: Desk, found: Sequence[Finding]) -> Question:
    options = (
        Option("planner", "The planner mends it"),
        Option("person", "I mend it"),
        Option("stop", "Stop here"),
    )
    number = form.used(desk.change.read()) + 1
    return Question(f"format-{number}", f"The plan has {_faults(found)} in its form. What next?", options, "planner")


def _unformed(message: str, change_id: str, found: Sequence[Finding]) -> FormatInvalid:
    lines = [f"  {one.file}:{one.line} {one.rule}: {one.message}" for one in found[:_NAMED]]
    more = [f"  and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    hint = f"mend them (agentd validate {change_id} lists all), then: agentd plan {change_id}"
    return FormatInvalid("\n".join([message, *lines, *more]), hint)


def _faults(found: Sequence[Finding]) -> str:
    return "1 fault" if len(found) == 1 else f"{len(found)} faults"


def _files(found: Sequence[Finding]) -> str:
    return ", ".join(dict.fromkeys(one.file for one in found))


# ---- the verdict


def _judge(desk: Desk, wishes: Wishes) -> None:
    state = desk.change.read()
    if state.phase is Phase.DRAFTING:
        raise ChangeNotReady(f"{desk.change.id} has no plan to challenge yet", f"agentd plan {desk.change.id}")
    if state.phase not in JUDGED:
        raise WrongPhase(
            f"{desk.change.id} is {state.phase}, which is beyond planning", f"agentd status {desk.change.id}"
        )
    if is_judged(desk.change):
        if state.phase is Phase.REJECTED:
            hint = f"read {desk.path('CHALLENGE.md')}, edit the plan, then: agentd challenge {desk.change.id}"
            raise WrongPhase(f"{desk.change.id} was rejected, and its plan has not changed since", hint)
        return
    _settle_form(desk, wishes)
    challenge.challenge(desk)


def last_challenge(change: Change) -> Record | None:
    return next((record for record in reversed(change.records()) if record.kind == challenge.STEP), None)


def is_judged(change: Change) -> bool:
    """The last verdict is on the plan as it is now."""
    record = last_challenge(change)
    return record is not None and dict(record.judged) == change.hashes()

"""What a person can decide about a change now, and how a decision, a stop and a resume are carried out and reported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentd.change import Change, ChangeState, Decision, current_comments, stop_run
from agentd.documents import CommentSeverity
from agentd.domain import TRANSITIONS, AgentdError, Phase, Refusal, Severity, TransitionEvent, UsageError, Workflow
from agentd.engine import (
    REVIEWER_SPEC,
    PersonDecision,
    RunRequest,
    RunResult,
    belongs_to_workflow,
    blocking_checks,
    current_reading,
    deliver_decision,
    describe_differences,
    differing_names,
    is_plan_as_decided,
    last_record,
    next_request,
    open_findings,
    pending_question,
    reading_digest,
    run_detached,
    start_detached,
)

_AS_READ = "approved as read"
_LONGEST = 20_000  # characters of a reason; must fit in one command-line argument
_ANSWERS = {
    "approve": "accept",
    "approve-with-notes": "accept",
    **{name: name for name in ("accept", "send-back", "reject", "plan-wrong")},
}


@dataclass(frozen=True, slots=True)
class DecisionChoice:
    """One possible decision. `workflow`: the workflow whose command applies it, or whose run waits for it."""

    id: str
    label: str
    needs_reason: bool
    is_primary: bool
    workflow: str


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The outcome of an action. `changed`: what differs from what was shown; if not empty, nothing was decided."""

    ok: bool
    message: str
    hint: str = ""
    changed: tuple[str, ...] = ()


# ---- choices


def decision_choices(change: Change) -> tuple[DecisionChoice, ...]:
    """Return the answers of a waiting run, nothing while a run is at work, else what the transition table allows."""
    state = change.read()
    if not state.phase.is_open:
        return ()
    if change.active_run():
        return _answers(pending_question(change))
    if state.phase in (Phase.PROPOSED, Phase.CHALLENGED):
        return _of_plan(change, state)
    return _of_code(change, state)


def _answers(asked: Mapping[str, Any] | None) -> tuple[DecisionChoice, ...]:
    """Return the answers to the question, except for "view": this is the view."""
    if asked is None:
        return ()
    best = {row.get("id") for row in asked.get("options", ()) if row.get("recommended")}
    workflow = Workflow.IMPL if belongs_to_workflow("impl", str(asked.get("id"))) else Workflow.PLAN
    return tuple(
        DecisionChoice(str(row["id"]), str(row["label"]), bool(row["asks"]), row["id"] in best, workflow)
        for row in asked.get("answers", ())
        if row["id"] != "view"
    )


def _of_plan(change: Change, state: ChangeState) -> tuple[DecisionChoice, ...]:
    notes, more = _open(change)
    moves = [moved.event for moved in state.history[-1:]]
    is_approved = moves == [TransitionEvent.ACCEPTED] and is_plan_as_decided(change)
    found = []
    if not notes and not more and not is_approved:
        found.append(DecisionChoice("approve", "Approve", False, True, Workflow.PLAN))
    if not more:
        found.append(DecisionChoice("approve-with-notes", "Approve with notes", True, notes, Workflow.PLAN))
    else:
        found.append(DecisionChoice("accept", "Accept anyway", True, False, Workflow.PLAN))
    if last_record(change):
        is_best = more and state.phase is Phase.PROPOSED  # a plan that a judge approved can be built
        found.append(DecisionChoice("send-back", "Request changes", True, is_best, Workflow.PLAN))
    return (*found, DecisionChoice("reject", "Reject", True, False, Workflow.PLAN))


def _of_code(change: Change, state: ChangeState) -> tuple[DecisionChoice, ...]:
    found = []
    events = TRANSITIONS[state.phase]
    if TransitionEvent.ACCEPTED in events and last_record(change, REVIEWER_SPEC) and not blocking_checks(change):
        is_open = any(_open(change))
        name, label = ("accept", "Accept anyway") if is_open else ("approve", "Approve")
        found.append(DecisionChoice(name, label, is_open, not is_open, Workflow.IMPL))
    if TransitionEvent.SENT_BACK in events:
        found.append(DecisionChoice("send-back", "Request changes", True, False, Workflow.IMPL))
    if TransitionEvent.PLAN_WRONG in events:
        found.append(DecisionChoice("plan-wrong", "The plan is wrong", True, False, Workflow.IMPL))
    return tuple(found)


def _open(change: Change) -> tuple[bool, bool]:
    """Return whether people's notes are open, and whether anything else is; comments that are no findings yet count."""
    found = open_findings(change)
    known = {one.id for one in found}
    said = [one for one in current_comments(change) if one.is_open and one.words and one.finding not in known]
    notes = [one.by.startswith("person:") and one.severity is Severity.LOW for one in found]
    notes += [one.severity is CommentSeverity.NOTE for one in said]
    return any(notes), not all(notes)


# ---- decisions


def make_decision(
    change: Change,
    choice_id: str,
    reason: str,
    shown: Mapping[str, str],
    by: str,
    settings: Sequence[str] = (),
) -> ActionResult:
    """Deliver a decision to the waiting run, else run the command; refuse if what was shown is no longer current."""
    if stale := _stale(change, shown):
        return stale
    choice = next((one for one in decision_choices(change) if one.id == choice_id), None)
    if choice is None:
        raise Refusal(f"{choice_id} cannot be decided about {change.id} now", f"agentd status {change.id}")
    words = _reason(choice, reason)
    if asked := pending_question(change):
        decision = Decision(str(asked["id"]), choice.id, words, by, shown)
        told = _attempt(lambda: _deliver(change, decision))
    elif answer := _ANSWERS.get(choice.id):
        made = PersonDecision(answer, words, by, reading_digest(shown))
        request = RunRequest(choice.workflow, settings=tuple(settings), decision=made)
        told = _attempt(lambda: _outcome(run_detached(change, request)))
    else:
        raise Refusal(f"the run that asked about {change.id} is over", f"agentd status {change.id}")
    return told if told.ok else _stale(change, shown) or told


def _stale(change: Change, shown: Mapping[str, str]) -> ActionResult | None:
    now = current_reading(change)
    changed = tuple(differing_names(shown, now))
    if not changed:
        return None
    words = f"{describe_differences(changed, now)} since this page was made, so nothing was decided"
    return ActionResult(False, words, "read what changed, then decide", changed)


def _reason(choice: DecisionChoice, reason: str) -> str:
    words = reason.replace("\r\n", "\n").strip()
    if "\0" in words or len(words) > _LONGEST:
        raise UsageError(f"a reason has at most {_LONGEST} characters of plain text", "say it in a comment")
    if choice.needs_reason and not words:
        raise UsageError(f"{choice.label} needs a reason", "say why in a few words")
    return words or (_AS_READ if choice.id == "approve" else "")


def _attempt(action: Callable[[], ActionResult]) -> ActionResult:
    try:
        return action()
    except AgentdError as error:
        return ActionResult(False, error.message, error.hint)


def _deliver(change: Change, decision: Decision) -> ActionResult:
    deliver_decision(change, decision)
    return ActionResult(True, f"Decided: {decision.answer}. The waiting run has received it.")


def _outcome(result: RunResult) -> ActionResult:
    error = result.data["error"]
    if error:
        return ActionResult(False, error["message"], error["hint"])
    return ActionResult(True, result.data["message"], result.data["next"] or "")


# ---- runs


def stop_change(change: Change) -> ActionResult:
    """Stop the active run; finished work is kept."""
    holder = stop_run(change)
    if holder is None:
        return ActionResult(True, f"Nothing is running for {change.id}.")
    return ActionResult(True, "Stopped; what was done is kept.", holder.command)


def resume_change(change: Change, budget: float | None = None, settings: Sequence[str] = ()) -> ActionResult:
    """Run the next workflow in the background, with a higher budget if `budget` is given."""
    request = next_request(change)
    if request is None or request.command not in (Workflow.PLAN, Workflow.IMPL):
        raise Refusal(f"{change.id} has nothing to continue", f"agentd status {change.id}")
    request = replace(request, settings=tuple(settings), raise_budget=budget or 0.0)

    def start() -> ActionResult:
        started = start_detached(change, request)
        if isinstance(started, RunResult):
            return _outcome(started)
        return ActionResult(True, f"{change.id} continues in the background.", f"agentd wait {change.id}")

    return _attempt(start)

"""A person's decision handed to a run that waits for one: until it is taken, and what was decided is done."""

import time
from collections.abc import Callable
from typing import Any

from agentd.change import Change, Decision, Inbox
from agentd.domain import Refusal
from agentd.engine.workflows import code_decisions, plan_decisions

_PATIENCE = 60.0  # seconds, for a busy machine; a run that waits for a decision looks several times in one
_MOVES = {*plan_decisions.PLAN_DECISIONS, *code_decisions.CODE_DECISIONS}


def pending_question(change: Change) -> dict[str, Any] | None:
    """The question that a live run waits with."""
    return Inbox(change).asked() if change.active_run() else None


def belongs_to_workflow(command: str, question: str) -> bool:
    """A decision about code is none about a plan."""
    return question.startswith("after-challenge-" if command == "plan" else "after-review-")


def deliver_decision(change: Change, decision: Decision) -> None:
    """Until what was decided is done: the run may find that it cannot be."""
    inbox, before = Inbox(change), len(change.read().history)
    name = inbox.post(decision)
    _wait(lambda: inbox.has_reply(name) or inbox.asked() is None)
    reply = inbox.reply_to(name)
    hint = f"agentd status {change.id}"
    if reply is None:
        inbox.withdraw(name)
        raise Refusal(f"the run of {change.id} does not take decisions just now", hint)
    if not reply.taken:
        raise Refusal(f"the decision was not taken: {reply.why}", hint)
    if decision.answer not in _MOVES:
        return  # the run goes on or stops by itself
    _wait(lambda: len(change.read().history) > before or change.active_run() is None)
    if len(change.read().history) == before:
        raise Refusal("the decision was taken, but the run ended without it", f"agentd log {change.id}")


def _wait(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not is_so() and time.monotonic() < end:
        time.sleep(0.1)

"""A person's decision by flag: `--accept`, `--send-back` and their kind, each with its reason."""

import time
from collections.abc import Callable

from agentd import git
from agentd.change import entry
from agentd.change.folder import Change
from agentd.change.inbox import Decision, Inbox
from agentd.cli import running
from agentd.cli.options import Options
from agentd.errors import AnswerIsNo, UsageError
from agentd.project import find_project
from agentd.terms import Workflow
from agentd.workflows import impl, plan

_PATIENCE = 10.0  # seconds; a run that waits for a decision looks several times in one


def chosen(decisions: dict[str, str | None]) -> tuple[str, str] | None:
    """The one that was given, and its reason."""
    given = {name: reason for name, reason in decisions.items() if reason is not None}
    if len(given) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in given)} are two decisions", "give one of them")
    for name, reason in given.items():
        if not reason.strip():
            raise UsageError(f"--{name} needs a reason", f'--{name} "why"')
        return name, reason.strip()
    return None


def decide(change_id: str, options: Options, answer: str, reason: str) -> int:
    """At once; or, if a run waits for just that, through its inbox."""
    change = entry.open_change(find_project(), change_id)
    by = f"person:{git.user_name(change.tree)}"
    if change.active_run() and (asked := Inbox(change).asked()) and _is_of(options.command, str(asked.get("id"))):
        _hand_over(change, Decision(str(asked.get("id")), answer, reason, by, change.hashes()))
        return running.tell(change, options, code=0)
    workflow = Workflow.PLAN if options.command == "plan" else Workflow.IMPL
    decided = plan.decide if workflow is Workflow.PLAN else impl.decide
    return running.run(
        change, options, lambda desk, _: decided(desk, answer, reason, by), workflow, told=lambda: ("", 0)
    )


def _is_of(command: str, question: str) -> bool:
    """A decision about code is none about a plan."""
    return question.startswith("after-challenge-" if command == "plan" else "after-review-")


def _hand_over(change: Change, decision: Decision) -> None:
    """Until what was decided is done: the run may find that it cannot be."""
    inbox, before = Inbox(change), len(change.read().history)
    name = inbox.post(decision)
    _wait(lambda: inbox.has_reply(name) or inbox.asked() is None)
    reply = inbox.reply_to(name)
    hint = f"agentd status {change.id}"
    if reply is None:
        inbox.withdraw(name)
        raise AnswerIsNo(f"the run of {change.id} does not take decisions just now", hint)
    if not reply.taken:
        raise AnswerIsNo(f"the decision was not taken: {reply.why}", hint)
    _wait(lambda: len(change.read().history) > before or change.active_run() is None)
    if len(change.read().history) == before:
        raise AnswerIsNo("the decision was taken, but the run ended without it", f"agentd log {change.id}")


def _wait(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not is_so() and time.monotonic() < end:
        time.sleep(0.1)

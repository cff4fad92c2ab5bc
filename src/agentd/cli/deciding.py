"""A person's decision by flag: `plan --accept`, `--reject` and `--send-back`, each with its reason."""

import time

from agentd import git
from agentd.change import entry
from agentd.change.folder import Change
from agentd.change.inbox import Decision, Inbox, Reply
from agentd.cli import planning
from agentd.cli.planning import Options
from agentd.errors import AnswerIsNo, UsageError
from agentd.project import find_project
from agentd.workflows import plan

_PATIENCE = 10.0  # seconds; a run that waits for a decision looks several times in one
_SAID = {"accept": "Accepted", "reject": "Rejected", "send-back": "Sent back"}


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
    message = f"{_SAID[answer]} by {by.removeprefix('person:')}: {reason}"
    if change.active_run() and (asked := Inbox(change).asked()):
        _hand_over(change, Decision(str(asked.get("id")), answer, reason, by, change.hashes()))
        return planning.tell(change, options, len(change.read().llm_calls), message, code=0)
    return planning.run(change, options, lambda desk, _: plan.decide(desk, answer, reason, by), message, 0)


def _hand_over(change: Change, decision: Decision) -> None:
    inbox = Inbox(change)
    name = inbox.post(decision)
    end = time.monotonic() + _PATIENCE
    reply: Reply | None = None
    while reply is None and time.monotonic() < end:
        time.sleep(0.1)
        reply = inbox.reply_to(name)
    if reply is None:
        inbox.withdraw(name)
        raise AnswerIsNo(f"the run of {change.id} does not take decisions just now", f"agentd status {change.id}")
    if not reply.taken:
        raise AnswerIsNo(f"the decision was not taken: {reply.why}", f"agentd status {change.id}")

"""The question that follows a verdict, with the flag and the command for each answer."""

from collections.abc import Mapping
from typing import Any

from agentd.change import Change
from agentd.documents import count_open
from agentd.domain import CheckStatus, join_words
from agentd.engine.workflows.decision_questions import Question, QuestionOption
from agentd.engine.workflows.verdict_status import challenges, open_findings

_WHY = "Why?"


def after_challenge(change: Change, recommended: str = "fix") -> Question:
    start = f"agentd plan {change.id}"
    options = (
        QuestionOption("fix", "Fix and challenge again", "--rounds 1", f"{start} --rounds 1"),
        QuestionOption("view", "Look at it", None, f"agentd view {change.id}"),
        QuestionOption("accept", "Accept with a reason", '--accept "REASON"', f'{start} --accept "REASON"', _WHY),
        QuestionOption("stop", "Stop here", "--rounds 0"),
    )
    id_, text = f"after-challenge-{len(challenges(change))}", f"The challenge found {_found(change)}. What next?"
    others = (QuestionOption("reject", "Reject it", asks=_WHY), QuestionOption("send-back", "Send it back", asks=_WHY))
    return Question(id_, text, options, recommended, others)


def after_review(change: Change) -> Question:
    """Accepting is no way out of a failed required check; what failed before may be said to be known."""
    start = f"agentd impl {change.id}"
    options = [
        QuestionOption("fix", "Fix and review again", "--rounds 1", f"{start} --rounds 1"),
        QuestionOption("view", "Look at it", None, f"agentd view {change.id}"),
        QuestionOption("accept", "Accept with a reason", '--accept "REASON"', f'{start} --accept "REASON"', _WHY),
        QuestionOption(
            "plan-wrong", "The plan is wrong", '--plan-wrong "REASON"', f'{start} --plan-wrong "REASON"', _WHY
        ),
        QuestionOption("stop", "Stop here", "--rounds 0"),
    ]
    blocking = blocking_checks(change)
    if blocking:
        options = [one for one in options if one.id != "accept"]
    if any(_failed_before(row) for row in blocking):
        flag = '--known-failures "REASON"'
        options.insert(
            2,
            QuestionOption("known-failures", "It failed before: say why that is known", flag, f"{start} {flag}", _WHY),
        )
    number = len(change.records("review"))
    return Question(f"after-review-{number}", f"The review found {_found(change)}. What next?", tuple(options), "fix")


def blocking_checks(change: Change) -> list[Mapping[str, Any]]:
    """What nobody can accept the code over, by the last run of the checks."""
    return [row for row in change.read().checks if row.get("blocks")]


def _failed_before(row: Mapping[str, Any]) -> bool:
    before = row.get("before") or {}
    return row.get("status") == CheckStatus.FAILED == before.get("status")


def _found(change: Change) -> str:
    counts = [f"{count} {severity}" for severity, count in count_open(open_findings(change)).items() if count]
    return join_words(counts) or "nothing"

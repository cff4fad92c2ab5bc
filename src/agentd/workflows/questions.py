"""The question that follows a challenge, with the flag and the command for each answer."""

from agentd.change.folder import Change
from agentd.documents.standing import open_counts
from agentd.workflows.asking import Option, Question
from agentd.workflows.verdict import challenges, left_open

_WHY = "Why?"


def after_challenge(change: Change, recommended: str = "fix") -> Question:
    counts = [f"{count} {severity}" for severity, count in open_counts(left_open(change)).items() if count]
    what = " and ".join(filter(None, [", ".join(counts[:-1]), counts[-1]])) if counts else "nothing"
    start = f"agentd plan {change.id}"
    options = (
        Option("fix", "Fix and challenge again", "--rounds 1", f"{start} --rounds 1"),
        Option("view", "Look at it", None, f"agentd view {change.id}"),
        Option("accept", "Accept with a reason", '--accept "REASON"', f'{start} --accept "REASON"', _WHY),
        Option("stop", "Stop here", "--rounds 0"),
    )
    id_, text = f"after-challenge-{len(challenges(change))}", f"The challenge found {what}. What next?"
    others = (Option("reject", "Reject it", asks=_WHY), Option("send-back", "Send it back", asks=_WHY))
    return Question(id_, text, options, recommended, others)

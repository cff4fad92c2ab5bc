"""The story: what happens in which order, by which command, and why."""

from dataclasses import dataclass
from enum import StrEnum

DEMO_CHANGE_ID = "split-by-weight"
DESCRIPTION = "Split an expense by weight, and tell who pays whom at the end"
# The person's answers to the planner's questions.
ANSWERS = {
    "clarify-1": "Whole-number weights, such as 2 and 1",
    "clarify-2": "Few payments that settle everything",
}


class StoryPoint(StrEnum):
    """The state of the change after an act."""

    CLARIFIED = "clarified"
    CHALLENGED = "challenged"  # first round: the challenger found a flaw
    APPROVED = "approved"
    REVIEWED = "reviewed"  # first round: a test fails, and the reviewer found more
    COMPLETE = "complete"
    ARCHIVED = "archived"


@dataclass(frozen=True)
class Act:
    """`code` is the command's expected exit code. `commit`: the message under which the result is committed."""

    point: StoryPoint
    title: str
    why: str
    command: tuple[str, ...]
    code: int = 0
    pauses: bool = False
    commit: str = ""


ACTS = (
    Act(
        StoryPoint.CLARIFIED,
        "The planner asks first",
        "A sentence leaves things open, so the planner asks before it writes. The demo types and answers for you, and "
        "stops after the questions; in a project of yours the command goes on to the whole plan.",
        ("plan", DEMO_CHANGE_ID, DESCRIPTION, "--git", "branch"),
        pauses=True,
    ),
    Act(
        StoryPoint.CHALLENGED,
        "A plan, and somebody who looks for what breaks in it",
        "Proposal, three specs and tasks by the planner; then another agent, in a fresh session, challenges them.",
        ("plan", DEMO_CHANGE_ID, "--rounds", "0"),
        code=1,
        pauses=True,
    ),
    Act(
        StoryPoint.APPROVED,
        "The planner answers, the challenger looks again",
        "Every finding must be answered. Only the challenger, or you, can close it.",
        ("plan", DEMO_CHANGE_ID, "--rounds", "1"),
        pauses=True,
        commit="Plan the split by weight",
    ),
    Act(
        StoryPoint.REVIEWED,
        "Code, tests run by agentd, a review",
        "The implementer says that all tests pass. agentd runs them itself, and a reviewer reads the diff.",
        ("impl", DEMO_CHANGE_ID, "--rounds", "0"),
        code=1,
    ),
    Act(
        StoryPoint.COMPLETE,
        "The fix",
        "The failed test and the reviewer's finding are answered, proved and reviewed again.",
        ("impl", DEMO_CHANGE_ID, "--rounds", "1"),
        pauses=True,
        commit="Split an expense by weight, and tell who pays whom",
    ),
    Act(
        StoryPoint.ARCHIVED,
        "The specs become the project's own",
        "What the change says is merged into agentd/specs, requirement by requirement, and its folder is put away.",
        ("archive", DEMO_CHANGE_ID),
        commit=f"Archive {DEMO_CHANGE_ID}",
    ),
)

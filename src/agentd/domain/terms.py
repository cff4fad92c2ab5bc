"""The vocabulary of agentd as types: one word, one meaning."""

import re
from enum import StrEnum

CHANGE_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
ID_LENGTH = 64
DEMO_PART = "AGENTD_DEMO"
"""The variable of a command that is a part of the demo, which tells itself how an interruption ends."""


class Phase(StrEnum):
    """The state of a change. STATE.yaml has no phase while drafting; `drop` ends in dropped."""

    DRAFTING = "drafting"
    PROPOSED = "proposed"
    CHALLENGED = "challenged"
    REJECTED = "rejected"
    IMPLEMENTING = "implementing"
    COMPLETE = "complete"
    ARCHIVED = "archived"
    DROPPED = "dropped"

    @property
    def is_open(self) -> bool:
        return self not in (Phase.ARCHIVED, Phase.DROPPED)

    @property
    def judged_by(self) -> str:
        """The kind of record that applies: findings in a plan are settled once implementation starts."""
        return "review" if self in (Phase.IMPLEMENTING, Phase.COMPLETE, Phase.ARCHIVED) else "challenge"


class Workflow(StrEnum):
    PLAN = "plan"
    IMPL = "impl"
    ARCHIVE = "archive"


class Role(StrEnum):
    """Planner and implementer are authors; challenger and reviewer are judges."""

    PLANNER = "planner"
    CHALLENGER = "challenger"
    IMPLEMENTER = "implementer"
    REVIEWER = "reviewer"

    @property
    def is_judge(self) -> bool:
        return self in (Role.CHALLENGER, Role.REVIEWER)


class Lane(StrEnum):
    FULL = "full"
    LIGHT = "light"
    AUTOMATED = "automated"


class GitSetup(StrEnum):
    IN_PLACE = "in-place"
    BRANCH = "branch"
    WORKTREE = "worktree"


class StepStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Severity(StrEnum):
    """Most severe first."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class FindingState(StrEnum):
    OPEN = "open"
    FIXED = "fixed"
    DISPUTED = "disputed"
    WITHDRAWN = "withdrawn"
    ACCEPTED = "accepted"

    @property
    def is_open(self) -> bool:
        """A disputed finding stays open until a judge or a person closes it."""
        return self in (FindingState.OPEN, FindingState.DISPUTED)


class ChallengeVerdict(StrEnum):
    APPROVED = "APPROVED"
    NEEDS_REVISION = "NEEDS_REVISION"
    REJECTED = "REJECTED"


class ReviewVerdict(StrEnum):
    APPROVED = "APPROVED"
    NEEDS_CHANGES = "NEEDS_CHANGES"
    MAJOR_ISSUES = "MAJOR_ISSUES"

    @classmethod
    def _missing_(cls, value: object) -> "ReviewVerdict | None":
        return cls.NEEDS_CHANGES if value == "NEEDS_FIX" else None


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    COULD_NOT_RUN = "could-not-run"


class Complexity(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @classmethod
    def of(cls, specs: int, tasks: int, files: int) -> "Complexity":
        size = specs + tasks + files
        if size <= 4:
            return cls.LOW
        if size <= 10:
            return cls.MEDIUM
        return cls.HIGH if size <= 20 else cls.CRITICAL


class Layer(StrEnum):
    """The layers of a task list, in order: `data.1` is task `1.1`."""

    DATA = "data"
    LOGIC = "logic"
    INTEGRATION = "integration"
    TESTING = "testing"


class TaskAction(StrEnum):
    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


class TaskStatus(StrEnum):
    PENDING = "pending"
    DONE = "done"
    WAIVED = "waived"


# Steps with a fixed name; the names of steps for one spec end in its id (`spec-gen-auth-flow`).
STEPS = (
    "clarify",
    "plan-gen",
    "plan-review",
    "proposal-gen",
    "proposal-review",
    "tasks-gen",
    "tasks-review",
    "format-fix",
    "challenge",
    "reproposal",
    "implement",
    "checks",
    "review",
    "resolve",
    "archive",
)
SPEC_STEPS = ("spec-gen-", "spec-review-", "implement-")


def is_step(name: str) -> bool:
    return name in STEPS or any(
        name.startswith(prefix) and CHANGE_ID.fullmatch(name.removeprefix(prefix)) for prefix in SPEC_STEPS
    )

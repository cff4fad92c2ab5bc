"""The two judges, and what they differ in."""

from dataclasses import dataclass

from agentd.domain import ChallengeVerdict, ReviewVerdict, Role
from agentd.engine.tools.tool_table import Stage


@dataclass(frozen=True)
class JudgeSpec:
    """`kind` is the record's, the step's and the verdict's; `answer` is the step in which the maker answers."""

    kind: str
    judge: Role
    maker: Role
    stage: Stage
    prefix: str  # of the findings' ids
    page: str
    answer: str
    command: str  # which workflow it is of
    verdicts: type[ChallengeVerdict] | type[ReviewVerdict]


CHALLENGER_SPEC = JudgeSpec(
    kind="challenge",
    judge=Role.CHALLENGER,
    maker=Role.PLANNER,
    stage=Stage.CHALLENGE,
    prefix="C",
    page="CHALLENGE.md",
    answer="reproposal",
    command="plan",
    verdicts=ChallengeVerdict,
)
REVIEWER_SPEC = JudgeSpec(
    kind="review",
    judge=Role.REVIEWER,
    maker=Role.IMPLEMENTER,
    stage=Stage.REVIEW,
    prefix="V",
    page="REVIEW.md",
    answer="resolve",
    command="impl",
    verdicts=ReviewVerdict,
)
JUDGE_SPECS = {judge_spec.kind: judge_spec for judge_spec in (CHALLENGER_SPEC, REVIEWER_SPEC)}

"""The table of transitions, the only way to change the phase of a change."""

from enum import StrEnum

from agentd.domain.errors import WrongPhase
from agentd.domain.terms import ChallengeVerdict, Phase, ReviewVerdict


class TransitionEvent(StrEnum):
    PLAN_GENERATED = "plan-generated"
    CHALLENGE_APPROVED = "challenge-approved"
    CHALLENGE_NEEDS_REVISION = "challenge-needs-revision"
    CHALLENGE_REJECTED = "challenge-rejected"
    ACCEPTED = "accepted"
    SENT_BACK = "sent-back"
    REJECTED = "rejected"
    IMPLEMENTATION_STARTED = "implementation-started"
    REVIEW_APPROVED = "review-approved"
    REVIEW_NEEDS_CHANGES = "review-needs-changes"
    REVIEW_MAJOR_ISSUES = "review-major-issues"
    PLAN_WRONG = "plan-wrong"
    ARCHIVED = "archived"
    DROPPED = "dropped"


# Only a person may decide these; all but a drop need a reason.
DECISIONS = frozenset(
    {
        TransitionEvent.ACCEPTED,
        TransitionEvent.SENT_BACK,
        TransitionEvent.REJECTED,
        TransitionEvent.PLAN_WRONG,
        TransitionEvent.DROPPED,
    }
)

_CHALLENGE = {
    TransitionEvent.CHALLENGE_APPROVED: Phase.CHALLENGED,
    TransitionEvent.CHALLENGE_NEEDS_REVISION: Phase.PROPOSED,
    TransitionEvent.CHALLENGE_REJECTED: Phase.REJECTED,
}
_PLAN_DECISION = {
    TransitionEvent.ACCEPTED: Phase.CHALLENGED,
    TransitionEvent.SENT_BACK: Phase.PROPOSED,
    TransitionEvent.REJECTED: Phase.REJECTED,
}
_REVIEW = {
    TransitionEvent.REVIEW_APPROVED: Phase.COMPLETE,
    TransitionEvent.REVIEW_NEEDS_CHANGES: Phase.IMPLEMENTING,
    TransitionEvent.REVIEW_MAJOR_ISSUES: Phase.IMPLEMENTING,
}
_DROP = {TransitionEvent.DROPPED: Phase.DROPPED}

TRANSITIONS: dict[Phase, dict[TransitionEvent, Phase]] = {
    Phase.DRAFTING: {TransitionEvent.PLAN_GENERATED: Phase.PROPOSED, **_DROP},
    Phase.PROPOSED: {**_CHALLENGE, **_PLAN_DECISION, **_DROP},
    Phase.CHALLENGED: {
        **_CHALLENGE,
        **_PLAN_DECISION,
        TransitionEvent.IMPLEMENTATION_STARTED: Phase.IMPLEMENTING,
        **_DROP,
    },
    Phase.REJECTED: {**_CHALLENGE, **_DROP},
    Phase.IMPLEMENTING: {
        **_REVIEW,
        TransitionEvent.ACCEPTED: Phase.COMPLETE,
        TransitionEvent.PLAN_WRONG: Phase.PROPOSED,
        **_DROP,
    },
    Phase.COMPLETE: {
        **_REVIEW,
        TransitionEvent.SENT_BACK: Phase.IMPLEMENTING,
        TransitionEvent.ARCHIVED: Phase.ARCHIVED,
        **_DROP,
    },
    Phase.ARCHIVED: {},
    Phase.DROPPED: {},
}


def event_for_verdict(verdict: ChallengeVerdict | ReviewVerdict) -> TransitionEvent:
    kind = "challenge" if isinstance(verdict, ChallengeVerdict) else "review"
    return TransitionEvent(f"{kind}-{verdict.lower().replace('_', '-')}")


def next_phase(phase: Phase, event: TransitionEvent) -> Phase:
    try:
        return TRANSITIONS[phase][event]
    except KeyError:
        allowed = ", ".join(TRANSITIONS[phase]) or "nothing"
        raise WrongPhase(f"a change that is {phase} cannot take '{event}' (it can take: {allowed})") from None


def check_decision(event: TransitionEvent, by: str, why: str) -> None:
    """Check that a person made the decision and gave a reason; agents never accept, reject or send back."""
    if event not in DECISIONS:
        return
    if not by.startswith("person:"):
        raise WrongPhase(f"'{event}' is a person's decision, not one of {by}")
    if event is not TransitionEvent.DROPPED and not why.strip():
        raise WrongPhase(f"'{event}' needs a reason")

"""The one table that moves a change."""

from enum import StrEnum

from agentd.errors import WrongPhase
from agentd.terms import ChallengeVerdict, Phase, ReviewVerdict


class Event(StrEnum):
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


# What only a person may decide; all but a drop needs a reason.
DECISIONS = frozenset({Event.ACCEPTED, Event.SENT_BACK, Event.REJECTED, Event.PLAN_WRONG, Event.DROPPED})

_CHALLENGE = {
    Event.CHALLENGE_APPROVED: Phase.CHALLENGED,
    Event.CHALLENGE_NEEDS_REVISION: Phase.PROPOSED,
    Event.CHALLENGE_REJECTED: Phase.REJECTED,
}
_PLAN_DECISION = {
    Event.ACCEPTED: Phase.CHALLENGED,
    Event.SENT_BACK: Phase.PROPOSED,
    Event.REJECTED: Phase.REJECTED,
}
_REVIEW = {
    Event.REVIEW_APPROVED: Phase.COMPLETE,
    Event.REVIEW_NEEDS_CHANGES: Phase.IMPLEMENTING,
    Event.REVIEW_MAJOR_ISSUES: Phase.IMPLEMENTING,
}
_DROP = {Event.DROPPED: Phase.DROPPED}

TABLE: dict[Phase, dict[Event, Phase]] = {
    Phase.DRAFTING: {Event.PLAN_GENERATED: Phase.PROPOSED, **_DROP},
    Phase.PROPOSED: {**_CHALLENGE, **_PLAN_DECISION, **_DROP},
    Phase.CHALLENGED: {
        **_CHALLENGE,
        **_PLAN_DECISION,
        Event.IMPLEMENTATION_STARTED: Phase.IMPLEMENTING,
        **_DROP,
    },
    Phase.REJECTED: {**_CHALLENGE, **_DROP},
    Phase.IMPLEMENTING: {
        **_REVIEW,
        Event.ACCEPTED: Phase.COMPLETE,
        Event.PLAN_WRONG: Phase.PROPOSED,
        **_DROP,
    },
    Phase.COMPLETE: {
        **_REVIEW,
        Event.SENT_BACK: Phase.IMPLEMENTING,
        Event.ARCHIVED: Phase.ARCHIVED,
        **_DROP,
    },
    Phase.ARCHIVED: {},
    Phase.DROPPED: {},
}


def event_of(verdict: ChallengeVerdict | ReviewVerdict) -> Event:
    kind = "challenge" if isinstance(verdict, ChallengeVerdict) else "review"
    return Event(f"{kind}-{verdict.lower().replace('_', '-')}")


def next_phase(phase: Phase, event: Event) -> Phase:
    try:
        return TABLE[phase][event]
    except KeyError:
        allowed = ", ".join(TABLE[phase]) or "nothing"
        raise WrongPhase(f"a change that is {phase} cannot take '{event}' (it can take: {allowed})") from None


def check_decision(event: Event, by: str, why: str) -> None:
    """An agent never accepts, rejects or sends back; a person does, and says why."""
    if event not in DECISIONS:
        return
    if not by.startswith("person:"):
        raise WrongPhase(f"'{event}' is a person's decision, not one of {by}")
    if event is not Event.DROPPED and not why.strip():
        raise WrongPhase(f"'{event}' needs a reason")

"""The table of phases: every pair of phase and event, allowed or refused, as the product page has it."""

import pytest

from agentd.domain import state_machine
from agentd.domain.errors import WrongPhase
from agentd.domain.state_machine import TransitionEvent, check_decision, event_for_verdict, next_phase
from agentd.domain.terms import ChallengeVerdict, Phase, ReviewVerdict

# Written out, not derived: one row per phase, one word per event that may happen there.
ALLOWED = """
drafting      plan-generated            proposed
drafting      dropped                   dropped
proposed      challenge-approved        challenged
proposed      challenge-needs-revision  proposed
proposed      challenge-rejected        rejected
proposed      accepted                  challenged
proposed      sent-back                 proposed
proposed      rejected                  rejected
proposed      dropped                   dropped
challenged    challenge-approved        challenged
challenged    challenge-needs-revision  proposed
challenged    challenge-rejected        rejected
challenged    accepted                  challenged
challenged    sent-back                 proposed
challenged    rejected                  rejected
challenged    implementation-started    implementing
challenged    dropped                   dropped
rejected      challenge-approved        challenged
rejected      challenge-needs-revision  proposed
rejected      challenge-rejected        rejected
rejected      dropped                   dropped
implementing  review-approved           complete
implementing  review-needs-changes      implementing
implementing  review-major-issues       implementing
implementing  accepted                  complete
implementing  plan-wrong                proposed
implementing  dropped                   dropped
complete      review-approved           complete
complete      review-needs-changes      implementing
complete      review-major-issues       implementing
complete      sent-back                 implementing
complete      archived                  archived
complete      dropped                   dropped
"""
EXPECTED = {(phase, event): to for phase, event, to in (line.split() for line in ALLOWED.strip().splitlines())}


@pytest.mark.parametrize("event", TransitionEvent)
@pytest.mark.parametrize("phase", Phase)
def test_every_pair_of_phase_and_event_is_allowed_or_refused_as_specified(phase: Phase, event: TransitionEvent) -> None:
    expected = EXPECTED.get((str(phase), str(event)))
    if expected is None:
        with pytest.raises(WrongPhase, match=f"{phase} cannot take '{event}'"):
            next_phase(phase, event)
    else:
        assert next_phase(phase, event) == expected


def test_table_has_a_row_for_every_phase() -> None:
    assert set(state_machine.TRANSITIONS) == set(Phase)
    assert sum(len(row) for row in state_machine.TRANSITIONS.values()) == len(EXPECTED)


@pytest.mark.parametrize("verdict", [*ChallengeVerdict, *ReviewVerdict])
def test_every_verdict_has_its_event(verdict: ChallengeVerdict | ReviewVerdict) -> None:
    kind = type(verdict).__name__.removesuffix("Verdict").lower()
    assert event_for_verdict(verdict) == f"{kind}-{verdict.lower().replace('_', '-')}"


@pytest.mark.parametrize("event", ["accepted", "sent-back", "rejected", "plan-wrong", "dropped"])
def test_agent_cannot_make_a_users_decision(event: str) -> None:
    with pytest.raises(WrongPhase, match="person's decision"):
        check_decision(TransitionEvent(event), "agent:codex", "looks fine")


@pytest.mark.parametrize("event", ["accepted", "sent-back", "rejected", "plan-wrong"])
def test_users_decision_needs_a_reason(event: str) -> None:
    with pytest.raises(WrongPhase, match="needs a reason"):
        check_decision(TransitionEvent(event), "person:dev", "  ")
    check_decision(TransitionEvent(event), "person:dev", "known and small")


def test_judge_may_move_a_change() -> None:
    check_decision(TransitionEvent.CHALLENGE_APPROVED, "agent:codex", "")

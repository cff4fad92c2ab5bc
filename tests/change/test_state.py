"""STATE.yaml: the example's own bytes, unknown keys kept, older forms read, broken ones named."""

from dataclasses import replace

import pytest

from agentd.change import state
from agentd.change.state import CallRecord, ChangeState, GitLocation, StepRecord
from agentd.domain.errors import StateError, WrongPhase
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import GitSetup, Phase, StepStatus
from plans import EXAMPLE

TEXT = (EXAMPLE / "STATE.yaml").read_text()
BARE = "".join(line for line in TEXT.splitlines(keepends=True) if not line.startswith("#"))


def a_call(cost: float | None = 0.25) -> CallRecord:
    return CallRecord("challenge", "codex", "challenger", "m", 100, 10, 5, 1234, cost, "2026-01-19T11:00:00Z", None)


def test_example_round_trips_except_comments() -> None:
    assert state.render_state(state.parse_state(TEXT)) == BARE


def test_example_is_parsed() -> None:
    example = state.parse_state(TEXT)
    assert example.phase is Phase.CHALLENGED
    assert example.verdict == "APPROVED"
    assert example.total_cost == 0.179363
    assert example.git == GitLocation(GitSetup.BRANCH, "agentd/add-oauth", ".", "main")
    assert example.base.specs["user-model"] is None
    assert [step.status for step in example.steps if step.name == "spec-gen-user-model"] == ["failed", "done"]
    assert example.history[1].event is TransitionEvent.CHALLENGE_NEEDS_REVISION


def test_new_change_has_no_phase() -> None:
    new = ChangeState("x", "do it", "2026-01-19T10:30:00Z", "2026-01-19T10:30:00Z")
    assert "phase" not in state.render_state(new)
    assert state.parse_state(state.render_state(new)) == new


def test_unknown_keys_survive_at_every_level() -> None:
    text = BARE + "colour: green\n"
    for place in ("git:\n", "base:\n"):
        text = text.replace(place, f"{place}  colour: green\n", 1)
    for item in ("  - name: clarify\n", "  - from: drafting\n", "  - step: proposal-gen\n"):
        text = text.replace(item, f"{item}    colour: green\n", 1)
    kept = state.render_state(state.parse_state(text).with_call(a_call()))
    assert kept.count("colour: green") == 6


def test_totals_sum_the_calls_with_known_costs() -> None:
    grown = state.parse_state(TEXT).with_call(a_call(0.25)).with_call(a_call(None))
    text = state.render_state(grown)
    assert "total_cost: 0.429363\n" in text
    assert f"total_tokens_in: {207589 + 200}\n" in text
    assert f"total_tokens_out: {13038 + 20}\n" in text


OLDER = """\
change_id: add-oauth
phase: Challenged
verdict: APPROVED
created_at: 2026-01-19T10:30:00Z
updated_at: 2026-01-19T10:45:00Z
session_id: "abc123-uuid-xyz"
telemetry:
  - step: proposal-gen
    model: gemini-3-flash-preview
    tokens_in: 15234
    tokens_out: 892
    duration_ms: 4521
    cost: 0.0019
    timestamp: 2026-01-19T10:30:15Z
total_cost: 0.0019
"""


@pytest.mark.parametrize(
    "text",
    [
        OLDER,
        OLDER.replace("telemetry:", "llm_calls:"),
        OLDER.replace("telemetry:", "telemetry:\n  calls:").replace("cost: 0.0019\n    t", "cost_usd: 0.0019\n    t"),
    ],
)
def test_older_formats_are_read(text: str) -> None:
    older = state.parse_state(text)
    assert (older.phase, older.verdict, older.total_cost) == (Phase.CHALLENGED, "APPROVED", 0.0019)
    again = state.render_state(older)
    assert "phase: challenged\n" in again and "verdict: APPROVED\n" in again and "telemetry" not in again
    assert state.parse_state(again) == older


def test_unknown_telemetry_of_an_older_file_is_kept() -> None:
    text = OLDER.replace("telemetry:", "telemetry:\n  machine: laptop\n  calls:")
    again = state.render_state(state.parse_state(text))
    assert "telemetry:\n  machine: laptop\n" in again and "tokens_in: 15234" in again


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a mapping, not nothing"),
        ("- a", "must be a mapping"),
        ("change_id: [", "line 1"),
        ("change_id: x\nchange_id: y\n", "line 2: the key 'change_id' occurs twice"),
        ("phase: proposed\n", "change_id must be text, not nothing"),
        ("change_id: x\nphase: perfect\n", "phase is 'perfect', which is not one of drafting, proposed"),
        ("change_id: x\nround: many\n", "round must be a whole number"),
        ("change_id: x\nround: true\n", "round must be a whole number"),
        ("change_id: x\nsteps: {}\n", "steps must be a list"),
        ("change_id: x\nsteps: [{name: a}]\n", r"steps\[0\]: status is None"),
        ("change_id: x\nschema_version: 2\n", "newer agentd"),
        ("change_id: x\nllm_calls: [{cost: 1" + "0" * 400 + "}]\n", "which is not an amount"),
        ("change_id: x\nllm_calls: [{cost: .nan}]\n", "which is not an amount"),
        ("change_id: &a x\nround: *a\n", "anchors"),
    ],
)
def test_invalid_state_is_reported(text: str, words: str) -> None:
    with pytest.raises(StateError, match=words):
        state.parse_state(text)


def test_second_attempt_is_added_and_updated_in_place() -> None:
    first = StepRecord("challenge", 1, 1, 1, StepStatus.FAILED, {}, "2026-01-19T10:30:00Z")
    running = replace(first, attempt=2, status=StepStatus.RUNNING)
    done = replace(running, status=StepStatus.DONE, outputs={"CHALLENGE.md": "sha256:0"})
    new = ChangeState("x", "do it", "", "").with_step(first).with_step(running).with_step(done)
    assert new.steps == (first, done)


def test_only_the_state_machine_moves_a_change_and_moves_are_recorded() -> None:
    new = ChangeState("x", "do it", "", "")
    moved = new.with_transition(
        TransitionEvent.PLAN_GENERATED, by="agentd", why="all there", at="t", hashes={"proposal.md": "h"}
    )
    assert moved.phase is Phase.PROPOSED
    assert [(m.origin, m.to, m.by, m.hashes) for m in moved.history] == [
        ("drafting", "proposed", "agentd", {"proposal.md": "h"})
    ]
    with pytest.raises(WrongPhase):
        moved.with_transition(TransitionEvent.ARCHIVED, by="agentd", why="", at="t")
    with pytest.raises(WrongPhase):
        moved.with_transition(TransitionEvent.ACCEPTED, by="agent:codex", why="fine", at="t")

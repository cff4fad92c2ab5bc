"""When a command stops asking: its rounds are used, or a round closed no finding."""

from dataclasses import replace

import pytest

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.change.state import ChangeState, RunState, StepRecord
from agentd.documents import records
from agentd.domain.terms import StepStatus, Workflow
from agentd.engine.workflows.run_scope import begin_run_state, use_round
from agentd.engine.workflows.verdict_status import made_no_progress
from agentd.project.layout import find_project
from plans import EXAMPLE
from scenario import Scenario

FIRST = records.parse_record((EXAMPLE / "reviews" / "challenge-1.yaml").read_text(), "challenge-1")
NEW = replace(FIRST.findings[0], id="C9")


def step(name: str, round_: int, status: StepStatus = StepStatus.DONE) -> StepRecord:
    return StepRecord(name, round_, 1, 1, status, {}, "2026-01-19T10:00:00Z")


def under_way(old: ChangeState, *steps: StepRecord, before: int = 0, rounds_left: int = 0) -> ChangeState:
    return replace(old, steps=steps, run=RunState("plan", "2026-01-19T10:00:00Z", rounds_left, before))


@pytest.fixture
def stuck(project: Scenario) -> Change:
    """A plan that was answered and challenged again, with every finding as open as before."""
    change = lifecycle.create_change(find_project(), FIRST.change_id, "Let people sign in")
    write(change, FIRST)
    write(change, replace(FIRST, round=2, findings=()))
    steps = step("challenge", 1), step("reproposal", 2), step("challenge", 2)
    change.update(lambda old: under_way(old, *steps))
    return change


def write(change: Change, record: records.ReviewRecord) -> None:
    path = change.folder / "reviews" / f"challenge-{record.round}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(records.render_record(record))


def test_a_round_that_closes_no_finding_is_stuck(stuck: Change) -> None:
    assert made_no_progress(stuck)


def test_a_new_finding_does_not_hide_that_none_was_closed(stuck: Change) -> None:
    write(stuck, replace(FIRST, round=2, findings=(NEW,)))
    assert made_no_progress(stuck)


def test_a_round_that_closes_one_finding_is_not_stuck(stuck: Change) -> None:
    closed = records.FindingEdit("C1", "state", "withdrawn", "person:dev", "2026-01-19T10:00:00Z")
    write(stuck, replace(FIRST, round=2, findings=(NEW,), edits=(closed,)))
    assert not made_no_progress(stuck)


def test_the_first_round_is_never_stuck(stuck: Change) -> None:
    (stuck.folder / "reviews" / "challenge-2.yaml").unlink()
    assert not made_no_progress(stuck)


def test_a_round_in_which_the_maker_had_no_turn_is_not_stuck(stuck: Change) -> None:
    stuck.update(lambda old: under_way(old, step("challenge", 1), step("challenge", 2)))
    assert not made_no_progress(stuck)


def test_a_round_of_an_earlier_command_is_not_stuck(stuck: Change) -> None:
    stuck.update(lambda old: under_way(old, *old.steps, before=3))
    assert not made_no_progress(stuck)


def test_a_resumed_command_has_only_the_rounds_it_has_not_used(stuck: Change) -> None:
    steps = step("reproposal", 2), step("reproposal", 3), step("reproposal", 4, StepStatus.FAILED)
    resumed = begin_run_state(under_way(stuck.read(), *steps), Workflow.PLAN, 3)
    assert resumed.run and resumed.run.rounds_left == 1
    another = begin_run_state(under_way(stuck.read(), *steps), Workflow.IMPL, 3)
    assert another.run and (another.run.rounds_left, another.run.steps_before) == (3, 3)
    exhausted = begin_run_state(under_way(stuck.read(), *steps), Workflow.PLAN, 1)
    assert exhausted.run and exhausted.run.rounds_left == 0


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 0), (0, 0)])
def test_a_round_is_used_up_by_its_answer(stuck: Change, before: int, after: int) -> None:
    left = use_round(under_way(stuck.read(), rounds_left=before))
    assert left.run and left.run.rounds_left == after

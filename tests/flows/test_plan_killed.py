"""Running is resuming: a plan whose command is killed anywhere becomes, run again, the plan it would have been."""

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crash import (
    BUSY_PLAN,
    PLAN_COMMAND,
    busy_plan_steps,
    first_action_of,
    hang_in,
    journal_lines,
    kill_at_event,
    kill_at_write,
    nothing_repeated,
    plan_result,
    restorable,
    resume,
    started_calls,
    started_names,
)
from exhaustive import Exhaustive
from plans import SIGN_IN
from scenario import PATIENT, Scenario


def elsewhere(place: Path) -> Scenario:
    """A staged box for a whole session of tests."""
    box = Scenario(place / "notes-service", place / "home")
    box.write("README.md", "notes\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(box.root)
        for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            patch.setenv(name, box.env[name])
        box.with_agents(busy_plan_steps(), PATIENT)
    return box


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the plan comes to when nobody kills anything, and agentd's own server does the work."""
    box = elsewhere(tmp_path_factory.mktemp("undisturbed"))
    ran = box.agentd(*PLAN_COMMAND)
    assert ran.code == 0, ran.out
    assert started_names(journal_lines(box)) == list(BUSY_PLAN)
    return plan_result(box)


@pytest.fixture(scope="session")
def proposed_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scenario, Callable[[], None]]]:
    """A plan that nobody has judged, and the way back to it."""
    box = elsewhere(tmp_path_factory.mktemp("proposed"))
    ran = box.agentd("proposal", "add-oauth", SIGN_IN, "--skip-clarify")
    assert ran.code == 0, ran.err
    with restorable(box) as put_back:
        yield box, put_back


@pytest.fixture
def proposed(proposed_once: tuple[Scenario, Callable[[], None]]) -> Scenario:
    """A plan that nobody has judged."""
    box, put_back = proposed_once
    put_back()
    return box


# ---- killed by what it tells


@pytest.mark.parametrize("kind", ["step.started", "step.finished"])
def test_plan_killed_at_every_step_boundary_gives_the_same_result(
    kind: str, project: Scenario, undisturbed: list[str]
) -> None:
    project.with_agents(busy_plan_steps(), PATIENT)
    for name in BUSY_PLAN:
        with nothing_repeated(project):
            kill_at_event(project, type=kind, step=name)
    resume(project)
    assert plan_result(project) == undisturbed


def test_plan_killed_inside_every_step_gives_the_same_result(project: Scenario, undisturbed: list[str]) -> None:
    project.with_agents(hang_in(busy_plan_steps(), *BUSY_PLAN), PATIENT)
    for name in BUSY_PLAN:
        with nothing_repeated(project):
            kill_at_event(project, **first_action_of(name))
    resume(project)
    assert plan_result(project) == undisturbed
    assert started_names(journal_lines(project)) == [name for name in BUSY_PLAN for _ in range(2)]


def test_plan_killed_around_transitions_gives_the_same_result(project: Scenario, undisturbed: list[str]) -> None:
    project.with_agents(busy_plan_steps(), PATIENT)
    kill_at_event(project, type="step.finished", step="tasks-review")
    kill_at_event(project, type="transition", event="plan-generated")
    with nothing_repeated(project):
        kill_at_event(project, type="finding", step="challenge")
    before = len(journal_lines(project))
    kill_at_event(project, type="transition", event="challenge-approved")
    resume(project)
    assert started_names(journal_lines(project)[before:]) == [], "the record of the verdict was there"
    assert plan_result(project) == undisturbed


# ---- killed at a write


def test_plan_killed_repeatedly_at_random_writes_gives_the_same_result(
    exhaustive: Exhaustive, project: Scenario, undisturbed: list[str]
) -> None:
    project.with_agents(busy_plan_steps(), PATIENT)
    with restorable(project) as put_back:
        for seed in exhaustive.seeds(10):
            dice = random.Random(seed)
            for kills in itertools.count():
                moment, number = dice.choice(("before", "after")), dice.randint(1, 40 + 4 * kills)
                with nothing_repeated(project):
                    if not kill_at_write(project, moment, number, project.root):
                        break
            assert kills > 0, seed
            resume(project)
            assert plan_result(project) == undisturbed, seed
            put_back()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_plan_killed_at_each_write_of_a_challenge_gives_the_same_result(
    moment: str, exhaustive: Exhaustive, proposed: Scenario, undisturbed: list[str]
) -> None:
    with restorable(proposed) as put_back:
        for number in exhaustive.points(itertools.count(4)):  # when the judge has spoken: its call is counted
            if not kill_at_write(proposed, moment, number, proposed.folder):
                break
            resume(proposed)
            assert plan_result(proposed) == undisturbed, f"{moment} write {number}"
            put_back()
    assert number >= 10, "the record, CHALLENGE.md, the block and STATE.yaml were among them"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_recorded_verdict_is_never_requested_again(
    moment: str, exhaustive: Exhaustive, proposed: Scenario, undisturbed: list[str]
) -> None:
    assert kill_at_write(proposed, "after", 1, proposed.folder / "reviews")
    told = len(journal_lines(proposed))
    with restorable(proposed) as put_back:
        for number in exhaustive.points(itertools.count(1)):
            if not kill_at_write(proposed, moment, number, proposed.folder):
                break
            resume(proposed)
            assert started_calls(journal_lines(proposed)[told:]) == []
            assert plan_result(proposed) == undisturbed, f"{moment} write {number}"
            put_back()
    assert number > 4, "CHALLENGE.md, the block and STATE.yaml were among them"

"""Running is resuming: a plan whose command is killed anywhere becomes, run again, the plan it would have been."""

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exhaustive import Exhaustive
from felling import (
    COMMAND,
    PATIENT,
    STEPS,
    at_work_in,
    busy_plan,
    called,
    calls,
    endless,
    fell,
    fell_at_write,
    go_on,
    journal,
    kept,
    nothing_again,
    result,
)
from plays import DESCRIPTION, folder, stage
from support import Box


def elsewhere(place: Path) -> Box:
    """A staged box for a whole session of tests."""
    box = Box(place / "notes-service", place / "home")
    box.write("README.md", "notes\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(box.root)
        for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            patch.setenv(name, box.env[name])
        stage(box, busy_plan(), PATIENT)
    return box


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the plan comes to when nobody kills anything, and agentd's own server does the work."""
    box = elsewhere(tmp_path_factory.mktemp("undisturbed"))
    ran = box.agentd(*COMMAND)
    assert ran.code == 0, ran.out
    assert called(journal(box)) == list(STEPS)
    return result(box)


@pytest.fixture(scope="session")
def proposed_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Box, Callable[[], None]]]:
    """A plan that nobody has judged, and the way back to it."""
    box = elsewhere(tmp_path_factory.mktemp("proposed"))
    ran = box.agentd("proposal", "add-oauth", DESCRIPTION, "--skip-clarify")
    assert ran.code == 0, ran.err
    with kept(box) as put_back:
        yield box, put_back


@pytest.fixture
def proposed(proposed_once: tuple[Box, Callable[[], None]]) -> Box:
    """A plan that nobody has judged."""
    box, put_back = proposed_once
    put_back()
    return box


# ---- killed by what it tells


@pytest.mark.parametrize("kind", ["step.started", "step.finished"])
def test_killed_at_a_boundary_of_every_step_it_comes_to_the_same(
    kind: str, project: Box, undisturbed: list[str]
) -> None:
    stage(project, busy_plan(), PATIENT)
    for name in STEPS:
        with nothing_again(project):
            fell(project, type=kind, step=name)
    go_on(project)
    assert result(project) == undisturbed


def test_killed_inside_every_step_it_comes_to_the_same(project: Box, undisturbed: list[str]) -> None:
    stage(project, endless(busy_plan(), *STEPS), PATIENT)
    for name in STEPS:
        with nothing_again(project):
            fell(project, **at_work_in(name))
    go_on(project)
    assert result(project) == undisturbed
    assert called(journal(project)) == [name for name in STEPS for _ in range(2)]


def test_killed_around_a_transition_it_comes_to_the_same(project: Box, undisturbed: list[str]) -> None:
    stage(project, busy_plan(), PATIENT)
    fell(project, type="step.finished", step="tasks-review")
    fell(project, type="transition", event="plan-generated")
    with nothing_again(project):
        fell(project, type="finding", step="challenge")
    before = len(journal(project))
    fell(project, type="transition", event="challenge-approved")
    go_on(project)
    assert called(journal(project)[before:]) == [], "the record of the verdict was there"
    assert result(project) == undisturbed


# ---- killed at a write


def test_killed_at_any_write_over_and_over_it_comes_to_the_same(
    exhaustive: Exhaustive, project: Box, undisturbed: list[str]
) -> None:
    stage(project, busy_plan(), PATIENT)
    with kept(project) as put_back:
        for seed in exhaustive.seeds(10):
            dice = random.Random(seed)
            for farthest in itertools.count(40, 4):
                moment, number = dice.choice(("before", "after")), dice.randint(1, farthest)
                with nothing_again(project):
                    if not fell_at_write(project, moment, number, project.root):
                        break
            go_on(project)
            assert result(project) == undisturbed, seed
            put_back()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_each_write_of_a_challenge_it_comes_to_the_same(
    moment: str, exhaustive: Exhaustive, proposed: Box, undisturbed: list[str]
) -> None:
    with kept(proposed) as put_back:
        for number in exhaustive.points(itertools.count(4)):  # when the judge has spoken: its call is counted
            if not fell_at_write(proposed, moment, number, folder(proposed)):
                break
            go_on(proposed)
            assert result(proposed) == undisturbed, f"{moment} write {number}"
            put_back()
    assert number >= 10, "the record, CHALLENGE.md, the block and STATE.yaml were among them"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_verdict_whose_record_is_written_is_never_asked_for_again(
    moment: str, exhaustive: Exhaustive, proposed: Box, undisturbed: list[str]
) -> None:
    assert fell_at_write(proposed, "after", 1, folder(proposed) / "reviews")
    told = len(journal(proposed))
    with kept(proposed) as put_back:
        for number in exhaustive.points(itertools.count(1)):
            if not fell_at_write(proposed, moment, number, folder(proposed)):
                break
            go_on(proposed)
            assert calls(journal(proposed)[told:]) == []
            assert result(proposed) == undisturbed, f"{moment} write {number}"
            put_back()
    assert number > 4, "CHALLENGE.md, the block and STATE.yaml were among them"

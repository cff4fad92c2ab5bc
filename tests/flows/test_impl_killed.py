"""An implementation whose command is killed with -9 anywhere comes, run again, to what it would have come to."""

import itertools
import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agentd.domain.terms import Phase
from crash import HELD_CHECK as HELD
from crash import held_checks, kill_at_write, restorable, signal_at_event
from exhaustive import Exhaustive
from plans import BAD_CODE, GOOD_CODE
from playbooks import APPROVED, HANG, Action, implement, say, usage, write
from scenario import CHECK, PATIENT, Scenario

STEPS = (("implement-greeting", 1), ("review", 1), ("resolve", 2), ("review", 2))
KILL = signal.SIGKILL
_VARIES = re.compile(r"\b[0-9a-f]{12,64}\b|\d{4}-\d\d-\d\dT[\d:]+Z|\d+(?:\.\d+)? s\b|in \d+\.\d+s|[0-9a-f-]{36}")


def steps() -> dict[str, list[Action]]:
    """The first code fails its test, and is mended in a round."""
    mended = [write("greeting.py", GOOD_CODE), usage(0.02), say("Mended.")]
    return {"implement-greeting": implement(BAD_CODE), "resolve/2": mended, "review": APPROVED}


def begin(box: Scenario, more: str = CHECK, **other: list[Action]) -> None:
    cut_off = {name.replace("__", "/").replace("_", "-"): acts for name, acts in other.items()}
    box.greeting_approved(steps() | cut_off, more + PATIENT)


def result(box: Scenario) -> list[str]:
    """All that it comes to, in lines, but for times, trees and what cut calls have cost."""
    found = box.state()
    lines = [f"{found.phase} {found.verdict} {found.round} {found.run} {found.findings}"]
    lines += [f"{one.event} {one.to} {one.by} {one.why}" for one in found.history]
    lines += sorted({f"{row.name} {row.round} {row.number}" for row in found.steps if row.status == "done"})
    texts = [box.folder / name for name in ("tasks.md", "REVIEW.md", "reviews/review-1.yaml", "reviews/review-2.yaml")]
    for path in (*texts, box.root / "greeting.py", box.root / "tests/test_greeting.py"):
        lines += [path.name, *path.read_text().splitlines()] if path.exists() else [f"no {path.name}"]
    lines += sorted(box.git("for-each-ref", "--format=%(refname)", "refs/agentd").split())
    room = box.root / ".git/agentd"
    lost = [path for path in room.glob("runs/*/[a-z]*") if not path.with_name("owner.json").exists()]
    lines += [f"left: {path.name}" for path in (*room.glob("calls/*"), *lost)]
    return [_VARIES.sub("…", line) for line in lines if "duration_ms" not in line]


def in_a_line(lines: list[str]) -> str:
    """However a long line was folded."""
    return " ".join(" ".join(lines).split())


def finished(box: Scenario) -> dict[tuple[str, int, int], int]:
    """What agents have done, and the last attempt at it; checks cost nothing, and may run again."""
    rows = [row for row in box.state().steps if row.name != "checks"]
    done = {row.key[:3] for row in rows if row.status == "done"}
    return {key: max(row.attempt for row in rows if row.key[:3] == key) for key in done}


@contextmanager
def nothing_paid_twice(box: Scenario) -> Iterator[None]:
    """In this block nobody is called for what is done already."""
    before = finished(box)
    yield
    assert before.items() <= finished(box).items()


def go_on(box: Scenario) -> None:
    with nothing_paid_twice(box):
        end = box.run("impl")
    assert end.code == 0, end.out + end.err


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What it comes to when nobody kills anything."""
    place = tmp_path_factory.mktemp("undisturbed-impl")
    with Scenario(place / "notes-service", place / "home").with_project().entered() as box:
        begin(box)
        assert box.run("impl").code == 0
        assert box.finished_steps() == [name for name, _ in STEPS]
        return result(box)


# ---- killed by what it tells


@pytest.mark.parametrize("kind", ["step.started", "step.finished"])
def test_impl_killed_at_every_step_boundary_gives_the_same_result(
    kind: str, project: Scenario, undisturbed: list[str]
) -> None:
    begin(project)
    rounds = (("checks", 0), STEPS[0], ("checks", 1), STEPS[1], STEPS[2], ("checks", 2), STEPS[3])
    for name, round_ in rounds:
        if project.state().phase is Phase.COMPLETE:
            break
        with nothing_paid_twice(project):
            assert signal_at_event(project, KILL, type=kind, step=name, round=round_) == -9
    if project.state().phase is not Phase.COMPLETE:
        go_on(project)
    project.run("impl")
    assert result(project) == undisturbed


def test_impl_killed_during_agent_calls_gives_the_same_result_and_leaves_no_agent(
    project: Scenario, undisturbed: list[str]
) -> None:
    """The code of the cut call is there when the next one begins."""
    acts = steps()
    for name, round_ in STEPS:
        first = say("I begin.") if name == "review" else acts.get(name, acts.get(f"{name}/{round_}", []))[0]
        acts[f"{name}/{round_}/1"] = [first, HANG]
    project.greeting_approved(acts, CHECK + PATIENT)
    for name, round_ in STEPS:
        with nothing_paid_twice(project):
            assert signal_at_event(project, KILL, type="agent.activity", step=name, round=round_) == -9
    go_on(project)
    assert result(project) == undisturbed


def test_impl_killed_during_checks_gives_the_same_result_and_leaves_no_check(
    project: Scenario, undisturbed: list[str]
) -> None:
    begin(project, HELD)
    for round_, after in enumerate(("implement-greeting", "resolve", "review")):
        with held_checks(project), nothing_paid_twice(project):
            assert signal_at_event(project, KILL, type="step.started", step="checks", round=round_) == -9
        assert signal_at_event(project, KILL, type="step.started", step=after) == -9, "these checks are over"
    go_on(project)
    assert re.sub(r"if test -e .*?; fi; ", "", in_a_line(result(project))) == in_a_line(undisturbed)


# ---- killed at a write


def test_impl_killed_repeatedly_at_random_writes_gives_the_same_result(
    exhaustive: Exhaustive, project: Scenario, undisturbed: list[str]
) -> None:
    begin(project)
    with restorable(project) as put_back:
        for seed in exhaustive.seeds(10):
            dice = random.Random(seed)
            is_felled, farthest = True, 12
            while is_felled and project.state().phase is not Phase.COMPLETE:
                moment, number = dice.choice(("before", "after")), dice.randint(3, farthest)
                with nothing_paid_twice(project):
                    is_felled = kill_at_write(project, moment, number)
                farthest += 4
            project.run("impl")
            assert result(project) == undisturbed, seed
            put_back()


def test_review_killed_at_each_write_records_one_verdict(exhaustive: Exhaustive, project: Scenario) -> None:
    """The record, its page, the ticks and the transition: each is there once in the end."""
    review = ("review", "greet")
    project.greeting_approved({"implement-greeting": implement()}, CHECK + PATIENT)
    assert project.agentd("implement", "greet").code == 0
    with restorable(project) as put_back:
        assert project.agentd(*review).code == 0
        straight = result(project)
        put_back()
        for number in exhaustive.points(itertools.count(1)):
            moment = ("before", "after")[number % 2]  # before a write is after the one before it
            is_felled = kill_at_write(project, moment, number, command=review)
            if not is_felled:
                break
            judged = (project.folder / "reviews/review-1.yaml").exists()
            calls = len(project.state().llm_calls)
            end = project.agentd("impl", "greet")
            assert end.code == 0, f"{moment} write {number}: {end.err}"
            assert result(project) == straight, f"{moment} write {number}"
            assert not judged or len(project.state().llm_calls) == calls, "a verdict that is written is not asked again"
            put_back()
    assert number > 8, "the record, REVIEW.md, tasks.md and STATE.yaml were among them"
    assert not (project.folder / "reviews/review-2.yaml").exists()


def test_edit_of_review_md_is_kept_when_killed_before_the_transition(project: Scenario) -> None:
    """The page is rendered from the record when the next command finishes the round."""
    project.greeting_approved({"implement-greeting": implement()}, CHECK + PATIENT)
    assert project.agentd("implement", "greet").code == 0
    number = 1
    with restorable(project) as put_back:
        while kill_at_write(project, "after", number, command=("review", "greet")):
            if (project.folder / "REVIEW.md").exists():
                break
            put_back()
            number += 1
        assert project.state().phase is Phase.IMPLEMENTING, "the transition has not come"
        page = project.folder / "REVIEW.md"
        mine = "### Say it aloud\n\n- **Severity**: Low\n- **Description**: It is written only.\n\n"
        page.write_text(page.read_text().replace("## Earlier findings", f"{mine}## Earlier findings"))
        assert project.run("impl").code == 0
        assert [one["id"] for one in project.review_record()["edits"]] == ["P1"]
        assert project.state().phase is Phase.COMPLETE and "### P1: Say it aloud" in page.read_text()

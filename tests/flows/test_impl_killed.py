"""An implementation whose command is killed with -9 anywhere comes, run again, to what it would have come to."""

import itertools
import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agentd.terms import Phase
from built import (
    BAD,
    CHECK,
    GOOD,
    YES,
    approved,
    home,
    honest,
    impl,
    ran,
    record,
    standing_in,
    state,
    write,
)
from cutting import CHECK as HELD
from cutting import cut, cut_at_write, held
from exhaustive import Exhaustive
from felling import FOR_EVER, PATIENT, kept
from support import Box
from working import Action, say, usage

STEPS = (("implement-greeting", 1), ("review", 1), ("resolve", 2), ("review", 2))
KILL = signal.SIGKILL
_VARIES = re.compile(r"\b[0-9a-f]{12,64}\b|\d{4}-\d\d-\d\dT[\d:]+Z|\d+(?:\.\d+)? s\b|in \d+\.\d+s|[0-9a-f-]{36}")


def steps() -> dict[str, list[Action]]:
    """The first code fails its test, and is mended in a round."""
    mended = [write("greeting.py", GOOD), usage(0.02), say("Mended.")]
    return {"implement-greeting": honest(BAD), "resolve/2": mended, "review": YES}


def begin(box: Box, more: str = CHECK, **other: list[Action]) -> None:
    cut_off = {name.replace("__", "/").replace("_", "-"): acts for name, acts in other.items()}
    approved(box, steps() | cut_off, more + PATIENT)


def result(box: Box) -> list[str]:
    """All that it comes to, in lines, but for times, trees and what cut calls have cost."""
    found = state(box)
    lines = [f"{found.phase} {found.verdict} {found.round} {found.run} {found.findings}"]
    lines += [f"{one.event} {one.to} {one.by} {one.why}" for one in found.history]
    lines += sorted({f"{row.name} {row.round} {row.number}" for row in found.steps if row.status == "done"})
    texts = [home(box) / name for name in ("tasks.md", "REVIEW.md", "reviews/review-1.yaml", "reviews/review-2.yaml")]
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


def finished(box: Box) -> dict[tuple[str, int, int], int]:
    """What agents have done, and the last attempt at it; checks cost nothing, and may run again."""
    rows = [row for row in state(box).steps if row.name != "checks"]
    done = {row.key[:3] for row in rows if row.status == "done"}
    return {key: max(row.attempt for row in rows if row.key[:3] == key) for key in done}


@contextmanager
def nothing_paid_twice(box: Box) -> Iterator[None]:
    """In this block nobody is called for what is done already."""
    before = finished(box)
    yield
    assert before.items() <= finished(box).items()


def go_on(box: Box) -> None:
    with nothing_paid_twice(box):
        end = impl(box)
    assert end.code == 0, end.out + end.err


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What it comes to when nobody kills anything."""
    place = tmp_path_factory.mktemp("undisturbed-impl")
    with standing_in(Box(place / "notes-service", place / "home")) as box:
        begin(box)
        assert impl(box).code == 0
        assert ran(box) == [name for name, _ in STEPS]
        return result(box)


# ---- killed by what it tells


@pytest.mark.parametrize("kind", ["step.started", "step.finished"])
def test_killed_at_a_boundary_of_every_step_it_comes_to_the_same(
    kind: str, project: Box, undisturbed: list[str]
) -> None:
    begin(project)
    rounds = (("checks", 0), STEPS[0], ("checks", 1), STEPS[1], STEPS[2], ("checks", 2), STEPS[3])
    for name, round_ in rounds:
        if state(project).phase is Phase.COMPLETE:
            break
        with nothing_paid_twice(project):
            assert cut(project, KILL, type=kind, step=name, round=round_) == -9
    if state(project).phase is not Phase.COMPLETE:
        go_on(project)
    impl(project)
    assert result(project) == undisturbed


def test_killed_while_an_agent_works_it_comes_to_the_same_and_no_agent_is_left(
    project: Box, undisturbed: list[str]
) -> None:
    """The code of the cut call is there when the next one begins."""
    acts = steps()
    for name, round_ in STEPS:
        first = say("I begin.") if name == "review" else acts.get(name, acts.get(f"{name}/{round_}", []))[0]
        acts[f"{name}/{round_}/1"] = [first, FOR_EVER]
    approved(project, acts, CHECK + PATIENT)
    for name, round_ in STEPS:
        with nothing_paid_twice(project):
            assert cut(project, KILL, type="agent.activity", step=name, round=round_) == -9
    go_on(project)
    assert result(project) == undisturbed


def test_killed_while_a_check_runs_it_comes_to_the_same_and_no_check_is_left(
    project: Box, undisturbed: list[str]
) -> None:
    begin(project, HELD)
    for round_, after in enumerate(("implement-greeting", "resolve", "review")):
        with held(project), nothing_paid_twice(project):
            assert cut(project, KILL, type="step.started", step="checks", round=round_) == -9
        assert cut(project, KILL, type="step.started", step=after) == -9, "these checks are over"
    go_on(project)
    assert re.sub(r"if test -e .*?; fi; ", "", in_a_line(result(project))) == in_a_line(undisturbed)


# ---- killed at a write


def test_killed_at_any_write_over_and_over_it_comes_to_the_same(
    exhaustive: Exhaustive, project: Box, undisturbed: list[str]
) -> None:
    begin(project)
    with kept(project) as put_back:
        for seed in exhaustive.seeds(10):
            dice = random.Random(seed)
            is_felled, farthest = True, 12
            while is_felled and state(project).phase is not Phase.COMPLETE:
                moment, number = dice.choice(("before", "after")), dice.randint(3, farthest)
                with nothing_paid_twice(project):
                    is_felled = cut_at_write(project, moment, number)
                farthest += 4
            impl(project)
            assert result(project) == undisturbed, seed
            put_back()


def test_killed_at_each_write_of_a_verdict_it_is_one_verdict(exhaustive: Exhaustive, project: Box) -> None:
    """The record, its page, the ticks and the transition: each is there once in the end."""
    review = ("review", "greet")
    approved(project, {"implement-greeting": honest()}, CHECK + PATIENT)
    assert project.agentd("implement", "greet").code == 0
    with kept(project) as put_back:
        assert project.agentd(*review).code == 0
        straight = result(project)
        put_back()
        for number in exhaustive.points(itertools.count(1)):
            moment = ("before", "after")[number % 2]  # before a write is after the one before it
            is_felled = cut_at_write(project, moment, number, command=review)
            if not is_felled:
                break
            judged = (home(project) / "reviews/review-1.yaml").exists()
            calls = len(state(project).llm_calls)
            end = project.agentd("impl", "greet")
            assert end.code == 0, f"{moment} write {number}: {end.err}"
            assert result(project) == straight, f"{moment} write {number}"
            assert not judged or len(state(project).llm_calls) == calls, "a verdict that is written is not asked again"
            put_back()
    assert number > 8, "the record, REVIEW.md, tasks.md and STATE.yaml were among them"
    assert not (home(project) / "reviews/review-2.yaml").exists()


def test_killed_between_record_and_transition_a_persons_edit_of_the_page_is_not_lost(project: Box) -> None:
    """The page is rendered from the record when the next command finishes the round."""
    approved(project, {"implement-greeting": honest()}, CHECK + PATIENT)
    assert project.agentd("implement", "greet").code == 0
    number = 1
    with kept(project) as put_back:
        while cut_at_write(project, "after", number, command=("review", "greet")):
            if (home(project) / "REVIEW.md").exists():
                break
            put_back()
            number += 1
        assert state(project).phase is Phase.IMPLEMENTING, "the transition has not come"
        page = home(project) / "REVIEW.md"
        mine = "### Say it aloud\n\n- **Severity**: Low\n- **Description**: It is written only.\n\n"
        page.write_text(page.read_text().replace("## Earlier findings", f"{mine}## Earlier findings"))
        assert impl(project).code == 0
        assert [one["id"] for one in record(project)["edits"]] == ["P1"]
        assert state(project).phase is Phase.COMPLETE and "### P1: Say it aloud" in page.read_text()

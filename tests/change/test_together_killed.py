"""Several files changed as one: killed with -9 before and after every operation, and every operation failing once."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from transaction_project import Ground, laid_out

from agentd.storage import files
from agentd.storage.transaction_record import pending_transactions
from assertions import Contents, folder_contents
from crash import Strike, Tell, kill, kill_just_after, run_in_fork
from exhaustive import Exhaustive

MOMENTS = pytest.mark.parametrize("strike", [kill, kill_just_after])
WORKS = pytest.mark.parametrize("is_undo", [False, True], ids=["carry_out", "undo"])
_SLIM = {b"plan.json", b"done", b"old-0", b"old-2", b"old-3"}


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return laid_out(tmp_path / "ground")


@pytest.fixture
def ends(ground: Ground, is_undo: bool) -> tuple[Contents, Contents]:
    """The project before the work and after it, with nothing cut off."""
    start(ground, is_undo)
    before = folder_contents(ground.root)
    work(ground, is_undo)
    after = folder_contents(ground.root)
    assert before != after
    return before, after


def start(ground: Ground, is_undo: bool) -> None:
    laid_out(ground.top)
    if is_undo:
        ground.carry_out()


def work(ground: Ground, is_undo: bool) -> None:
    ground.undo() if is_undo else ground.carry_out()


def attempts(attempt: Callable[[int], bool], exhaustive: Exhaustive) -> Iterator[int]:
    """At the first operation, the second, and so on, until it lives to the end."""
    for number in exhaustive.points(range(1, 500)):
        lived = attempt(number)
        yield number
        if lived:
            assert number > 5, "it should have had occasions to die"
            return
    raise AssertionError("it never lived to the end")


def records_are_tidy(ground: Ground, is_archived: bool) -> bool:
    found = folder_contents(ground.records)
    left = {name.removeprefix(b"20260119-add-oauth/") for name in found} - {b"20260119-add-oauth"}
    return left == (_SLIM if is_archived else set()) and bool(found) == is_archived


@MOMENTS
@WORKS
def test_transaction_killed_anywhere_leaves_the_old_or_the_new_tree(
    ground: Ground, strike: Strike, is_undo: bool, ends: tuple[Contents, Contents], exhaustive: Exhaustive
) -> None:
    def attempt(number: int) -> bool:
        start(ground, is_undo)
        return run_in_fork(lambda tell: work(ground, is_undo), ground.top, number, strike=strike)[0]

    outcomes = []
    for number in attempts(attempt, exhaustive):
        ground.recover()
        now = folder_contents(ground.root)
        assert now in ends, number
        outcomes.append(now == ends[1])
        assert records_are_tidy(ground, is_archived=outcomes[-1] is not is_undo), number
        assert not pending_transactions(ground.records)
    assert outcomes == sorted(outcomes), "from some operation on it is the new one"
    few = exhaustive.size(10, 0)
    assert few < sum(outcomes) < len(outcomes) - few


@WORKS
def test_recovery_killed_anywhere_can_be_repeated(
    ground: Ground, tmp_path: Path, is_undo: bool, ends: tuple[Contents, Contents], exhaustive: Exhaustive
) -> None:
    def leave(number: int, strike: Strike) -> bool:
        start(ground, is_undo)
        return run_in_fork(lambda tell: work(ground, is_undo), ground.top, number, strike=strike)[0]

    kept = tmp_path / "kept"
    rests: dict[str, Path] = {}  # many deaths leave the same behind
    for strike in (kill, kill_just_after):
        for number in attempts(lambda number, strike=strike: leave(number, strike), exhaustive):  # type: ignore[misc]
            mark = re.sub(r"\.\d+-[0-9a-f]{8}\.tmp", ".tmp", repr(sorted(folder_contents(ground.top).items())))
            if mark not in rests:
                rests[mark] = kept / f"{strike.__name__}-{number}"
                shutil.copytree(ground.top, rests[mark], symlinks=True)
    assert len(rests) > exhaustive.size(30, 3)
    apart = exhaustive.size(4, 20)
    deaths = [recovered_though_killed(ground, rest, ends, turn, apart) for turn, rest in enumerate(rests.values())]
    assert sum(deaths) > exhaustive.size(100, 3)


def recovered_though_killed(ground: Ground, rest: Path, ends: tuple[Contents, Contents], turn: int, apart: int) -> int:
    """How often it died on the way from there to one end, always the same. Neighbours die at other operations."""
    reached = set()
    for died, number in enumerate(range(1 + turn % apart, 500, apart)):
        shutil.rmtree(ground.top)
        shutil.copytree(rest, ground.top, symlinks=True)
        strike = (kill, kill_just_after)[(turn + died) % 2]
        lived, _ = run_in_fork(lambda tell: ground.recover(), ground.top, number, strike=strike)
        ground.recover()
        reached.add(ends.index(folder_contents(ground.root)))
        assert not pending_transactions(ground.records)
        if lived:
            assert len(reached) == 1, rest.name
            return died
    raise AssertionError("it never lived to the end")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES], ids=["full-disk", "no-right"])
@WORKS
def test_failing_operation_raises_and_leaves_nothing_half_done(
    ground: Ground, number: int, is_undo: bool, ends: tuple[Contents, Contents], exhaustive: Exhaustive
) -> None:
    struck = []

    def strike() -> None:
        struck.append(True)
        raise OSError(number, os.strerror(number))

    def fails(tell: Tell) -> None:
        words = ""
        try:
            work(ground, is_undo)
        except (files.CannotWrite, files.CannotRead) as error:
            words = error.message
        tell([bool(struck), words])

    told: list[tuple[bool, str]] = []

    def attempt(at: int) -> bool:
        start(ground, is_undo)
        told.extend(run_in_fork(fails, ground.top, at, strike=strike)[1])
        return not told[-1][0]

    half_done = 0
    for at in attempts(attempt, exhaustive):
        words = told[-1][1]
        assert not words or words.startswith(("cannot write", "cannot read")), words
        begun = pending_transactions(ground.records)
        half_done += len(begun)
        if not begun and words and folder_contents(ground.root) == ends[0]:
            assert records_are_tidy(ground, is_archived=is_undo), (at, words)
        ground.recover()
        now = folder_contents(ground.root)
        assert now in ends, (at, words)
        assert now == ends[1] or not (begun or not words), (at, words)
    assert half_done > exhaustive.size(10, 0)

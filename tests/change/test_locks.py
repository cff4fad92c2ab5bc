"""The word in a run lock, which an agent could have written, and a lock that is taken away from under a run."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.domain.errors import Busy, StateError
from agentd.project.layout import find_project
from scenario import Scenario

GOOD = {"pid": 4711, "command": "agentd plan add-oauth", "since": "2026-01-19T10:30:00Z", "token": "abc"}


@pytest.fixture
def change(project: Scenario) -> Change:
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


def lock_file(change: Change) -> Path:
    return Path(change.project.local_state_path("locks", f"{change.id}.run"))


@contextmanager
def held_with(change: Change, word: bytes) -> Iterator[None]:
    path = lock_file(change)
    path.parent.mkdir(exist_ok=True)
    with path.open("wb", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(word)
        yield


# --- who holds it ----------------------------------------------------------------------------------------------------


def test_lock_holder_is_read_from_the_lock_file(change: Change) -> None:
    with held_with(change, json.dumps(GOOD).encode()):
        holder = change.active_run()
    assert holder and holder.is_known
    assert str(holder) == "'agentd plan add-oauth' (process 4711, since 2026-01-19T10:30:00Z)"


@pytest.mark.parametrize(
    "word",
    [
        *(json.dumps({**GOOD, "pid": pid}).encode() for pid in (-1, 0, 1, True, 4711.0, "4711", None, 2**31, 2**70)),
        *(json.dumps({**GOOD, name: value}).encode() for name in ("command", "since", "token") for value in (5, None)),
        json.dumps({"pid": 4711}).encode(),
        json.dumps([4711]).encode(),
        b"[" * 4000,
        b"\xff\xfe",
        b"",
    ],
)
def test_invalid_lock_content_names_no_holder(change: Change, word: bytes) -> None:
    with held_with(change, word):
        holder = change.active_run()
        assert holder and not holder.is_known
        with pytest.raises(Busy, match=r"^add-oauth is being worked on by another process$"):
            change.update(lambda old: old)
        with pytest.raises(Busy, match=r"^add-oauth is being worked on by another process$"), change.running("agentd"):
            pass


def test_control_characters_in_the_lock_are_replaced(change: Change) -> None:
    with held_with(change, json.dumps({**GOOD, "command": "\x1b[2Jagentd\n\ud800"}).encode()):
        assert "'\ufffd[2Jagentd\ufffd\ufffd' (process" in str(change.active_run())


# --- a lock taken away -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", ["nothing", "an empty file", "another run"])
def test_run_whose_lock_was_removed_cannot_write(change: Change, then: str) -> None:
    path = lock_file(change)
    with change.running("agentd plan add-oauth") as held:
        change.update(lambda old: old, held.token)
        path.unlink()
        if then == "an empty file":
            path.touch()
        if then == "another run":
            with change.running("agentd impl add-oauth"), pytest.raises(StateError, match="lost its lock"):
                change.update(lambda old: old, held.token)
        with pytest.raises(StateError, match="this run lost its lock") as caught:
            change.update(lambda old: old, held.token)
    assert caught.value.exit_code == 6
    assert "agentd stop add-oauth" in caught.value.hint


def test_finished_run_cannot_write(change: Change) -> None:
    with change.running("agentd plan add-oauth") as held:
        pass
    with pytest.raises(Busy, match="the run that could write to add-oauth has ended"):
        change.update(lambda old: old, held.token)
    lock_file(change).unlink()
    with pytest.raises(Busy, match="the run that could write to add-oauth has ended"):
        change.update(lambda old: old, held.token)

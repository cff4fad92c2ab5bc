"""agentd interrupted and killed in the middle of a run, and agents with more output than memory."""

import os
import signal
import time
from pathlib import Path

import pytest

from agentd.agents import reaper
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.domain.errors import Busy
from agentd.project.layout import find_project
from exhaustive import Exhaustive
from processes import DAEMON, IGNORE_TERM, STUBBORN, Stage, python, wait_until
from program import PATIENCE
from scenario import Scenario

WITH_DAEMON = IGNORE_TERM + DAEMON + "print('up', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_ctrl_c_ends_all_processes_before_it_propagates(stage: Stage) -> None:
    with stage.apart(python(WITH_DAEMON)) as run:
        assert [run.next(), run.next()] == [{"line": "daemon up"}, {"line": "up"}]
        os.kill(run.process.pid, signal.SIGINT)
        assert run.next() == {"interrupted": True}
        assert set(stage.left()) <= {run.process.pid}


def test_second_ctrl_c_skips_the_grace_period_and_leaves_no_process(stage: Stage) -> None:
    asked = stage.folder / "asked"
    code = f"trap 'echo > {asked}' TERM; echo up; while :; do sleep 0.05; done"
    with stage.apart(["sh", "-c", code], grace=300.0) as run:
        assert run.next() == {"line": "up"}
        os.kill(run.process.pid, signal.SIGINT)
        wait_until(asked.exists, "the agent was asked to end")
        os.kill(run.process.pid, signal.SIGINT)
        assert run.next() == {"interrupted": True}
        assert set(stage.left()) <= {run.process.pid}


@pytest.mark.parametrize("agent", [STUBBORN, WITH_DAEMON], ids=["ignores TERM", "with a daemon"])
def test_no_process_is_left_shortly_after_agentd_is_killed(stage: Stage, agent: str) -> None:
    mark = stage.folder / "ended"
    with stage.apart(python(agent), mark=str(mark)) as run:
        while "up" not in run.next()["line"].split()[0]:
            pass
        run.process.kill()
        run.process.wait()
        wait_until(lambda: not stage.left(), "all are gone")
    assert mark.exists()
    assert reaper.GRACE < 2, "two seconds are promised"


def test_agent_dies_with_its_reaper_while_agentd_is_suspended(stage: Stage) -> None:
    with stage.apart(python(STUBBORN)) as run:
        agent, watcher = map(int, run.next()["line"].split()[1:])
        os.kill(run.process.pid, signal.SIGSTOP)
        os.kill(watcher, signal.SIGKILL)
        wait_until(lambda: agent not in stage.left(), "the agent is gone")
        os.kill(run.process.pid, signal.SIGCONT)
        assert run.next()["exit_code"] == -signal.SIGKILL


def test_agent_that_kills_its_reaper_at_once_has_been_started(stage: Stage) -> None:
    for _ in range(20):
        outcome = stage.run(["/bin/sh", "-c", "kill -9 $PPID; exec sleep 600"])
        assert outcome.exit_code == -signal.SIGKILL


def test_no_agent_is_left_when_agentd_is_killed_during_start(stage: Stage) -> None:
    with stage.apart(python(STUBBORN)) as run:
        start = time.monotonic()
        run.next()
        whole = time.monotonic() - start  # from the start of agentd to that of the agent
    for part in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        with stage.apart(python(STUBBORN)) as run:
            time.sleep(part * whole)
            run.process.kill()
            run.process.wait()
            wait_until(lambda: not stage.left(), "all are gone")


@pytest.fixture
def change(project: Scenario) -> Change:
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


def test_run_lock_is_held_until_the_agent_of_a_killed_run_is_gone(project: Scenario, change: Change) -> None:
    stage = Stage(project.root)
    with stage.apart(python(WITH_DAEMON), change=change.id, grace=PATIENCE) as run:
        assert [run.next(), run.next()] == [{"line": "daemon up"}, {"line": "up"}]
        run.process.kill()
        run.process.wait()
        with pytest.raises(Busy, match="add-oauth is being worked on by 'agentd impl'"), change.running("agentd plan"):
            pass
        (watcher,) = [pid for pid, words in stage.left().items() if "patient_reaper.py" in words]
        os.kill(watcher, signal.SIGTERM)  # the grace is over
        wait_until(lambda: is_free_and_nothing_left(change, stage), "the lock is free")


def is_free_and_nothing_left(change: Change, stage: Stage) -> bool:
    try:
        with change.running("agentd plan"):
            assert stage.left() == {}
            return True
    except Busy:
        return False


def test_run_lock_is_free_after_a_run_ended(project: Scenario, change: Change) -> None:
    stage = Stage(project.root)
    with change.running("agentd impl") as held:
        stage.run(["true"], lock=held.handle)
    assert change.active_run() is None


def test_gigabyte_line_is_read_in_bounded_memory(stage: Stage, exhaustive: Exhaustive) -> None:
    megabytes = exhaustive.size(1024, 256)
    code = f"import os\nchunk = memoryview(b'x' * (1 << 20))\nfor _ in range({megabytes}):\n    rest = chunk\n"
    code += "    while rest: rest = rest[os.write(1, rest):]"
    with stage.apart(python(code), echo=False) as run:
        told = run.next()
    assert (told["exit_code"], told["count"], told["longest"]) == (0, 1, 8 << 20)
    assert told["left_out"] == (megabytes << 20) - (8 << 20)
    assert told["peak_mb"] < 200


def test_ten_million_lines_are_read_in_bounded_memory(stage: Stage, exhaustive: Exhaustive) -> None:
    lines = exhaustive.size(10_000_000, 1_000_000)
    code = "import sys\nlines = b'a line of text\\n' * 10_000\n"
    code += f"for _ in range({lines // 10_000}): sys.stdout.buffer.write(lines)"
    with stage.apart(python(code), echo=False) as run:
        told = run.next()
    assert (told["exit_code"], told["count"], told["left_out"]) == (0, lines, 0)
    assert told["peak_mb"] < 200

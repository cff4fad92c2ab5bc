"""Agents that turn on the process which watches them, and agents that say more than anybody can hear."""

import fcntl
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from agentd.agents import process, reaper
from agentd.agents.process import ProcessEnding, ProcessLimits, ProcessOutcome
from processes import (
    DAEMON,
    IGNORE_TERM,
    Clock,
    Stage,
    give_much_grace,
    python,
    until_there,
    wait_long_for_the_end,
    wait_until,
    write_patient_reaper,
)
from program import PATIENCE

KILL_THE_REAPER = "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)\n"
DAEMON_WITH_A_CLEAN_CHILD = """
ready, told = os.pipe()  # closed by exec: the child has its new environment
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            env = {name: value for name, value in os.environ.items() if name == "STAGE"}
            print("clean", flush=True)
            os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], env)
        os.close(told)
        time.sleep(600)
    os._exit(0)
os.wait()
os.close(told)
os.read(ready, 1)
"""
KEEP_THE_REAPER_STOPPED = """
reaper = os.getppid()
if os.fork() == 0:
    os.setsid()
    os.kill(reaper, signal.SIGSTOP)
    print("stopped", flush=True)
    while True:
        os.kill(reaper, signal.SIGSTOP)
        time.sleep(0.001)
time.sleep(600)
"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    wait_long_for_the_end(monkeypatch)
    return Stage(tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def bounds(wall: float = PATIENCE, idle: float = PATIENCE) -> ProcessLimits:
    return ProcessLimits(wall_secs=wall, idle_secs=idle, output_bytes=1 << 40)


# --- more than can be heard ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "; break"], ids=["for ever", "once"])
def test_wall_clock_limit_holds_when_output_is_faster_than_the_listener(stage: Stage, clock: Clock, end: str) -> None:
    """To hear all of it would take minutes."""

    def hear(stream: str, line: bytes, missing: int) -> None:
        stage.heard.append((stream, line, missing))
        clock.start()
        time.sleep(0.005)

    code = f"import os\nwhile True: os.write(1, b'on and on and on\\n' * 50_000){end}"
    outcome = stage.run(python(code), bounds=bounds(wall=2), hear=hear)
    assert outcome.ending is ProcessEnding.WALL, "what was left out must not pass for all"
    assert 0 < len(stage.heard) <= 401


@pytest.mark.parametrize(
    ("patience", "ending", "heard"),
    [
        (PATIENCE, ProcessEnding.EXITED, [b"up", b"asked", b"last"]),
        (0.0, ProcessEnding.WALL, [b"up", b"asked"]),
    ],
    ids=["in time", "too late"],
)
def test_final_output_is_read_during_cleanup_after_the_agent_exited(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    patience: float,
    ending: ProcessEnding,
    heard: list[bytes],
) -> None:
    monkeypatch.setattr(process, "_CLEANUP_SECS", patience)
    monkeypatch.setattr(reaper, "__file__", write_patient_reaper(stage.folder, PATIENCE))

    def hear(stream: str, line: bytes, missing: int) -> None:
        stage.heard.append((stream, line, missing))
        if line == b"asked":
            clock.forward(wall + reaper.GRACE)

    wall = 30.0
    helper = "(trap 'printf \"asked\\nlast\\n\"; exit' TERM; echo up; echo > set; while :; do sleep 0.02; done) & "
    outcome = stage.run(["sh", "-c", helper + until_there("set")], bounds=bounds(wall=wall), hear=hear)
    assert (outcome.ending, stage.lines) == (ending, heard)


def test_partial_line_is_captured_when_the_wall_clock_ends_the_agent(stage: Stage, clock: Clock) -> None:
    code = "printf 'half a line'; echo said >&2; exec sleep 600"
    outcome = stage.run(["sh", "-c", code], bounds=bounds(wall=0.5), hear=clock.started_by(stage))
    assert (outcome.ending, stage.lines) == (ProcessEnding.WALL, [b"half a line"])


# --- the reaper killed -----------------------------------------------------------------------------------------------


def test_agent_that_kills_its_reaper_leaves_no_daemon(stage: Stage) -> None:
    outcome = stage.run(python(IGNORE_TERM + DAEMON + KILL_THE_REAPER))
    assert stage.lines == [b"daemon up"]
    assert (outcome.ending, outcome.exit_code, outcome.is_gone) == (ProcessEnding.EXITED, -signal.SIGKILL, True)


def test_daemon_child_without_our_variable_is_ended_too(stage: Stage) -> None:
    stage.run(python(IGNORE_TERM + DAEMON_WITH_A_CLEAN_CHILD + KILL_THE_REAPER))
    assert stage.lines == [b"clean"]


def test_killed_reaper_does_not_affect_unrelated_processes(stage: Stage, tmp_path: Path) -> None:
    other = Stage(tmp_path)
    outcomes: list[ProcessOutcome] = []
    code = "echo up; while [ ! -e go ]; do sleep 0.05; done; exit 3"
    beside = threading.Thread(target=lambda: outcomes.append(other.run(["sh", "-c", code])))
    beside.start()
    try:
        wait_until(lambda: other.lines == [b"up"], "the other agent is up")
        with subprocess.Popen(["sleep", "600"], start_new_session=True) as ours:
            stage.run(python(IGNORE_TERM + DAEMON + KILL_THE_REAPER))
            assert ours.poll() is None
            ours.kill()
    finally:
        (tmp_path / "go").touch()
        beside.join()
    assert [outcome.exit_code for outcome in outcomes] == [3]


# --- the reaper stopped ----------------------------------------------------------------------------------------------


def test_suspended_reaper_is_resumed(stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    give_much_grace(monkeypatch, stage.folder)
    mark = stage.folder / "ended"
    code = "kill -STOP $PPID; echo stopped; sleep 600"
    outcome = stage.run(["sh", "-c", code], bounds=bounds(idle=0.5), mark=mark, hear=clock.started_by(stage))
    assert (outcome.ending, outcome.exit_code, outcome.is_gone) == (ProcessEnding.IDLE, -signal.SIGTERM, True)
    assert mark.exists()


def test_reaper_kept_suspended_does_not_hold_the_lock_after_the_run(
    stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_CLEANUP_SECS", 1.0)
    path = stage.folder / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        code, hear = python(IGNORE_TERM + KEEP_THE_REAPER_STOPPED), clock.started_by(stage)
        outcome = stage.run(code, bounds=bounds(idle=0.5), lock=lock, hear=hear)
    finally:
        os.close(lock)
    assert (outcome.ending, outcome.is_gone) == (ProcessEnding.IDLE, True)
    with path.open() as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_ctrl_c_ends_an_agent_that_keeps_its_reaper_suspended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_CLEANUP_SECS", 1.0)

    def hear(stream: str, line: bytes, missing: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.run(python(IGNORE_TERM + KEEP_THE_REAPER_STOPPED), hear=hear)

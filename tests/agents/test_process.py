"""What process.run hears, feeds and bounds; and that nothing is left of an agent, whatever it does."""

import contextlib
import errno
import itertools
import math
import os
import signal
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.agents import process, reaper
from agentd.agents.process import CannotStart, ProcessEnding, ProcessLimits
from agentd.agents.streams import LineSplitter
from processes import (
    ASK_FOR_MY_END,
    DAEMON,
    IGNORE_TERM,
    ROOMY,
    Clock,
    Stage,
    give_much_grace,
    python,
    until_there,
    wait_long_for_the_end,
    wait_until,
)
from program import PATIENCE


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    wait_long_for_the_end(monkeypatch)
    return Stage(tmp_path)


@pytest.fixture
def patient(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Agents have minutes to end when they are asked to."""
    give_much_grace(monkeypatch, stage.folder)
    return stage


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def bounds(wall: float = PATIENCE, idle: float = PATIENCE, output: int = 1 << 40, line: int = 8 << 20) -> ProcessLimits:
    return ProcessLimits(wall_secs=wall, idle_secs=idle, output_bytes=output, line_bytes=line)


# --- what is heard ---------------------------------------------------------------------------------------------------


def test_stdout_and_stderr_lines_and_the_exit_code_are_captured(stage: Stage) -> None:
    code = "echo one; echo two; echo; printf 'three\\r\\n'; printf 'no end'; echo wrong >&2; exit 3"
    outcome = stage.run(["sh", "-c", code])
    assert (outcome.ending, outcome.exit_code, outcome.is_gone) == (ProcessEnding.EXITED, 3, True)
    assert stage.lines == [b"one", b"two", b"", b"three\r", b"no end"]
    assert [line for stream, line, _ in stage.heard if stream == "err"] == [b"wrong"]


def test_agent_killed_by_a_signal_has_a_negative_exit_code(stage: Stage) -> None:
    assert stage.run(["sh", "-c", "kill -SEGV $$"]).exit_code == -signal.SIGSEGV


def test_invalid_utf8_is_passed_unchanged(stage: Stage) -> None:
    stage.run(python(r"import os; os.write(1, b'\xff\xfe\x00\x80\n\xc3')"))
    assert stage.lines == [b"\xff\xfe\x00\x80", b"\xc3"]


def test_long_line_is_truncated_and_the_omitted_bytes_are_counted(stage: Stage) -> None:
    stage.run(["sh", "-c", "echo 1234567890; echo 12345678901; echo 1; printf 123456789012"], bounds=bounds(line=10))
    assert stage.heard == [
        ("out", b"1234567890", 0),
        ("out", b"1234567890", 1),
        ("out", b"1", 0),
        ("out", b"1234567890", 2),
    ]


@given(st.binary(max_size=60), st.lists(st.integers(0, 60)), st.integers(1, 12))
def test_line_splitting_does_not_depend_on_read_boundaries(data: bytes, cuts: list[int], limit: int) -> None:
    heard: list[tuple[str, bytes, int]] = []
    lines = LineSplitter("out", limit, lambda *line: heard.append(line))
    edges = [0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]
    for start, end in itertools.pairwise(edges):
        assert lines.add(data[start:end], math.inf)
    lines.finish()
    whole = data.split(b"\n")
    if not whole[-1]:
        whole.pop()
    assert heard == [("out", line[:limit], max(0, len(line) - limit)) for line in whole]


# --- what is fed -----------------------------------------------------------------------------------------------------

PROMPT = b"0123456789abcde\n" * (10 * 65536)  # 10 MB


def test_ten_megabyte_prompt_is_delivered_while_the_agent_writes(stage: Stage) -> None:
    code = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line)"
    got: list[bytes] = []
    stage.run(python(code), stdin=PROMPT, hear=lambda stream, line, missing: got.append(line))
    assert b"\n".join(got) + b"\n" == PROMPT


@pytest.mark.parametrize(
    "code",
    ["echo done", "exec <&-; echo done", "head -c 10 >/dev/null; echo done"],
    ids=["never", "closes", "a little"],
)
def test_agent_does_not_have_to_read_its_prompt(stage: Stage, code: str) -> None:
    assert stage.run(["sh", "-c", code], stdin=PROMPT).exit_code == 0
    assert stage.lines == [b"done"]


def test_wall_clock_limit_applies_to_an_agent_that_never_reads_its_prompt(stage: Stage) -> None:
    assert stage.run(["sleep", "600"], stdin=PROMPT, bounds=bounds(wall=0.3)).ending is ProcessEnding.WALL


def test_empty_prompt_closes_stdin(stage: Stage) -> None:
    assert stage.run(["cat"]).exit_code == 0


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_wall_clock_limit_ends_an_agent_that_keeps_writing(patient: Stage, clock: Clock) -> None:
    code = "while :; do echo on; sleep 0.02; done"
    outcome = patient.run(["sh", "-c", code], bounds=bounds(wall=0.5), hear=clock.started_by(patient))
    assert (outcome.ending, outcome.exit_code) == (ProcessEnding.WALL, -signal.SIGTERM)
    assert outcome.duration_ms >= 500


def test_idle_limit_ends_a_silent_agent(stage: Stage, clock: Clock) -> None:
    code = "echo on; exec sleep 600"
    outcome = stage.run(["sh", "-c", code], bounds=bounds(idle=0.5), hear=clock.started_by(stage))
    assert (outcome.ending, stage.lines) == (ProcessEnding.IDLE, [b"on"])


def test_partial_lines_on_either_stream_reset_the_idle_clock(
    stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second passes from one to the next, of an agent that is idle after two."""
    read = process._ProcessRun._read_output
    seen = itertools.count()

    def listen(run: process._ProcessRun, handle: int) -> bool:
        clock.forward(1)
        is_more = read(run, handle)
        (stage.folder / str(next(seen))).touch()
        return is_more

    monkeypatch.setattr(process._ProcessRun, "_read_output", listen)
    code = "for i in 0 1 2 3 4 5 6 7 8 9; do printf . >&$((1 + i % 2)); while [ ! -e $i ]; do sleep 0.02; done; done"
    assert stage.run(["sh", "-c", code], bounds=bounds(idle=2)).ending is ProcessEnding.EXITED
    assert next(seen) >= 10


def test_slow_listener_does_not_make_an_agent_idle(stage: Stage, clock: Clock) -> None:
    def hear(stream: str, line: bytes, missing: int) -> None:
        clock.forward(3)
        (stage.folder / "heard").touch()

    outcome = stage.run(["sh", "-c", f"echo one; {until_there('heard')}"], bounds=bounds(idle=2), hear=hear)
    assert outcome.ending is ProcessEnding.EXITED


def test_exceeding_the_output_limit_ends_the_agent(stage: Stage) -> None:
    code = "import os\nwhile True: os.write(1, b'x' * 99 + b'\\n'); os.write(2, b'y' * 99 + b'\\n')"
    outcome = stage.run(python(code), bounds=bounds(output=3_000_000))  # more than a pipe holds
    assert outcome.ending is ProcessEnding.OUTPUT
    assert sum(len(line) + 1 for _, line, _ in stage.heard) in (3_000_000, 3_000_001)  # the last one may be cut
    assert {stream for stream, _, _ in stage.heard} == {"out", "err"}


def test_output_up_to_the_limit_is_allowed(stage: Stage) -> None:
    assert stage.run(["printf", "12345"], bounds=bounds(output=5)).ending is ProcessEnding.EXITED
    assert stage.run(["printf", "123456"], bounds=bounds(output=5)).ending is ProcessEnding.OUTPUT
    assert stage.lines == [b"12345", b"12345"]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_agent_can_shut_down_gracefully_within_the_grace_period(patient: Stage) -> None:
    code = "trap 'sleep 0.3 && echo bye; exit 7' TERM; echo up; kill -TERM $PPID; while :; do sleep 0.05; done"
    assert patient.run(["sh", "-c", code]).exit_code == 7
    assert patient.lines == [b"up", b"bye"]


def test_processes_started_during_shutdown_also_get_sigterm(patient: Stage) -> None:
    late = f"(trap 'echo asked; exit' TERM; echo > set; while :; do sleep 0.02; done) & {until_there('set')}; exit 7"
    code = f"leave() {{ {late}; }}; trap leave TERM; kill -TERM $PPID; while :; do sleep 0.05; done"
    assert patient.run(["sh", "-c", code]).exit_code == 7
    assert patient.lines == [b"asked"]


def test_agent_that_ignores_sigterm_is_killed(stage: Stage) -> None:
    outcome = stage.run(python(IGNORE_TERM + ASK_FOR_MY_END + "time.sleep(600)"))
    assert (outcome.ending, outcome.exit_code) == (ProcessEnding.EXITED, -signal.SIGKILL)


def test_suspended_agent_is_ended(patient: Stage) -> None:
    outcome = patient.run(["sh", "-c", "kill -STOP $$"], bounds=bounds(idle=0.5))
    assert outcome.exit_code == -signal.SIGTERM


@pytest.mark.parametrize("end", ["os._exit(5)", ASK_FOR_MY_END + "time.sleep(600)"], ids=["exits", "lives on"])
def test_daemon_that_ignores_sigterm_and_holds_stdout_open_is_killed(stage: Stage, end: str) -> None:
    outcome = stage.run(python(IGNORE_TERM + DAEMON + end))
    assert stage.lines == [b"daemon up"]
    assert (outcome.exit_code, outcome.is_gone) == (5 if "exit" in end else -signal.SIGKILL, True)


def test_daemon_that_exits_on_sigterm_is_not_killed(patient: Stage) -> None:
    daemon = "(trap 'sleep 0.2; echo asked; exit' TERM; echo set; echo > set; while :; do sleep 0.05; done) & "
    patient.run(["sh", "-c", f"{daemon} {until_there('set')}; kill -TERM $PPID; sleep 600"])
    assert patient.lines == [b"set", b"asked"]


def test_agent_that_closes_its_streams_is_waited_for(stage: Stage) -> None:
    outcome = stage.run(["sh", "-c", "echo on; exec >&- 2>&-; sleep 0.5; exit 5"])
    assert (outcome.ending, outcome.exit_code, stage.lines) == (ProcessEnding.EXITED, 5, [b"on"])


def test_agent_that_closes_its_streams_and_never_exits_is_idle(stage: Stage) -> None:
    assert stage.run(["sh", "-c", "exec >&- 2>&-; sleep 600"], bounds=bounds(idle=0.4)).ending is ProcessEnding.IDLE


def test_final_output_is_captured_after_all_processes_exited(patient: Stage) -> None:
    """`two` and the agent's exit are there at once; while `two` is heard, `last` and the end of all are told."""
    watcher = 0

    def hear(stream: str, line: bytes, missing: int) -> None:
        nonlocal watcher
        if line.isdigit():
            watcher = int(line)
            (patient.folder / "heard").touch()
            wait_until((patient.folder / "asked").exists, "the agent is gone, and its daemon is asked to go")
        else:
            patient.heard.append((stream, line, missing))
        if line == b"two":
            (patient.folder / "go").touch()
            wait_until(lambda: has_ended(watcher), "the reaper has told that all are gone")

    daemon = f"trap 'echo > asked; {until_there('go')}; echo last; exit' TERM; echo > set; while :; do sleep 0.02; done"
    code = f"({daemon}) & {until_there('set')}; echo $PPID; {until_there('heard')}; echo two >&2; exit"
    patient.run(["sh", "-c", code], hear=hear)
    assert patient.lines == [b"last"]


def has_ended(pid: int) -> bool:
    return any(row.pid == pid and row.is_zombie for row in reaper.processes())


def test_agent_that_keeps_forking_new_sessions_is_ended_with_all_children(
    stage: Stage,
) -> None:
    code = f"""
for count in range(1500):
    if os.fork() == 0:
        if os.getpid() % 2: os.setsid()
        if os.fork() == 0: time.sleep(600)
        if os.fork() == 0: time.sleep(600)
        os._exit(0)
    if count == 20: {ASK_FOR_MY_END}
    time.sleep(0.004)
time.sleep(600)
"""
    assert stage.run(python(IGNORE_TERM + code)).exit_code == -signal.SIGKILL


class Enough(Exception):
    pass


def test_listener_error_ends_all_processes_before_it_propagates(stage: Stage) -> None:
    def hear(stream: str, line: bytes, missing: int) -> None:
        stage.heard.append((stream, line, missing))
        raise Enough

    with pytest.raises(Enough):
        stage.run(python(IGNORE_TERM + DAEMON + "while True: print('more', flush=True)"), hear=hear)
    assert len(stage.heard) == 1


def test_listener_error_on_the_last_line_propagates(stage: Stage) -> None:
    def hear(stream: str, line: bytes, missing: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        stage.run(["printf", "no end"], hear=hear)


def test_no_file_descriptor_stays_open_after_a_run(stage: Stage) -> None:
    stage.run(["true"])
    before = sorted(os.listdir("/proc/self/fd"))
    for argv in (["true"], ["sh", "-c", "echo on; sleep 600"], ["/nowhere/agent"]):
        with contextlib.suppress(CannotStart):
            stage.run(argv, bounds=bounds(idle=0.1))
    assert sorted(os.listdir("/proc/self/fd")) == before


# --- the mark --------------------------------------------------------------------------------------------------------


def test_end_marker_is_touched_after_all_processes_exited(patient: Stage) -> None:
    mark, last = patient.folder / "ended", patient.folder / "last"
    mark.write_text("from an earlier run")
    os.utime(mark, (0, 0))
    daemon = f"(trap 'sleep 0.3; echo bye > {last}; exit' TERM; echo > set; while :; do sleep 0.05; done) &"
    patient.run(["sh", "-c", f"{daemon} {until_there('set')}"], mark=mark)
    assert last.exists()
    assert mark.stat().st_mtime_ns >= last.stat().st_mtime_ns


def test_new_end_marker_is_an_empty_file(stage: Stage) -> None:
    stage.run(["true"], mark=stage.folder / "ended")
    assert (stage.folder / "ended").read_bytes() == b""


def test_failing_to_write_the_end_marker_is_ignored(stage: Stage) -> None:
    assert stage.run(["true"], mark=stage.folder / "no" / "such" / "ended").exit_code == 0


# --- what the agent gets ---------------------------------------------------------------------------------------------


def test_agent_inherits_only_its_three_standard_streams(stage: Stage) -> None:
    lock = os.open(stage.folder / "lock", os.O_RDWR | os.O_CREAT)
    kept = os.dup(lock)
    os.set_inheritable(kept, True)
    try:
        stage.run(python("import os; print(os.listdir('/proc/self/fd'))"), lock=lock)
    finally:
        os.close(lock)
        os.close(kept)
    assert stage.lines == [b"['0', '1', '2', '3']"]  # 3 is the folder that it lists


def test_agent_gets_given_environment_and_folder_without_a_terminal(stage: Stage) -> None:
    code = """
import os
print(sorted(os.environ))
print(os.getcwd())
print(os.getsid(0) == os.getpgid(0) == os.getpid() != os.getppid())
try: os.open("/dev/tty", os.O_RDWR)
except OSError as error: print(error.errno)
"""
    stage.run(python(code))
    folder = os.fsencode(stage.folder)
    assert stage.lines == [b"['AGENTD_CALL', 'LC_CTYPE', 'PATH', 'STAGE']", folder, b"True", b"%d" % errno.ENXIO]


def test_agent_starts_with_default_signal_handling(stage: Stage) -> None:
    ignored = (signal.SIGUSR1, signal.SIGCHLD, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGCHLD, signal.SIGTERM])
    try:
        stage.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        for number, handler in before.items():
            signal.signal(number, handler)
    ours_to_set = sum(1 << (number - 1) for number in signal.valid_signals())  # libc keeps two for itself
    assert [int(line.split()[1], 16) & ours_to_set for line in stage.lines] == [0, 0]


def test_agent_arguments_and_environment_are_not_visible_in_the_reaper(stage: Stage) -> None:
    stage.run(["sh", "-c", "cat /proc/$PPID/cmdline /proc/$PPID/environ | tr '\\0' '\\n'", "--key=SECRET"])
    assert b"reaper.py" in b"".join(stage.lines)
    assert not [line for line in stage.lines if b"SECRET" in line or stage.name.encode() in line]


# --- programs that cannot be started ---------------------------------------------------------------------------------


def test_start_failure_explains_why(stage: Stage) -> None:
    for name, text, mode in [
        ("plain", "echo hi\n", 0o644),
        ("garbage", "\x01\x02 nothing\n", 0o755),
        ("script", "#!/nowhere/bin/interpreter\n", 0o755),
    ]:
        (stage.folder / name).write_text(text)
        (stage.folder / name).chmod(mode)
    for argv, words, is_missing in [
        (["no-such-agent"], "no-such-agent is not on PATH", True),
        (["./no-such-agent"], "No such file or directory", True),
        (["./plain"], "Permission denied", False),
        (["./garbage"], "Exec format error", False),
        (["./script"], "the interpreter in its first line does not exist", False),
        (["sh", "a\0b"], "NUL byte", False),
        (["sh", "x" * 3_000_000], "Argument list too long", False),
    ]:
        with pytest.raises(CannotStart, match=words) as caught:
            stage.run(argv)
        assert caught.value.is_missing == is_missing
    assert stage.heard == []


def test_missing_working_folder_is_named_in_the_error(stage: Stage) -> None:
    stage.folder /= "gone"
    with pytest.raises(CannotStart, match=r"cannot be started in .*/gone: No such file") as caught:
        stage.run(["true"])
    assert not caught.value.is_missing


def test_program_path_with_a_slash_is_relative_to_the_agents_folder(stage: Stage) -> None:
    place_program(stage.folder / "bin" / "agent")
    assert stage.run(["bin/agent"]).exit_code == 0
    assert process.find_program("bin/agent", "", stage.folder) == str(stage.folder / "bin" / "agent")
    assert process.find_program("bin/other", os.environ["PATH"], stage.folder) is None


def test_relative_path_entries_are_not_searched(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    for folder in ("planted", "own"):
        place_program(stage.folder / folder / "agent")
    place_program(stage.folder / "agent")
    (stage.folder / "folder" / "agent").mkdir(parents=True)
    own = str(stage.folder / "own")
    assert process.find_program("agent", f"planted:.::{stage.folder}/folder:{own}") == f"{own}/agent"
    assert process.find_program("agent", "planted:.:") is None
    assert process.find_program("agent", "") is None


def place_program(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(stat.S_IRWXU)


# --- the reaper ------------------------------------------------------------------------------------------------------


def test_killing_the_reaper_ends_the_agent_and_its_group(stage: Stage) -> None:
    code = "import os, signal, time\nif os.fork() == 0: time.sleep(600)\nos.kill(os.getppid(), signal.SIGKILL)\n"
    outcome = stage.run(python(code + "time.sleep(600)"))
    assert (outcome.ending, outcome.exit_code, outcome.is_gone) == (ProcessEnding.EXITED, -signal.SIGKILL, True)


def test_sigterm_to_the_reaper_ends_the_agent(stage: Stage) -> None:
    outcome = stage.run(["sh", "-c", "kill -TERM $PPID; sleep 600"])
    assert (outcome.ending, outcome.exit_code) == (ProcessEnding.EXITED, -signal.SIGTERM)


def test_ps_fallback_lists_the_same_processes_as_proc(stage: Stage) -> None:
    rows: list[reaper.ProcessRow] = []

    def hear(stream: str, line: bytes, missing: int) -> None:
        child, agent, watcher = map(int, line.split())
        for table in (reaper.processes(), reaper.from_ps()):
            family = reaper.family(table, watcher, agent)
            assert {row.pid for row in family} == {child, agent}
            assert {row.pid for row in reaper.family(table, -1, agent)} == {child, agent}
            rows.extend(row for row in family if row.pid == child)
        raise Enough

    with pytest.raises(Enough):
        stage.run(["sh", "-c", "sleep 600 & echo $! $$ $PPID; wait"], hear=hear)
    assert len(rows) == 2
    assert [(row.parent, row.group, row.is_zombie) for row in rows[:1]] == [
        (row.parent, row.group, row.is_zombie) for row in rows[1:]
    ]


def test_reaper_runs_with_our_python_in_isolated_mode(stage: Stage) -> None:
    stage.run(["sh", "-c", "tr '\\0' '\\n' < /proc/$PPID/cmdline"], bounds=ROOMY)
    assert stage.lines[:4] == [os.fsencode(sys.executable), b"-I", b"-S", os.fsencode(reaper.__file__)]

"""Checks as agentd runs them: real commands, whatever they do, and nothing left of them."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.checks import runner
from agentd.checks.result import CheckResult, ResultCounts
from agentd.domain.terms import CheckStatus
from agentd.project.config.settings import CheckSettings
from processes import DAEMON, IGNORE_TERM, Clock, Stage, python, wait_until
from program import PATIENCE

PASSED, FAILED, COULD_NOT_RUN = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.COULD_NOT_RUN


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "notes").mkdir()
    return Stage(tmp_path / "notes")


def command(code: str) -> str:
    return shlex.join(python(code))


def run(stage: Stage, words: str, timeout: float = PATIENCE, variables: dict[str, str] | None = None) -> CheckResult:
    try:
        return runner.run_check(
            CheckSettings("tests", words, True, timeout), stage.folder, stage.env | (variables or {})
        )
    finally:
        assert stage.left() == {}, "the check is over, but not all are gone"


def lay(stage: Stage, files: dict[str, str]) -> None:
    for name, text in files.items():
        (stage.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (stage.folder / name).write_text(text, encoding="utf-8")


# ---- how it ends


def test_only_exit_code_zero_is_a_pass(stage: Stage) -> None:
    for words, status, code in [
        ("true", PASSED, 0),
        ("exit 3", FAILED, 3),
        ("kill -SEGV $$", FAILED, 139),
        ("sh -c 'kill -KILL $$'; exit $?", FAILED, 137),
        ("no-such-program --all", COULD_NOT_RUN, None),
        (". ./no-such-file", FAILED, 2),
        ("./notes.txt", COULD_NOT_RUN, None),
        ("if then", FAILED, 2),
        ("true\0", COULD_NOT_RUN, None),
    ]:
        (stage.folder / "notes.txt").write_text("no program\n")
        result = run(stage, words)
        assert (result.status, result.exit_code) == (status, code), words
        assert (result.name, result.command, result.required) == ("tests", words, True)
        assert (result.counts, result.failed_tests, result.problems) == (None, (), ())


def test_result_explains_why_a_check_could_not_run(stage: Stage) -> None:
    assert run(stage, "no-such-program --all").tail.endswith("no-such-program: not found")
    assert "SIGSEGV" in run(stage, "kill -SEGV $$").tail
    stage.folder /= "gone"
    result = run(stage, "true")
    assert result.status is COULD_NOT_RUN
    assert "gone: No such file or directory" in result.tail


def test_missing_python_module_means_the_check_could_not_run(stage: Stage) -> None:
    missing = f"{sys.executable} -m no_such_runner -q"
    assert run(stage, missing).status is COULD_NOT_RUN
    lay(
        stage,
        {"uses.py": "import sys\nprint('1 test', flush=True)\nsys.exit(f'{sys.executable}: No module named uses')\n"},
    )
    assert run(stage, f"{sys.executable} -m uses").status is FAILED


def test_time_limit_ends_a_check_and_its_children(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch).start_when((stage.folder / "told").exists)
    result = run(stage, "echo begun; echo > told; sleep 600 & sleep 600", timeout=0.5)
    assert (result.status, result.exit_code, result.counts) == (FAILED, None, None)
    assert result.tail == "begun\n[stopped at its time limit of 0.5 s, with everything it had started]"


@pytest.mark.parametrize("end", ["os._exit(0)", "time.sleep(600)"], ids=["exits", "lives on"])
def test_daemon_that_ignores_sigterm_is_killed(stage: Stage, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    Clock(monkeypatch).start_when((stage.folder / "up").exists)
    code = IGNORE_TERM + DAEMON + "open('up', 'w').close()\n" + end
    result = run(stage, command(code), timeout=PATIENCE if "exit" in end else 0.5)
    assert result.status is (PASSED if "exit" in end else FAILED)
    assert result.tail.startswith("daemon up")


def test_timed_out_check_has_no_summary(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch).start_when((stage.folder / "told").exists)
    result = run(stage, "echo '1 passed in 0.01s'; echo > told; sleep 600", timeout=0.5)
    assert (result.status, result.counts) == (FAILED, None)
    assert result.tail.startswith("1 passed")


# ---- what it is given


def test_check_has_no_stdin_and_no_terminal(stage: Stage) -> None:
    result = run(stage, "cat; tty; (: </dev/tty) || echo none; exit 0")
    assert result.status is PASSED
    assert "not a tty" in result.tail
    assert result.tail.endswith("none")


def test_check_runs_in_the_folder_and_may_change_directory(stage: Stage) -> None:
    lay(stage, {"inner/file": ""})
    assert run(stage, "test -d inner && cd inner && ls").tail == "file"


def test_check_gets_the_users_environment_without_misleading_variables(stage: Stage) -> None:
    led_astray = ("GIT_DIR", "GIT_INDEX_FILE", "CLAUDECODE", "CODEX_SANDBOX", "NODE_TEST_CONTEXT", "FORCE_COLOR")
    own = {"PYTEST_ADDOPTS": "-x", "DATABASE": "notes", "TERM": "xterm-256color"}
    result = run(stage, "env | sort", variables={**dict.fromkeys(led_astray, "1"), **own})
    lines = result.tail.split("\n")
    assert {"PYTEST_ADDOPTS=-x", "DATABASE=notes", "CI=true", "NO_COLOR=1", "TERM=dumb"} <= set(lines)
    assert not [line for line in lines if line.startswith(led_astray)]


# ---- what is kept of its output


def test_stdout_and_stderr_keep_their_order(stage: Stage) -> None:
    words = "; ".join(f"echo {number}{' >&2' if number % 2 else ''}" for number in range(20))
    assert run(stage, words).tail.split() == [str(number) for number in range(20)]


def test_colors_control_characters_and_overwritten_lines_are_removed(stage: Stage) -> None:
    code = (
        r"""import os; os.write(1, b'\x1b[31mred\x1b[0m\0 \xff\x07\r\n10%\r50%\r100%\r\n\x1b]0;title\x07done\n\tend')"""
    )
    assert run(stage, command(code)).tail == "red �\n100%\ndone\n    end"


def test_paths_are_relative_and_secrets_redacted(stage: Stage) -> None:
    result = run(stage, 'echo "$PWD/tests/a.py:3 $API_KEY"', variables={"API_KEY": "k-0123456789abcdef"})
    assert result.tail == "tests/a.py:3 [redacted]"


def test_blank_output_has_no_tail(stage: Stage) -> None:
    assert run(stage, "echo; echo '  '; true").tail == ""


def test_two_hundred_megabytes_are_read_in_bounded_memory(stage: Stage, tmp_path: Path) -> None:
    lines = "import sys\nlines = (b'x' * 99 + b'\\n') * 10_000\nprint('first', flush=True)\n"
    lines += "for _ in range(200): sys.stdout.buffer.write(lines)\nprint('\\n2 passed in 0.01s')"
    script = (
        "import os, sys; from pathlib import Path; from agentd.checks import run_check;"
        "from agentd.project import CheckSettings;"
        f"result = run_check(CheckSettings('tests', sys.argv[1], True, 300), Path({str(stage.folder)!r}), os.environ);"
        "status = Path('/proc/self/status').read_text();"
        "print(int(status.partition('VmHWM:')[2].split()[0]) // 1024, result.counts, result.is_whole)"
    )
    before = set(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", script, command(lines)], capture_output=True, text=True, env=stage.env, check=True
    )
    peak, _, told = done.stdout.partition(" ")
    assert told == f"{ResultCounts(2, 0, 0)} False\n"
    assert int(peak) < 200
    assert set(tmp_path.rglob("*")) == before


def test_beginning_and_end_of_long_output_are_kept(stage: Stage) -> None:
    code = "print('=== short test summary info ===\\nFAILED a.py::test_a - x')\nfor n in range(200_000): print(n)\n"
    result = run(stage, command(code + "print('1 failed in 0.01s')\nraise SystemExit(1)"))
    assert (result.failed_tests, result.is_whole) == (("a.py::test_a",), False)
    assert result.tail.split("\n")[0] == "FAILED a.py::test_a - x"
    assert result.tail.split("\n")[-1] == "1 failed in 0.01s"
    assert len(result.tail.split("\n")) == runner.TAIL_LINES


def test_line_without_newline_is_truncated(stage: Stage) -> None:
    result = run(stage, command("import sys; sys.stdout.write('x' * 5_000_000)"))
    assert len(result.tail) < runner.TAIL_CHARACTERS
    assert not result.is_whole


# ---- test runners

UNITTEST = "import unittest\n\n\nclass Notes(unittest.TestCase):\n    def test_adds(self):\n        assert {0}\n"
NODE = 'const test = require("node:test");\ntest("adds", () => {{ if (!({0})) throw new Error("no"); }});\n'


def test_unittest_result_is_parsed(stage: Stage) -> None:
    words = f"{sys.executable} -m unittest discover -s tests"
    lay(stage, {"tests/test_notes.py": UNITTEST.format("1 + 1 == 2")})
    assert run(stage, words).counts == ResultCounts(1, 0, 0)
    lay(stage, {"tests/test_more.py": UNITTEST.format("1 + 1 == 3")})
    result = run(stage, words)
    assert (result.status, result.exit_code, result.counts) == (FAILED, 1, ResultCounts(1, 1, 0))
    assert result.failed_tests == ("test_more.Notes.test_adds",)


def test_pytest_result_is_parsed(stage: Stage) -> None:
    words = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:xdist"
    lay(stage, {"tests/test_notes.py": "def test_a(): pass\ndef test_b(): assert 302 == 400\n"})
    result = run(stage, words)
    assert (result.status, result.counts) == (FAILED, ResultCounts(1, 1, 0))
    assert result.failed_tests == ("tests/test_notes.py::test_b",)
    assert "FAILED tests/test_notes.py::test_b - assert 302 == 400" in result.tail.split("\n")
    lay(stage, {"tests/test_notes.py": ""})
    result = run(stage, words)
    assert (result.status, result.exit_code, result.counts) == (FAILED, 5, ResultCounts(0, 0, 0))
    assert [problem.title for problem in result.problems] == ["No tests ran"]


def test_node_result_is_parsed(stage: Stage) -> None:
    lay(stage, {"test/notes.test.js": NODE.format("1 + 1 === 2")})
    assert run(stage, "node --test").counts == ResultCounts(1, 0, 0)
    lay(stage, {"test/more.test.js": NODE.format("1 + 1 === 3")})
    result = run(stage, "node --test")
    assert (result.status, result.counts) == (FAILED, ResultCounts(1, 1, 0))
    assert result.failed_tests == ("test/more.test.js > adds",)


def test_runner_that_finds_no_test_passes_with_a_problem(stage: Stage) -> None:
    lay(stage, {"package.json": "{}"})
    result = run(stage, "node --test")
    assert (result.status, result.counts) == (PASSED, ResultCounts(0, 0, 0))
    assert [problem.title for problem in result.problems] == ["No tests ran"]


def test_test_failures_ignored_by_the_command_are_a_problem(stage: Stage) -> None:
    lay(stage, {"tests/test_notes.py": UNITTEST.format("1 + 1 == 3")})
    result = run(stage, f"{sys.executable} -m unittest discover -s tests || true")
    assert (result.status, result.counts) == (PASSED, ResultCounts(0, 1, 0))
    assert [problem.title for problem in result.problems] == ["Failed tests are ignored"]


def test_runner_started_by_make_is_parsed(stage: Stage) -> None:
    lay(stage, {"test/notes.test.js": NODE.format("false"), "Makefile": ".PHONY: test\ntest:\n\t@node --test\n"})
    result = run(stage, "make test")
    assert (result.status, result.exit_code) == (FAILED, 2)
    assert result.failed_tests == ("test/notes.test.js > adds",)


# ---- interrupted


APART = """
import os, sys
from pathlib import Path
from agentd.checks import run_check
from agentd.engine import interruptible
from agentd.project import CheckSettings
try:
    with interruptible():
        run_check(CheckSettings("tests", sys.argv[1], True, 600), Path(sys.argv[2]), os.environ)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()  # stay, so that nobody can think that our end has ended the check
"""


@contextlib.contextmanager
def apart(stage: Stage) -> Iterator[subprocess.Popen[str]]:
    """A check that has begun, in a process that can be interrupted and killed; with a daemon that ignores TERM."""
    words = command(IGNORE_TERM + DAEMON + "open('begun', 'w')\ntime.sleep(600)")
    with subprocess.Popen(
        [sys.executable, "-c", APART, words, str(stage.folder)],
        env=stage.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until((stage.folder / "begun").exists, "the check has begun")
            yield process
        finally:
            process.kill()
            wait_until(lambda: not stage.left(), "all are gone")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_all_processes_before_it_propagates(stage: Stage, number: int) -> None:
    with apart(stage) as process:
        assert process.stdout
        os.kill(process.pid, number)
        assert process.stdout.readline() == "interrupted\n"
        assert set(stage.left()) <= {process.pid}


def test_no_process_is_left_when_agentd_is_killed(stage: Stage) -> None:
    with apart(stage) as process:
        assert len(stage.left()) > 2
        process.kill()
        process.wait()
        wait_until(lambda: not stage.left(), "all are gone")

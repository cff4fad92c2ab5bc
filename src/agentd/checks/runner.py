"""Run one check as a person would, and end everything it started.

It runs in a shell, in the project's folder, without input or a terminal. Its processes are managed like an agent's
(`agents.process`), so they also end when agentd does.

passed         exit code 0
failed         any other exit code, a signal (128 plus its number, as in shells), or the time limit (no exit code)
could not run  the shell or the folder is missing, the shell could not start the command (126, 127), or the Python
               module is not installed: nothing was checked, and there is no exit code
"""

import math
import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from agentd.agents import (
    CannotStart,
    ProcessEnding,
    ProcessLimits,
    ProcessOutcome,
    Redactor,
    is_session_variable,
    run_process,
)
from agentd.checks import audits
from agentd.checks.result import NOTHING, CheckProblem, CheckResult, RunnerSummary, TestSummary, combine_summaries
from agentd.checks.runners import cargo, go, javascript, python
from agentd.domain import CheckStatus, Severity
from agentd.project import CheckSettings, git

FIRST = 64 * 1024  # bytes kept from the start
LAST = 1024 * 1024  # bytes kept from the end
TAIL_LINES = 30
TAIL_CHARACTERS = 4000
_FAILURE_LINES = 12  # lines reserved in the tail for failures reported further up
_LINE_CHARACTERS = 500

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")


class CapturedOutput:
    """Keep the first and last part of the output, in bounded memory."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._size = 0
        self._cut_off = 0

    def add_line(self, stream: str, line: bytes, cut_off: int) -> None:
        self._cut_off += cut_off
        self._size += len(line) + 1
        if not self._last and len(self._first) + len(line) < FIRST:
            self._first += line + b"\n"
            return
        self._last += line + b"\n"
        if len(self._last) > 2 * LAST:
            del self._last[:-LAST]

    def text(self) -> tuple[str, bool]:
        """Return the cleaned text, and whether it is complete."""
        last = bytes(self._last[-LAST:])
        missing = self._size - len(self._first) - len(last) + self._cut_off
        if not missing:
            return clean_output(bytes(self._first) + last), True
        return clean_output(bytes(self._first) + b"\n[%d bytes left out]\n" % missing + last), False


def clean_output(data: bytes) -> str:
    """Remove colors and control characters. Of an overwritten line, keep the last version."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace"))
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("", "\n".join(lines))


def output_tail(text: str, failure_lines: Sequence[str], notes: Sequence[str] = ()) -> str:
    """Return lines that name failures, the last lines of the output, and notes by agentd."""
    lines = [_shorten(line) for line in _collapse_blank_lines(text.split("\n")[-10 * TAIL_LINES :])]
    end = lines[-TAIL_LINES:]
    shortened = dict.fromkeys(map(_shorten, failure_lines[: 2 * TAIL_LINES]))
    earlier = [line for line in shortened if line not in end]
    head = _take_fitting(earlier[:_FAILURE_LINES], TAIL_CHARACTERS // 2)
    characters = TAIL_CHARACTERS - sum(len(line) + 1 for line in (*head, *notes))
    last = _take_fitting(end[: -(TAIL_LINES - len(head) - len(notes)) - 1 : -1], characters)[::-1]
    return "\n".join((*head, *last, *notes)).strip("\n")


def _take_fitting(lines: Iterable[str], characters: int) -> list[str]:
    """Return as many of the first lines as fit."""
    kept = []
    for line in lines:
        characters -= len(line) + 1
        if characters < 0:
            break
        kept.append(line)
    return kept


def _collapse_blank_lines(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip() if line.strip() else "")
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _shorten(line: str) -> str:
    line = line.expandtabs(4).rstrip()
    return line if len(line) <= _LINE_CHARACTERS else f"{line[: _LINE_CHARACTERS - 1]}…"


_MAX_LINE = 4000  # characters parsed per line; summaries are shorter
_READERS: tuple[Callable[[Sequence[str]], RunnerSummary | None], ...] = (
    python.read_pytest,
    python.read_unittest,
    javascript.read_node,
    cargo.read_cargo,
    go.read_go,
    javascript.read_jest,
    javascript.read_vitest,
)


def read_test_summary(output: str, exit_code: int | None) -> TestSummary:
    """Parse the summaries of test runners. `exit_code` None means it was stopped before it could print one."""
    if exit_code is None:
        return NOTHING
    lines = [line[:_MAX_LINE].rstrip() for line in output.split("\n")]
    return combine_summaries([summary for reader in _READERS if (summary := reader(lines))])


_SHELL = "/bin/sh"
_BOTH_STREAMS = f'exec {_SHELL} -c "$1" 2>&1'  # keeps the order of stdout and stderr
_NOT_STARTED = (126, 127)
_MODULE = re.compile(r"-m\s+([\w.]+)")
_OWN = {"CI": "true", "NO_COLOR": "1", "TERM": "dumb"}
# Variables that force colors, and the one that makes node think it runs inside a test.
_NOT_PASSED_ON = frozenset((*git.LOCATIONS, "FORCE_COLOR", "CLICOLOR_FORCE", "NODE_TEST_CONTEXT"))


def run_check(
    check: CheckSettings, folder: Path, environ: Mapping[str, str], *, lock: int | None = None
) -> CheckResult:
    """Run a check in `folder`, the project in the change's worktree. The reaper holds `lock` until all processes end.

    Ctrl-C ends everything and raises KeyboardInterrupt.
    """
    env = check_environment(environ)
    output = CapturedOutput()
    try:
        outcome = run_process(
            [_SHELL, "-c", _BOTH_STREAMS, _SHELL, check.command],
            env=env,
            cwd=folder,
            stdin=b"",
            bounds=ProcessLimits(wall_secs=check.timeout, idle_secs=math.inf, output_bytes=1 << 62, line_bytes=LAST),
            on_line=output.add_line,
            lock=lock,
        )
    except CannotStart as error:
        status = CheckStatus.COULD_NOT_RUN
        return CheckResult(check.name, check.command, check.required, status, None, 0, None, (), str(error))
    text, is_complete = output.text()
    # The output is committed and compared: redact secrets, and make paths relative to the folder.
    for place in {os.path.abspath(folder), os.path.realpath(folder)} - {"/"}:
        text = text.replace(f"{place}/", "")
    text = Redactor(env).clean(text)
    status, code, notes = _status(check, outcome, text)
    summary = read_test_summary(text, code)
    return CheckResult(
        name=check.name,
        command=check.command,
        required=check.required,
        status=status,
        exit_code=code,
        duration_ms=outcome.duration_ms,
        counts=summary.counts,
        failed_tests=summary.failed_tests,
        tail=output_tail(text, summary.failure_lines, notes),
        problems=(*_problems(check, status, summary), *audits.read_audit(text)),
        is_whole=is_complete and summary.is_whole,
    )


def check_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment without variables that would change how the command behaves."""
    kept = {
        name: value for name, value in environ.items() if name not in _NOT_PASSED_ON and not is_session_variable(name)
    }
    return kept | _OWN


def _status(check: CheckSettings, outcome: ProcessOutcome, text: str) -> tuple[CheckStatus, int | None, list[str]]:
    """Return the status, the exit code, and notes about how it ended."""
    notes = [] if outcome.is_gone else ["[a process that it started could not be ended]"]
    code = outcome.exit_code
    if outcome.ending is not ProcessEnding.EXITED:
        limit = f"[stopped at its time limit of {check.timeout:g} s, with everything it had started]"
        return CheckStatus.FAILED, None, [*notes, limit]
    if code is None or code < 0:
        number = -code if code else signal.SIGKILL
        return CheckStatus.FAILED, 128 + number, [*notes, f"[ended by {_signal_name(number)}]"]
    if code in _NOT_STARTED or (code and _is_module_missing(check.command, text)):
        return CheckStatus.COULD_NOT_RUN, None, notes
    return CheckStatus.FAILED if code else CheckStatus.PASSED, code, notes


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_module_missing(command: str, text: str) -> bool:
    """Return whether e.g. `python -m pytest` failed because pytest is not installed, which is then its only output."""
    module = _MODULE.search(command)
    output = text.strip()
    return module is not None and "\n" not in output and output.endswith(f": No module named {module[1]}")


def _problems(check: CheckSettings, status: CheckStatus, summary: TestSummary) -> list[CheckProblem]:
    counts = summary.counts
    if counts and not counts.ran:
        what = f"`{check.command}` ran no tests ({counts.skipped} skipped)."
        suggestion = "Add a test, or make the command find existing ones."
        return [CheckProblem("No tests ran", what, Severity.MEDIUM, suggestion)]
    if status is CheckStatus.PASSED and counts and counts.failed:
        what = f"`{check.command}` ended with exit code 0 although {counts.failed} tests failed."
        suggestion = "Make the command fail if a test fails."
        return [CheckProblem("Failed tests are ignored", what, Severity.MEDIUM, suggestion)]
    return []

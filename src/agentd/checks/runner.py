"""Run one check, as a person would by hand, and let nothing of it outlive the run.

By the shell, in the project's folder, with nothing to read and no terminal. The processes are started and ended as an
agent's are (`agents.process`), so they end with agentd too, however that ends.

passed         exit code 0
failed         any other, a signal (told as 128 and its number, as shells do), or the time limit (no exit code)
could not run  the shell or the folder is not there, the shell could not start the command (126, 127), or Python has no
               such module: nothing was checked, and there is no exit code
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
from agentd.checks.runners import cargo, go, javascript, node, python
from agentd.domain import CheckStatus, Severity
from agentd.project import CheckSettings, git

FIRST = 64 * 1024  # bytes kept from the start
LAST = 1024 * 1024  # bytes kept from the end
TAIL_LINES = 30
TAIL_CHARACTERS = 4000
_NAMING_LINES = 12  # of a tail, for failures that were named further up
_LINE_CHARACTERS = 500

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")


class CapturedOutput:
    """The first and the last of what is heard, in bounded memory."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._heard = 0
        self._left_out = 0

    def hear(self, stream: str, line: bytes, left_out: int) -> None:
        self._left_out += left_out
        self._heard += len(line) + 1
        if not self._last and len(self._first) + len(line) < FIRST:
            self._first += line + b"\n"
            return
        self._last += line + b"\n"
        if len(self._last) > 2 * LAST:
            del self._last[:-LAST]

    def text(self) -> tuple[str, bool]:
        """Cleaned; and whether that is all there was."""
        last = bytes(self._last[-LAST:])
        missing = self._heard - len(self._first) - len(last) + self._left_out
        if not missing:
            return clean_output(bytes(self._first) + last), True
        return clean_output(bytes(self._first) + b"\n[%d bytes left out]\n" % missing + last), False


def clean_output(data: bytes) -> str:
    """Text without colours and control characters; a line written over shows what it showed last."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace"))
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("", "\n".join(lines))


def output_tail(text: str, said: Sequence[str], notes: Sequence[str] = ()) -> str:
    """The last lines that say something and the notes of agentd under them; before them, lines that name failures."""
    lines = [_short(line) for line in _without_gaps(text.split("\n")[-10 * TAIL_LINES :])]
    end = lines[-TAIL_LINES:]
    named = [line for line in dict.fromkeys(map(_short, said[: 2 * TAIL_LINES])) if line not in end]
    naming = _fitting(named[:_NAMING_LINES], TAIL_CHARACTERS // 2)
    room = TAIL_CHARACTERS - sum(len(line) + 1 for line in (*naming, *notes))
    last = _fitting(end[: -(TAIL_LINES - len(naming) - len(notes)) - 1 : -1], room)[::-1]
    return "\n".join((*naming, *last, *notes)).strip("\n")


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """As many of the first as there is room for."""
    kept = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _without_gaps(lines: Iterable[str]) -> list[str]:
    """Several empty lines are one."""
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip() if line.strip() else "")
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _short(line: str) -> str:
    line = line.expandtabs(4).rstrip()
    return line if len(line) <= _LINE_CHARACTERS else f"{line[: _LINE_CHARACTERS - 1]}…"


_LONGEST = 4000  # characters of a line that are looked at; what runners say is shorter
_READERS: tuple[Callable[[Sequence[str]], RunnerSummary | None], ...] = (
    python.read_pytest,
    python.read_unittest,
    node.read_node,
    cargo.read_cargo,
    go.read_go,
    javascript.read_jest,
    javascript.read_vitest,
)


def read_test_summary(output: str, exit_code: int | None) -> TestSummary:
    """`exit_code` None: it was ended, and what it had said by then is no summary."""
    if exit_code is None:
        return NOTHING
    lines = [line[:_LONGEST].rstrip() for line in output.split("\n")]
    found = [one for reader in _READERS if (one := reader(lines))]
    return combine_summaries(found)


_SHELL = "/bin/sh"
_BOTH_STREAMS = f'exec {_SHELL} -c "$1" 2>&1'  # in the order in which they were written
_NOT_STARTED = (126, 127)
_MODULE = re.compile(r"-m\s+([\w.]+)")
_OWN = {"CI": "true", "NO_COLOR": "1", "TERM": "dumb"}
# Colour by force, and the mark by which node takes itself for a part of a test and runs none.
_NOT_PASSED_ON = frozenset((*git.LOCATIONS, "FORCE_COLOR", "CLICOLOR_FORCE", "NODE_TEST_CONTEXT"))


def run_check(
    check: CheckSettings, folder: Path, environ: Mapping[str, str], *, lock: int | None = None
) -> CheckResult:
    """`folder` is the project's in the change's tree. The processes that watch over it hold `lock` until all is over.

    Ctrl-C ends everything, and goes on as a KeyboardInterrupt.
    """
    env = check_environment(environ)
    kept = CapturedOutput()
    try:
        outcome = run_process(
            [_SHELL, "-c", _BOTH_STREAMS, _SHELL, check.command],
            env=env,
            cwd=folder,
            stdin=b"",
            bounds=ProcessLimits(wall_secs=check.timeout, idle_secs=math.inf, output_bytes=1 << 62, line_bytes=LAST),
            hear=kept.hear,
            lock=lock,
        )
    except CannotStart as error:
        return _result(check, CheckStatus.COULD_NOT_RUN, None, 0, NOTHING, (), str(error))
    text, is_all = kept.text()
    return _told(check, outcome, _bare(text, folder, env), is_all)


def check_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The person's own, but for what would lead a command astray."""
    kept = {
        name: value for name, value in environ.items() if name not in _NOT_PASSED_ON and not is_session_variable(name)
    }
    return kept | _OWN


def _bare(text: str, folder: Path, env: Mapping[str, str]) -> str:
    """Without secrets, and with paths as seen from the folder: what is kept is committed, and compared."""
    for place in {os.path.abspath(folder), os.path.realpath(folder)} - {"/"}:
        text = text.replace(f"{place}/", "")
    return Redactor(env).clean(text)


def _told(check: CheckSettings, outcome: ProcessOutcome, text: str, is_all: bool) -> CheckResult:
    status, code, notes = _ended(check, outcome, text)
    summary = read_test_summary(text, code)
    problems = (*_problems(check, status, summary), *audits.read_audit(text))
    tail = output_tail(text, summary.said, notes)
    is_whole = is_all and summary.is_whole
    return _result(check, status, code, outcome.duration_ms, summary, problems, tail, is_whole)


def _ended(check: CheckSettings, outcome: ProcessOutcome, text: str) -> tuple[CheckStatus, int | None, list[str]]:
    """Status, exit code, and what agentd says about its end."""
    notes = [] if outcome.is_gone else ["[something that it started could not be ended]"]
    code = outcome.exit_code
    if outcome.ending is not ProcessEnding.EXITED:
        limit = f"[ended at its time limit of {check.timeout:g} s, with all that it had started]"
        return CheckStatus.FAILED, None, [*notes, limit]
    if code is None or code < 0:
        number = -code if code else signal.SIGKILL
        return CheckStatus.FAILED, 128 + number, [*notes, f"[ended by {_signal_name(number)}]"]
    if code in _NOT_STARTED or (code and _has_no_module(check.command, text)):
        return CheckStatus.COULD_NOT_RUN, None, notes
    return CheckStatus.FAILED if code else CheckStatus.PASSED, code, notes


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _has_no_module(command: str, text: str) -> bool:
    """`python -m pytest` without pytest: a line of its own, and nothing else was said."""
    module = _MODULE.search(command)
    said = text.strip()
    return module is not None and "\n" not in said and said.endswith(f": No module named {module[1]}")


def _problems(check: CheckSettings, status: CheckStatus, summary: TestSummary) -> list[CheckProblem]:
    counts = summary.counts
    if counts and not counts.ran:
        what = f"`{check.command}` ran no test ({counts.skipped} skipped)."
        return [
            CheckProblem("No test ran", what, Severity.MEDIUM, "Add a test, or let the command find those there are.")
        ]
    if status is CheckStatus.PASSED and counts and counts.failed:
        what = f"`{check.command}` ended with exit code 0 although {counts.failed} tests failed."
        return [
            CheckProblem("Failed tests are passed over", what, Severity.MEDIUM, "Let the command end as its tests do.")
        ]
    return []


def _result(
    check: CheckSettings,
    status: CheckStatus,
    exit_code: int | None,
    duration_ms: int,
    summary: TestSummary,
    problems: tuple[CheckProblem, ...],
    tail: str,
    is_whole: bool = True,
) -> CheckResult:
    return CheckResult(
        name=check.name,
        command=check.command,
        required=check.required,
        status=status,
        exit_code=exit_code,
        duration_ms=duration_ms,
        counts=summary.counts,
        failed_tests=summary.failed_tests,
        tail=tail,
        problems=problems,
        is_whole=is_whole,
    )

"""cargo test: add up the results of all binaries. By default it stops after the first failing one."""

import re
from collections.abc import Sequence

from agentd.checks.result import ResultCounts, RunnerSummary

_RESULT = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;.*")
_TARGET = re.compile(r" *(?:Running (?:unittests )?(\S+) \(.*\)|Doc-tests (\S+))")
_RUNNING = re.compile(r"running \d+ tests?")
_LINE_NUMBER = re.compile(r" \(line \d+\)$")
_ALL_RAN = re.compile(r"error: \d+ targets? failed:")


class _CargoReader:
    def __init__(self) -> None:
        self.target = ""
        self.listed: list[str] | None = None  # the current list of failures, or None outside of one
        self.names: list[str] = []
        self.failure_lines: list[str] = []
        self.passed = self.failed = self.skipped = 0
        self.started = self.ended = self.crashes = 0

    def take(self, line: str) -> None:
        if target := _TARGET.fullmatch(line):
            self.target = f"{target[1] or target[2]}: "
        elif _RUNNING.fullmatch(line):
            self.started += 1
        elif line == "failures:":
            self.listed = []
        elif self.listed is not None and line.startswith("    "):
            self.listed.append(line.strip())
        elif result := _RESULT.fullmatch(line):
            self._end(result)
        elif line.startswith("error: could not compile"):
            self.crashes += 1
            self.failure_lines.append(line)
        elif line.endswith((" ... FAILED", " --- FAILED")):
            self.failure_lines.append(line)

    def _end(self, result: re.Match[str]) -> None:
        passed, failed, skipped = map(int, result.groups())
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
        self.ended += 1
        # The names come right before the result. Test output before them may be indented too.
        for name in (self.listed or [])[-failed:] if failed else ():
            self.names.append(self.target + _LINE_NUMBER.sub("", name))
        self.listed = None


def read_cargo(lines: Sequence[str]) -> RunnerSummary | None:
    reader = _CargoReader()
    for line in lines:
        reader.take(line)
    if not reader.ended:
        return None
    unnamed = reader.crashes + max(0, reader.started - reader.ended)  # binaries without a result
    failed = reader.failed + unnamed
    has_stopped = any(line.startswith("error: test failed") for line in lines)
    return RunnerSummary(
        runner="cargo",
        counts=ResultCounts(reader.passed, failed, reader.skipped),
        names=tuple(reader.names),
        unnamed=max(0, failed - len(reader.names)),
        failure_lines=tuple(reader.failure_lines),
        is_whole=not has_stopped or any(map(_ALL_RAN.fullmatch, lines)),
    )

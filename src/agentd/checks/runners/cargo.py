"""cargo test: a result for each binary, added up. It stops after the first one that fails, unless told not to."""

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
        self.listed: list[str] | None = None  # the last list of failures, None outside of one
        self.names: list[str] = []
        self.said: list[str] = []
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
            self.said.append(line)
        elif line.endswith((" ... FAILED", " --- FAILED")):
            self.said.append(line)

    def _end(self, result: re.Match[str]) -> None:
        passed, failed, skipped = map(int, result.groups())
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
        self.ended += 1
        # the list of names stands right before the result, after the output of the tests, which may be indented too
        for name in (self.listed or [])[-failed:] if failed else ():
            self.names.append(self.target + _LINE_NUMBER.sub("", name))
        self.listed = None


def read_cargo(lines: Sequence[str]) -> RunnerSummary | None:
    reading = _CargoReader()
    for line in lines:
        reading.take(line)
    if not reading.ended:
        return None
    unnamed = reading.crashes + max(0, reading.started - reading.ended)  # a binary that ended without a result
    failed = reading.failed + unnamed
    has_stopped = any(line.startswith("error: test failed") for line in lines)
    return RunnerSummary(
        runner="cargo",
        counts=ResultCounts(reading.passed, failed, reading.skipped),
        names=tuple(reading.names),
        unnamed=max(0, failed - len(reading.names)),
        said=tuple(reading.said),
        is_whole=not has_stopped or any(map(_ALL_RAN.fullmatch, lines)),
    )

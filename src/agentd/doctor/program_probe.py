"""A program run with a clock and little room, for what it says about itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.agents import CannotStart, ProcessEnding, ProcessLimits, ProcessOutcome, Stream, run_process

SECONDS = 60.0  # a busy machine is slow to start a CLI
_OUTPUT = 1024 * 1024


@dataclass(frozen=True)
class ProbeResult:
    """`failure` is empty if it ended well."""

    out: str
    errors: str
    failure: str


def probe_program(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> ProbeResult:
    """Its input is empty; nothing of it is left when this returns."""
    heard: dict[Stream, list[str]] = {"out": [], "err": []}

    def hear(stream: Stream, line: bytes, left_out: int) -> None:
        heard[stream].append(line.decode("utf-8", "replace"))

    bounds = ProcessLimits(wall_secs=SECONDS, idle_secs=SECONDS, output_bytes=_OUTPUT)
    try:
        outcome = run_process(argv, env=env, cwd=cwd, stdin=b"", bounds=bounds, on_line=hear)
    except CannotStart as error:
        return ProbeResult("", "", str(error))
    out, errors = ("\n".join(lines) for lines in heard.values())
    return ProbeResult(out, errors, _failure(outcome, heard["err"] or heard["out"]))


def _failure(outcome: ProcessOutcome, said: Sequence[str]) -> str:
    match outcome.ending, outcome.exit_code:
        case ProcessEnding.EXITED, 0:
            return ""
        case ProcessEnding.EXITED, code:
            last = next((line.strip() for line in reversed(said) if line.strip()), "")
            return f"it ended with exit code {code}: {last[:300]}" if last else f"it ended with exit code {code}"
        case ProcessEnding.OUTPUT, _:
            return "it printed without end"
        case _:
            return f"it did not answer within {SECONDS:g} s"

"""Where a session stands in a CLI's own list, for a CLI that resumes by that. Looked up just before: places move."""

from collections.abc import Mapping

from agentd import files
from agentd.agents import process
from agentd.agents.process import Bounds, Ending
from agentd.agents.protocol import Brief, ListsSessions
from agentd.agents.redact import Redactor
from agentd.agents.streams import Stream
from agentd.calls.run import Run
from agentd.config import Agent
from agentd.errors import SessionLost

NOT_FOUND = "Session not found, please re-run proposal"
NOT_CAPTURED = "Failed to capture session ID"
_LONGEST = 180.0  # seconds; without a network the list alone has taken a minute
_MOST = 4 * 1024 * 1024  # bytes
_SHOWN = 2000  # characters


def place(
    run: Run, agent: Agent, adapter: ListsSessions, brief: Brief, program: str, allowed: Mapping[str, str]
) -> int:
    """SessionLost, with what the CLI said, if it cannot be found there."""
    assert brief.resume
    code, out, err = _listed(run, agent, adapter, brief, program, allowed)
    clean = Redactor(allowed).clean
    if code:
        raise SessionLost(
            f"{agent.name} could not list its sessions: {_shown(clean(err or out)) or f'exit code {code}'}"
        )
    try:
        found = adapter.place_of(brief.resume, out)
    except ValueError:
        raise SessionLost(f"Failed to parse session list\n{_shown(clean(out))}") from None
    if found is None:
        raise SessionLost(NOT_FOUND)
    return found


def _listed(
    run: Run, agent: Agent, adapter: ListsSessions, brief: Brief, program: str, allowed: Mapping[str, str]
) -> tuple[int, str, str]:
    """Its exit code and what it printed; a clock that ran out counts as a failure and says so."""
    command = adapter.listing(agent, brief)
    for path, text in command.files.items():
        files.write(path, text.encode(), mode=0o600)
    heard: dict[Stream, list[bytes]] = {"out": [], "err": []}
    seconds = min(brief.wall_secs, _LONGEST)
    outcome = process.run(
        (program, *command.argv[1:]),
        env={**allowed, **command.env},
        cwd=command.cwd,
        stdin=command.stdin.encode(),
        bounds=Bounds(wall_secs=seconds, idle_secs=seconds, output_bytes=_MOST),
        hear=lambda stream, line, left_out: heard[stream].append(line),
        lock=run.held.handle,
    )
    out, err = (b"\n".join(heard[stream]).decode("utf-8", "replace") for stream in ("out", "err"))
    if outcome.ending is not Ending.EXITED:
        return 1, out, f"{err}\nit did not end within {seconds:g} s" if outcome.ending is not Ending.OUTPUT else err
    return outcome.exit_code or 0, out, err


def _shown(text: str) -> str:
    return text.strip()[-_SHOWN:]

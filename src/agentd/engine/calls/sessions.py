"""Where a session stands in a CLI's own list, for a CLI that resumes by that. Looked up just before: places move."""

from collections.abc import Mapping
from pathlib import Path

from agentd.agents import AgentBrief, ProcessEnding, ProcessLimits, Redactor, SessionLister, Stream, run_process
from agentd.change import Change
from agentd.domain import SessionLost
from agentd.engine.calls.run_context import RunContext
from agentd.project import AgentSettings
from agentd.storage import files

NOT_FOUND = "Session not found, please re-run proposal"
NOT_CAPTURED = "Failed to capture session ID"
_LONGEST = 180.0  # seconds; without a network the list alone has taken a minute
_MOST = 4 * 1024 * 1024  # bytes
_SHOWN = 2000  # characters


def remember_session(change: Change, session: str) -> None:
    """A CLI keeps its sessions on one machine: which ones were made here is known in the local room."""
    path = _made_here(change)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(session + "\n")


def is_local_session(change: Change, session: str) -> bool:
    try:
        return session in _made_here(change).read_text(encoding="utf-8").split("\n")
    except OSError:
        return False


def _made_here(change: Change) -> Path:
    return Path(change.project.in_room("sessions", change.id))


def session_lost(message: str, change_id: str) -> SessionLost:
    return SessionLost(message, f"agentd plan {change_id} --new-session")


def session_position(
    run: RunContext,
    agent: AgentSettings,
    adapter: SessionLister,
    brief: AgentBrief,
    program: str,
    allowed: Mapping[str, str],
) -> int:
    """SessionLost, with what the CLI said, if it cannot be found there."""
    assert brief.resume
    code, out, err = _listed(run, agent, adapter, brief, program, allowed)
    clean = Redactor(allowed).clean
    if code:
        words = f"{agent.name} could not list its sessions: {_shown(clean(err or out)) or f'exit code {code}'}"
        raise session_lost(words, run.change.id)
    try:
        found = adapter.place_of(brief.resume, out)
    except ValueError:
        raise session_lost(f"Failed to parse session list\n{_shown(clean(out))}", run.change.id) from None
    if found is None:
        raise session_lost(NOT_FOUND, run.change.id)
    return found


def _listed(
    run: RunContext,
    agent: AgentSettings,
    adapter: SessionLister,
    brief: AgentBrief,
    program: str,
    allowed: Mapping[str, str],
) -> tuple[int, str, str]:
    """Its exit code and what it printed; a clock that ran out counts as a failure and says so."""
    command = adapter.listing(agent, brief)
    for path, text in command.files.items():
        files.write(path, text.encode(), mode=0o600)
    heard: dict[Stream, list[bytes]] = {"out": [], "err": []}
    seconds = min(brief.wall_secs, _LONGEST)
    outcome = run_process(
        (program, *command.argv[1:]),
        env={**allowed, **command.env},
        cwd=command.cwd,
        stdin=command.stdin.encode(),
        bounds=ProcessLimits(wall_secs=seconds, idle_secs=seconds, output_bytes=_MOST),
        hear=lambda stream, line, left_out: heard[stream].append(line),
        lock=run.held.handle,
    )
    out, err = (b"\n".join(heard[stream]).decode("utf-8", "replace") for stream in ("out", "err"))
    if outcome.ending is not ProcessEnding.EXITED:
        return (
            1,
            out,
            f"{err}\nit did not end within {seconds:g} s" if outcome.ending is not ProcessEnding.OUTPUT else err,
        )
    return outcome.exit_code or 0, out, err


def _shown(text: str) -> str:
    return text.strip()[-_SHOWN:]

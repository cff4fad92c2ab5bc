"""Selects the agent, model and command for a call."""

import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentd.agents import (
    Adapter,
    AgentBrief,
    AgentCommand,
    AgentSettings,
    ProcessEnding,
    ProcessLimits,
    Redactor,
    SessionLister,
    Stream,
    allowed_environment,
    find_program,
    get_adapter,
    has_known_price,
    run_process,
    suggest_alternative,
)
from agentd.change import Change
from agentd.domain import AgentMissing, Role, SessionLost, events
from agentd.engine.calls import budget
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.calls.run_context import RunContext, change_project
from agentd.engine.tools.tool_table import tools_of
from agentd.project import Config, ensure_trusted
from agentd.storage import files

NOT_FOUND = "Session not found, please re-run proposal"
NOT_CAPTURED = "Failed to capture session ID"
_LIST_SECONDS = 180.0  # without a network, listing sessions can take a minute
_LIST_BYTES = 4 * 1024 * 1024
_SHOWN = 2000  # characters


def remember_session(change: Change, session: str) -> None:
    """Record in the local state that the session was created on this machine."""
    path = _session_file(change)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(session + "\n")


def is_local_session(change: Change, session: str) -> bool:
    try:
        return session in _session_file(change).read_text(encoding="utf-8").split("\n")
    except OSError:
        return False


def _session_file(change: Change) -> Path:
    return Path(change.project.local_state_path("sessions", change.id))


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
    """Return the session's position in the CLI's list; raise SessionLost with the CLI's output if it is missing."""
    assert brief.resume
    code, out, err = _list_sessions(run, agent, adapter, brief, program, allowed)
    clean = Redactor(allowed).clean
    if code:
        message = f"{agent.name} could not list its sessions: {_shown(clean(err or out)) or f'exit code {code}'}"
        raise session_lost(message, run.change.id)
    try:
        found = adapter.place_of(brief.resume, out)
    except ValueError:
        raise session_lost(f"Failed to parse session list\n{_shown(clean(out))}", run.change.id) from None
    if found is None:
        raise session_lost(NOT_FOUND, run.change.id)
    return found


def _list_sessions(
    run: RunContext,
    agent: AgentSettings,
    adapter: SessionLister,
    brief: AgentBrief,
    program: str,
    allowed: Mapping[str, str],
) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr; a timeout is a failure and says so in stderr."""
    command = adapter.listing(agent, brief)
    for path, text in command.files.items():
        files.write(path, text.encode(), mode=0o600)
    printed: dict[Stream, list[bytes]] = {"out": [], "err": []}
    seconds = min(brief.wall_secs, _LIST_SECONDS)
    outcome = run_process(
        (program, *command.argv[1:]),
        env={**allowed, **command.env},
        cwd=command.cwd,
        stdin=command.stdin.encode(),
        bounds=ProcessLimits(wall_secs=seconds, idle_secs=seconds, output_bytes=_LIST_BYTES),
        on_line=lambda stream, line, left_out: printed[stream].append(line),
        lock=run.lock.handle,
    )
    out, err = (b"\n".join(printed[stream]).decode("utf-8", "replace") for stream in ("out", "err"))
    if outcome.ending is not ProcessEnding.EXITED:
        late = "" if outcome.ending is ProcessEnding.OUTPUT else f"\nit did not end within {seconds:g} s"
        return 1, out, err + late
    return outcome.exit_code or 0, out, err


def _shown(text: str) -> str:
    return text.strip()[-_SHOWN:]


@dataclass(frozen=True)
class SelectedAgent:
    """Everything that is known before the agent starts."""

    agent: AgentSettings
    adapter: Adapter
    brief: AgentBrief
    command: AgentCommand
    program: str
    env: Mapping[str, str]


def select_agent(run: RunContext, work: CallRequest, attempt: int, prompt: str) -> SelectedAgent:
    """Prepare the call. A missing agent or a used-up budget is refused here, before it counts as a call."""
    # checked again: files that commands refer to may have changed
    ensure_trusted(change_project(run.change), run.config, os.environ)
    agent = run.config.agent_for(work.role)
    adapter = get_adapter(agent.kind)
    brief = _brief(run, work, agent, adapter, attempt, prompt)
    command = adapter.command(agent, brief)
    allowed = allowed_environment(agent, os.environ)
    env = {**allowed, **command.env}
    program = find_program(command.argv[0], env.get("PATH", ""), command.cwd)
    if program is None:
        raise _agent_missing(agent, work.role, env.get("PATH", ""))
    _check_budget(run, work, agent, adapter, brief)
    if brief.resume and agent.resume == "index" and isinstance(adapter, SessionLister):
        brief = replace(brief, place=session_position(run, agent, adapter, brief, program, allowed))
        command = adapter.command(agent, brief)
    return SelectedAgent(agent, adapter, brief, command, program, env)


def ensure_agent_installed(config: Config, role: Role, environ: Mapping[str, str]) -> None:
    """Raise AgentMissing if the agent's command is not installed; a path may only exist in a later worktree."""
    agent = config.agent_for(role)
    path = allowed_environment(agent, environ).get("PATH", "")
    if agent.command and "/" not in agent.command and not find_program(agent.command, path):
        raise _agent_missing(agent, role, path)


def _agent_missing(agent: AgentSettings, role: Role, path: str) -> AgentMissing:
    what = f"{agent.name} ({agent.command}) is not installed, and it is the {role}"
    other = f"set its program as command under [agents.{agent.name}]"
    install = get_adapter(agent.kind).install_hint or other
    return AgentMissing(what, install + suggest_alternative(agent.kind, lambda name: bool(find_program(name, path))))


def _check_budget(
    run: RunContext, work: CallRequest, agent: AgentSettings, adapter: Adapter, brief: AgentBrief
) -> None:
    limits = run.limits
    budget.check_budget(limits, run.change.id, run.spent(), max_cost=run.max_cost, role=work.role)
    is_known = adapter.states_cost or has_known_price(brief.model, run.config.prices)
    warning = budget.check_price(limits, agent.name, brief.model, is_known, run.max_cost)
    if warning and warning not in run.warned:
        run.warned.add(warning)
        run.emit(events.WarningIssued(**work.names(brief.attempt), code="price-unknown", message=warning))


def _brief(
    run: RunContext, work: CallRequest, agent: AgentSettings, adapter: Adapter, attempt: int, prompt: str
) -> AgentBrief:
    change = run.change
    model = agent.model_for(work.complexity)
    preset = adapter.sessions == "preset" and agent.resume != "index" and not work.resume
    return AgentBrief(
        prompt=prompt,
        step=work.step,
        round=work.round,
        number=work.number,
        attempt=attempt,
        role=work.role,
        access="write" if work.role is Role.IMPLEMENTER else "read",
        tree=Path(change.tree, change.project.prefix),
        folder=run.folder / "calls" / f"{work.step}-{work.round}-{work.number}-{attempt}",
        station=_working_folder(change, agent),
        server=_server_command(run, work),
        tools=tuple(tool.name for tool in tools_of(work.stage)),
        commands=work.commands,
        model=model.model if model else None,
        reasoning=model.reasoning if model else None,
        session=str(uuid.uuid4()) if preset else None,
        resume=work.resume,
        wall_secs=run.config.limits.wall_secs[work.role],
    )


def _working_folder(change: Change, agent: AgentSettings) -> Path:
    """Return a folder in the user's cache: above it there are no settings a repository could have left for the CLI."""
    local = change.project.local_state_path("stations")
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME")
        if not home:
            return Path(local, change.id, agent.name)
        base = os.path.join(home, ".cache")
    repository = files.hash_bytes(os.fsencode(local)).removeprefix("sha256:")[:16]
    return Path(base, "agentd", "stations", repository, change.id, agent.name)


def _server_command(run: RunContext, work: CallRequest) -> tuple[str, ...]:
    """-P: a folder named agentd in the working folder must not be imported."""
    start = (sys.executable, "-P", "-m", "agentd", "mcp")
    return (*start, "--change", run.change.id, "--stage", work.stage, "--token", run.token)

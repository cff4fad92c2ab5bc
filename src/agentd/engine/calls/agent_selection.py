"""Who does the work: the agent in its role, the model for the job, and the command that starts it."""

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
_LONGEST = 180.0  # seconds; without a network the list alone has taken a minute
_MOST = 4 * 1024 * 1024  # bytes
_SHOWN = 2000  # characters


def remember_session(change: Change, session: str) -> None:
    """A CLI keeps its sessions on one machine: which ones were made here is known in the local state."""
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
        on_line=lambda stream, line, left_out: heard[stream].append(line),
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


@dataclass(frozen=True)
class SelectedAgent:
    """Everything known before the first process starts."""

    agent: AgentSettings
    adapter: Adapter
    brief: AgentBrief
    command: AgentCommand
    program: str
    env: Mapping[str, str]


def select_agent(run: RunContext, work: CallRequest, attempt: int, prompt: str) -> SelectedAgent:
    """Refused here, before it counts as a call: an agent that is not there, a budget that is used up."""
    ensure_trusted(
        change_project(run.change), run.config, os.environ
    )  # again: files that commands name may have changed
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
    """For a look before anything is made. A path is left out: what lies in a tree may come with it."""
    agent = config.agent_for(role)
    path = allowed_environment(agent, environ).get("PATH", "")
    if agent.command and "/" not in agent.command and not find_program(agent.command, path):
        raise _agent_missing(agent, role, path)


def _agent_missing(agent: AgentSettings, role: Role, path: str) -> AgentMissing:
    what = f"{agent.name} ({agent.command}) is not installed, and it is the {role}"
    other = f"name its program under [agents.{agent.name}] command"
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
    """In the user's cache: a CLI also looks above its working folder, where a repository could have left settings."""
    room = change.project.local_state_path("stations")
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME")
        if not home:
            return Path(room, change.id, agent.name)
        base = os.path.join(home, ".cache")
    repository = files.hash_bytes(os.fsencode(room)).removeprefix("sha256:")[:16]
    return Path(base, "agentd", "stations", repository, change.id, agent.name)


def _server_command(run: RunContext, work: CallRequest) -> tuple[str, ...]:
    """-P: a folder named agentd in the working folder is not our package."""
    start = (sys.executable, "-P", "-m", "agentd", "mcp")
    return (*start, "--change", run.change.id, "--stage", work.stage, "--token", run.token)

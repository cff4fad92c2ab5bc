"""The adapter protocol: a brief in, a command out, and the output stream as events (pure)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from agentd.agents.failures import FailureCause
from agentd.domain import Role
from agentd.project import AgentSettings

SessionSupport = Literal["none", "preset", "captured"]


@dataclass(frozen=True, kw_only=True)
class AgentBrief:
    """One call to an agent, independent of the CLI; the adapter translates it."""

    prompt: str
    step: str
    round: int
    number: int
    attempt: int
    role: Role
    access: Literal["read", "write"]
    tree: Path  # the project in the change's worktree, where the agent works
    folder: Path  # the call's own folder in local state
    station: Path  # outside the worktree; constant per change and agent, for CLIs that bind sessions to a folder
    server: tuple[str, ...]  # the argument list that starts agentd's MCP server for this call
    tools: tuple[str, ...]  # the names of the tools that the server offers
    commands: tuple[str, ...] = ()  # shell commands that an agent that writes code may run
    model: str | None = None  # None: the CLI's own default
    reasoning: str | None = None
    session: str | None = None  # the id for a new session, if the CLI accepts one
    resume: str | None = None  # the session to resume, instead of a new one
    place: int | None = None  # that session's position in the CLI's own list, if it resumes by position
    wall_secs: float = 0


@dataclass(frozen=True, kw_only=True)
class AgentCommand:
    """The process to start. `env` adds to the allowed variables; `files` (by full path) are written first."""

    argv: tuple[str, ...]
    stdin: str
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)
    needs_server: bool = False  # the CLI continues without agentd's server, so agentd checks that it started


@dataclass(frozen=True, kw_only=True)
class TokenUsage:
    """Tokens of a call or part of it; `tokens_in` includes `tokens_cached`. `cost` is the agent's own figure."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None
    model: str | None = None
    of_session: bool = False  # for the whole session so far, not only for this call


@dataclass(frozen=True)
class AgentText:
    """A chunk of the assistant's text, in order."""

    text: str


@dataclass(frozen=True)
class AgentAction:
    """Something the agent did; `ok` is None while it is in progress."""

    kind: Literal["tool", "shell"]
    text: str
    ok: bool | None = None


@dataclass(frozen=True)
class SessionStarted:
    id: str


@dataclass(frozen=True)
class UsageUpdate:
    """Usage of one part of the call. An update replaces earlier ones for the same part; parts add up."""

    usage: TokenUsage
    part: str = ""


@dataclass(frozen=True, kw_only=True)
class AgentEnded:
    """The final event. Its usage, if any, is for the whole call and replaces all parts."""

    cause: FailureCause | None = None  # None: success
    message: str = ""
    wait_secs: float | None = None  # how long a rate limit asks to wait
    usage: TokenUsage | None = None


AgentEvent = AgentText | AgentAction | SessionStarted | UsageUpdate | AgentEnded


def parse_json_object(line: str) -> dict[str, Any] | None:
    """Parse a line of a JSON stream; return None if it is not an object."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


class Adapter(Protocol):
    """One per kind of CLI. Adapters are pure: they start, read and write nothing."""

    install_hint: str
    sessions: SessionSupport
    final_event: bool  # it reports one, so a run without it has failed whatever its exit code
    states_cost: bool  # it reports its own cost, so no price is needed
    brings: tuple[str, ...]  # files in the project's root that it adds to the context by itself
    cannot_write: bool  # read-only access is enforced by its sandbox or list of tools

    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand: ...

    def tool_name(self, name: str) -> str:
        """Return the name by which a prompt refers to a tool of agentd's server."""
        ...

    def read(self, line: str) -> Iterable[AgentEvent]: ...

    def failure(self, exit_code: int, errors: str) -> AgentEnded | None:
        """Return the failure according to the exit code and the end of stderr, if there was no final event."""
        ...


@runtime_checkable
class SessionLister(Protocol):
    """An adapter whose CLI may have to resume a session by its position in a list."""

    def listing(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand: ...

    def place_of(self, session: str, listed: str) -> int | None:
        """Return the session's position, or None if it is not listed. ValueError: this is not a list of sessions."""
        ...

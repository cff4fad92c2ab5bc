"""What every adapter speaks: a brief in, a command out, and the lines of its stream as events (pure)."""

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
    """One call as agentd wants it; how a CLI is told so is its adapter's business."""

    prompt: str
    step: str
    round: int
    number: int
    attempt: int
    role: Role
    access: Literal["read", "write"]
    tree: Path  # the project in the change's work tree: where the agent works
    folder: Path  # the call's own folder in the local room
    station: Path  # stays the same for this change and agent, outside the work tree: sessions are bound to a place
    server: tuple[str, ...]  # the argument list that starts agentd's MCP server for this call
    tools: tuple[str, ...]  # the tools that server offers, by their plain names
    commands: tuple[str, ...] = ()  # shell commands that a maker of code may run
    model: str | None = None  # None: the CLI's own default
    reasoning: str | None = None
    session: str | None = None  # the id to give a new session, where the CLI takes one
    resume: str | None = None  # the session to go on with, instead of a new one
    place: int | None = None  # where that session stands in the CLI's own list, for one that resumes by that
    wall_secs: float = 0


@dataclass(frozen=True, kw_only=True)
class AgentCommand:
    """What to start. `env` comes on top of the allowed variables; `files` are written before, by their full path."""

    argv: tuple[str, ...]
    stdin: str
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)
    needs_server: bool = False  # a CLI that goes on without agentd's server: whether it came up is looked at after


@dataclass(frozen=True, kw_only=True)
class TokenUsage:
    """Tokens of a call or a part of it; `tokens_in` includes `tokens_cached`. A cost is the agent's own figure."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None
    model: str | None = None
    of_session: bool = False  # told for the whole session so far, and not only for this call


@dataclass(frozen=True)
class AgentText:
    """The assistant's own text: a part of it, in order."""

    text: str


@dataclass(frozen=True)
class AgentAction:
    """Something the agent did; `ok` None: it is only under way."""

    kind: Literal["tool", "shell"]
    text: str
    ok: bool | None = None


@dataclass(frozen=True)
class SessionStarted:
    id: str


@dataclass(frozen=True)
class UsageUpdate:
    """Usage of one part of the call. A part that is told again replaces what was said of it; parts add up."""

    usage: TokenUsage
    part: str = ""


@dataclass(frozen=True, kw_only=True)
class AgentEnded:
    """The final event. A usage in it is the whole call's and replaces all parts."""

    cause: FailureCause | None = None  # None: it ended well
    message: str = ""
    wait_secs: float | None = None  # how long a rate limit asks to wait
    usage: TokenUsage | None = None


AgentEvent = AgentText | AgentAction | SessionStarted | UsageUpdate | AgentEnded


def parse_json_object(line: str) -> dict[str, Any] | None:
    """A line of a JSON stream; None for what is no object."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


class Adapter(Protocol):
    """One per kind of CLI. Nothing in it starts, reads or writes anything."""

    install_hint: str
    sessions: SessionSupport
    final_event: bool  # a run without one has failed, whatever its exit code
    states_cost: bool  # it reports its own figure, so a price is never unknown
    brings: tuple[str, ...]  # files in the project's root that it gives a reader by itself
    cannot_write: bool  # where it is to read only, its own sandbox or list of tools sees to that

    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand: ...

    def tool_name(self, name: str) -> str:
        """What a prompt calls a tool of agentd's server, so that this CLI's model finds it."""
        ...

    def read(self, line: str) -> Iterable[AgentEvent]: ...

    def failure(self, exit_code: int, errors: str) -> AgentEnded | None:
        """What the exit code and the end of stderr tell, where no final event told it."""
        ...


@runtime_checkable
class SessionLister(Protocol):
    """An adapter whose CLI may have to be told a session by its place in a list."""

    def listing(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand: ...

    def place_of(self, session: str, listed: str) -> int | None:
        """None: it is not there. ValueError: that is not a list of sessions."""
        ...

"""What an agent module provides: an adapter (brief in, command out, output as events) and facts about its CLI."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from agentd.agents.failures import FailureCause
from agentd.domain import Complexity, Role

SessionSupport = Literal["none", "preset", "captured"]


@dataclass(frozen=True)
class ModelSettings:
    """An entry of [[agents.<name>.models]]."""

    id: str
    model: str
    complexity: tuple[Complexity, ...]
    reasoning: Literal["low", "medium", "high", "xhigh"] | None = None


@dataclass(frozen=True)
class AgentSettings:
    """The `[agents.<name>]` section of the configuration. Which keys are set depends on the adapter's `config_keys`."""

    name: str
    kind: str
    command: str
    playbook: str
    args: tuple[str, ...]
    shell: tuple[str, ...]
    env: tuple[str, ...]
    resume: Literal["auto", "uuid", "index"] | None
    models: tuple[ModelSettings, ...]

    def model_for(self, complexity: Complexity) -> ModelSettings | None:
        """Return the model for this complexity, or None for the CLI's own default."""
        return next((model for model in self.models if complexity in model.complexity), None)


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
    station: Path  # outside the worktree; fixed per change and agent, for CLIs that bind sessions to a folder
    server: tuple[str, ...]  # the argument list that starts agentd's MCP server for this call
    tools: tuple[str, ...]  # the names of the tools that the server offers
    commands: tuple[str, ...] = ()  # shell commands that an agent with write access may run
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
    of_session: bool = False  # covers the whole session so far, not only this call


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
    wait_secs: float | None = None  # how long the rate limit asks us to wait
    usage: TokenUsage | None = None


AgentEvent = AgentText | AgentAction | SessionStarted | UsageUpdate | AgentEnded


def parse_json_object(line: str) -> dict[str, Any] | None:
    """Parse a line of a JSON stream; return None if it is not an object."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


@dataclass(frozen=True, kw_only=True)
class LoginEvidence:
    """Where to look for a login without reading a key."""

    keys: tuple[str, ...]  # environment variables; any one of them counts as a login
    home: str  # the variable that overrides the CLI's folder
    folder: str
    file: str  # in that folder, written at login
    not_keys: tuple[str, ...] = ()  # variables that look like a login but that the CLI ignores
    in_moved_home: bool = False  # the variable names the parent of the folder, not the folder itself
    hints: tuple[str, ...] = ()  # variables, and files in the folder, that may be a login
    settings: tuple[str, ...] = ()  # files in the folder that may configure another kind of login
    mentions: tuple[str, ...] = ()  # words in those files that suggest one
    keychain: tuple[str, ...] = ()  # platforms where the login may be in the keychain


@dataclass(frozen=True)
class SkillWorkflow:
    """A workflow that a person can start from their own CLI session."""

    name: str
    description: str
    hint: str  # the arguments it takes
    runs: tuple[str, ...]  # allowed agentd commands; not `trust`, or text in the repository could get itself trusted
    asks: bool = False  # reads code and stores answers


@dataclass(frozen=True, kw_only=True)
class SkillFiles:
    """agentd's commands for a person's own CLI sessions."""

    folders: tuple[str, ...]  # a project that has one of these uses the CLI
    path: str  # path of a command file in the project; `{}` is the workflow's name
    format: Callable[[SkillWorkflow, str], tuple[str, str]]  # body -> the text before and after the seal
    values: Mapping[str, str]  # values for the template placeholders
    always: bool = False  # written even if the CLI is neither installed nor used in the project


@dataclass(frozen=True)
class ServerFile:
    """The project file where a CLI looks for MCP servers."""

    path: str
    format: Literal["json", "toml"]
    extra: Mapping[str, str] = field(default_factory=dict)  # added to agentd's entry


@dataclass(frozen=True, kw_only=True)
class CliProfile:
    """What agentd knows about a CLI besides how to run it."""

    vendor: str
    tested: str  # the version that tests/real_cli runs against
    to_install: str  # the command to install it
    to_log_in: str
    login: LoginEvidence
    role_ranks: Mapping[Role, int]  # the agent with the lowest rank gets the role
    version_args: tuple[str, ...] = ("--version",)
    context_file: str = ""  # the project's own instructions for this CLI
    session_variables: str = ""  # pattern of the variables the CLI sets for its child processes
    skills: SkillFiles | None = None
    server_file: ServerFile | None = None


def frontmatter(rows: Mapping[str, object]) -> str:
    """Render the opening of a skill's frontmatter; JSON values are valid YAML."""
    return "".join(["---\n", *(f"{key}: {json.dumps(value)}\n" for key, value in rows.items())])


class Adapter(ABC):
    """One per kind of agent, named ADAPTER in its module. Adapters are pure: no processes, no reads, no writes."""

    kind: str  # for a CLI, also the name of its program
    cli: CliProfile | None = None  # None: no particular CLI
    config: str = ""  # its default configuration, as it appears in agentd/config.toml
    config_keys: tuple[str, ...] = ("command",)  # among the keys that only some kinds of agents have
    sessions: SessionSupport = "none"
    final_event: bool = True  # the CLI emits a final event, so a run without one has failed, whatever its exit code
    states_cost: bool = False  # reports its own cost, so no price is needed
    brings: tuple[str, ...] = ()  # files in the project root that the CLI adds to the context by itself
    cannot_write: bool = False  # its sandbox or tool list enforces read-only access

    @property
    def install_hint(self) -> str:
        assert self.cli
        return f"{self.cli.to_install}, then log in with: {self.cli.to_log_in}"

    @abstractmethod
    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand: ...

    def tool_name(self, name: str) -> str:
        """Return the name that a prompt uses for a tool of agentd's server."""
        return name

    @abstractmethod
    def read(self, line: str) -> Iterable[AgentEvent]:
        """Return the events of one line of output."""

    def failure(self, exit_code: int, errors: str) -> AgentEnded | None:
        """Return the failure that the exit code and the end of stderr indicate, if there was no final event."""
        return None


@runtime_checkable
class SessionLister(Protocol):
    """An adapter whose CLI may have to resume a session by its position in a list."""

    def listing(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand: ...

    def place_of(self, session: str, listed: str) -> int | None:
        """Return the session's position, or None if it is not listed. Raise ValueError if `listed` is invalid."""
        ...

"""Codex, run as `codex exec --json`."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agentd.agents import failures
from agentd.agents.failures import FailureCause
from agentd.agents.protocol import (
    Adapter,
    AgentAction,
    AgentBrief,
    AgentCommand,
    AgentEnded,
    AgentEvent,
    AgentSettings,
    AgentText,
    CliProfile,
    LoginEvidence,
    ServerFile,
    SessionStarted,
    SkillFiles,
    SkillWorkflow,
    TokenUsage,
    frontmatter,
    parse_json_object,
)
from agentd.domain import Role, SessionLost

INSTRUCTIONS = "instructions.md"
_SERVER = "agentd"
_START_SECS = 60  # timeout for agentd's server to start; generous, for a loaded machine
_TOOL_SECS = 600
_MAX_MESSAGE = 300  # characters

# Turn off features that no step uses and that would lengthen requests or need the network.
_SETTINGS: Mapping[str, object] = {
    "approval_policy": "never",
    "web_search": "disabled",
    "agents.enabled": False,
    "analytics.enabled": False,
    "check_for_update_on_startup": False,
    "include_apps_instructions": False,
    "include_collaboration_mode_instructions": False,
    "include_environment_context": False,
    "include_permissions_instructions": False,
    "skills.bundled.enabled": False,
    "skills.include_instructions": False,
    "tools.experimental_request_user_input.enabled": False,
    "features.apps": False,
    "features.goals": False,
    "features.image_generation": False,
    "features.multi_agent": False,
    "features.plugins": False,
    "features.skill_search": False,
    "features.sleep_tool": False,
    "features.tool_suggest": False,
    "features.unbounded_connection_retries": False,  # agentd handles retries
    "features.view_image": False,
}

_READER = """\
You work in the project of the current folder, and nobody can answer a question.
You may read files and run commands that only read; nothing you run can write a file or reach the network.
Do what is asked with the tools of the MCP server agentd, then end with a short answer.
"""
_MAKER = """\
You write code in the project of the current folder, and nobody can answer a question.
Look before you write: search with rg where there is one, and read several files in one go.
Edit with apply_patch, not by redirected output; a formatter or a generator may write for itself.
You can write in this folder, but not in .git, and nothing you run reaches the network.
Others may be at work here: leave what you did not change, and let git only read.
Go on until what is asked is done and its checks were run; wait for every command that you started.
Report through the tools of the MCP server agentd, then end with a short answer.
"""

# Messages specific to Codex; common ones are in `failures`. The first match wins.
_PATTERNS = (
    (FailureCause.NOT_LOGGED_IN, r"missing environment variable|missing bearer"),
    (FailureCause.KEY_REFUSED, r"^quota exceeded"),  # an empty account: waiting does not help
    (FailureCause.SERVER_ERROR, r"experiencing high demand|\bat capacity\b"),
)
_TOOLS_FAILED = re.compile(rf"required MCP servers? failed to initialize: (?:.*; )?({_SERVER}: .*)")
_REQUEST_DETAILS = re.compile(r",? (?:url|cf-ray|request id): \S+|\s*\(code -?\d+\)$")
_ERROR_PREFIX = re.compile(r"Error: (?:thread/\w+: )?(?:thread/\w+ failed: )?(?:error creating thread: Fatal error: )?")


def _format_skill(workflow: SkillWorkflow, body: str) -> tuple[str, str]:
    description = f"{workflow.description}. Only when the person asks for agentd."
    return frontmatter({"name": f"agentd-{workflow.name}", "description": description}), f"---\n{body}"


_SKILLS = SkillFiles(
    folders=(".codex", ".agents"),
    path=".agents/skills/agentd-{}/SKILL.md",
    format=_format_skill,
    values={
        "arguments": "what the person wrote beside the name of this skill",
        "ask": "Ask in one message, as a numbered list, and end your turn there.",
        "keep": "create_clarifications` of the MCP server `agentd",
        "shell": "Run `agentd` outside of the sandbox, with the person's approval: it writes to `.git` and starts "
        "agents that need the network.",
        "patience": "If it keeps running in the background, check again until it has ended.",
        "seconds": "540",
        "archive": "$agentd-archive",
    },
)
_CONFIG = """\
[agents.codex]
command = "codex"
args = []
shell = []
env = ["OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"]

[[agents.codex.models]]
id = "fast"
model = "gpt-5.2-codex"
complexity = ["low"]
reasoning = "low"                 # codex only: "low", "medium", "high" or "xhigh"

[[agents.codex.models]]
id = "balanced"
model = "gpt-5.2-codex"
complexity = ["medium"]
reasoning = "medium"

[[agents.codex.models]]
id = "deep"
model = "gpt-5.2-codex"
complexity = ["high"]
reasoning = "high"

[[agents.codex.models]]
id = "deepest"
model = "gpt-5.2-codex"
complexity = ["critical"]
reasoning = "xhigh"
"""


class Codex(Adapter):
    kind = "codex"
    config = _CONFIG
    config_keys = ("command", "reasoning")
    sessions = "captured"
    cannot_write = True
    cli = CliProfile(
        vendor="OpenAI",
        tested="0.166",
        to_install="npm install -g @openai/codex",
        to_log_in="codex login",
        login=LoginEvidence(
            keys=("CODEX_API_KEY",),
            home="CODEX_HOME",
            folder=".codex",
            file="auth.json",
            not_keys=("OPENAI_API_KEY",),
            settings=("config.toml",),
            mentions=("model_provider", "cli_auth_credentials_store"),
        ),
        role_ranks={Role.PLANNER: 2, Role.CHALLENGER: 0, Role.IMPLEMENTER: 1, Role.REVIEWER: 0},
        context_file="AGENTS.md",
        session_variables=r"CODEX_(?:SANDBOX\w*|THREAD\w*|SESSION\w*|CI|INTERNAL_ORIGINATOR_OVERRIDE)",
        skills=_SKILLS,
        server_file=ServerFile(".codex/config.toml", "toml"),
    )

    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand:
        # Codex has no list of allowed commands, but a sandbox without network access. Agents with write access can run
        # any command and write in the worktree; all others can only read.
        sandbox = "workspace-write" if brief.access == "write" else "read-only"
        instructions = brief.folder / INSTRUCTIONS  # replaces Codex's own, which are longer and for interactive use
        settings = {**_SETTINGS, **_server(brief), "model_instructions_file": str(instructions)}
        if brief.access == "read":
            settings["project_doc_max_bytes"] = 0  # agentd's context file includes the project's AGENTS.md
        if brief.reasoning:
            settings["model_reasoning_effort"] = brief.reasoning
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={_toml(value)}")]
        start = (agent.command, "exec", "--json", "--skip-git-repo-check", "-s", sandbox)
        model = ("-m", brief.model) if brief.model else ()  # a resumed session forgets its model
        session = ("resume", _check_session_id(brief.resume)) if brief.resume else ()
        return AgentCommand(
            argv=(*start, *model, *options, *agent.args, *session, "-"),
            stdin=brief.prompt,
            cwd=brief.tree,
            files={instructions: _MAKER if brief.access == "write" else _READER},
        )

    def tool_name(self, name: str) -> str:
        """Return the full name: some models get no list of tools and rely on the name in the prompt."""
        return f"mcp__{_SERVER}__{name}"

    def read(self, line: str) -> Iterable[AgentEvent]:
        data = parse_json_object(line)
        event = _parse_event(data) if data else None
        return (event,) if event else ()

    def failure(self, exit_code: int, errors: str) -> AgentEnded | None:
        """Return the cause found in stderr, where Codex reports failures before the first turn."""
        if failed := _TOOLS_FAILED.search(errors):
            return AgentEnded(cause=FailureCause.TOOLS_MISSING, message=_shorten(failed[1]))
        lines = errors.splitlines()
        last = next((number for number in reversed(range(len(lines))) if lines[number].startswith("Error")), None)
        if last is None:
            return None
        text = " ".join(" ".join(lines[last:]).split())
        return _parse_failure(_ERROR_PREFIX.sub("", text, count=1))


def _server(brief: AgentBrief) -> dict[str, object]:
    """Return the settings of agentd's MCP server. They override a user's own entry of that name key by key."""
    program, *arguments = brief.server
    server: dict[str, object] = {
        "enabled": True,
        "command": program,
        "args": arguments,
        "cwd": str(brief.tree),
        "required": True,  # otherwise Codex continues without it after a second
        "startup_timeout_sec": _START_SECS,
        "tool_timeout_sec": _TOOL_SECS,
        "enabled_tools": list(brief.tools),
        "disabled_tools": [],
        **{f"tools.{name}.approval_mode": "approve" for name in brief.tools},
    }
    return {f"mcp_servers.{_SERVER}.{key}": value for key, value in server.items()}


def _toml(value: object) -> str:
    """Return a TOML value: the same as JSON for these types, as long as non-ASCII characters are not escaped."""
    return json.dumps(value, ensure_ascii=False)


def _check_session_id(session: str) -> str:
    """Check that this is a session id. Codex would take anything else for a name and silently start a new session."""
    import uuid  # deferred: slow to load

    try:
        return str(uuid.UUID(session))
    except ValueError:
        raise SessionLost("Session not found, please re-run proposal") from None


def _parse_event(data: Mapping[str, Any]) -> AgentEvent | None:
    match data:
        case {"type": "thread.started", "thread_id": str(session)} if session:
            return SessionStarted(session)
        case {"type": "item.started" | "item.updated", "item": {"type": str(kind)} as item}:
            return _parse_action(kind, item, None)
        case {"type": "item.completed", "item": {"type": "agent_message", "text": str(text)}}:
            return AgentText(text.rstrip("\n") + "\n")
        case {"type": "item.completed", "item": {"type": str(kind)} as item}:
            return _parse_action(kind, item, item.get("status") == "completed")
        case {"type": "turn.completed"}:
            return AgentEnded(usage=_usage(data.get("usage")))
        case {"type": "turn.failed"}:
            error = data.get("error")
            message = error.get("message") if isinstance(error, dict) else None
            return _parse_failure(message if isinstance(message, str) else "")
    return None  # an `error` event may be followed by a retry that works


def _parse_action(kind: str, item: Mapping[str, Any], ok: bool | None) -> AgentAction | None:
    match kind, item:
        case "mcp_tool_call", {"server": str(server), "tool": str(tool)}:
            return AgentAction("tool", tool if server == _SERVER else f"{server}: {tool}", ok)
        case "command_execution", {"command": str(command)}:
            return AgentAction("shell", command, ok)
        case "file_change", {"changes": list(changes)}:
            paths = [change["path"] for change in changes if isinstance(change, dict) and "path" in change]
            return AgentAction("tool", " ".join(["edit", *map(str, paths)]), ok)
    return None


def _usage(data: object) -> TokenUsage | None:
    """Return the usage of the whole session, even a resumed one. Cached and reasoning tokens are included."""
    if not isinstance(data, dict):
        return None
    return TokenUsage(
        tokens_in=_tokens(data.get("input_tokens")),
        tokens_out=_tokens(data.get("output_tokens")),
        tokens_cached=_tokens(data.get("cached_input_tokens")),
        of_session=True,
    )


def _tokens(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _parse_failure(text: str) -> AgentEnded:
    own = next((cause for cause, pattern in _PATTERNS if re.search(pattern, text, re.IGNORECASE)), None)
    cause = own or failures.cause_of_text(text) or _cause_of_status(text) or FailureCause.CRASHED
    wait = failures.requested_wait(text) if cause is FailureCause.RATE_LIMITED else None
    return AgentEnded(cause=cause, message=_shorten(text) or "the turn failed", wait_secs=wait)


def _cause_of_status(text: str) -> FailureCause | None:
    status = re.search(r"\bstatus:? (\d{3})\b", text)
    return failures.cause_of_status(int(status[1])) if status else None


def _shorten(text: str) -> str:
    text = _REQUEST_DETAILS.sub("", text).strip()
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"


ADAPTER = Codex()

"""Claude Code, run as `claude -p`."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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
    UsageUpdate,
    frontmatter,
    parse_json_object,
)
from agentd.domain import Role

SERVER = "agentd"
MCP_CONFIG = "mcp.json"
_SERVER_START_MS = 60_000  # timeout for agentd's server to start
_MAX_NUMBER = 10**15
_MAX_MESSAGE = 300  # characters

# No background activity: agentd handles retries, and only the prompt and its tools decide what a run does.
_ENV = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # do not share memory between changes
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # treat an @path in a prompt as plain text
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",  # one retry event reports how long the rate limit asks us to wait
    "API_TIMEOUT_MS": "120000",  # until a response starts
    "MCP_CONNECT_TIMEOUT_MS": str(_SERVER_START_MS),
    "MCP_TIMEOUT": str(_SERVER_START_MS),
}
_READING = ("Read", "Grep", "Glob")
_WRITING = ("Edit", "Write", "Bash")

# Claude allows these without a rule, but only with options that write nothing; a rule would allow every option.
_HARMLESS = frozenset(f"git {name}" for name in ("diff", "log", "show", "status", "blame", "grep", "ls-files"))

_NO_CONNECTION = re.compile(r"unable to connect|connection closed", re.IGNORECASE)


# AskUserQuestion is left out: it needs no permission, and if a command allows it, some versions of Claude Code answer
# it with nothing, without showing it.
_STORE_ANSWERS = "mcp__agentd__create_clarifications"


def _format_skill(workflow: SkillWorkflow, body: str) -> tuple[str, str]:
    tools = [f"Bash(agentd {command}:*)" for command in workflow.runs]
    rows = {
        "description": workflow.description,
        "argument-hint": workflow.hint,
        "allowed-tools": ", ".join([*tools, *((_STORE_ANSWERS, "Read", "Glob", "Grep") if workflow.asks else ())]),
        "disable-model-invocation": True,  # it costs money, so only a person starts it
    }
    return frontmatter(rows), f"---\n{body}"


_SKILLS = SkillFiles(
    always=True,
    folders=(".claude",),
    path=".claude/commands/agentd/{}.md",
    format=_format_skill,
    values={
        "arguments": "$ARGUMENTS",
        "ask": "Ask with AskUserQuestion, at most 4 questions a call; else in plain text, and end your turn.",
        "keep": _STORE_ANSWERS,
        "shell": "Run each command by itself, joined to no other.",
        "patience": "Bash ends a command after 2 minutes: give this one a timeout of 600000 ms.",
        "seconds": "540",
        "archive": "/agentd:archive",
    },
)
_CONFIG = """\
[agents.claude]
command = "claude"
args = []
shell = []
env = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"]

[[agents.claude.models]]
id = "haiku"
model = "haiku"
complexity = ["low"]

[[agents.claude.models]]
id = "sonnet"
model = "sonnet"
complexity = ["medium"]

[[agents.claude.models]]
id = "opus"
model = "opus"
complexity = ["high", "critical"]
"""


class Claude(Adapter):
    kind = "claude"
    config = _CONFIG
    sessions = "preset"
    states_cost = True
    cannot_write = True
    cli = CliProfile(
        vendor="Anthropic",
        tested="2.1",
        to_install="npm install -g @anthropic-ai/claude-code",
        to_log_in="claude",
        login=LoginEvidence(
            keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            home="CLAUDE_CONFIG_DIR",
            folder=".claude",
            file=".credentials.json",
            hints=("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
            settings=("settings.json", ".claude.json", "../.claude.json"),
            mentions=("apiKeyHelper", "primaryApiKey", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_"),
            keychain=("darwin",),
        ),
        role_ranks={Role.PLANNER: 1, Role.CHALLENGER: 1, Role.IMPLEMENTER: 0, Role.REVIEWER: 1},
        context_file="CLAUDE.md",
        session_variables=(
            r"CLAUDECODE"
            r"|CLAUDE_CODE_(?:ENTRYPOINT|SSE_PORT|EXECPATH|\w*SESSION\w*|REMOTE\w*|AGENT_\w+|TEAM_\w+)"
        ),
        skills=_SKILLS,
        server_file=ServerFile(".mcp.json", "json", {"type": "stdio"}),
    )

    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand:
        config = brief.folder / MCP_CONFIG
        tools = (*_READING, *(_WRITING if brief.access == "write" else ()))
        return AgentCommand(
            argv=(
                *(agent.command, "-p", "--output-format", "stream-json", "--verbose"),
                "--include-partial-messages",  # otherwise a long response reports nothing until it ends
                *(("--model", brief.model) if brief.model else ()),
                # Not the repository's settings: their hooks and servers are untrusted commands.
                *("--setting-sources", "user", "--permission-mode", "dontAsk"),
                *("--system-prompt", _system_prompt(brief)),
                *("--mcp-config", str(config)),
                *("--tools", ",".join(tools)),
                *("--allowedTools", *self._allowed(brief)),
                *(("--resume", brief.resume) if brief.resume else ()),
                *(("--session-id", brief.session) if brief.session else ()),
                *agent.args,
            ),
            stdin=brief.prompt,
            cwd=brief.tree,
            env=_ENV,
            files={config: _mcp_config(brief.server)},
        )

    def tool_name(self, name: str) -> str:
        return f"mcp__{SERVER}__{name}"

    def read(self, line: str) -> Iterable[AgentEvent]:
        data = parse_json_object(line)
        return tuple(_parse_event(data)) if data else ()

    def failure(self, exit_code: int, errors: str) -> AgentEnded | None:
        """Return the cause found in stderr, for a run that ended before its first event."""
        last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "")
        cause = failures.cause_of_text(last)
        return AgentEnded(cause=cause, message=_shorten(last)) if cause else None

    def _allowed(self, brief: AgentBrief) -> tuple[str, ...]:
        """Return the permission rules. Reading inside the project needs no rule, and reading outside gets none."""
        ours = tuple(self.tool_name(name) for name in brief.tools)
        if brief.access == "read":
            return ours
        commands = [_escape(command) for command in brief.commands if command not in _HARMLESS]
        return (*ours, "Edit(./**)", *(f"Bash({command}{end})" for command in commands for end in ("", " *")))


def _escape(command: str) -> str:
    """Escape a command for a permission rule."""
    return re.sub(r"([\\()])", r"\\\1", command)


def _system_prompt(brief: AgentBrief) -> str:
    """Return the system prompt. It replaces Claude's own, which is much longer and meant for interactive use."""
    ours = f"the tools of the MCP server {SERVER}"
    lines = [f"You work in the project {brief.tree}, without a person to ask."]
    if brief.access == "read":
        lines.append(f"Read it with Read, Grep and Glob (whole paths). What you write goes through {ours}.")
    else:
        runs = ", ".join(f"`{command}`" for command in brief.commands)
        lines += [
            "Read CLAUDE.md and AGENTS.md first, where they exist, and follow the project's own way of writing code.",
            f"Read with Read, Grep and Glob, change code with Edit and Write (whole paths), report through {ours}.",
            "Bash runs only commands that read, such as `git diff`" + (f", and these: {runs}." if runs else "."),
        ]
    return "\n".join([*lines, "Do what the prompt asks, and end with a short answer."])


def _mcp_config(server: tuple[str, ...]) -> str:
    """Return the MCP configuration. `alwaysLoad`: the first request waits for the server and includes its tools."""
    program, *arguments = server
    entry = {"type": "stdio", "command": program, "args": arguments, "alwaysLoad": True}
    return json.dumps({"mcpServers": {SERVER: entry}}, indent=2) + "\n"


def _parse_event(data: Mapping[str, Any]) -> Iterator[AgentEvent]:
    match data:
        case {"type": "system", "subtype": "init"}:
            yield from _parse_start(data)
        case {"type": "system", "subtype": "api_retry", "error_status": 429}:
            delay = _amount(data.get("retry_delay_ms")) / 1000
            yield AgentEnded(cause=FailureCause.RATE_LIMITED, message="rate limit reached", wait_secs=delay)
        case {"type": "stream_event", "event": {"type": "message_start", "message": dict(message)}}:
            yield from _parse_input_usage(message)
        case {"type": "stream_event", "uuid": str(part), "event": {"type": "message_delta", "usage": dict(usage)}}:
            yield UsageUpdate(TokenUsage(tokens_out=_count(usage.get("output_tokens"))), part)
        case {"type": "assistant", "message": dict(message)}:
            yield from _parse_input_usage(message)
            yield from _parse_message(message, is_own=data.get("parent_tool_use_id") is None)
        case {"type": "user", "message": {"content": list(blocks)}}:
            yield from (AgentAction("tool", _text(block), ok=False) for block in blocks if _has_failed(block))
        case {"type": "result"}:
            yield _parse_result(data)


def _parse_start(data: Mapping[str, Any]) -> Iterator[AgentEvent]:
    if isinstance(session := data.get("session_id"), str):
        yield SessionStarted(session)
    servers = data.get("mcp_servers")
    if isinstance(servers, list):
        statuses = [row.get("status") for row in servers if isinstance(row, dict) and row.get("name") == SERVER]
        if "connected" not in statuses:
            message = f"its MCP server {SERVER} is {statuses[0] if statuses else 'missing'}"
            yield AgentEnded(cause=FailureCause.TOOLS_MISSING, message=_shorten(message))


def _parse_input_usage(message: Mapping[str, Any]) -> Iterator[UsageUpdate]:
    """Yield the input tokens of a message. Every block of it reports them; output is only known at its end."""
    match message:
        case {"id": str(part), "model": str(model), "usage": dict(usage)} if model != "<synthetic>":
            fresh, written, cached = (
                _count(usage.get(key))
                for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
            )
            yield UsageUpdate(TokenUsage(tokens_in=fresh + written + cached, tokens_cached=cached, model=model), part)


def _parse_message(message: Mapping[str, Any], *, is_own: bool) -> Iterator[AgentEvent]:
    """Yield text and tool calls. Synthetic messages are Claude Code's own failure texts and are skipped."""
    blocks = message.get("content")
    if message.get("model") == "<synthetic>" or not isinstance(blocks, list):
        return
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)} if is_own:
                yield AgentText(text + "\n")
            case {"type": "tool_use", "name": "Bash", "input": {"command": str(command)}}:
                yield AgentAction("shell", command)
            case {"type": "tool_use", "name": str(name)}:
                yield AgentAction("tool", _describe_tool(name, block.get("input")))


def _describe_tool(name: str, arguments: object) -> str:
    """Return the tool's name with its path or pattern, if it has one."""
    arguments = arguments if isinstance(arguments, dict) else {}
    target = next((arguments[key] for key in ("file_path", "pattern") if isinstance(arguments.get(key), str)), "")
    return f"{name.removeprefix(f'mcp__{SERVER}__')} {target}".rstrip()


def _has_failed(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result" and block.get("is_error") is True


def _text(block: Mapping[str, Any]) -> str:
    """Return the text of a tool result, which is a string or a list of text blocks."""
    content = block.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return _shorten(re.sub(r"</?tool_use_error>", "", str(content or "it failed")))


def _parse_result(data: Mapping[str, Any]) -> AgentEnded:
    """Parse the final event. API failures also have the subtype `success`, so `is_error` decides."""
    usage = _total_usage(data)
    if data.get("is_error") is not True and data.get("subtype") == "success":
        return AgentEnded(usage=usage)
    errors = data.get("errors")
    candidates = [data.get("result"), *(errors if isinstance(errors, list) else ()), data.get("subtype")]
    text = next((text for text in candidates if isinstance(text, str) and text.strip()), "it failed")
    return AgentEnded(
        cause=_failure_cause(data.get("api_error_status"), text),
        message=_shorten(text),
        wait_secs=failures.requested_wait(text),
        usage=usage,
    )


def _failure_cause(status: object, text: str) -> FailureCause:
    cause = failures.cause_of_text(text)
    if cause is FailureCause.NOT_LOGGED_IN:
        return cause
    if isinstance(status, int) and (status_cause := failures.cause_of_status(status)):
        return status_cause
    return cause or (FailureCause.NETWORK_DOWN if _NO_CONNECTION.search(text) else FailureCause.CRASHED)


def _total_usage(data: Mapping[str, Any]) -> TokenUsage | None:
    """Return the total usage of all models, or None if it is not reported, so that earlier updates are kept."""
    models = data.get("modelUsage")
    if not isinstance(models, dict):
        return None
    parts = [part for part in models.values() if isinstance(part, dict)]

    def total(*keys: str) -> int:
        return sum(_count(part.get(key)) for part in parts for key in keys)

    def cost(model: str) -> float:
        part = models[model]
        return _amount(part.get("costUSD")) if isinstance(part, dict) else 0.0

    return TokenUsage(
        tokens_in=total("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens"),
        tokens_out=total("outputTokens"),
        tokens_cached=total("cacheReadInputTokens"),
        cost=_number(data.get("total_cost_usd")),
        model=max(models, key=cost, default=None),
    )


def _number(value: object) -> float | None:
    """Return a plausible number, or None, because a newer version may send anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_NUMBER else None


def _amount(value: object) -> float:
    return _number(value) or 0.0


def _count(value: object) -> int:
    return int(_amount(value))


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"


ADAPTER = Claude()

"""Claude Code, run as `claude -p`: its command line, and its stream as events (pure)."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentd.agents import failures
from agentd.agents.failures import FailureCause
from agentd.agents.protocol import (
    AgentAction,
    AgentBrief,
    AgentCommand,
    AgentEnded,
    AgentEvent,
    AgentText,
    SessionStarted,
    SessionSupport,
    TokenUsage,
    UsageUpdate,
    parse_json_object,
)
from agentd.project import AgentSettings

SERVER = "agentd"
MCP_CONFIG = "mcp.json"
_SERVER_START_MS = 60_000  # until agentd's server must answer; Claude waits no longer than it needs
_BEYOND_BELIEF = 10**15
_SHOWN = 300  # characters of a message that say why

# Bounded and quiet: agentd retries, and nothing but the prompt and its tools decides what a run does.
_ENV = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # what one change learned must not reach another
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # an @path in a prompt is text
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",  # the one retry tells how long a rate limit asks to wait
    "API_TIMEOUT_MS": "120000",  # until an answer begins
    "MCP_CONNECT_TIMEOUT_MS": str(_SERVER_START_MS),
    "MCP_TIMEOUT": str(_SERVER_START_MS),
}
_READING = ("Read", "Grep", "Glob")
_WRITING = ("Edit", "Write", "Bash")

# Claude lets these run by itself, and only with options that write nothing; a rule would let every option through.
_HARMLESS = frozenset(f"git {name}" for name in ("diff", "log", "show", "status", "blame", "grep", "ls-files"))

_NO_CONNECTION = re.compile(r"unable to connect|connection closed", re.IGNORECASE)


class Claude:
    install_hint = "npm install -g @anthropic-ai/claude-code, then log in with: claude"
    sessions: SessionSupport = "preset"
    final_event = True
    states_cost = True
    brings: tuple[str, ...] = ()
    cannot_write = True

    def command(self, agent: AgentSettings, brief: AgentBrief) -> AgentCommand:
        config = brief.folder / MCP_CONFIG
        tools = (*_READING, *(_WRITING if brief.access == "write" else ()))
        return AgentCommand(
            argv=(
                *(agent.command, "-p", "--output-format", "stream-json", "--verbose"),
                "--include-partial-messages",  # else a long answer is a long silence, and its tokens come too late
                *(("--model", brief.model) if brief.model else ()),
                # Not the repository's settings: its hooks and servers are commands that nobody has trusted.
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
        return tuple(_heard(data)) if data else ()

    def failure(self, exit_code: int, errors: str) -> AgentEnded | None:
        """It ended before its first event: stderr says why."""
        last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "")
        cause = failures.cause_of_text(last)
        return AgentEnded(cause=cause, message=_short(last)) if cause else None

    def _allowed(self, brief: AgentBrief) -> tuple[str, ...]:
        """Reading within the project needs no rule, and reading beyond it gets none."""
        ours = tuple(self.tool_name(name) for name in brief.tools)
        if brief.access == "read":
            return ours
        commands = [_escaped(command) for command in brief.commands if command not in _HARMLESS]
        return (*ours, "Edit(./**)", *(f"Bash({command}{end})" for command in commands for end in ("", " *")))


def _escaped(command: str) -> str:
    """A rule is read up to its closing bracket."""
    return re.sub(r"([\\()])", r"\\\1", command)


def _system_prompt(brief: AgentBrief) -> str:
    """In place of Claude's own, which is for a person at a terminal and many times as long."""
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
    """`alwaysLoad`: the first request waits for it, and its tools are in that request."""
    program, *arguments = server
    entry = {"type": "stdio", "command": program, "args": arguments, "alwaysLoad": True}
    return json.dumps({"mcpServers": {SERVER: entry}}, indent=2) + "\n"


def _heard(data: Mapping[str, Any]) -> Iterator[AgentEvent]:
    match data:
        case {"type": "system", "subtype": "init"}:
            yield from _started(data)
        case {"type": "system", "subtype": "api_retry", "error_status": 429}:
            delay = _amount(data.get("retry_delay_ms")) / 1000
            yield AgentEnded(cause=FailureCause.RATE_LIMITED, message="its rate limit is reached", wait_secs=delay)
        case {"type": "stream_event", "event": {"type": "message_start", "message": dict(message)}}:
            yield from _taken_in(message)
        case {"type": "stream_event", "uuid": str(part), "event": {"type": "message_delta", "usage": dict(usage)}}:
            yield UsageUpdate(TokenUsage(tokens_out=_count(usage.get("output_tokens"))), part)
        case {"type": "assistant", "message": dict(message)}:
            yield from _taken_in(message)
            yield from _answered(message, is_own=data.get("parent_tool_use_id") is None)
        case {"type": "user", "message": {"content": list(blocks)}}:
            yield from (AgentAction("tool", _text(block), ok=False) for block in blocks if _has_failed(block))
        case {"type": "result"}:
            yield _ended(data)


def _started(data: Mapping[str, Any]) -> Iterator[AgentEvent]:
    if isinstance(session := data.get("session_id"), str):
        yield SessionStarted(session)
    servers = data.get("mcp_servers")
    if isinstance(servers, list):
        ours = [one.get("status") for one in servers if isinstance(one, dict) and one.get("name") == SERVER]
        if "connected" not in ours:
            words = f"its MCP server {SERVER} is {ours[0] if ours else 'missing'}"
            yield AgentEnded(cause=FailureCause.TOOLS_MISSING, message=_short(words))


def _taken_in(message: Mapping[str, Any]) -> Iterator[UsageUpdate]:
    """What a message took in. Told with every block of it; its output is only known at its end."""
    match message:
        case {"id": str(part), "model": str(model), "usage": dict(usage)} if model != "<synthetic>":
            fresh, written, cached = (
                _count(usage.get(key))
                for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
            )
            yield UsageUpdate(TokenUsage(tokens_in=fresh + written + cached, tokens_cached=cached, model=model), part)


def _answered(message: Mapping[str, Any], *, is_own: bool) -> Iterator[AgentEvent]:
    """A synthetic message is how Claude Code itself words a failure."""
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
                yield AgentAction("tool", _shown(name, block.get("input")))


def _shown(name: str, given: object) -> str:
    """A file tool with what it is about."""
    given = given if isinstance(given, dict) else {}
    about = next((given[key] for key in ("file_path", "pattern") if isinstance(given.get(key), str)), "")
    return f"{name.removeprefix(f'mcp__{SERVER}__')} {about}".rstrip()


def _has_failed(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result" and block.get("is_error") is True


def _text(block: Mapping[str, Any]) -> str:
    """What a tool answered: a text, or a list of them."""
    content = block.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return _short(re.sub(r"</?tool_use_error>", "", str(content or "it failed")))


def _ended(data: Mapping[str, Any]) -> AgentEnded:
    """A failure of the API is a `success` by its subtype, so that only `is_error` counts."""
    usage = _whole_usage(data)
    if data.get("is_error") is not True and data.get("subtype") == "success":
        return AgentEnded(usage=usage)
    errors = data.get("errors")
    told = [data.get("result"), *(errors if isinstance(errors, list) else ()), data.get("subtype")]
    words = next((text for text in told if isinstance(text, str) and text.strip()), "it failed")
    return AgentEnded(
        cause=_cause(data.get("api_error_status"), words),
        message=_short(words),
        wait_secs=failures.requested_wait(words),
        usage=usage,
    )


def _cause(status: object, words: str) -> FailureCause:
    said = failures.cause_of_text(words)
    if said is FailureCause.NOT_LOGGED_IN:
        return said
    if isinstance(status, int) and (known := failures.cause_of_status(status)):
        return known
    return said or (FailureCause.NETWORK_DOWN if _NO_CONNECTION.search(words) else FailureCause.CRASHED)


def _whole_usage(data: Mapping[str, Any]) -> TokenUsage | None:
    """Over every model that had a part in it; None if there is no such list, so that what was told before stands."""
    models = data.get("modelUsage")
    if not isinstance(models, dict):
        return None
    parts = [part for part in models.values() if isinstance(part, dict)]

    def total(*keys: str) -> int:
        return sum(_count(part.get(key)) for part in parts for key in keys)

    largest = max(models, key=lambda name: _of(models[name], "costUSD"), default=None)
    return TokenUsage(
        tokens_in=total("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens"),
        tokens_out=total("outputTokens"),
        tokens_cached=total("cacheReadInputTokens"),
        cost=_number(data.get("total_cost_usd")),
        model=largest,
    )


def _of(part: object, key: str) -> float:
    return _amount(part.get(key)) if isinstance(part, dict) else 0.0


def _number(value: object) -> float | None:
    """None for what is no amount: a newer version may send anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _BEYOND_BELIEF else None


def _amount(value: object) -> float:
    return _number(value) or 0.0


def _count(value: object) -> int:
    return int(_amount(value))


def _short(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"

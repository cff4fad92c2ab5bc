"""What differs between the CLIs: path and format of a command, and how a session asks and waits (pure)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# Seconds per `agentd wait`: shorter for a CLI that ends silent commands sooner.
_LONG, _SHORT = "540", "240"

# Without AskUserQuestion: it needs no permission, and if a command allows it, some versions of Claude Code answer it
# with nothing without showing it.
_READING = ("Read", "Glob", "Grep")
_KEEPING = "mcp__agentd__create_clarifications"

SkillParts = tuple[str, str]  # the text before and after the seal
SkillFormat = Callable[["SkillWorkflow", str], SkillParts]


@dataclass(frozen=True)
class SkillWorkflow:
    name: str
    description: str
    hint: str  # its arguments
    runs: tuple[str, ...]  # allowed agentd commands; not `trust`, or a text in the repository could get itself trusted
    asks: bool = False  # reads code and stores answers


@dataclass(frozen=True)
class SkillTarget:
    """`values` fill the templates; a project uses a CLI if it has one of its `folders`."""

    name: str
    folders: tuple[str, ...]
    place: str  # path of a command in the project; `{}` is the name of its workflow
    format: SkillFormat
    values: Mapping[str, str] = field(default_factory=dict)

    def path(self, workflow: SkillWorkflow) -> str:
        return self.place.format(workflow.name)


SKILL_WORKFLOWS = (
    SkillWorkflow(
        "plan",
        "Plan a change with agentd, challenged by another vendor's agent",
        'ID "what should change"',
        ("list", "config", "plan", "wait", "status", "view", "impl"),
        asks=True,
    ),
    SkillWorkflow(
        "impl",
        "Implement a planned change with agentd, with checks and a review",
        "ID",
        ("list", "plan", "impl", "wait", "status", "view"),
    ),
    SkillWorkflow(
        "archive", "Archive a finished change with agentd and merge its specs", "ID", ("list", "archive", "rebase")
    ),
)


def _claude(workflow: SkillWorkflow, body: str) -> SkillParts:
    tools = [f"Bash(agentd {command}:*)" for command in workflow.runs]
    rows = {
        "description": workflow.description,
        "argument-hint": workflow.hint,
        "allowed-tools": ", ".join([*tools, *((_KEEPING, *_READING) if workflow.asks else ())]),
        "disable-model-invocation": True,  # it costs money, so only a person starts it
    }
    return _frontmatter(rows), f"---\n{body}"


def _codex(workflow: SkillWorkflow, body: str) -> SkillParts:
    description = f"{workflow.description}. Only when the person asks for agentd."
    return _frontmatter({"name": f"agentd-{workflow.name}", "description": description}), f"---\n{body}"


def _gemini(workflow: SkillWorkflow, body: str) -> SkillParts:
    description = json.dumps(workflow.description)  # a TOML string too
    return "", f"description = {description}\nprompt = '''\n{body}'''\n"


def _frontmatter(rows: Mapping[str, object]) -> str:
    """Render frontmatter; JSON values are valid YAML."""
    return "".join(["---\n", *(f"{key}: {json.dumps(value)}\n" for key, value in rows.items())])


SKILL_TARGETS = (
    SkillTarget(
        "claude",
        (".claude",),
        ".claude/commands/agentd/{}.md",
        _claude,
        {
            "arguments": "$ARGUMENTS",
            "ask": "Ask with AskUserQuestion, at most 4 questions a call; else in plain text, and end your turn.",
            "keep": _KEEPING,
            "shell": "Run each command by itself, joined to no other.",
            "patience": "Bash ends a command after 2 minutes: give this one a timeout of 600000 ms.",
            "seconds": _LONG,
            "archive": "/agentd:archive",
        },
    ),
    SkillTarget(
        "gemini",
        (".gemini",),
        ".gemini/commands/agentd/{}.toml",
        _gemini,
        {
            "arguments": "{{args}}",
            "ask": "Ask with `ask_user`, at most 4 questions a call; else in plain text, and end your turn.",
            "keep": "mcp_agentd_create_clarifications",
            "shell": "Run each command by itself, joined to no other.",
            "patience": "It prints nothing before it ends.",
            "seconds": _SHORT,
            "archive": "/agentd:archive",
        },
    ),
    SkillTarget(
        "codex",
        (".codex", ".agents"),
        ".agents/skills/agentd-{}/SKILL.md",
        _codex,
        {
            "arguments": "what the person wrote beside the name of this skill",
            "ask": "Ask in one message, as a numbered list, and end your turn there.",
            "keep": "create_clarifications` of the MCP server `agentd",
            "shell": "Run `agentd` outside of the sandbox, with the person's approval: it writes to `.git` and starts "
            "agents that need the network.",
            "patience": "If it goes on in the background, look again until it has ended.",
            "seconds": _LONG,
            "archive": "$agentd-archive",
        },
    ),
)

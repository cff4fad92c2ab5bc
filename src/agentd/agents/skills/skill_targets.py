"""What differs between the CLIs: where a command lies, its format, and how its session asks and waits (pure)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# A CLI that ends a silent command sooner must be waited for in shorter pieces.
_LONG, _SHORT = "540", "240"

# AskUserQuestion is not among them: it needs no permission, and some versions of Claude Code answer it with nothing,
# unseen, when a command allows it.
_READING = ("Read", "Glob", "Grep")
_KEEPING = "mcp__agentd__create_clarifications"

SkillParts = tuple[str, str]  # what stands before our mark, and after it
SkillFormat = Callable[["SkillWorkflow", str], SkillParts]


@dataclass(frozen=True)
class SkillWorkflow:
    name: str
    description: str
    hint: str  # its arguments
    runs: tuple[str, ...]  # commands of agentd; not all may be, or a text in the repository could have itself trusted
    asks: bool = False  # looks at the code and keeps answers


@dataclass(frozen=True)
class SkillTarget:
    """`values` fill the templates; a CLI is here if its program or one of the folders is."""

    name: str
    folders: tuple[str, ...]
    place: str  # of a command in the project, with the name of its workflow
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
        "disable-model-invocation": True,  # it spends money, so a person begins it
    }
    return _frontmatter(rows), f"---\n{body}"


def _codex(workflow: SkillWorkflow, body: str) -> SkillParts:
    words = f"{workflow.description}. Only when the person asks for agentd."
    return _frontmatter({"name": f"agentd-{workflow.name}", "description": words}), f"---\n{body}"


def _gemini(workflow: SkillWorkflow, body: str) -> SkillParts:
    description = json.dumps(workflow.description)  # a TOML string too
    return "", f"description = {description}\nprompt = '''\n{body}'''\n"


def _frontmatter(rows: Mapping[str, object]) -> str:
    """JSON strings are YAML ones."""
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

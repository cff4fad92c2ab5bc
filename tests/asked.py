"""What each prompt is filled with in the change of the example, and a project to render it in."""

import os
from typing import Any

from agentd import trust
from agentd.agents.adapters import adapter_of
from agentd.config.model import Kind
from agentd.project import find_project
from agentd.prompts import Prompts
from agentd.tools.table import Stage, tools_of

CLIS: tuple[Kind, ...] = ("gemini", "codex", "claude")
FOLDER = "agentd/changes/add-oauth"
SPECS = [f"{FOLDER}/specs/{name}.md" for name in ("user-model", "auth-flow", "api-endpoints")]
PLAN = [f"{FOLDER}/proposal.md", *SPECS, f"{FOLDER}/tasks.md"]

_FIRST: dict[str, Any] = {"spec": "user-model", "number": 1, "total": 3, "proposal": PLAN[0], "earlier": [], "main": ""}
_LAST: dict[str, Any] = {
    **_FIRST,
    "spec": "api-endpoints",
    "number": 3,
    "earlier": SPECS[:2],
    "main": "agentd/specs/api-endpoints.md",
}
_TASKS: dict[str, Any] = {"proposal": PLAN[0], "specs": SPECS}
_FAULTS = [
    {
        "file": "specs/auth-flow.md",
        "line": 41,
        "rule": "scenario-format",
        "message": "the scenario 'Provider refuses' has no WHEN",
        "hint": "write `- **WHEN** …` and `- **THEN** …` lines under it",
    },
    {"file": "tasks.md", "line": 1, "rule": "document-missing", "message": "there is no tasks.md", "hint": ""},
]
_FINDINGS = [
    {
        "id": "C1",
        "severity": "high",
        "title": "The callback accepts any `state`",
        "what": "Nothing binds the `state` to the browser.\nAn attacker can sign a victim in as user@example.com.",
        "suggestion": "Keep the `state` with the browser and refuse any other.",
        "requirement": "auth-flow:R2",
        "where": "specs/auth-flow.md:31",
        "note": "codex in round 2: the scenario is still missing.",
    },
    {
        "id": "P1",
        "severity": "low",
        "title": "Name the cookie",
        "what": "The cookie has no name.",
        "suggestion": "",
        "requirement": "",
        "where": "",
        "note": "",
    },
]

# Each case of each prompt, by the name of its snapshot.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "clarify": ("clarify", {}),
    "proposal-gen": ("proposal-gen", {}),
    "proposal-gen-there": ("proposal-gen", {"there": PLAN[0]}),
    "proposal-review": ("proposal-review", {"document": PLAN[0]}),
    "spec-gen": ("spec-gen", _FIRST),
    "spec-gen-delta": ("spec-gen", _LAST),
    "spec-review": ("spec-review", {**_FIRST, "document": SPECS[0]}),
    "spec-review-delta": ("spec-review", {**_LAST, "document": SPECS[2]}),
    "tasks-gen": ("tasks-gen", _TASKS),
    "tasks-gen-without-specs": ("tasks-gen", {**_TASKS, "specs": []}),
    "tasks-review": ("tasks-review", {**_TASKS, "document": PLAN[-1]}),
    "plan-gen": ("plan-gen", {"there": []}),
    "plan-gen-going-on": ("plan-gen", {"there": PLAN[:2]}),
    "plan-review": ("plan-review", {"documents": PLAN, "fresh": False}),
    "plan-review-fresh": ("plan-review", {"documents": PLAN, "fresh": True}),
    "format-fix": ("format-fix", {"findings": _FAULTS, "fresh": False}),
    "format-fix-fresh": ("format-fix", {"findings": _FAULTS, "fresh": True}),
    "challenge": ("challenge", {"round": 1, "documents": PLAN}),
    "challenge-again": ("challenge", {"round": 2, "documents": PLAN}),
    "reproposal": ("reproposal", {"findings": _FINDINGS, "fresh": False}),
    "reproposal-fresh": ("reproposal", {"findings": _FINDINGS, "fresh": True}),
    "reminder": ("reminder", {"missing": "proposal.md has not been written.", "tool": "create_proposal"}),
}


def stage_of(prompt: str) -> Stage:
    stages = {"challenge": Stage.CHALLENGE, "clarify": Stage.CLARIFY}
    return stages.get(prompt, Stage.PLAN)


def tool_names(prompt: str, cli: Kind) -> dict[str, str]:
    return {tool.name: adapter_of(cli).tool_name(tool.name) for tool in tools_of(stage_of(prompt))}


def ask(prompt: str, cli: Kind = "gemini", **values: Any) -> str:
    """The prompt as the project that this process stands in has it."""
    context = f"{FOLDER}/{'AGENTS' if prompt == 'challenge' else 'GEMINI'}.md"
    tools = tool_names(prompt, cli)
    common = {"change_id": "add-oauth", "folder": FOLDER, "context": context, "tools": tools, "there": ""}
    if "tool" in values:
        values["tool"] = tools[values["tool"]]
    return Prompts(find_project(), os.environ).render(prompt, **{**common, **values})


def ask_case(case: str, cli: Kind = "gemini") -> str:
    prompt, values = CASES[case]
    return ask(prompt, cli, **values)


def trust_prompts() -> None:
    project = find_project()
    items = [trust.prompt_item(name, data) for name, data in trust.overrides(project).items()]
    trust.give(project, items, os.environ)

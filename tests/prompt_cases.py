"""What each prompt is filled with in the change of the example, and a project to render it in."""

import os
from typing import Any

from agentd.agents.registry import get_adapter
from agentd.engine.prompts.prompt_renderer import render_prompt as render
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_table import tools_of
from agentd.project.layout import find_project
from agentd.project.trust.items import prompt_item, prompt_overrides
from agentd.project.trust.store import grant_trust

CLIS: tuple[str, ...] = ("gemini", "codex", "claude")
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
_COMMANDS = ["python -m pytest -q", "ruff check ."]
_IMPLEMENT: dict[str, Any] = {
    "tasks": [
        {
            "id": "2.1",
            "title": "Start the sign-in",
            "files": [{"path": "src/notes/auth/start.py", "action": "CREATE"}],
            "description": "Make `state` and PKCE verifier, keep them for 10 minutes.",
            "depends_on": [],
        },
        {
            "id": "2.2",
            "title": "Handle the callback",
            "files": [
                {"path": "src/notes/auth/callback.py", "action": "CREATE"},
                {"path": "src/notes/auth/token.py", "action": "DELETE"},
            ],
            "description": "Check the `state`.\n\nThen set the session cookie with `@cookie`.",
            "depends_on": ["1.2", "2.1"],
        },
    ],
    "requirements": [
        {
            "ref": "auth-flow:R2",
            "title": "Provider callback",
            "text": "A foreign `state` is answered with 400.\n\nOn any failure no cookie is set.",
            "scenarios": [
                {
                    "title": "Foreign state is refused",
                    "text": "- **WHEN** a callback carries a `state` of another browser\n- **THEN** the answer is 400",
                },
                {"title": "Provider refuses", "text": "- **WHEN** it says no\n- **THEN** no cookie is set"},
            ],
        },
        {"ref": "api-endpoints:R3", "title": "Token", "text": "This change removes it.", "scenarios": []},
    ],
    "documents": PLAN[:-1],
    "description": "Let people sign in with Google or GitHub\nas user@example.com",
    "clarifications": "## Q1: Providers\n\n- **Answer**: Google and GitHub",
    "notes": ["Good, but name the cookie `sid`.", "Say in the error who refused.\n\nbob: And why."],
    "done": [],
    "commands": _COMMANDS,
    "is_last": False,
    "there": False,
}
_NO_SPECS: dict[str, Any] = {
    "requirements": [],
    "documents": PLAN[:1],
    "clarifications": "",
    "notes": [],
    "commands": [],
}
_CHECKS: list[dict[str, Any]] = [
    {
        "name": "tests",
        "required": True,
        "status": "passed",
        "command": _COMMANDS[0],
        "failed_tests": [],
        "known": False,
    },
    {
        "name": "audit",
        "required": False,
        "status": "could-not-run",
        "command": "pip-audit",
        "failed_tests": [],
        "known": False,
    },
]
_USED = "tests/test_auth_flow.py::test_used_state_is_refused"
_FAILED: list[dict[str, Any]] = [
    {**_CHECKS[0], "status": "failed", "failed_tests": [_USED, *(f"tests/test_old.py::test_{n}" for n in range(21))]},
    {**_CHECKS[0], "name": "old", "status": "failed", "failed_tests": ["tests/test_old.py::test_0"], "known": True},
]
_REVIEW: dict[str, Any] = {
    "round": 1,
    "documents": PLAN,
    "checks": _CHECKS,
    "base": "384b73da57c6",
    "tree": "1b3b87dbd8b8",
    "has_diff": True,
}
_TAIL = f"E       assert 302 == 400\n\nFAILED {_USED} - assert 302 == 400\n1 failed, 41 passed in 5.83s\n"
_RESOLVE: dict[str, Any] = {
    "findings": [{**_FINDINGS[0], "id": "V1", "where": "src/notes/auth/callback.py:41"}, {**_FINDINGS[1], "id": "V2"}],
    "commands": _COMMANDS,
    "checks": [{**_FAILED[0], "tail": _TAIL}],
    "round": 2,
}

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
    "implement": ("implement", _IMPLEMENT),
    "implement-going-on": ("implement", {**_IMPLEMENT, "done": ["1.1", "1.2"], "is_last": True, "there": True}),
    "implement-without-specs": ("implement", {**_IMPLEMENT, **_NO_SPECS, "tasks": _IMPLEMENT["tasks"][:1]}),
    "review": ("review", _REVIEW),
    "review-again": ("review", {**_REVIEW, "round": 2, "checks": _FAILED}),
    "review-without-diff": ("review", {**_REVIEW, "has_diff": False, "checks": []}),
    "resolve": ("resolve", _RESOLVE),
    "resolve-without-checks": ("resolve", {**_RESOLVE, "checks": [], "commands": [], "round": 3}),
    "reminder": ("reminder", {"missing": "proposal.md has not been written.", "tool": "create_proposal"}),
}


def stage_of(prompt: str) -> Stage:
    stages = {
        "challenge": Stage.CHALLENGE,
        "clarify": Stage.CLARIFY,
        "implement": Stage.IMPLEMENT,
        "resolve": Stage.IMPLEMENT,
        "review": Stage.REVIEW,
    }
    return stages.get(prompt, Stage.PLAN)


def tool_names(prompt: str, cli: str) -> dict[str, str]:
    return {tool.name: get_adapter(cli).tool_name(tool.name) for tool in tools_of(stage_of(prompt))}


def render_prompt(prompt: str, cli: str = "gemini", **values: Any) -> str:
    """The prompt as the project that this process stands in has it."""
    context = f"{FOLDER}/{'AGENTS' if prompt in ('challenge', 'review') else 'GEMINI'}.md"
    tools = tool_names(prompt, cli)
    common = {"change_id": "add-oauth", "folder": FOLDER, "context": context, "tools": tools, "there": ""}
    if "tool" in values:
        values["tool"] = tools[values["tool"]]
    return render(find_project(), os.environ, prompt, **{**common, **values})


def render_case(case: str, cli: str = "gemini") -> str:
    prompt, values = CASES[case]
    return render_prompt(prompt, cli, **values)


def trust_prompts() -> None:
    project = find_project()
    items = [prompt_item(name, data) for name, data in prompt_overrides(project).items()]
    grant_trust(project, items, os.environ)

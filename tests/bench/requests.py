"""Bytes of the first request to the model: as agentd starts each CLI for a step, beside that CLI's default invocation.

Both ask what the step asks, with the same MCP server at hand, in the same project, against the scripted model. Ours
may be at most half of the default one's.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from agent_calls import challenger_request, planner_request
from agentd.change import lifecycle
from agentd.domain.errors import AgentdError
from agentd.domain.terms import Role
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallRequest
from agentd.engine.calls.run_context import RunContext
from agentd.engine.tools.tool import Stage
from agentd.project.layout import find_project
from loopback import clis
from loopback.claude_api import ClaudeApi
from loopback.claude_home import KEY as CLAUDE_KEY
from loopback.claude_home import claude_home
from loopback.codex_api import CodexApi
from loopback.codex_home import KEY as CODEX_KEY
from loopback.codex_home import codex_home, entry_of
from loopback.gemini_api import GeminiApi
from loopback.gemini_home import gemini_home
from loopback.model import Api, Conversation, Model, Turn, running
from program import AGENTD
from prompt_cases import render_case
from scenario import Scenario, open_run

LIMIT = 0.5
STEPS = {  # whose prompt is sent
    "asking": "clarify",
    "planning": "proposal-gen",
    "judging": "challenge",
    "coding": "implement",
    "reviewing": "review",
}
SERVER = {"command": AGENTD, "args": ["mcp"]}  # as `agentd init` registers it for a person's own sessions
ROLES = "".join(f'{role} = "{{name}}"\n' for role in ("planner", "challenger", "implementer", "reviewer"))
SETTINGS = f"""schema_version = 1
[workflow]
script_retries = 0
[roles]
{ROLES}
[agents.{{name}}]
command = {{program}}
env = {{env}}
[[agents.{{name}}.models]]
id = "one"
model = "{{model}}"
complexity = ["low", "medium", "high", "critical"]
"""


@dataclass(frozen=True)
class Cli:
    """`lay_out` makes the home; `default` is the argument list of a person's own headless run in the project."""

    name: str
    model: str
    api: Api
    lay_out: Callable[[Path, Conversation], object]
    default: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


CLIS = (
    Cli(
        "claude",
        "claude-sonnet-4-5",
        ClaudeApi(),
        lambda home, conversation: claude_home(home, conversation, servers={"agentd": SERVER}),
        ("-p", "--model", "claude-sonnet-4-5"),
        ((CLAUDE_KEY, "a-dummy-key"),),
    ),
    Cli(
        "gemini",
        "gemini-2.5-pro",
        GeminiApi(),
        lambda home, conversation: gemini_home(home, conversation, mcpServers={"agentd": SERVER}),
        ("--model", "gemini-2.5-pro"),
        (("GEMINI_CLI_TRUST_WORKSPACE", "true"),),
    ),
    *(
        Cli(
            "codex",
            name,
            CodexApi(),
            lambda home, conversation: codex_home(home, conversation, entry_of("agentd", **SERVER)),
            ("exec", "--json", "--skip-git-repo-check", "--model", name, "-"),
            ((CODEX_KEY, "a-dummy-key"),),
        )
        for name in ("gpt-5.5", "gpt-6-sol")  # they get their tools in different ways
    ),
)


def asking(run: RunContext, **other: Any) -> CallRequest:
    """The planner is to ask what it must know."""
    return planner_request(run, step="clarify", stage=Stage.CLARIFY, may_edit=lambda path: False, **other)


def coding(run: RunContext, **other: Any) -> CallRequest:
    """The implementer is to write code, and may run the check and what git only reads."""
    commands = ("python -m pytest -q", "git diff", "git log", "git status")
    role, stage = Role.IMPLEMENTER, Stage.IMPLEMENT
    return CallRequest(step="implement", role=role, stage=stage, commands=commands, reminder="", **other)


def reviewing(run: RunContext, **other: Any) -> CallRequest:
    """The reviewer is to report."""
    return challenger_request(run, step="review", role=Role.REVIEWER, stage=Stage.REVIEW, **other)


def asked_first(conversation: Conversation) -> int:
    assert conversation.asked, "it asked the model nothing"
    return conversation.asked[0].size


def default(cli: Cli, model: Model, box: Scenario, prompt: str) -> int:
    conversation = model.conversation(cli.api, Turn(text="Done."))
    cli.lay_out(box.home, conversation)
    argv = [clis.need(cli.name), *cli.default]
    env = {**box.env, **dict(cli.env)}
    subprocess.run(argv, cwd=box.root, env=env, input=prompt, capture_output=True, text=True, timeout=120, check=False)
    return asked_first(conversation)


def ours(cli: Cli, model: Model, box: Scenario, step: str, prompt: str) -> int:
    conversation = model.conversation(cli.api, Turn(text="Done."))
    cli.lay_out(box.home, conversation)
    names = json.dumps([name for name, _ in cli.env])
    program = json.dumps(clis.need(cli.name))
    box.configure(SETTINGS.format(name=cli.name, program=program, env=names, model=cli.model))
    change = lifecycle.create_change(find_project(), f"a-{step}", "Let people sign in")
    with open_run(change) as run, contextlib.suppress(AgentdError):
        retries.perform_call(run, WORKS[step](run, prompt=prompt, effect=None))
    return asked_first(conversation)


WORKS: dict[str, Callable[..., CallRequest]] = {
    "asking": asking,
    "planning": planner_request,
    "judging": challenger_request,
    "coding": coding,
    "reviewing": reviewing,
}


def main() -> int:
    clis.isolate()
    worst = 0.0
    for cli in CLIS:
        with tempfile.TemporaryDirectory() as folder, running() as model:
            box = Scenario(Path(folder, "notes-service"), Path(folder, "home"))
            box.write("agentd/config.toml", "schema_version = 1\n")
            box.commit()
            os.environ.update({**box.env, **dict(cli.env)})
            os.chdir(box.root)
            for step, case in STEPS.items():
                prompt = render_case(case, cli.name)
                usual = default(cli, model, box, prompt)
                size = ours(cli, model, box, step, prompt)
                worst = max(worst, size / usual)
                print(f"{cli.name:7} {step:9} {size:7} of {usual:7} bytes: {size / usual:.2f} (at most {LIMIT})")
            os.chdir("/")
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())

"""The real CLIs, run as a person would in a project that `init` has set up: they know our commands, and run them."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentd.agents.registry import CLIS
from agentd.agents.skills import SKILL_WORKFLOWS
from loopback import claude_home, clis, codex_home, gemini_home
from loopback.claude_api import ClaudeApi
from loopback.codex_api import CodexApi
from loopback.gemini_api import GeminiApi
from loopback.gemini_api import heard as heard_by_gemini
from loopback.model import Call, Conversation, Model, Turn
from program import AGENTD, PATIENCE
from scenario import Scenario

DONE = Turn(text="Done.")
ARGUMENTS = """add-search "Let people's notes be found, for $5 & more" now"""
FIRST_WORDS = {
    "plan": "Plan a change of this project with agentd.",
    "impl": "Implement a planned change of this project with agentd.",
    "archive": "Archive a finished change of this project with agentd",
}
NAMES = [workflow.name for workflow in SKILL_WORKFLOWS]


@pytest.fixture
def here(box: Scenario, model: Model) -> Scenario:
    """A project with the commands of all three, on a machine that has them and agentd."""
    box.env["PATH"] = f"{clis.FOLDER}:{Path(AGENTD).parent}:{os.environ['PATH']}"
    for name in CLIS:
        clis.need(name)
    ran = box.agentd("init", "--commit", "--json")
    assert ran.code == 0 and len(ran.json["skills"]) == len(CLIS) * len(SKILL_WORKFLOWS), ran
    return box


def run(box: Scenario, *command: str, env: dict[str, str], words: str = "", cwd: Path | None = None) -> str:
    done = subprocess.run(
        command,
        input=words,
        cwd=cwd or box.root,
        env={**box.env, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done
    return done.stdout


def texts(request: Any) -> list[str]:
    """The texts of a request to Claude's model."""
    blocks = [
        block
        for message in request.body["messages"]
        for block in ([message["content"]] if isinstance(message["content"], str) else message["content"])
    ]
    return [block if isinstance(block, str) else str(block.get("text") or block.get("content")) for block in blocks]


def claude(
    box: Scenario, conversation: Conversation, words: str, cwd: Path | None = None, **settings: Any
) -> list[Any]:
    """The events of a session that a person with these settings begins with these words."""
    claude_home.claude_home(box.home, conversation, **settings)
    patience = {"MCP_CONNECT_TIMEOUT_MS": "60000", "MCP_TIMEOUT": "60000"}
    env = {claude_home.KEY: "dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", **patience}
    start = ("claude", "-p", "--output-format", "stream-json", "--verbose")
    return [json.loads(line) for line in run(box, *start, env=env, words=words, cwd=cwd).splitlines()]


def test_claude_code_lists_the_commands(here: Scenario, model: Model) -> None:
    begun = claude(here, model.conversation(ClaudeApi(), DONE), "Hello.")[0]
    assert {f"agentd:{name}" for name in NAMES} <= set(begun["slash_commands"])


def test_claude_code_lists_commands_of_a_subfolder_project(box: Scenario, model: Model) -> None:
    clis.need("claude")
    box.env["PATH"] = f"{clis.FOLDER}:{box.env['PATH']}"
    inner = box.root / "packages/the api"
    inner.mkdir(parents=True)
    assert box.agentd("init", "--here", cwd=inner).code == 0
    begun = claude(box, model.conversation(ClaudeApi(), DONE), "Hello.", cwd=inner)[0]
    assert {f"agentd:{name}" for name in NAMES} <= set(begun["slash_commands"])


@pytest.mark.parametrize("name", NAMES)
def test_claude_codes_model_gets_the_text_and_arguments_without_frontmatter(
    here: Scenario, model: Model, name: str
) -> None:
    conversation = model.conversation(ClaudeApi(), DONE)
    claude(here, conversation, f"/agentd:{name} {ARGUMENTS}")
    (text,) = [one for one in texts(conversation.asked[0]) if FIRST_WORDS[name] in one]
    assert text.startswith(FIRST_WORDS[name])
    assert f"\nArguments: {ARGUMENTS}\n" in text
    assert "leaves it alone" not in text and "allowed-tools" not in text


def test_claude_code_runs_only_the_allowed_commands_without_asking(here: Scenario, model: Model) -> None:
    runs = {
        "agentd list --json": True,
        "agentd config git.setup --json": True,
        "agentd plan add-search 'Let people find notes' --dry-run": True,
        "agentd status": True,
        "agentd trust --yes": False,
        "agentd drop add-search": False,
        "agentd --set budget.per_change=99 list": False,
        "agentd list --json && touch evil": False,
        "touch evil": False,
    }
    turns = [Turn(calls=(Call("Bash", {"command": command, "timeout": 600000}),)) for command in runs]
    conversation = model.conversation(ClaudeApi(), *turns, DONE)
    *_, ended = claude(here, conversation, f"/agentd:plan {ARGUMENTS}")
    denied = {one["tool_input"]["command"] for one in ended["permission_denials"]}
    assert {command: command not in denied for command in runs} == runs
    answers = texts(conversation.asked[-1])
    assert any('"command": "list"' in answer for answer in answers)
    assert any('"value": "ask"' in answer for answer in answers)
    assert not (here.root / "evil").exists()


def test_claude_code_saves_clarifications_through_mcp_without_asking(here: Scenario, model: Model) -> None:
    assert here.agentd("init", "--register").code == 0
    servers = json.loads((here.root / ".mcp.json").read_text())
    servers["mcpServers"]["agentd"]["alwaysLoad"] = True  # it is waited for, also on a busy machine
    here.write(".mcp.json", json.dumps(servers))
    answer = {"topic": "Scope", "question": "Whose notes?", "answer": "One's own.", "rationale": "Others are private."}
    kept = Call("create_clarifications", {"change_id": "add-search", "questions": [answer]})
    conversation = model.conversation(ClaudeApi(), Turn(calls=(kept,)), DONE)
    *_, ended = claude(here, conversation, f"/agentd:plan {ARGUMENTS}", enableAllProjectMcpServers=True)
    assert not ended["permission_denials"]
    assert "One's own." in (here.root / "agentd/changes/add-search/clarifications.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_geminis_model_gets_the_text_and_arguments(here: Scenario, model: Model, name: str) -> None:
    conversation = model.conversation(GeminiApi(), DONE)
    gemini_home.gemini_home(here.home, conversation)
    env = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"}
    run(here, "gemini", "-m", "gemini-2.5-pro", "-o", "stream-json", "-p", f"/agentd:{name} {ARGUMENTS}", env=env)
    words = heard_by_gemini(conversation.asked[0])
    assert FIRST_WORDS[name] in words
    assert json.dumps(f"\nArguments: {ARGUMENTS}\n")[1:-1] in words


def test_codex_lists_the_skills(here: Scenario, model: Model) -> None:
    codex_home.codex_home(here.home, model.conversation(CodexApi(), DONE))
    asked = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "agentd-tests", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "skills/list", "params": {"cwds": [str(here.root)]}},
    )
    with subprocess.Popen(
        ["codex", "app-server"],
        cwd=here.root,
        env={**here.env, codex_home.KEY: "dummy"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin and server.stdout
        for one in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **one}) + "\n")
            server.stdin.flush()
        answer = next(found for line in server.stdout if (found := json.loads(line)).get("id") == 2)
        server.stdin.close()
    (place,) = answer["result"]["data"]
    assert not place["errors"]
    ours = {one["name"]: one for one in place["skills"] if one["scope"] == "repo"}
    assert ours.keys() == {f"agentd-{name}" for name in NAMES}
    assert all(one["enabled"] for one in ours.values())


def test_codexs_model_gets_the_text_of_the_named_skill(here: Scenario, model: Model) -> None:
    conversation = model.conversation(CodexApi(), DONE)
    codex_home.codex_home(here.home, conversation)
    more = ("-c", "features.plugins=false", "-c", "analytics.enabled=false")
    env = {codex_home.KEY: "dummy"}
    run(here, "codex", "exec", "--json", *more, "-", env=env, words=f"$agentd-plan {ARGUMENTS}")
    words = json.dumps(conversation.asked[0].body["input"])
    assert FIRST_WORDS["plan"] in words and FIRST_WORDS["impl"] not in words
    assert json.dumps(f"$agentd-plan {ARGUMENTS}")[1:-1] in words

"""`/agentd:plan` in the real Claude Code, headless: a model that goes by the objects it reads gets a change planned."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loopback import claude_home, clis
from loopback.claude_api import ClaudeApi
from loopback.model import Call, Model, Request, Turn
from plans import SIGN_IN
from playbooks import Action, finding, plan_steps, report
from program import AGENTD, PATIENCE
from scenario import IN_PLACE, NO_REVIEWS, Scenario

START = f'/agentd:plan add-oauth "{SIGN_IN}"'


class Reader(ClaudeApi):
    """A model that does what the command says; what it needs to know it takes from the objects that agentd prints."""

    def answer(self, request: Request, turn: Turn) -> tuple[str, list[bytes]]:
        return super().answer(request, follow(objects(request)))


def objects(request: Request) -> list[dict[str, Any]]:
    """What agentd has printed since the person last said something."""
    found: list[dict[str, Any]] = []
    for message in request.body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [str(block["content"]) for block in blocks if block["type"] == "tool_result"]
        found += [json.loads(words[words.index("{") :]) for words in results if "{" in words]
    return found


def follow(seen: list[dict[str, Any]]) -> Turn:
    last: dict[str, Any] = seen[-1] if seen else {}
    match last:
        case {"error": {"message": words}}:
            return Turn(text=f"It went wrong: {words}")
        case {"command": "list", "changes": changes}:
            known = "add-oauth" in [one["change_id"] for one in changes]
            return start("") if known else bash("agentd config git.setup --json")
        case {"command": "config", "values": {"git.setup": {"value": value}}}:
            where = " --git branch" if value == "ask" else ""
            return start(f" {shlex.quote(SIGN_IN)}{where} --skip-clarify")
        case {"command": "plan", "state": "running", "change_id": resolved} | {
            "command": "wait",
            "state": "running",
            "change_id": resolved,
        }:
            return bash(f"agentd wait {resolved} --timeout 540 --json", timeout=600000)
        case (
            {"command": "wait", "state": "decision", "decision": {} as decision}
            | {"command": "plan", "decision_needed": {} as decision}  # it ended before --detach could look
        ):
            labels = [f"{one['label']}: {one['command']}" for one in decision["options"]]
            return Turn(text="\n".join([decision["question"], *labels]))
        case {"command": "wait", "state": "ended", "result": {"message": message, "phase": "challenged"}}:
            return Turn(text=f"{message} Implement it now?")
    return bash("agentd list --json")


def start(more: str) -> Turn:
    return bash(f"agentd plan add-oauth{more} --rounds 0 --detach --json")


def bash(command: str, **more: int) -> Turn:
    return Turn(calls=(Call("Bash", {"command": command, **more}),))


@pytest.fixture
def session(project: Scenario, model: Model) -> Any:
    """Somebody in a session of Claude Code, in a project whose agents play these steps."""

    def begin(steps: dict[str, list[Action]], words: str = START, ask: bool = False) -> tuple[str, list[str]]:
        clis.need("claude")
        if not (project.root / "playbook.json").exists():
            project.with_agents(steps, workflow=NO_REVIEWS)
            if ask:
                config = project.root / "agentd/config.toml"
                project.write("agentd/config.toml", config.read_text().replace(IN_PLACE, ""))
                project.commit("where a change lives is asked")
            project.env["PATH"] = f"{clis.FOLDER}:{Path(AGENTD).parent}:{os.environ['PATH']}"
            assert project.agentd("init", "--commit").code == 0
        conversation = model.conversation(Reader(), Turn())
        claude_home.claude_home(project.home, conversation)
        env = {claude_home.KEY: "dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        done = subprocess.run(
            ["claude", "-p", "--output-format", "stream-json", "--verbose"],
            input=words,
            cwd=project.root,
            env={**project.env, **env},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 0 and not lines[-1]["permission_denials"], done
        ran = [
            block["input"]["command"]
            for line in lines
            if line["type"] == "assistant"
            for block in line["message"]["content"]
            if block["type"] == "tool_use"
        ]
        return lines[-1]["result"], ran

    return begin


def names(commands: list[str]) -> list[str]:
    return [command.split()[1] for command in commands]


def test_skill_runs_its_commands_in_order_and_reports_the_result(project: Scenario, session: Any) -> None:
    told, ran = session(plan_steps(), ask=True)
    assert names(ran) == ["list", "config", "plan", "wait"]
    assert told == "APPROVED - Ready for implementation! Implement it now?"
    change = project.change
    assert change.read().git.branch == "agentd/add-oauth" == project.git("branch", "--show-current")
    assert change.read().description == SIGN_IN
    assert all((change.folder / name).is_file() for name in ("proposal.md", "tasks.md", "CHALLENGE.md"))


def test_open_findings_are_left_for_the_user_to_decide(project: Scenario, session: Any) -> None:
    told, ran = session(plan_steps(challenge=report("NEEDS_REVISION", finding())))
    assert names(ran) == ["list", "config", "plan", "wait"] and "--git" not in ran[2]
    question, *options = told.splitlines()
    assert question == "The challenge found 1 high. What next?"
    assert [re.sub(r":.*", "", option) for option in options] == [
        "Fix and challenge again",
        "Look at it",
        "Accept with a reason",
        "Stop here",
    ]
    assert str(project.change.read().phase) == "proposed"


def test_existing_change_continues_without_questions(project: Scenario, session: Any) -> None:
    session(plan_steps(challenge=report("NEEDS_REVISION", finding())))
    told, ran = session({}, words="/agentd:plan add-oauth")
    assert names(ran) in (["list", "plan", "wait"], ["list", "plan"])
    assert SIGN_IN not in ran[1] and told.startswith("The challenge found 1 high.")

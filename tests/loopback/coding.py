"""Code by the real CLIs: what their model does in the words of each, a project where two are at home, what it heard."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loopback import clis, plans
from loopback.codex_api import Elsewhere
from loopback.gemini_api import Own
from loopback.model import Call, Model, Request, Turn
from scenario import CHECK, Scenario


def write(cli: str, path: Path, text: str) -> Call:
    if cli == "codex":
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return _patch(f"*** Add File: {path.relative_to(Path.cwd())}\n{lines}")
    given = {"file_path": str(path), "content": text}
    return Call("Write", given) if cli == "claude" else Own("write_file", given)


def edit(cli: str, path: Path, old: str, new: str) -> Call:
    if cli == "codex":
        return _patch(f"*** Update File: {path.relative_to(Path.cwd())}\n@@\n-{old}\n+{new}\n")
    given = {"file_path": str(path), "old_string": old, "new_string": new}
    return Call("Edit", given) if cli == "claude" else Own("replace", {**given, "instruction": "Mend it."})


def shell(cli: str, command: str) -> Call:
    if cli == "codex":
        return Elsewhere("exec_command", {"cmd": command})
    if cli == "claude":
        return Call("Bash", {"command": command})
    return Own("run_shell_command", {"command": command, "dir_path": str(Path.cwd())})


def _patch(text: str) -> Call:
    return Elsewhere("exec_command", {"cmd": f"apply_patch <<'END'\n*** Begin Patch\n{text}*** End Patch\nEND"})


def read(path: str) -> Call:
    return Call("read_file", {"path": path})


def answer(id_: str, word: str, note: str) -> Call:
    return Call("answer_finding", {"id": id_, "answer": word, "note": note})


def each(*calls: Call, says: str) -> list[Turn]:
    """One after the other, and a last word."""
    return [*(Turn(calls=(call,)) for call in calls), Turn(text=says)]


# ---- the project


def seat(
    box: Scenario, model: Model, who: tuple[str, str], maker: Sequence[Turn], judge: Sequence[Turn]
) -> list[Request]:
    """These two implement and review, started by a script that notes their environment and process id."""
    log = plans.seat(box, model, maker, judge, who, more=CHECK)
    text = (box.root / "agentd/config.toml").read_text()
    text = text.replace("planner =", "implementer =").replace("challenger =", "reviewer =")
    for cli in who:
        program = box.home / "bin" / cli
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nenv > "$HOME/bin/{cli}.$$"\nexec {clis.need(cli)} "$@"\n')
        program.chmod(0o755)
        text = text.replace(f'"{clis.need(cli)}"', f'"{program}"')
    box.configure(text)
    return log


def started(box: Scenario, cli: str) -> dict[int, dict[str, str]]:
    """The environment of each process, by its id."""
    found = {}
    for path in (box.home / "bin").glob(f"{cli}.*"):
        rows = (line.partition("=") for line in path.read_text().splitlines())
        found[int(path.suffix[1:])] = {name: value for name, _, value in rows}
    return found


def offered(request: Request) -> set[str]:
    """The tools that the model may call."""
    tools = request.body["tools"]
    groups = [tool["functionDeclarations"] for tool in tools if "functionDeclarations" in tool] or [tools]
    return {tool["name"] for group in groups for tool in group if "name" in tool}


def answers(request: Request) -> list[str]:
    """What the tools have answered in this session, up to there."""
    body = request.body
    if "messages" in body:
        contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        return [_text(one["content"]) for blocks in contents for one in blocks if one["type"] == "tool_result"]
    if "input" in body:
        return [_text(one["output"]) for one in body["input"] if one["type"] == "function_call_output"]
    parts = [part for content in body["contents"] for part in content["parts"]]
    return [_text([part["functionResponse"]["response"]]) for part in parts if "functionResponse" in part]


def _text(answer: Any) -> str:
    """A text, or parts that have one under some name."""
    return answer if isinstance(answer, str) else "\n".join(str(one) for part in answer for one in part.values())

"""A change in each stage, with a run that holds its lock, and a real client on each transport."""

import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.documents import records
from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_scope import ToolScope, open_run_scope, run_folder
from agentd.mcp.tool_server import build_server
from agentd.project import git
from agentd.project.layout import find_project
from plans import EXAMPLE
from program import AGENTD, PATIENCE, Program, server
from scenario import Scenario

GENERATIONS = ("legacy", "2026-07-28")
TRANSPORTS = ("memory", "stdio", "http")


def example_arguments() -> dict[str, dict[str, Any]]:
    """The calls of the contract's page: the first JSON block of each tool."""
    text = (EXAMPLE / "tools.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[2:]
    return {
        section.split("\n", 1)[0].strip(): json.loads(re.search(r"```json\n(.*?)```", section, re.DOTALL)[1])  # type: ignore[index]
        for section in sections
    }


@dataclass(frozen=True)
class Staged:
    box: Scenario
    change: Change
    stage: Stage
    token: str

    @property
    def arguments(self) -> list[str]:
        if self.stage is Stage.UNBOUND:
            return ["mcp"]
        return ["mcp", "--change", self.change.id, "--stage", self.stage, "--token", self.token]

    def binding(self) -> ToolScope:
        project = find_project()
        return (
            ToolScope(project)
            if self.stage is Stage.UNBOUND
            else open_run_scope(project, self.change.id, self.stage, self.token)
        )

    def run_json(self, name: str) -> Any:
        return json.loads((run_folder(find_project(), self.token) / name).read_text())


def lay_out(box: Scenario) -> Change:
    """The example change after its first challenge, its project's own spec, and some code."""
    change = lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")
    for name in ("proposal.md", "clarifications.md", "tasks.md", "specs", "reviews/challenge-1.yaml"):
        source, target = EXAMPLE / name, change.folder / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    text = (change.folder / "tasks.md").read_text()
    new = "Check the `state`, exchange the `code`, find"
    assert new in text
    (change.folder / "tasks.md").write_text(text.replace(new, "Exchange the `code`, find"))
    box.write("agentd/specs/api-endpoints.md", (EXAMPLE / "base/api-endpoints.md").read_text())
    box.write("src/notes/auth/callback.py", "max_age = 1\n")
    return change


def _find_in_code(change: Change, tree: str) -> None:
    """What was found in the plan, found in the code instead: the page's calls speak of those findings."""
    plan = records.parse_record((change.folder / "reviews/challenge-1.yaml").read_text(), "challenge-1.yaml")
    code = replace(plan, kind="review", judged={"tree": tree, "base": tree})
    (change.folder / "reviews/review-1.yaml").write_text(records.render_record(code))
    (change.folder / "reviews/challenge-1.yaml").unlink()


@contextmanager
def staged(box: Scenario, stage: Stage) -> Iterator[Staged]:
    change = lay_out(box)
    with change.running("agentd plan add-oauth") as holder:
        folder = run_folder(find_project(), holder.token)
        folder.mkdir(parents=True)
        base = git.snapshot(str(box.root))
        box.write("src/notes/auth/callback.py", "max_age = 604800\n")
        box.write("src/notes/auth/new.py", "state = None\n")
        tree = git.snapshot(str(box.root))
        if stage in (Stage.IMPLEMENT, Stage.REVIEW):
            _find_in_code(change, base)
        (folder / "run.json").write_text(json.dumps({"base": base, "tree": tree, "failed_checks": []}))
        yield Staged(box, change, stage, holder.token)


@asynccontextmanager
async def connected(staged: Staged, transport: str, mode: str = "auto") -> AsyncIterator[Client]:
    if transport == "memory":
        async with Client(build_server(staged.binding()), mode=mode) as client:
            yield client
    elif transport == "stdio":
        parameters = StdioServerParameters(
            command=server().python,
            args=["-P", "-m", "agentd", *staged.arguments],
            env=staged.box.env,
            cwd=str(staged.box.root),
        )
        async with Client(parameters, mode=mode) as client:
            yield client
    else:
        with http_server(staged) as (url, token):
            async with over_http(url, token, mode) as client:
                yield client


@asynccontextmanager
async def over_http(url: str, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    import httpx2

    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        yield client


@contextmanager
def http_server(staged: Staged) -> Iterator[tuple[str, str]]:
    """The real program, its address and its token."""
    process = Program(
        [AGENTD, *staged.arguments, "--http"],
        cwd=staged.box.root,
        env=staged.box.env,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        url = process.stderr.readline().split()[-1]
        file = Path(process.stderr.readline().split(maxsplit=4)[-1].strip())
        yield url, json.loads(file.read_text())["token"]
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)

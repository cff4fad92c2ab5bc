"""agentd installed from its wheel by pip, pipx and uv: the installed program works, with all its data files."""

import asyncio
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from installing import INSTALLERS, ROOT, by_pip
from mcp import Client, StdioServerParameters

import agentd
from raw_http import open_server
from scenario import Scenario


@pytest.fixture(params=INSTALLERS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return INSTALLERS[request.param](tmp_path_factory)


@pytest.fixture
def own(program: Path, tmp_path: Path) -> Scenario:
    return newcomer(program, tmp_path)


def newcomer(program: Path, folder: Path) -> Scenario:
    """Somebody with a repository, who has just installed it."""
    box = Scenario(folder / "notes", folder / "home", ("agentd",))
    box.env["PATH"] = os.pathsep.join((str(program.parent), box.env["PATH"]))
    assert shutil.which("agentd", path=box.env["PATH"]) == str(program)
    return box


def test_installed_program_is_used(own: Scenario, program: Path) -> None:
    ran = own.agentd("--version")
    assert (ran.code, ran.out.strip()) == (0, f"agentd {agentd.__version__}")
    python = program.resolve().with_name("python")
    assert program.resolve().read_text().startswith(f"#!{python}")
    where = Path(own.execute(str(python), "-c", "import agentd; print(agentd.__file__)").out.strip())
    assert where.is_relative_to(python.parents[1]) and not where.is_relative_to(ROOT)


def test_init_writes_the_configuration_and_cli_commands(own: Scenario) -> None:
    done = own.agentd("init", "--register", "--no-commit", "--json")
    assert done.code == 0, done.err
    skills = done.json["skills"]
    assert {path.split("/")[0] for path in skills} == {".claude", ".gemini", ".agents"}
    for path in (*skills, "agentd/config.toml"):
        assert (own.root / path).read_text().strip(), path
    assert own.agentd("config").code == 0


def test_bash_accepts_the_completion_script(own: Scenario) -> None:
    done = own.execute("bash", "-c", 'eval "$(agentd completion bash)" && complete -p agentd')
    assert done.code == 0 and done.out.rstrip().endswith("agentd"), done.err


def test_viewer_serves_its_styles_and_vendored_scripts(own: Scenario) -> None:
    assert own.agentd("init", "--no-commit", "--yes").code == 0
    pinned = json.loads((ROOT / "vendoring" / "package.json").read_text())["sha256"]
    with open_server((*own.program, "view", "--no-open"), own.root, own.env) as door:
        cookie = door.enter()
        page = door.ask("/", cookie)
        loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.body.decode())
        assert page.status == 200 and {"/static/style.css", "/static/vendor/htmx.min.js"} <= set(loaded)
        assert [door.ask(path, cookie).status for path in loaded] == [200] * len(loaded)
        for name, digest in pinned.items():
            script = door.ask(f"/static/vendor/{Path(name).name}", cookie)
            assert hashlib.sha256(script.body).hexdigest() == digest


def test_mcp_server_lists_its_tools_to_a_client(own: Scenario) -> None:
    assert own.agentd("init", "--no-commit", "--yes").code == 0

    async def ask() -> tuple[str, set[str]]:
        server = StdioServerParameters(command=own.program[0], args=["mcp"], env=own.env, cwd=str(own.root))
        async with Client(server) as client:
            listed = await client.list_tools()
            assert client.server_info
            return client.server_info.name, {tool.name for tool in listed.tools}

    name, tools = asyncio.run(ask())
    assert name == "agentd" and {"list_changes", "get_change", "read_file"} <= tools


def test_demo_runs_and_its_change_can_be_exported_as_one_page(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The whole program: prompts, templates, the sample and its playbook."""
    own = newcomer(by_pip(tmp_path_factory), tmp_path)
    shown = own.agentd("demo", "--into", "shown")
    assert shown.code == 0, shown.out + shown.err
    for words in ("NEEDS_REVISION - Found", "APPROVED - Complete, ready to archive!", "What was created"):
        assert words in shown.out
    tally = own.root / "shown" / "tally"
    done = own.agentd("view", "split-by-weight", "--export", "page.html", cwd=tally)
    assert done.code == 0, done.err
    page = (tally / "page.html").read_text()
    assert "lose a cent" in page and "<style>" in page and "<svg" in page

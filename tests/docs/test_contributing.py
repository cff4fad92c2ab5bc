"""The flow test that CONTRIBUTING.md shows is a complete test, and its recipes work."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentd.change import lifecycle
from agentd.project.layout import find_project
from raw_http import open_server
from scenario import Scenario

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
LONGEST = 18  # lines, blank ones included


def sample() -> str:
    page = PAGE.read_text().partition("## How we test")[2]
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return str(code)


def test_sample_test_passes(project: Scenario) -> None:
    names: dict[str, Any] = {}
    exec(compile(sample(), "CONTRIBUTING.md", "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test(project)


def test_sample_test_is_short_and_needs_one_import() -> None:
    assert len(sample().splitlines()) <= LONGEST
    assert re.findall(r"^(?:from|import) (\w+)", sample(), re.MULTILINE) == ["scenario"]


def test_every_helper_module_is_listed() -> None:
    listed = set(re.findall(r"`(\w+)/?`", PAGE.read_text().partition("| module |")[2].partition("\n\n")[0]))
    folder = PAGE.parent / "tests"
    modules = {path.stem for path in folder.glob("*.py")} | {"program", "loopback"}
    scripts = {"architecture_report", "conftest", "mutants", "run_process"} | {
        path.stem for path in folder.glob("test_*.py")
    }
    assert listed == modules - scripts


@pytest.mark.parametrize("target", re.findall(r"^make (\S+)", PAGE.read_text(), re.MULTILINE))
def test_every_make_target_that_is_listed_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (PAGE.parent / "Makefile").read_text(), re.MULTILINE)


def recipe(title: str) -> list[str]:
    """The code blocks of a recipe."""
    page = PAGE.read_text().partition(f"### {title}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    return re.findall(r"```\w+\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the source tree, to add to."""
    shutil.copytree(PAGE.parent / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "src"


def test_command_recipe_adds_a_command_with_one_file(project: Scenario, source: Path) -> None:
    (code,) = recipe("Add a command")
    (source / "agentd/cli/hello.py").write_text(code)

    def agentd(*arguments: str) -> str:
        environment = {**project.env, "PYTHONPATH": str(source)}
        command = [sys.executable, "-P", "-m", "agentd", *arguments]
        return subprocess.run(
            command, cwd=project.root, env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert agentd("hello") == "hello\n" and json.loads(agentd("hello", "--json"))["greeting"] == "hello"
    assert re.search(r"wait .*\n  hello       Greet the project.\n  stop ", agentd("--help"))


def test_page_tab_recipe_adds_a_tab_with_two_files(project: Scenario, source: Path) -> None:
    code, template = recipe("Add a page tab")
    (source / "agentd/web/size_view.py").write_text(code)
    (source / "agentd/web/templates/size.html").write_text(template)
    change = lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")
    (change.folder / "proposal.md").write_text("# Change: add-oauth\n")
    command = (sys.executable, "-P", "-m", "agentd", "view", "--no-open")
    with open_server(command, project.root, {**project.env, "PYTHONPATH": str(source)}) as server:
        key = server.enter()
        assert b'<a href="/changes/add-oauth/size">Size</a>' in server.ask("/changes/add-oauth", key).body
        page = server.ask("/changes/add-oauth/size", key).body
    assert b"<dt>proposal.md</dt><dd>20 bytes</dd>" in page and b'aria-current="page">Size<' in page

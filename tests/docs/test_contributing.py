"""The flow test that CONTRIBUTING.md shows is a complete test, and it passes."""

import re
from pathlib import Path
from typing import Any

import pytest

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

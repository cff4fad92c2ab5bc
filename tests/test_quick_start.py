"""What a command imports is what its user waits for: heavy libraries stay out of quick commands."""

import re
import subprocess
import sys

import pytest

from agentd.change import lifecycle
from agentd.project.layout import find_project
from scenario import Scenario

HEAVY = {"dbos", "mcp", "starlette", "genai_prices", "questionary", "pydantic", "rich", "jinja2", "asyncio"}
# Not heavy, but none of a warm listing's business.
NEEDLESS = {"yaml", "pathlib", "dataclasses", "tomllib", "subprocess", "tempfile", "hashlib", "difflib"}


def imported(box: Scenario, *arguments: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agentd", *arguments],
        cwd=box.root,
        env=box.env,
        capture_output=True,
        text=True,
        check=True,
    )
    return {match[1].split(".")[0] for match in re.finditer(r"\|\s+([\w.]+)$", ran.stderr, re.MULTILINE)}


@pytest.fixture
def warm(project: Scenario) -> Scenario:
    """Ten changes that the index knows."""
    for number in range(10):
        lifecycle.create_change(find_project(), f"change-{number}", "words")
    import time

    time.sleep(0.1)  # a file younger than a tick is not kept in the index
    assert project.agentd("list").code == 0
    return project


@pytest.mark.parametrize("arguments", [("list",), ("status",), ("list", "--json"), ("--help",), ("--version",)])
def test_warm_listing_imports_no_heavy_modules(warm: Scenario, arguments: tuple[str, ...]) -> None:
    found = imported(warm, *arguments)
    assert "click" in found
    assert not found & (HEAVY | NEEDLESS)


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "change-1"),
        ("log", "change-1"),
        ("cost",),
        ("cost", "change-1"),
        ("stop", "change-1"),
        ("trust", "--yes"),
        ("config",),
        ("drop", "change-1", "--yes"),
        ("completion", "bash"),
        ("init",),
    ],
)
def test_early_commands_import_nothing_heavy(warm: Scenario, arguments: tuple[str, ...]) -> None:
    assert not imported(warm, *arguments) & HEAVY

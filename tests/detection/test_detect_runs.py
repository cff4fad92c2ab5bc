"""The proposed commands, really run: they end well and find the tests."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.project.detection.check_proposals import propose_checks
from program import PATIENCE

CASE = (
    "import unittest\n{imports}\n\nclass Adds(unittest.TestCase):\n    def test_adds(self):\n        assert {truth}\n"
)
NODE_TEST = 'const test = require("node:test");\ntest("adds", () => {{ {body} }});\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def run_the_one_check(root: Path) -> tuple[int, str]:
    """As agentd will: by the shell, in the project's folder. `python` is the one that runs these tests."""
    bin_folder = root.parent / "bin"
    bin_folder.mkdir(exist_ok=True)
    python = bin_folder / "python"
    if not python.exists():
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    [check] = propose_checks(root, lambda program: shutil.which(program, path=path) is not None)
    done = subprocess.run(
        check.command,
        shell=True,
        cwd=root,
        env={"PATH": path, "HOME": str(root.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout


def count(pattern: str, output: str) -> int:
    return sum(map(int, re.findall(pattern, output, re.MULTILINE)))


def test_proposed_pytest_command_finds_the_tests(root: Path) -> None:
    lay(root, {"app.py": "TWO = 2\n", "tests/test_app.py": "import app\n\ndef test_two():\n    assert app.TWO == 2\n"})
    code, output = run_the_one_check(root)
    assert (code, count(r"^(\d+) passed", output)) == (0, 1), output


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ({"test_a.py": ""}, 1),
        ({"tests/test_a.py": "import app", "tests/test_b.py": ""}, 2),
        ({"tests/__init__.py": "", "tests/test_a.py": "from .helper import app", "tests/helper.py": "import app"}, 1),
        (
            {
                "tests/__init__.py": "",
                "tests/sub/__init__.py": "",
                "tests/sub/test_a.py": "from tests.sub import sub",
            },
            1,
        ),
        ({"tests/unit/test_a.py": "", "tests/slow parts/test_b.py": "", "tests/test_c.py": ""}, 3),
        ({"src/pkg/__init__.py": "", "src/pkg/tests/__init__.py": "", "src/pkg/tests/test_a.py": "import pkg"}, 1),
        ({"pkg/__init__.py": "", "pkg/test_a.py": "from pkg import test_a", "test_root.py": ""}, 2),
        ({"tests/a_test.py": "", "tests/test_b.py": ""}, 2),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else None,
)
def test_proposed_unittest_command_finds_the_tests(root: Path, files: dict[str, str], tests: int) -> None:
    lay(root, {"app.py": "TWO = 2\n"})
    for name, imports in files.items():
        is_test = "test" in Path(name).stem
        lay(root, {name: CASE.format(imports=imports, truth=True) if is_test else f"{imports}\nsub = 0\n"})
    code, output = run_the_one_check(root)
    assert (code, count(r"^Ran (\d+) tests?", output)) == (0, tests), output


def test_failing_unittest_fails_the_check(root: Path) -> None:
    lay(root, {"tests/a/test_a.py": CASE.format(imports="", truth=False)})
    lay(root, {"tests/b/test_b.py": CASE.format(imports="", truth=True)})
    assert run_the_one_check(root)[0] == 1


@pytest.mark.parametrize("name", ["src/add.test.js", "test/add.cjs", "lib/deep/test-add.js"])
def test_proposed_node_command_finds_the_tests(root: Path, name: str) -> None:
    lay(root, {"package.json": '{"name": "notes"}', name: NODE_TEST.format(body="")})
    code, output = run_the_one_check(root)
    assert (code, count(r"^\S+ pass (\d+)", output)) == (0, 1), output
    lay(root, {name: NODE_TEST.format(body="throw new Error()")})
    assert run_the_one_check(root)[0] == 1


def test_node_check_does_not_pass_when_typescript_tests_are_not_found(root: Path) -> None:
    lay(root, {"src/add.test.ts": NODE_TEST.format(body="throw new Error()")})
    assert run_the_one_check(root)[0] != 0


def test_proposed_npm_command_runs_the_script(root: Path) -> None:
    lay(root, {"package.json": json.dumps({"name": "notes", "scripts": {"test": "node --test"}})})
    lay(root, {"test/add.js": NODE_TEST.format(body="")})
    code, output = run_the_one_check(root)
    assert (code, count(r"^\S+ pass (\d+)", output)) == (0, 1), output


def test_proposed_make_command_runs_the_target(root: Path) -> None:
    lay(root, {"Makefile": ".PHONY: test\ntest: build\n\t@echo '3 tests'\nbuild:\n\t@true\n"})
    code, output = run_the_one_check(root)
    assert (code, count(r"^(\d+) tests", output)) == (0, 3), output

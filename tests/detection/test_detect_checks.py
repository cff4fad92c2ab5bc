"""What is proposed for a project, by its files alone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from agentd.project.config.settings import CheckSettings
from agentd.project.detection.check_proposals import propose_checks
from agentd.project.detection.project_scan import BYTES

UNITTEST = "import unittest\n\nclass Adds(unittest.TestCase):\n    def test_adds(self):\n        assert True\n"
NODE_TEST = 'import test from "node:test";\ntest("adds", () => {});\n'
STUB = 'echo "Error: no test specified" && exit 1'


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text), encoding="utf-8")
    return root


def having(*programs: str) -> Callable[[str], bool]:
    return lambda program: program in programs


def commands(root: Path, *programs: str) -> dict[str, str]:
    return {check.name: check.command for check in propose_checks(root, having("python", *programs))}


def package(test: str | None = None, **more: object) -> str:
    return json.dumps({"name": "notes", "scripts": {"test": test} if test else {}, **more})


def test_python_service_gets_tests_lint_and_audit(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "pyproject.toml": """
                [project]
                name = "notes"
                dependencies = ["flask>=3"]
                [project.optional-dependencies]
                dev = ["pytest>=8", "ruff"]
                [tool.ruff]
                line-length = 100
            """,
            "src/notes/__init__.py": "",
            "tests/test_notes.py": "def test_notes():\n    assert True\n",
        },
    )
    assert propose_checks(tmp_path, having("python", "pip-audit")) == (
        CheckSettings("tests", "python -m pytest -q", required=True, timeout=600),
        CheckSettings("lint", "ruff check .", required=True, timeout=120),
        CheckSettings("audit", "pip-audit", required=False, timeout=300),
    )


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n"},
        {"pytest.ini": "[pytest]\n"},
        {"tox.ini": "[tox]\nenvlist = py\n[pytest]\naddopts = -q\n"},
        {"tox.ini": "[testenv]\ncommands = pytest {posargs}\n"},
        {"setup.cfg": "[metadata]\nname = x\n[tool:pytest]\n"},
        {"setup.py": "setup(name='x', extras_require={'test': ['pytest>=7']})\n"},
        {"tests/conftest.py": ""},
        {"pyproject.toml": "[project]\nname='x'\ndependencies = ['Pytest_Cov']\n"},
        {"pyproject.toml": "[dependency-groups]\ntest = ['coverage', 'pytest[x]>=8; python_version > \"3\"']\n"},
        {"pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n"},
        {"pyproject.toml": "[tool.poetry.dev-dependencies]\npytest = '^8'\n"},
        {"requirements-dev.txt": "flask\npytest==8.3\n"},
        {"requirements/test.txt": "-r base.txt\npytest-xdist\n"},
        {"Pipfile": '[dev-packages]\npytest = "*"\n'},
        {"tests/test_a.py": "import os\nimport pytest\n"},
        {"tests/unit/a_test.py": "from pytest import raises\n"},
        {"test_a.py": "def test_plain():\n    assert 1\n"},
        {"tests/test_a.py": UNITTEST, "tests/test_b.py": "class TestB:\n    def test_b(self): ...\n"},
    ],
    ids=lambda files: "+".join(files),
)
def test_pytest_is_proposed_where_it_is_configured_or_used(tmp_path: Path, files: dict[str, str]) -> None:
    assert commands(lay(tmp_path, files)) == {"tests": "python -m pytest -q"}


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": "We test with pytest.\n"},
        {"pyproject.toml": "[project]\nname = 'x'\ndependencies = ['pytestarossa', 'flask']\n"},
        {"requirements.txt": "flask  # as pytest does\n# pytest\nspytest==1.0\n"},
        {"src/app/testing.py": "def test_connection():\n    return True\n"},
        {"tests/test_helpers.py": "from unittest import mock\n\nclock = mock.Mock()\n"},
        {"tests/test-a.py": UNITTEST},
        {".venv/lib/test_a.py": "import pytest\n", "venv/lib/conftest.py": "", "node_modules/x/conftest.py": ""},
        {"my-env/pyvenv.cfg": "", "my-env/lib/conftest.py": "", "build/lib/test_a.py": UNITTEST},
        {"a/b/c/d/e/conftest.py": ""},
    ],
    ids=lambda files: "+".join(files),
)
def test_no_tests_are_proposed_without_evidence(tmp_path: Path, files: dict[str, str]) -> None:
    assert commands(lay(tmp_path, files)) == {}


def test_python3_is_used_when_python_is_missing(tmp_path: Path) -> None:
    lay(tmp_path, {"pytest.ini": "[pytest]\n"})
    assert [check.command for check in propose_checks(tmp_path, having("python3"))] == ["python3 -m pytest -q"]


@pytest.mark.parametrize(
    ("declared", "option"),
    [
        ("[project]\ndependencies = ['pytest', 'ruff']", ""),
        ("[dependency-groups]\ndev = ['pytest', 'ruff']", ""),
        ("[dependency-groups]\ntest = ['pytest-cov', 'ruff']", "--group test "),
        ("[dependency-groups]\ntest = ['pytest', 'ruff']\n[tool.uv]\ndefault-groups = ['test']", ""),
        ("[dependency-groups]\ntest = ['pytest', 'ruff']\n[tool.uv]\ndefault-groups = 'all'", ""),
        ("[project.optional-dependencies]\ndev = ['pytest', 'ruff']", "--extra dev "),
    ],
)
def test_uv_project_runs_checks_with_uv_run(tmp_path: Path, declared: str, option: str) -> None:
    lay(tmp_path, {"pyproject.toml": f"{declared}\n[tool.ruff]\n", "uv.lock": ""})
    assert commands(tmp_path, "uv") == {
        "tests": f"uv run {option}python -m pytest -q",
        "lint": f"uv run {option}ruff check .",
    }
    assert commands(tmp_path) == {"tests": "python -m pytest -q", "lint": "ruff check ."}


def test_poetry_project_runs_checks_with_poetry_run(tmp_path: Path) -> None:
    lay(tmp_path, {"pyproject.toml": "[tool.poetry.dependencies]\nflask='*'\n", "poetry.lock": "", "ruff.toml": ""})
    lay(tmp_path, {"tests/test_a.py": UNITTEST})
    assert commands(tmp_path, "poetry") == {
        "tests": "poetry run python -m unittest discover -s tests",
        "lint": "ruff check .",  # poetry's environment does not have it
    }


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["test_a.py"], "python -m unittest discover"),
        (["tests/test_a.py"], "python -m unittest discover -s tests"),
        (["tests/__init__.py", "tests/test_a.py"], "python -m unittest discover -s tests -t ."),
        (
            ["src/app/__init__.py", "src/app/tests/__init__.py", "src/app/tests/test_a.py"],
            "python -m unittest discover -s src/app/tests -t src",
        ),
        (
            ["tests/unit/test_a.py", "tests/slow parts/test_b.py"],
            "python -m unittest discover -s 'tests/slow parts' && python -m unittest discover -s tests/unit",
        ),
        (["tests/a_test.py"], "python -m unittest discover -s tests -p '*_test.py'"),
    ],
)
def test_unittest_command_matches_the_test_layout(tmp_path: Path, files: list[str], command: str) -> None:
    lay(tmp_path, {name: "" if name.endswith("__init__.py") else UNITTEST for name in files})
    assert commands(tmp_path) == {"tests": command}


def test_helper_named_like_a_test_does_not_select_pytest(tmp_path: Path) -> None:
    lay(tmp_path, {"test_a.py": f"{UNITTEST}\ndef test_data():\n    return [1]\n"})
    assert commands(tmp_path) == {"tests": "python -m unittest discover"}


def test_django_project_uses_manage_py_test(tmp_path: Path) -> None:
    test = "from django.test import TestCase\n\nclass T(TestCase):\n    def test_a(self): ...\n"
    lay(tmp_path, {"manage.py": "import django\n", "shop/tests.py": "# Create your tests here.\n"})
    assert commands(tmp_path) == {}
    lay(tmp_path, {"shop/tests.py": test})
    assert commands(tmp_path) == {"tests": "python manage.py test"}


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"package.json": package("vitest run")}, "npm test"),
        ({"package.json": package("vitest run"), "pnpm-lock.yaml": ""}, "pnpm test"),
        ({"package.json": package("jest"), "yarn.lock": ""}, "yarn test"),
        ({"package.json": package("jest"), "bun.lock": ""}, "bun run test"),
        ({"package.json": package("jest", packageManager="pnpm@9.1.0"), "yarn.lock": ""}, "pnpm test"),
        ({"package.json": package(STUB), "src/add.test.js": NODE_TEST}, "node --test"),
        ({"package.json": package(), "test/add.mjs": NODE_TEST}, "node --test"),
        ({"src/add.test.cjs": 'require("node:test");\n'}, "node --test"),
        ({"src/add.test.ts": NODE_TEST, "src/deep/b.test.ts": NODE_TEST}, "node --test 'src/**/*.test.ts'"),
        ({"a.test.ts": NODE_TEST, "test/b.ts": NODE_TEST}, "node --test '*.test.ts' 'test/*.ts'"),
        ({"a.test.js": NODE_TEST, "b.test.ts": NODE_TEST}, "node --test"),
    ],
)
def test_node_tests_are_proposed_by_script_or_files(tmp_path: Path, files: dict[str, str], command: str) -> None:
    assert commands(lay(tmp_path, files)) == {"tests": command}


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": package(STUB)},
        {"package.json": package("  ")},
        {"package.json": '{"scripts": {"test": ["jest"]}}'},
        {"src/add.test.js": "describe('add', () => { it('adds', () => {}) })\n"},  # for a runner we do not know
        {"src/add.js": NODE_TEST},  # `node --test` would not find it
        {"node_modules/x/x.test.js": NODE_TEST},
    ],
)
def test_no_node_tests_are_proposed_when_nothing_would_run(tmp_path: Path, files: dict[str, str]) -> None:
    assert commands(lay(tmp_path, files)) == {}


def test_several_ecosystems_get_suffixed_check_names(tmp_path: Path) -> None:
    lay(tmp_path, {"Cargo.toml": "[package]\n", "go.mod": "module x\n", "package.json": package("jest")})
    lay(tmp_path, {"package-lock.json": "{}", "pytest.ini": "", "requirements.txt": "", "Makefile": "test:\n\ttrue\n"})
    assert commands(tmp_path, "npm", "pip-audit", "cargo-audit") == {
        "tests-python": "python -m pytest -q",
        "tests-node": "npm test",
        "tests-rust": "cargo test",
        "tests-go": "go test ./...",
        "audit-python": "pip-audit",
        "audit-node": "npm audit",
        "audit-rust": "cargo audit",
    }


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"Cargo.toml": "[package]\n"}, {"tests": "cargo test"}),
        ({"go.mod": "module x\n"}, {"tests": "go test ./..."}),
        ({"package-lock.json": "{}"}, {"audit": "npm audit"}),
        ({"npm-shrinkwrap.json": "{}"}, {"audit": "npm audit"}),
    ],
)
def test_single_ecosystem_needs_no_suffix(tmp_path: Path, files: dict[str, str], expected: dict[str, str]) -> None:
    assert commands(lay(tmp_path, files), "npm") == expected


def test_audit_is_proposed_only_if_its_program_is_installed(tmp_path: Path) -> None:
    lay(tmp_path, {"requirements.txt": "", "package-lock.json": "", "Cargo.toml": ""})
    assert commands(tmp_path) == {"tests": "cargo test"}


@pytest.mark.parametrize("rule", ["test:\n\ttrue", "test : build\n", "lint test: build", "test::\n\ttrue"])
def test_make_test_is_proposed_for_a_test_target(tmp_path: Path, rule: str) -> None:
    lay(tmp_path, {"Makefile": f"CC := gcc\n.PHONY: all\n{rule}\n"})
    assert commands(tmp_path) == {"tests": "make test"}


@pytest.mark.parametrize(
    "line", ["test := a", "test ::= a", "test = a:b", ".PHONY: test", "\ttest: x", "# test: x", "tests:", "run: test"]
)
def test_make_test_is_not_proposed_without_a_test_target(tmp_path: Path, line: str) -> None:
    (tmp_path / "Makefile").write_text(f"all:\n\ttrue\n{line}\n")
    assert commands(tmp_path) == {}


def test_broken_files_are_ignored(tmp_path: Path) -> None:
    lay(tmp_path, {"pyproject.toml": "[tool.pytest\n", "package.json": '{"scripts": ', "tests/test_ok.py": UNITTEST})
    (tmp_path / "setup.cfg").write_bytes(b"\0\xff[tool:pytest]\n")
    (tmp_path / "tox.ini").write_text("[pytest]\n" + "#" * BYTES)
    (tmp_path / "Makefile").mkdir()
    (tmp_path / "noxfile.py").symlink_to("noxfile.py")
    (tmp_path / "tests" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "tests" / "test_\n.py").write_text("import pytest\n")
    os.mkfifo(tmp_path / "Pipfile")
    os.mkfifo(tmp_path / "tests" / "test_pipe.py")
    assert commands(tmp_path) == {"tests": "python -m unittest discover -s tests"}


@pytest.mark.parametrize("name", ["pyproject.toml", "package.json"])
def test_extremely_nested_file_is_ignored(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(("x = " if name.endswith("toml") else "") + "[" * 100_000)
    assert commands(tmp_path) == {}


def test_unreadable_files_and_folders_are_ignored(tmp_path: Path) -> None:
    """Seen by a user who may not read them; root, who may read all, becomes nobody for it."""
    lay(tmp_path, {"secret/conftest.py": "", "tox.ini": "[pytest]\n", "go.mod": ""})
    (tmp_path / "tox.ini").chmod(0)
    (tmp_path / "secret").chmod(0)
    code = (
        "import os, sys; from pathlib import Path; from agentd.project import propose_checks; "
        "os.chdir(sys.argv[1]); os.geteuid() or os.setuid(65534); "
        "print(open('go.mod').read() == '', [check.name for check in propose_checks(Path('.'))])"
    )
    tmp_path.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    (tmp_path / "secret").chmod(0o700)
    assert done.stdout == "True ['tests']\n", done.stderr


def test_data_folder_does_not_hide_the_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentd.project.detection.project_scan.ENTRIES", 50)
    monkeypatch.setattr("agentd.project.detection.project_scan.ENTRIES_PER_FOLDER", 20)
    lay(tmp_path, {f"data/{number}.txt": "" for number in range(60)} | {"tests/test_a.py": UNITTEST})
    assert commands(tmp_path) == {"tests": "python -m unittest discover -s tests"}


def test_scan_of_a_huge_tree_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentd.project.detection.project_scan.ENTRIES", 50)
    lay(tmp_path, {f"a{number:02}/b.txt": "" for number in range(45)} | {"z/conftest.py": "", "go.mod": ""})
    assert commands(tmp_path) == {"tests": "go test ./..."}


def test_empty_or_missing_folder_gets_no_checks(tmp_path: Path) -> None:
    assert propose_checks(tmp_path) == ()
    assert propose_checks(tmp_path / "missing") == ()

"""Propose a project's checks from its files, for a person to keep or change."""

import os.path
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from agentd.project.config.settings import CheckSettings
from agentd.project.detection.project_scan import ProjectScan, is_installed, scan_project, value_at

# `bun test` would run Bun's own test runner, not the project's script.
_TEST_COMMANDS = {"npm": "npm test", "pnpm": "pnpm test", "yarn": "yarn test", "bun": "bun run test"}
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_STUB = "no test specified"

_TEST_NAME = re.compile(r"test|test-.+|.+[._-]test")  # names that `node --test` finds by itself
_USES_NODE_TEST = re.compile(r"""["']node:test["']""")
_JAVASCRIPT = (".js", ".mjs", ".cjs")
_TYPESCRIPT = (".ts", ".mts", ".cts")


def node_test_command(scan: ProjectScan) -> str | None:
    package = scan.json("package.json")
    script = value_at(package, "scripts", "test")
    if isinstance(script, str) and script.strip() and _STUB not in script:
        return _TEST_COMMANDS[_manager(scan, package)]
    return _node_test(scan)


def node_audit_command(scan: ProjectScan, on_path: Callable[[str], bool]) -> str | None:
    return "npm audit" if scan.has("package-lock.json", "npm-shrinkwrap.json") and on_path("npm") else None


def _manager(scan: ProjectScan, package: dict[str, object]) -> str:
    named = str(package.get("packageManager", "")).partition("@")[0]
    if named in _TEST_COMMANDS:
        return named
    return next((manager for lock, manager in _LOCKS.items() if scan.has(lock)), "npm")


def _node_test(scan: ProjectScan) -> str | None:
    files = [path for path in scan.files if _is_test(path) and _USES_NODE_TEST.search(scan.text(path))]
    if not files:
        return None
    if any(path.suffix in _JAVASCRIPT for path in files):
        return "node --test"
    # A Node version without TypeScript support finds no tests and passes, unless the files are named.
    patterns = sorted({shlex.quote(_pattern(path)) for path in files})
    return f"node --test {' '.join(patterns)}"


def _is_test(path: PurePosixPath) -> bool:
    if path.suffix not in _JAVASCRIPT + _TYPESCRIPT:
        return False
    return "test" in path.parent.parts or _TEST_NAME.fullmatch(path.stem) is not None


def _pattern(path: PurePosixPath) -> str:
    """Return a pattern that starts with one of the project's folders: a bare ** would match node_modules."""
    if path.stem.endswith(".test"):
        folder = f"{path.parts[0]}/**/" if len(path.parts) > 1 else ""
        return f"{folder}*.test{path.suffix}"
    return str(path.with_name(f"*{path.suffix}") if "test" in path.parent.parts else path)


_TEST_FILES = ("test*.py", "*_test.py")
_SETTINGS = tuple(map(PurePosixPath, ("tox.ini", "setup.cfg", "setup.py", "noxfile.py", "Pipfile")))
_REQUIREMENTS = ("*requirements*.txt", "*requirements*.in", "requirements/*.txt", "requirements/*.in")
_NAME = re.compile(r"\s*([A-Za-z0-9._-]+)")
_MODULE = re.compile(r"[A-Za-z_]\w*\.py")  # unittest ignores other names

_SAYS_PYTEST = re.compile(r"^[^#\n]*(?<![\w.-])pytest(?![\w.])", re.MULTILINE)
_IMPORTS = r"^[ \t]*(?:from[ \t]+{0}\b|import[ \t][\w., \t]*\b{0}\b)"
_IMPORTS_PYTEST = re.compile(_IMPORTS.format("pytest"), re.MULTILINE)
_IMPORTS_UNITTEST = re.compile(_IMPORTS.format("unittest"), re.MULTILINE)
_PLAIN_TESTS = re.compile(r"^(?:async[ \t]+)?def test|^class Test\w*:", re.MULTILINE)
_METHODS = re.compile(r"^[ \t]+(?:async[ \t]+)?def (?:test|runTest)|^def load_tests", re.MULTILINE)


def python_test_command(scan: ProjectScan, on_path: Callable[[str], bool]) -> str | None:
    """Return the command for pytest if it is configured or used, else for Django's runner, else for unittest."""
    pytest = f"{_python(scan, on_path, 'pytest')} -m pytest -q"
    if _pytest_is_configured(scan):
        return pytest
    cases: list[PurePosixPath] = []
    is_django = "django" in scan.text("manage.py")
    for path in scan.matching(*_TEST_FILES):
        text = scan.text(path)
        if _is_for_pytest(path, text):
            return pytest
        if _METHODS.search(text) and (is_django or _IMPORTS_UNITTEST.search(text)):
            cases.append(path)
    python = _python(scan, on_path)
    if is_django and cases:
        return f"{python} manage.py test"
    return " && ".join(f"{python} -m unittest discover{options}" for options in _discoveries(scan, cases)) or None


def python_lint_command(scan: ProjectScan, on_path: Callable[[str], bool]) -> str | None:
    pyproject = scan.toml("pyproject.toml")
    if not scan.has("ruff.toml", ".ruff.toml") and value_at(pyproject, "tool", "ruff") is None:
        return None
    is_declared = any(_brings(name, "ruff") for _, name in _declared(pyproject))
    return f"{_run(scan, on_path, 'ruff') if is_declared else ''}ruff check ."


def python_audit_command(scan: ProjectScan, on_path: Callable[[str], bool]) -> str | None:
    is_python = scan.has("pyproject.toml", "setup.py", "setup.cfg") or any(_requirement_files(scan))
    return "pip-audit" if is_python and on_path("pip-audit") else None


def _pytest_is_configured(scan: ProjectScan) -> bool:
    pyproject = scan.toml("pyproject.toml")
    return (
        scan.has("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
        or value_at(pyproject, "tool", "pytest") is not None
        or any(_brings(name, "pytest") for _, name in _declared(pyproject))
        or any(scan.matching("conftest.py"))
        or any(_SAYS_PYTEST.search(scan.text(path)) for path in (*_SETTINGS, *_requirement_files(scan)))
    )


def _is_for_pytest(path: PurePosixPath, text: str) -> bool:
    """Return whether a file imports pytest or has tests that no other runner would find."""
    is_plain = "TestCase" not in text and (path.match("test_*.py") or path.match("*_test.py"))
    return bool(_IMPORTS_PYTEST.search(text) or (is_plain and _PLAIN_TESTS.search(text)))


def _requirement_files(scan: ProjectScan) -> Iterator[PurePosixPath]:
    return (path for path in scan.matching(*_REQUIREMENTS) if len(path.parts) <= 2)


def _python(scan: ProjectScan, on_path: Callable[[str], bool], package: str = "") -> str:
    run = _run(scan, on_path, package)
    return f"{run}python" if run or on_path("python") else "python3"


def _run(scan: ProjectScan, on_path: Callable[[str], bool], package: str) -> str:
    """Return the prefix that runs a program in the project's own environment; empty if no lock file implies one."""
    if scan.has("uv.lock") and on_path("uv"):
        # uv installs extras and most groups only on request.
        options = [option for option, name in _declared(scan.toml("pyproject.toml")) if _brings(name, package)]
        return f"uv run {min(options, key=len, default='')}"
    return "poetry run " if scan.has("poetry.lock") and on_path("poetry") else ""


def _brings(name: str, package: str) -> bool:
    """Return whether a dependency is the package itself, or a plugin that depends on it."""
    return name == package or name.startswith(f"{package}-")


def _declared(pyproject: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every dependency, with the option that makes `uv run` install it."""
    for option, items in _lists(pyproject):
        for item in items if isinstance(items, list | dict) else ():
            name = _NAME.match(item) if isinstance(item, str) else None
            if name:
                yield option, re.sub(r"[-_.]+", "-", name[1]).lower()


def _lists(pyproject: dict[str, object]) -> Iterator[tuple[str, object]]:
    chosen = value_at(pyproject, "tool", "uv", "default-groups")
    default_groups = chosen if isinstance(chosen, list) else ["dev"]
    yield "", value_at(pyproject, "project", "dependencies")
    yield "", value_at(pyproject, "tool", "uv", "dev-dependencies")
    for name in ("dependencies", "dev-dependencies"):
        yield "", value_at(pyproject, "tool", "poetry", name)
    for _, group in _items(value_at(pyproject, "tool", "poetry", "group")):
        yield "", value_at(group, "dependencies")
    for name, items in _items(value_at(pyproject, "dependency-groups")):
        yield "" if chosen == "all" or name in default_groups else f"--group {shlex.quote(name)} ", items
    for name, items in _items(value_at(pyproject, "project", "optional-dependencies")):
        yield f"--extra {shlex.quote(name)} ", items


def _items(table: object) -> list[tuple[str, object]]:
    return list(table.items()) if isinstance(table, dict) else []


def _discoveries(scan: ProjectScan, cases: list[PurePosixPath]) -> Iterator[str]:
    """Yield the options for unittest to find these files. It only enters packages: other folders need their own run."""
    runs: dict[tuple[PurePosixPath, str], list[PurePosixPath]] = {}
    for path in filter(lambda path: _MODULE.fullmatch(path.name), cases):
        top = path.parent
        while top.parts and scan.has(top / "__init__.py"):
            top = top.parent
        pattern = "" if path.match(_TEST_FILES[0]) else f" -p {shlex.quote(_TEST_FILES[1])}"
        runs.setdefault((top, pattern), []).append(path.parent)
    for (top, pattern), folders in runs.items():
        start = os.path.commonpath(folders) or "."
        # Modules in a package must be imported from its top, or their relative imports fail.
        options = "" if start == "." else f" -s {shlex.quote(start)}"
        yield options + ("" if start == str(top) else f" -t {shlex.quote(str(top))}") + pattern


_TESTS_SECS = 600
_LINT_SECS = 120
_AUDIT_SECS = 300


def propose_checks(root: Path, on_path: Callable[[str], bool] = is_installed) -> tuple[CheckSettings, ...]:
    """Propose checks. Tests and lint are required; audits are not: new advisories fail them, not the change."""
    scan = scan_project(root)
    lint = python_lint_command(scan, on_path)
    return (
        *_checks("tests", _tests(scan, on_path), required=True, timeout=_TESTS_SECS),
        *((CheckSettings("lint", lint, required=True, timeout=_LINT_SECS),) if lint else ()),
        *_checks("audit", _audits(scan, on_path), required=False, timeout=_AUDIT_SECS),
    )


def _checks(kind: str, commands: dict[str, str], *, required: bool, timeout: float) -> Iterator[CheckSettings]:
    for ecosystem, command in commands.items():
        name = kind if len(commands) == 1 else f"{kind}-{ecosystem}"
        yield CheckSettings(name, command, required=required, timeout=timeout)


def _tests(scan: ProjectScan, on_path: Callable[[str], bool]) -> dict[str, str]:
    found = {
        "python": python_test_command(scan, on_path),
        "node": node_test_command(scan),
        "rust": "cargo test" if scan.has("Cargo.toml") else None,
        "go": "go test ./..." if scan.has("go.mod") else None,
    }
    return _present(found) or _present({"make": _make_test(scan)})


def _audits(scan: ProjectScan, on_path: Callable[[str], bool]) -> dict[str, str]:
    return _present(
        {
            "python": python_audit_command(scan, on_path),
            "node": node_audit_command(scan, on_path),
            "rust": "cargo audit" if scan.has("Cargo.toml") and on_path("cargo-audit") else None,
        }
    )


def _make_test(scan: ProjectScan) -> str | None:
    # in make's own lookup order
    makefile = next((name for name in ("GNUmakefile", "makefile", "Makefile") if scan.has(name)), None)
    return "make test" if makefile and any(map(_is_test_target, scan.text(makefile).splitlines())) else None


def _is_test_target(line: str) -> bool:
    """Return whether a line is a rule such as `test: deps` or `a test: deps`, not a recipe line or `test := x`."""
    targets, colon, rest = line.partition(":")
    is_rule = colon and not line.startswith("\t") and not rest.lstrip(":").startswith("=")
    return bool(is_rule) and not {"#", "="} & set(targets) and "test" in targets.split()


def _present(commands: dict[str, str | None]) -> dict[str, str]:
    return {ecosystem: command for ecosystem, command in commands.items() if command}

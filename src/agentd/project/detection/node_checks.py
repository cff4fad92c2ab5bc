"""How a Node project is tested and audited."""

import re
import shlex
from collections.abc import Callable
from pathlib import PurePosixPath

from agentd.project.detection.project_scan import ProjectScan, value_at

# `bun test` would be Bun's own runner, not the project's script.
_TEST_COMMANDS = {"npm": "npm test", "pnpm": "pnpm test", "yarn": "yarn test", "bun": "bun run test"}
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_STUB = "no test specified"

_TEST_NAME = re.compile(r"test|test-.+|.+[._-]test")  # those that `node --test` looks for by itself
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
    # A Node that cannot run TypeScript finds none of it and passes with 0 tests, unless the files are named.
    patterns = sorted({shlex.quote(_pattern(path)) for path in files})
    return f"node --test {' '.join(patterns)}"


def _is_test(path: PurePosixPath) -> bool:
    if path.suffix not in _JAVASCRIPT + _TYPESCRIPT:
        return False
    return "test" in path.parent.parts or _TEST_NAME.fullmatch(path.stem) is not None


def _pattern(path: PurePosixPath) -> str:
    """Beginning with a folder of the project's own: a bare ** would enter node_modules."""
    if path.stem.endswith(".test"):
        folder = f"{path.parts[0]}/**/" if len(path.parts) > 1 else ""
        return f"{folder}*.test{path.suffix}"
    return str(path.with_name(f"*{path.suffix}") if "test" in path.parent.parts else path)

"""Which checks a project has: proposed from its files, for a person to keep or change."""

from collections.abc import Callable, Iterator
from pathlib import Path

from agentd.project.config.settings import CheckSettings
from agentd.project.detection import node_checks, python_checks
from agentd.project.detection.project_scan import ProjectScan, is_installed, scan_project

_TESTS_SECS = 600
_LINT_SECS = 120
_AUDIT_SECS = 300


def propose_checks(root: Path, on_path: Callable[[str], bool] = is_installed) -> tuple[CheckSettings, ...]:
    """Tests and lint are required, audits are not: they fail by what others publish, not by the change."""
    scan = scan_project(root)
    lint = python_checks.python_lint_command(scan, on_path)
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
        "python": python_checks.python_test_command(scan, on_path),
        "node": node_checks.node_test_command(scan),
        "rust": "cargo test" if scan.has("Cargo.toml") else None,
        "go": "go test ./..." if scan.has("go.mod") else None,
    }
    return _present(found) or _present({"make": _make_test(scan)})


def _audits(scan: ProjectScan, on_path: Callable[[str], bool]) -> dict[str, str]:
    return _present(
        {
            "python": python_checks.python_audit_command(scan, on_path),
            "node": node_checks.node_audit_command(scan, on_path),
            "rust": "cargo audit" if scan.has("Cargo.toml") and on_path("cargo-audit") else None,
        }
    )


def _make_test(scan: ProjectScan) -> str | None:
    # In the order in which make looks for them.
    makefile = next((name for name in ("GNUmakefile", "makefile", "Makefile") if scan.has(name)), None)
    return "make test" if makefile and any(map(_is_test_target, scan.text(makefile).splitlines())) else None


def _is_test_target(line: str) -> bool:
    """`test: deps`, also among other targets; a line of a recipe and `test := x` are something else."""
    targets, colon, rest = line.partition(":")
    is_rule = colon and not line.startswith("\t") and not rest.lstrip(":").startswith("=")
    return bool(is_rule) and not {"#", "="} & set(targets) and "test" in targets.split()


def _present(commands: dict[str, str | None]) -> dict[str, str]:
    return {ecosystem: command for ecosystem, command in commands.items() if command}

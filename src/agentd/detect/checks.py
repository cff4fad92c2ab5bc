"""Which checks a project has: proposed from its files, for a person to keep or change."""

from collections.abc import Callable, Iterator
from pathlib import Path

from agentd.config import Check
from agentd.detect import node, python
from agentd.detect.scan import Scan, is_installed, look

_TESTS_SECS = 600
_LINT_SECS = 120
_AUDIT_SECS = 300


def propose_checks(root: Path, on_path: Callable[[str], bool] = is_installed) -> tuple[Check, ...]:
    """Tests and lint are required, audits are not: they fail by what others publish, not by the change."""
    scan = look(root)
    lint = python.lint(scan, on_path)
    return (
        *_checks("tests", _tests(scan, on_path), required=True, timeout=_TESTS_SECS),
        *((Check("lint", lint, required=True, timeout=_LINT_SECS),) if lint else ()),
        *_checks("audit", _audits(scan, on_path), required=False, timeout=_AUDIT_SECS),
    )


def _checks(kind: str, commands: dict[str, str], *, required: bool, timeout: float) -> Iterator[Check]:
    for ecosystem, command in commands.items():
        name = kind if len(commands) == 1 else f"{kind}-{ecosystem}"
        yield Check(name, command, required=required, timeout=timeout)


def _tests(scan: Scan, on_path: Callable[[str], bool]) -> dict[str, str]:
    found = {
        "python": python.tests(scan, on_path),
        "node": node.tests(scan),
        "rust": "cargo test" if scan.has("Cargo.toml") else None,
        "go": "go test ./..." if scan.has("go.mod") else None,
    }
    return _present(found) or _present({"make": _make_test(scan)})


def _audits(scan: Scan, on_path: Callable[[str], bool]) -> dict[str, str]:
    return _present(
        {
            "python": python.audit(scan, on_path),
            "node": node.audit(scan, on_path),
            "rust": "cargo audit" if scan.has("Cargo.toml") and on_path("cargo-audit") else None,
        }
    )


def _make_test(scan: Scan) -> str | None:
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

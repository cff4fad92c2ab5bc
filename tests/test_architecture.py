"""The rules of ARCHITECTURE.md that a machine can check. Each takes a tree, so that a test can show it failing."""

import ast
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from source_tree import ROOT, SourceTree, package_of

INTERFACES = ("cli", "mcp", "web")
MODULE_LINES = 400
FUNCTION_LINES = 60
SAME_CONCEPT = {"archive", "impl", "plan", "rebase"}  # a command and the workflow that it runs


def unlisted_packages(tree: SourceTree) -> Iterator[str]:
    for name, count in (Counter(tree.package_order()) - Counter(set(tree.package_order()))).items():
        yield f"{name} stands {count + 1} times in ARCHITECTURE.md"
    for name in set(tree.packages) ^ set(tree.package_order()):
        yield f"{name} is in only one of src/agentd and ARCHITECTURE.md"


def imports_to_the_right(tree: SourceTree) -> Iterator[str]:
    order = {name: number for number, name in enumerate(tree.package_order())}
    for module in tree.paths:
        here = package_of(module)
        for named, target, line in tree.imports(module):
            there = package_of(target)
            if there in (here, "") or here in ("", "__main__"):
                continue
            if order[there] > order[here]:
                yield f"{module}:{line} imports {named}, which is to its right"
            is_started = here == "cli" and _is_late(tree, module, line)
            if here in INTERFACES and there in INTERFACES and not is_started:
                yield f"{module}:{line}: one interface imports another, {named}"


def _is_late(tree: SourceTree, module: str, line: int) -> bool:
    return not any(isinstance(node, ast.ImportFrom) and node.lineno == line for node in tree.tree(module).body)


def imports_past_a_front_door(tree: SourceTree) -> Iterator[str]:
    for module in tree.paths:
        here = package_of(module)
        for named, target, line in tree.imports(module, with_types=True):
            there = package_of(target)
            if there in (here, ""):
                continue
            is_exported = named == f"agentd.{there}" or _is_exported_module(tree, named)
            if not is_exported:
                yield f"{module}:{line} imports {named}, which agentd.{there} does not export"


def _is_exported_module(tree: SourceTree, module: str) -> bool:
    """A module that its package exports under its own name, such as `git` of `agentd.project`."""
    package, name = package_of(module), module.rpartition(".")[2]
    return tree.exports(package).get(name) == module and module.count(".") == 2


def unused_exports(tree: SourceTree) -> Iterator[str]:
    used = set()
    for module in tree.paths:
        for node in ast.walk(tree.tree(module)):
            if isinstance(node, ast.ImportFrom) and node.module and package_of(node.module) != package_of(module):
                used |= {(package_of(node.module), alias.name) for alias in node.names}
    for package in set(tree.packages) - {"cli"}:
        for name in tree.exports(package):
            if (package, name) not in used:
                yield f"agentd.{package} exports {name}, which no other package uses"


def import_cycles(tree: SourceTree) -> Iterator[str]:
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> Iterator[str]:
        if module in trail:
            yield " -> ".join((*trail[trail.index(module) :], module))
            return
        if module not in done:
            for target in sorted(tree.arrows(module) & set(tree.paths)):
                yield from walk(target, (*trail, module))
            done.add(module)

    for module in tree.paths:
        yield from walk(module, ())


def duplicate_classes(tree: SourceTree) -> Iterator[str]:
    homes: dict[str, list[str]] = {}
    for name, module in tree.classes():
        homes.setdefault(name, []).append(module)
    yield from (f"class {name} is in {', '.join(found)}" for name, found in homes.items() if len(found) > 1)


def duplicate_modules(tree: SourceTree) -> Iterator[str]:
    names = Counter(path.stem for path in tree.paths.values() if path.stem not in ("__init__", *SAME_CONCEPT))
    yield from (f"{count} modules are named {name}" for name, count in names.items() if count > 1)


def gerund_modules(tree: SourceTree) -> Iterator[str]:
    for module in tree.paths:
        if any(part.endswith("ing") for part in module.split(".")):
            yield f"{module} is named for an activity; name it for a thing"


def prints(tree: SourceTree) -> Iterator[str]:
    for module in tree.paths:
        if package_of(module) in INTERFACES:
            continue
        for node in ast.walk(tree.tree(module)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "click.echo", "sys.stdout.write"):
                yield f"{module}:{node.lineno} prints"


def large_pieces(tree: SourceTree) -> Iterator[str]:
    for module, path in tree.paths.items():
        if path.read_text().count("\n") > MODULE_LINES:
            yield f"{module} has over {MODULE_LINES} lines"
        for node in ast.walk(tree.tree(module)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES:
                yield f"{module}.{node.name} has over {FUNCTION_LINES} lines"


def missing_docstrings(tree: SourceTree) -> Iterator[str]:
    for module in tree.paths:
        if module != "agentd.__main__" and not ast.get_docstring(tree.tree(module)):
            yield f"{module} has no docstring"


RULES: tuple[Callable[[SourceTree], Iterator[str]], ...] = (
    unlisted_packages,
    imports_to_the_right,
    imports_past_a_front_door,
    unused_exports,
    import_cycles,
    duplicate_classes,
    duplicate_modules,
    gerund_modules,
    prints,
    large_pieces,
    missing_docstrings,
)


@pytest.fixture(scope="module")
def tree() -> SourceTree:
    return SourceTree()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_follows_the_rule(rule: Callable[[SourceTree], Iterator[str]], tree: SourceTree) -> None:
    assert list(rule(tree)) == []


# ---- every rule can fail

VIOLATIONS = {
    "a package nobody listed": (unlisted_packages, "extra/__init__.py", '"""Extra."""\n'),
    "an arrow to the right": (imports_to_the_right, "domain/x.py", "from agentd.change import Change\n"),
    "a late arrow to the right": (
        imports_to_the_right,
        "domain/x.py",
        "def f():\n    from agentd.engine import run_plan\n",
    ),
    "an interface in another": (imports_to_the_right, "web/x.py", "from agentd.mcp import serve_http\n"),
    "a module past the front door": (imports_past_a_front_door, "cli/x.py", "from agentd.change import state\n"),
    "a name past the front door": (
        imports_past_a_front_door,
        "cli/x.py",
        "from agentd.change.state import ChangeState\n",
    ),
    "a type past the front door": (
        imports_past_a_front_door,
        "cli/x.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from agentd.change.state import ChangeState\n",
    ),
    "a nested package past the front door": (
        imports_past_a_front_door,
        "cli/x.py",
        "import agentd.engine.workflows.plan\n",
    ),
    "a cycle": (import_cycles, "domain/terms.py", "from agentd.domain.errors import AgentdError\n"),
    "a class twice": (duplicate_classes, "cli/x.py", "class ChangeState:\n    pass\n"),
    "a nested class twice": (duplicate_classes, "cli/x.py", "class Y:\n    class ChangeState:\n        pass\n"),
    "a module twice": (duplicate_modules, "cli/state.py", '"""State."""\n'),
    "a gerund": (gerund_modules, "cli/listing.py", '"""Listing."""\n'),
    "a gerund package": (gerund_modules, "engine/planning/__init__.py", '"""Planning."""\n'),
    "a print": (prints, "domain/x.py", "print(1)\n"),
    "a long module": (large_pieces, "domain/x.py", "x = 1\n" * 401),
    "a long function": (large_pieces, "domain/x.py", "def f():\n" + "    x = 1\n" * 61),
    "no docstring": (missing_docstrings, "domain/x.py", "x = 1\n"),
}


@pytest.mark.parametrize("case", VIOLATIONS)
def test_rule_notices_the_violation(case: str, tmp_path: Path) -> None:
    rule, file, text = VIOLATIONS[case]
    ignore = shutil.ignore_patterns("__pycache__", "static", "sample")
    shutil.copytree(ROOT / "src" / "agentd", tmp_path / "src" / "agentd", ignore=ignore)
    shutil.copy(ROOT / "ARCHITECTURE.md", tmp_path)
    path = tmp_path / "src" / "agentd" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    if case == "a cycle":
        errors = tmp_path / "src" / "agentd" / "domain" / "errors.py"
        errors.write_text("from agentd.domain.terms import Phase\n" + errors.read_text())
    path.write_text(text + before)
    found = list(rule(SourceTree(tmp_path)))
    assert found, "nothing was noticed"
    assert any(re.search(r"\b(x|extra|listing|planning|ChangeState|state|domain)\b", one) for one in found)


def test_unused_export_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "static", "sample"))
    shutil.copy(ROOT / "ARCHITECTURE.md", tmp_path)
    door = tmp_path / "src" / "agentd" / "storage" / "__init__.py"
    door.write_text(door.read_text().replace("import files", "import files, locks"))
    assert list(unused_exports(SourceTree(tmp_path))) == ["agentd.storage exports locks, which no other package uses"]

"""The source of agentd as data: modules, imports resolved through front doors, classes."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class SourceTree:
    """The package `agentd` below a folder; ARCHITECTURE.md beside `src` holds the order of its packages."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.source = root / "src" / "agentd"
        paths = (path for path in self.source.rglob("*.py") if "sample" not in path.relative_to(self.source).parts)
        self.paths = {self.name(path): path for path in sorted(paths)}
        self.packages = sorted({package_of(name) for name in self.paths} - {"", "__main__"})

    def name(self, path: Path) -> str:
        parts = path.relative_to(self.source).with_suffix("").parts
        return ".".join(("agentd", *parts)).removesuffix(".__init__")

    @cache  # noqa: B019 - one tree a test run
    def tree(self, name: str) -> ast.Module:
        return ast.parse(self.paths[name].read_text())

    def package_order(self) -> list[str]:
        """As ARCHITECTURE.md has it: `|` divides layers, imports point to the left."""
        block = re.search(r"```packages\n(.*?)```", (self.root / "ARCHITECTURE.md").read_text(), re.DOTALL)
        assert block, "ARCHITECTURE.md has no ```packages block"
        return block[1].replace("|", " ").split()

    @cache  # noqa: B019
    def exports(self, package: str) -> dict[str, str]:
        """The names behind a package's front door, with the module of each."""
        found = {}
        for node in ast.walk(self.tree(f"agentd.{package}")):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"agentd.{package}"):
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found[alias.name] = inner if inner in self.paths else str(node.module)
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name] = f"agentd.{package}"
        return found

    def imports(self, name: str, *, with_types: bool = False) -> Iterator[tuple[str, str, int]]:
        """Each import of ours in a module, early or late: what is named, the module behind it, the line."""
        tree = self.tree(name)
        types = {node for block in ast.walk(tree) if _is_for_types(block) for node in ast.walk(block)}
        for node in ast.walk(tree):
            if node in types and not with_types:
                continue
            if isinstance(node, ast.Import):
                yield from ((one.name, one.name, node.lineno) for one in node.names if one.name.startswith("agentd"))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "agentd":
                for alias in node.names:
                    yield self._resolve(str(node.module), alias.name, node.lineno)

    def _resolve(self, module: str, name: str, line: int) -> tuple[str, str, int]:
        inner = f"{module}.{name}"
        if inner in self.paths:
            return inner, inner, line
        package = package_of(module)
        if module == f"agentd.{package}" and name in self.exports(package):
            return module, self.exports(package)[name], line
        return module, module, line

    def arrows(self, name: str, *, with_types: bool = False) -> set[str]:
        """The modules that a module imports."""
        return {module for _, module, _ in self.imports(name, with_types=with_types)} - {name, "agentd"}

    def classes(self) -> Iterator[tuple[str, str]]:
        """Every class with its module."""
        for module in self.paths:
            for node in ast.walk(self.tree(module)):
                if isinstance(node, ast.ClassDef):
                    yield node.name, module


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)

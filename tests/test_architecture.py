"""The house rules that a machine can see: imports point left, only faces print, modules stay small."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "agentd"
PAGE = SOURCE.parent.parent / "ARCHITECTURE.md"
FACES = ("cli", "mcp", "viewer")
MODULE_LINES = 400
FUNCTION_LINES = 60

MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__main__.py")


def line_of_rooms() -> list[list[str]]:
    """The import line as ARCHITECTURE.md has it: groups divided by `|`, rooms by spaces, left to right."""
    block = re.search(r"```rooms\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block, "ARCHITECTURE.md has no ```rooms block"
    return [group.split() for group in " ".join(block[1].split()).split("|")]


def room(path: Path) -> str:
    top = path.relative_to(SOURCE).parts[0]
    return top.removesuffix(".py")


def name(path: Path) -> str:
    return ".".join(("agentd", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    """Every module of ours that a file imports, early or late, but for types."""
    tree = ast.parse(path.read_text())
    typed = {node for block in ast.walk(tree) if _is_typing(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if node in typed:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("agentd"))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("agentd"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in NAMES else node.module


def early(path: Path) -> set[str]:
    """What is imported at the top; the terminal starts the other faces late."""
    tree = ast.parse(path.read_text())
    return {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


NAMES = {name(path) for path in MODULES}


def test_import_order_lists_every_package_exactly_once() -> None:
    rooms = {room(path) for path in MODULES} - {"__init__"}
    assert rooms == {word for group in line_of_rooms() for word in group}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_follow_the_package_order(path: Path) -> None:
    order = {word: number for number, word in enumerate(w for group in line_of_rooms() for w in group)}
    here = room(path)
    for target in imports(path):
        there = target.split(".")[1] if "." in target else "__init__"
        if there in (here, "__init__"):
            continue
        assert order[there] < order[here], f"{name(path)} imports {target}, which stands to its right"
        is_started = here == "cli" and target not in early(path)
        assert not (here in FACES and there in FACES) or is_started, f"{name(path)} knows another face: {target}"


def test_modules_have_no_import_cycles() -> None:
    arrows = {name(path): set(imports(path)) & NAMES for path in MODULES}
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, f"import cycle: {' → '.join((*trail, module))}"
        if module in done:
            return
        for target in arrows[module]:
            walk(target, (*trail, module))
        done.add(module)

    for module in arrows:
        walk(module, ())


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_only_interface_packages_print(path: Path) -> None:
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "click.echo", "sys.stdout.write")
    ]
    assert room(path) in FACES or not calls, f"{name(path)} prints in line {calls}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= MODULE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < FUNCTION_LINES, f"{node.name} is too long"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))

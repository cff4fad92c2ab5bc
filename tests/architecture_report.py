"""Print the shape of the source, and what the demo's plan costs in parses, processes and writes.

python tests/architecture_report.py [--source-only]
"""

import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from source_tree import SourceTree, package_of

# Runs one command with counters around process starts, file writes and the parser of STATE.yaml.
RECORDER = """
import json, os, sys
counts = {"git processes": 0, "file writes": 0}
def hook(event, arguments):
    if event == "subprocess.Popen" and os.path.basename(str(arguments[0])) == "git":
        counts["git processes"] += 1
    if event == "os.rename":
        counts["file writes"] += 1
sys.addaudithook(hook)
from agentd.cli.app import run
from agentd.change import state
code = run(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    json.dump({"STATE.yaml parses": state.parse_state.cache_info().misses, **counts}, file)
raise SystemExit(code)
"""


def source_rows(tree: SourceTree) -> Iterator[tuple[str, object]]:
    classes = Counter(name for name, _ in tree.classes())
    yield "packages", len(tree.packages)
    yield "modules", len(tree.paths)
    yield "code lines (without blanks, comments and docstrings)", sum(map(code_lines, tree.paths.values()))
    yield "classes with a duplicate name", sum(count > 1 for count in classes.values())
    yield "gerund modules", sum(name.endswith("ing") for name in tree.paths)
    yield "longest import chain", longest_chain(tree)


def outside_rows(tree: SourceTree) -> Iterator[tuple[str, object]]:
    """Per package, the modules that other packages name in an import; a front door is one."""
    named: dict[str, set[str]] = {}
    for module in tree.paths:
        for target, _, _ in tree.imports(module, with_types=True):
            if package_of(target) not in (package_of(module), ""):
                named.setdefault(package_of(target), set()).add(target)
    yield from ((f"  {package}", len(named.get(package, ()))) for package in tree.packages)


def code_lines(path: Path) -> int:
    text = path.read_text()
    lines: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def longest_chain(tree: SourceTree) -> int:
    depths: dict[str, int] = {}

    def depth(module: str) -> int:
        if module not in depths:
            depths[module] = 1 + max((depth(one) for one in tree.arrows(module) & set(tree.paths)), default=0)
        return depths[module]

    return max(map(depth, tree.paths))


def plan_rows() -> Iterator[tuple[str, object]]:
    """The demo's plan up to its first verdict, counted in agentd's own process: agents and their servers are others."""
    from agentd.change.state import parse_state
    from agentd.demo.playback import prepare_demo
    from agentd.demo.story import ACTS, StoryPoint
    from agentd.demo.workspace import demo_environment

    with tempfile.TemporaryDirectory() as folder:
        home, report = Path(folder, "home"), Path(folder, "counts.json")
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(home)}
        workspace = prepare_demo(Path(folder, "demo"), StoryPoint.CLARIFIED)
        command = next(act.command for act in ACTS if act.point is StoryPoint.CHALLENGED)
        ran = subprocess.run(
            [sys.executable, "-c", RECORDER, str(report), *command, "--json"],
            cwd=workspace.project,
            env=demo_environment(workspace, env),
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 1 and report.exists(), ran.stderr
        state = next(workspace.project.glob("agentd/changes/*/STATE.yaml")).read_text()
        yield "agent calls", len(parse_state(state).llm_calls)
        yield from json.loads(report.read_text()).items()


def main(arguments: list[str]) -> None:
    tree = SourceTree()
    for name, value in source_rows(tree):
        print(f"{name}: {value}")
    print("modules used from outside, by package:")
    for name, value in outside_rows(tree):
        print(f"{name}: {value}")
    if "--source-only" not in arguments:
        print("the demo's plan:")
        for name, value in plan_rows():
            print(f"  {name}: {value}")


if __name__ == "__main__":
    main(sys.argv[1:])

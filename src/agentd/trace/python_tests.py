"""Find tests in Python source by its syntax tree."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from agentd.trace.test_cases import UNBOUNDED, Assertion, HelperCall, ScannedTests, SkipMark, TestCase, TestGroup

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ASSERTS = re.compile(r"assert|expect$|raises$|warns$|fail$")
_SKIPS = frozenset({"skip", "skipif", "xfail", "skipIf", "skipUnless", "expectedFailure"})
_SKIPS_INSIDE = frozenset({"pytest.skip", "pytest.xfail", "self.skipTest", "unittest.SkipTest", "SkipTest"})
_LOOPS = ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp | _Function | ast.Lambda
_COMMON = frozenset(
    {"self", "pytest", "mark", "parametrize", "assertEqual", "assertTrue", "assertFalse", "None", "True"}
)
_TEST_CLASS = re.compile(r"test|spec|should|when", re.IGNORECASE)


def scan_python(text: str) -> ScannedTests | None:
    """Scan Python source. Return None if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        return _PythonReader(text.split("\n")).read(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass
class _PythonReader:
    lines: list[str]
    cases: dict[str, TestCase] = field(default_factory=dict)
    helpers: dict[str, TestCase] = field(default_factory=dict)
    groups: list[TestGroup] = field(default_factory=list)

    def read(self, tree: ast.Module) -> ScannedTests:
        self._body(tree.body, "", self._skip_of_body(tree.body))
        return ScannedTests(tuple(self.cases.values()), self.helpers, tuple(self.groups))

    def _body(self, body: list[ast.stmt], inside: str, skip: SkipMark | None, may_test: bool = True) -> None:
        for node in _flat(body):
            if isinstance(node, ast.ClassDef):
                name = f"{inside}{node.name}"
                own = self._skip_of_decorators(node.decorator_list) or self._skip_of_body(node.body) or skip
                self.groups.append(TestGroup(name, _first(node), node.end_lineno or node.lineno))
                self._body(node.body, f"{name} > ", own, bool(node.bases or _TEST_CLASS.search(node.name)))
            elif isinstance(node, _Function):
                case = self._case(node, inside, skip)
                if may_test and node.name.startswith("test") and not _is_fixture(node):
                    self.cases[case.name] = case  # a later function with the same name replaces the earlier one
                else:
                    self.helpers[node.name] = case

    def _case(self, node: _Function, inside: str, skip: SkipMark | None) -> TestCase:
        factor = _cases_of(node.decorator_list)
        asserts, calls = [], []
        for one, times in _reached(node.body):
            times = min(times * factor, UNBOUNDED)
            if found := _assertion(one):
                asserts.append(replace(found, most=min(found.most * times, UNBOUNDED)))
            elif isinstance(one, ast.Call) and (name := _dotted(one.func).rpartition(".")[2]):
                calls.append(HelperCall(name, _plain(one), times))
        own = self._skip_of_decorators(node.decorator_list) or self._skip_inside(node)
        return TestCase(
            name=f"{inside}{node.name}",
            first=_first(node),
            line=node.lineno,
            last=node.end_lineno or node.lineno,
            quote=self._quote(node.lineno),
            asserts=tuple(asserts),
            calls=tuple(calls),
            skip=own or skip,
            words=frozenset(_words(node)),
        )

    def _skip_of_decorators(self, decorators: Iterable[ast.expr]) -> SkipMark | None:
        for decorator in decorators:
            for node in ast.walk(decorator):
                if (word := _dotted(node).rpartition(".")[2]) in _SKIPS:
                    return SkipMark(decorator.lineno, word, self._quote(decorator.lineno))
        return None

    def _skip_of_body(self, body: list[ast.stmt]) -> SkipMark | None:
        """Return a mark that skips a whole module or class: `pytestmark`, `__test__ = False`, `pytest.skip(...)`."""
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
                if target.id == "pytestmark" and (found := self._skip_of_decorators([node.value])):
                    return found
                if target.id == "__test__" and isinstance(node.value, ast.Constant) and node.value.value is False:
                    return SkipMark(node.lineno, "__test__ = False", self._quote(node.lineno))
            value = node.value if isinstance(node, ast.Expr) else None
            if isinstance(value, ast.Call) and _dotted(value.func) in _SKIPS_INSIDE:
                return SkipMark(node.lineno, "skip", self._quote(node.lineno))
        return None

    def _skip_inside(self, function: _Function) -> SkipMark | None:
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute | ast.Name) and _dotted(node) in _SKIPS_INSIDE:
                return SkipMark(node.lineno, _dotted(node).rpartition(".")[2], self._quote(node.lineno))
        return None

    def _quote(self, line: int) -> str:
        return self.lines[line - 1].strip()[:200] if line <= len(self.lines) else ""


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, including those inside `if`, `try` and `with`."""
    waiting = body[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            waiting += [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)][::-1]


def _reached(body: list[ast.stmt]) -> Iterator[tuple[ast.AST, int]]:
    """Yield what a function runs up to an unconditional return, in text order, and how often a loop may run it."""
    end = next((number for number, one in enumerate(body) if isinstance(one, ast.Return)), len(body))
    waiting: list[tuple[ast.AST, int]] = [(one, 1) for one in reversed(body[: end + 1])]
    while waiting:
        node, times = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant) and not node.test.value:
            waiting += [(one, times) for one in node.orelse]
            continue
        yield node, times
        if isinstance(node, ast.Assert):
            continue  # its parts are not counted separately
        inner = min(times * _turns(node), UNBOUNDED)
        waiting += [(one, inner) for one in ast.iter_child_nodes(node)][::-1]


def _turns(node: ast.AST) -> int:
    """Return how often a node may run its body. A function inside a test may be called any number of times."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return _length(node.iter)
    return UNBOUNDED if isinstance(node, _LOOPS) else 1


def _length(node: ast.AST) -> int:
    """Return the length of a literal list, or UNBOUNDED for anything else."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set) and not any(isinstance(e, ast.Starred) for e in node.elts):
        return len(node.elts)
    return UNBOUNDED


def _cases_of(decorators: Iterable[ast.expr]) -> int:
    """Return how often a parametrized test runs."""
    times = 1
    for one in decorators:
        name = _dotted(one.func if isinstance(one, ast.Call) else one).rpartition(".")[2]
        if name == "parametrize" and isinstance(one, ast.Call) and len(one.args) > 1:
            times *= max(_length(one.args[1]), 1)
        elif name in ("given", "parametrize", "parameterized", "expand", "ddt", "data", "subtest"):
            times *= UNBOUNDED
    return min(times, UNBOUNDED)


def _assertion(node: ast.AST) -> Assertion | None:
    if isinstance(node, ast.Assert):
        return _weighed(_plain(node.test), "", [node.test])
    if isinstance(node, ast.Call):
        name = _dotted(node.func).rpartition(".")[2]
        if _ASSERTS.match(name):
            return _weighed(_plain(node), name, [*node.args, *(one.value for one in node.keywords)])
    return None


def _weighed(text: str, name: str, parts: list[ast.expr]) -> Assertion:
    """Build an assertion. Constants prove nothing; a tuple or several conditions may count as several assertions."""
    nodes = [node for part in parts for node in ast.walk(part)]
    if parts and not any(isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Await) for node in nodes):
        return Assertion(text, 0, 0, name)
    most = 1
    for node in nodes:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            most = max(most, len(node.elts))
        elif isinstance(node, ast.Dict):
            most = max(most, len(node.keys))
        elif isinstance(node, ast.BoolOp):
            most = max(most, len(node.values))
        elif isinstance(node, ast.Compare):
            most = max(most, len(node.ops))
        elif isinstance(node, ast.Call) and _dotted(node.func)[:1].isupper():
            most = max(most, len(node.args) + len(node.keywords))  # an object compared as a whole
        elif isinstance(node, ast.comprehension):
            most = UNBOUNDED
    return Assertion(text, 1, most, name)


def _dotted(node: ast.AST) -> str:
    """Return a chain of names such as `pytest.mark.skip`; for other expressions, only the last names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(parts[::-1])


def _plain(node: ast.expr) -> str:
    return "".join(ast.unparse(node).split())


def _words(function: _Function) -> Iterator[str]:
    for node in ast.walk(function):
        word = ""
        if isinstance(node, ast.Attribute):
            word = node.attr
        elif isinstance(node, ast.Name):
            word = node.id
        elif isinstance(node, ast.keyword):
            word = node.arg or ""
        elif isinstance(node, ast.Constant):
            word = repr(node.value)[:80]
        if word and word not in _COMMON:
            yield word


def _first(node: _Function | ast.ClassDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _is_fixture(node: _Function) -> bool:
    return any(
        _dotted(one.func if isinstance(one, ast.Call) else one).endswith("fixture") for one in node.decorator_list
    )

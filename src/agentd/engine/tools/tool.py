"""What a tool is: a function, declared with its stages, description and arguments."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from agentd.domain import Integer, Shape, ShapeProblem, Table, Text, dotted_key

if TYPE_CHECKING:
    from agentd.engine.tools.tool_scope import ToolScope


class Stage(StrEnum):
    CLARIFY = "clarify"
    PLAN = "plan"
    CHALLENGE = "challenge"
    IMPLEMENT = "implement"
    REVIEW = "review"
    UNBOUND = "unbound"


class ToolRefusal(Exception):
    """A refused call, as one line for the model: `code: what is wrong; what to send instead`. Nothing has changed."""

    def __init__(self, code: str, what: str, instead: str) -> None:
        super().__init__(" ".join(f"{code}: {what}; {instead}".split()))
        self.code = code
        self.what = what
        self.instead = instead


ToolFunction = Callable[["ToolScope", dict[str, Any]], Any]
F = TypeVar("F", bound=ToolFunction)


@dataclass(frozen=True)
class Tool:
    name: str
    stages: tuple[Stage, ...]
    about: str
    arguments: Table
    run: ToolFunction


DECLARED: list[Tool] = []


def tool(stages: tuple[Stage, ...], about: str, arguments: Table) -> Callable[[F], F]:
    """Declare the decorated function as a tool of the same name."""

    def declare(function: F) -> F:
        DECLARED.append(Tool(function.__name__, stages, about, arguments, function))
        return function

    return declare


def check_arguments(shape: Shape, value: Any, where: str = "") -> Any:
    """Return the arguments normalized for tools. Raise ToolRefusal for the first problem."""
    problem = next(shape.problems(value, (where,) if where else ()), None)
    if problem is None:
        return shape.normalize(value)
    raise ToolRefusal("bad-argument", *_explain(problem))


def _explain(problem: ShapeProblem) -> tuple[str, str]:
    """Return what is wrong, and what to send instead."""
    if problem.message:
        what, _, instead = problem.message.partition("; ")
        return what, instead
    key = dotted_key(problem.path) or "the argument"
    found = f"is {problem.found}" if problem.found else "has other characters"
    return f"{key} {found}", f"send {problem.expected}"


def nearest_names(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the most similar known words."""
    return difflib.get_close_matches(word[:200], list(known), count, 0.5)


# ---- arguments that several tools share


def fields(shapes: Mapping[str, Shape], about: Mapping[str, str] | None = None) -> Table:
    """Return an object schema. Fields whose name ends in `?` are optional."""
    keys = {name.rstrip("?"): shape for name, shape in shapes.items()}
    return Table(keys, [name for name in shapes if not name.endswith("?")], about=about)


def integer(least: int, most: int) -> Integer:
    return Integer(least, most, accepts_float=True)


ID = Text(1, 64, line=True, pattern=r"[a-z0-9][a-z0-9-]{0,63}", like="add-oauth")
CHANGE: dict[str, Shape] = {"change_id?": ID}
NAMED: dict[str, Shape] = {"change_id": ID}
LINE = Text(1, 500, line=True)
PATH = Text(1, 1024, line=True)
REFERENCE = Text(1, 160, line=True, pattern=r"[a-z0-9][a-z0-9-]{0,63}:[A-Za-z0-9.-]{1,64}", like="auth-flow:R1")
RANGE: dict[str, Shape] = {"offset?": integer(1, 100_000_000), "limit?": integer(1, 2000)}
RANGE_ABOUT = {"offset": "first line, from 1", "limit": "at most this many lines; 2000 if left out"}

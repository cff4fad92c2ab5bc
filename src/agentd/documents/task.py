"""One task, the two ways to write its id, and what a list of tasks says about their order."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentd.documents import order as base
from agentd.documents.text import Span
from agentd.domain import FormatInvalid, Layer, TaskAction, TaskStatus

_NUMBERS = {str(layer): str(number) for number, layer in enumerate(Layer, 1)}
_LAYERS = {number: Layer(name) for name, number in _NUMBERS.items()}
TASK_ID = re.compile(r"(data|logic|integration|testing|[0-9]{1,4})((?:\.[0-9]{1,4}){1,3}[a-z]?)(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A file with what is to be done to it; without an action there is a fault that says so."""

    path: str
    action: TaskAction | None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    """Always with numbers: `data.1` is kept as `1.1`."""
    title: str
    layer: Layer | None = None
    files: tuple[TaskFile, ...] = ()
    spec_refs: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    status: TaskStatus = TaskStatus.PENDING
    description: str = ""
    span: Span = field(default=Span(0, 0), compare=False)
    block: Span | None = field(default=None, compare=False)
    """The lines inside its YAML block."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Where `id`, `file`, `action`, `spec_ref`, `depends_on` and `status` stand."""

    @property
    def line(self) -> int:
        return self.span.start

    def at(self, key: str) -> int:
        return self.lines.get(key, self.line)


def canonical_task_id(word: str) -> str:
    """`data.1` as `1.1`; a word that is no task id stays as it is."""
    match = TASK_ID.fullmatch(word)
    return _NUMBERS.get(match[1].lower(), match[1]) + match[2].lower() if match else word


def layered_task_id(id_: str) -> str:
    """`1.1` as `data.1`; an id outside the four layers stays as it is."""
    first, dot, rest = id_.partition(".")
    return f"{_LAYERS[first]}.{rest}" if dot and first in _LAYERS else id_


def task_layer(id_: str) -> Layer | None:
    return _LAYERS.get(id_.partition(".")[0]) if "." in id_ else None


def layer_number(layer: Layer) -> int:
    return int(_NUMBERS[layer])


# ---- what depends on what


def unknown_dependencies(tasks: Iterable[Task]) -> tuple[tuple[Task, str], ...]:
    """Each task with a dependency that is no task of the list."""
    tasks = tuple(tasks)
    known = {task.id for task in tasks}
    return tuple((task, other) for task in tasks for other in task.depends_on if other not in known)


def dependency_cycle(tasks: Iterable[Task]) -> tuple[str, ...]:
    """One circle of ids, each depending on the next, the first repeated at its end; empty when there is none."""
    depends = _depends(tasks)
    return _from_first(base.dependency_order(depends).cycle[:-1], depends)


def _from_first(circle: tuple[str, ...], depends: Iterable[str]) -> tuple[str, ...]:
    """The circle, begun at the task that stands first in the file."""
    if not circle:
        return ()
    members = set(circle)
    first = circle.index(next(one for one in depends if one in members))
    return (*circle[first:], *circle[:first], circle[first])


def cycle_message(circle: Sequence[str]) -> str:
    return "Circular dependency detected: " + " → ".join(layered_task_id(one) for one in circle)


def order_tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Dependencies first, in the order of the file wherever they allow; unknown ones hold nobody up."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.id, []).append(task)
    depends = _depends(task for group in groups.values() for task in group)
    found = base.dependency_order(depends)
    if found.cycle:
        raise FormatInvalid(cycle_message(_from_first(found.cycle[:-1], depends)))
    return tuple(task for one in found.ids for task in groups[one])


def _depends(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """By id; an id that stands twice has the dependencies of both."""
    depends: dict[str, list[str]] = {}
    for task in tasks:
        depends.setdefault(task.id, []).extend(task.depends_on)
    return depends

"""A task, the two notations of its id, and the dependency order of tasks."""

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
    """A file and the action on it; a missing action is reported as a fault."""

    path: str
    action: TaskAction | None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    """Always numeric: `data.1` is stored as `1.1`."""
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
    """The lines of `id`, `file`, `action`, `spec_ref`, `depends_on` and `status`."""

    @property
    def line(self) -> int:
        return self.span.start

    def at(self, key: str) -> int:
        return self.lines.get(key, self.line)


def canonical_task_id(word: str) -> str:
    """Convert `data.1` to `1.1`; anything that is not a task id is returned unchanged."""
    match = TASK_ID.fullmatch(word)
    return _NUMBERS.get(match[1].lower(), match[1]) + match[2].lower() if match else word


def layered_task_id(id_: str) -> str:
    """Convert `1.1` to `data.1`; an id outside the four layers is returned unchanged."""
    first, dot, rest = id_.partition(".")
    return f"{_LAYERS[first]}.{rest}" if dot and first in _LAYERS else id_


def task_layer(id_: str) -> Layer | None:
    return _LAYERS.get(id_.partition(".")[0]) if "." in id_ else None


def layer_number(layer: Layer) -> int:
    return int(_NUMBERS[layer])


# ---- dependencies


def unknown_dependencies(tasks: Iterable[Task]) -> tuple[tuple[Task, str], ...]:
    """Return (task, dependency) for each dependency that is not in the list."""
    tasks = tuple(tasks)
    known = {task.id for task in tasks}
    return tuple((task, other) for task in tasks for other in task.depends_on if other not in known)


def dependency_cycle(tasks: Iterable[Task]) -> tuple[str, ...]:
    """Return one cycle of ids, each depending on the next, the first repeated at the end; empty if there is none."""
    depends = _dependencies(tasks)
    return _close_cycle(base.dependency_order(depends).cycle[:-1], depends)


def _close_cycle(cycle: tuple[str, ...], depends: Iterable[str]) -> tuple[str, ...]:
    """Rotate the cycle to start at the task that comes first in the file, and close it."""
    if not cycle:
        return ()
    members = set(cycle)
    first = cycle.index(next(id_ for id_ in depends if id_ in members))
    return (*cycle[first:], *cycle[:first], cycle[first])


def cycle_message(cycle: Sequence[str]) -> str:
    return "Circular dependency detected: " + " → ".join(layered_task_id(id_) for id_ in cycle)


def order_tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Sort dependencies first, otherwise in file order; unknown dependencies are ignored."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.id, []).append(task)
    depends = _dependencies(task for group in groups.values() for task in group)
    ordered = base.dependency_order(depends)
    if ordered.cycle:
        raise FormatInvalid(cycle_message(_close_cycle(ordered.cycle[:-1], depends)))
    return tuple(task for id_ in ordered.ids for task in groups[id_])


def _dependencies(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Return the dependencies by id; a duplicate id has those of both tasks."""
    depends: dict[str, list[str]] = {}
    for task in tasks:
        depends.setdefault(task.id, []).extend(task.depends_on)
    return depends

"""The tasks of a change as a graph: one column per layer, dependencies as edges, status as a class."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentd.documents import Task, dependency_order
from agentd.domain import Layer, TaskStatus
from agentd.web.markup import svg

_WIDTH, _HEIGHT = 220, 46  # of one task
_ACROSS, _DOWN = 88, 14  # between tasks
_HEAD = 32  # height of the layer name
_MARGIN = 8
_LEFT = 40  # space for edges that go around the left
_SIGNS = {TaskStatus.PENDING: "", TaskStatus.DONE: "✓", TaskStatus.WAIVED: "–"}
_OTHER = "other"


@dataclass(frozen=True, slots=True)
class TaskNode:
    task: Task
    column: int
    row: int
    unknown: tuple[str, ...] = ()
    """Dependencies that no task has as its id."""


@dataclass(frozen=True, slots=True)
class TaskEdge:
    """`target` depends on `source`; both are indexes into the nodes."""

    source: int
    target: int
    is_implied: bool = False
    """Another way leads there too."""
    is_circle: bool = False


@dataclass(frozen=True, slots=True)
class TaskGraph:
    columns: tuple[str, ...]
    nodes: tuple[TaskNode, ...]
    edges: tuple[TaskEdge, ...]


# ---- layout


def layout_tasks(tasks: Iterable[Task]) -> TaskGraph:
    """Lay out the tasks, each layer in work order. A cycle or an unknown dependency is shown, not refused."""
    tasks = tuple(tasks)
    needs: dict[str, list[str]] = {}
    for task in tasks:
        needs.setdefault(task.id, []).extend(task.depends_on)
    place = {one: number for number, one in enumerate(dependency_order(needs).ids)}
    tasks = tuple(sorted(tasks, key=lambda task: place[task.id]))
    names = [str(layer) for layer in Layer if any(task.layer is layer for task in tasks)]
    names += [_OTHER] * any(task.layer is None for task in tasks)
    rows = [0] * len(names)
    nodes = []
    for task in tasks:
        column = names.index(str(task.layer or _OTHER))
        unknown = tuple(one for one in dict.fromkeys(task.depends_on) if one not in place)
        nodes.append(TaskNode(task, column, rows[column], unknown))
        rows[column] += 1
    return TaskGraph(tuple(names), tuple(nodes), tuple(_edges(tasks)))


def _edges(tasks: tuple[Task, ...]) -> Iterator[TaskEdge]:
    """Yield the dependencies; a duplicate id refers to the first task that has it."""
    where = {task.id: number for number, task in reversed(list(enumerate(tasks)))}
    needs = [[where[one] for one in dict.fromkeys(task.depends_on) if one in where] for task in tasks]
    in_the_end = _closure(needs)
    for number, direct in enumerate(needs):
        for one in direct:
            is_circle = bool(in_the_end[one] >> number & 1)
            others = (other for other in direct if other != one and not is_circle)
            yield TaskEdge(one, number, any(in_the_end[other] >> one & 1 for other in others), is_circle)


def _closure(needs: Sequence[Sequence[int]]) -> list[int]:
    """Return each task and its transitive dependencies, one bit per task; takes one pass unless there is a cycle."""
    found = [1 << number for number in range(len(needs))]
    is_done = False
    while not is_done:
        is_done = True
        for number, direct in enumerate(needs):
            before = found[number]
            for one in direct:
                found[number] |= found[one]
            is_done = is_done and found[number] == before
    return found


# ---- drawing


def task_graph_svg(graph: TaskGraph) -> str:
    """Draw the graph. Edges are behind the tasks; a task's title lists what it needs."""
    height = max((node.row + 1 for node in graph.nodes), default=0) * (_HEIGHT + _DOWN) + _HEAD + 2 * _MARGIN
    width = max(len(graph.columns), 1) * (_WIDTH + _ACROSS) - _ACROSS + _LEFT + _MARGIN
    heads = (
        svg.svg_tag("text", name, class_="layer", x=_LEFT + column * (_WIDTH + _ACROSS), y=_MARGIN + 16)
        for column, name in enumerate(graph.columns)
    )
    edges = "".join(_edge(graph, edge) for edge in graph.edges)
    nodes = "".join(_node(node) for node in graph.nodes)
    inner = "".join(heads) + svg.svg_tag("g", edges, class_="edges", aria_hidden="true") + nodes
    return svg.svg_canvas("graph", _label(graph), width, height, inner)


def _label(graph: TaskGraph) -> str:
    count = len(graph.nodes)
    done = sum(node.task.status is not TaskStatus.PENDING for node in graph.nodes)
    return f"{count} task{'' if count == 1 else 's'} by layer, {done} done or waived"


def _corner(node: TaskNode) -> tuple[float, float]:
    return _LEFT + node.column * (_WIDTH + _ACROSS), _MARGIN + _HEAD + node.row * (_HEIGHT + _DOWN)


def _node(node: TaskNode) -> str:
    x, y = _corner(node)
    task = node.task
    kind = f"node {task.status}" + (" unknown-dependency" if node.unknown else "")
    inner = "".join(
        (
            svg.svg_tag("title", svg.escape_words(_title(node))),
            svg.svg_tag("rect", x=x, y=y, width=_WIDTH, height=_HEIGHT, rx=6),
            svg.svg_tag("text", svg.escape_words(svg.fit_text(task.id, 120)), class_="id", x=x + 10, y=y + 18),
            svg.svg_tag("text", _SIGNS[task.status], class_="sign", x=x + _WIDTH - 22, y=y + 18),
            svg.svg_tag("text", svg.escape_words(svg.fit_text(task.title, _WIDTH - 20)), x=x + 10, y=y + 36),
        )
    )
    return svg.svg_tag("g", inner, class_=kind, role="img", data_task=task.id, data_line=str(task.line))


def _title(node: TaskNode) -> str:
    task = node.task
    title = f"{task.id} {task.title}, {task.status}"
    known = [one for one in dict.fromkeys(task.depends_on) if one not in node.unknown]
    title += f"; needs {', '.join(known)}" if known else ""
    return title + (f"; needs {', '.join(node.unknown)}, which is no task here" if node.unknown else "")


def _edge(graph: TaskGraph, edge: TaskEdge) -> str:
    """Draw an edge from the right of the dependency to the left of the task; straight down to the task right below."""
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    if (target.column, target.row) == (source.column, source.row + 1):
        line, head = _down(source)
    else:
        line, head = _across(source, target)
    kind = "edge" + " implied" * edge.is_implied + " circle" * edge.is_circle
    return svg.svg_tag("g", svg.svg_tag("path", d=line, fill="none") + svg.svg_tag("polygon", points=head), class_=kind)


def _down(source: TaskNode) -> tuple[str, str]:
    x, y = _corner(source)
    x, y = x + 18, y + _HEIGHT
    end = y + _DOWN
    return f"M {x:g} {y:g} L {x:g} {end - 5:g}", f"{x:g},{end:g} {x - 4:g},{end - 6:g} {x + 4:g},{end - 6:g}"


def _across(source: TaskNode, target: TaskNode) -> tuple[str, str]:
    """Draw to a later layer directly; within a layer or to an earlier one, around the left."""
    x, y = _corner(source)
    end_x, end_y = _corner(target)
    y, end_y = y + _HEIGHT / 2, end_y + _HEIGHT / 2
    tip = end_x - 7
    if target.column > source.column:
        x += _WIDTH
        bend, end_bend = x + _ACROSS * 0.6, end_x - _ACROSS * 0.6
    else:
        bend = end_bend = min(x, end_x) - min(16 + 4 * abs(target.row - source.row), _LEFT)
    path = " ".join(f"{number:g}" for number in (bend, y, end_bend, end_y, tip, end_y))
    return f"M {x:g} {y:g} C {path}", f"{end_x:g},{end_y:g} {tip:g},{end_y - 4:g} {tip:g},{end_y + 4:g}"

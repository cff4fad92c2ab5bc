"""The task graph: a column per layer, edges for dependencies, titles to be read aloud, no looks and no script."""

import re
from dataclasses import replace

import pytest
from markup import Markup, parse_markup

from agentd.documents import tasks
from agentd.documents.task import Task
from agentd.domain.terms import Layer, TaskStatus
from agentd.web.markup import task_graph
from plans import EXAMPLE

TASKS = tasks.parse_tasks((EXAMPLE / "tasks.md").read_text()).tasks
GEOMETRY = {"x", "y", "width", "height", "rx", "d", "points", "fill", "viewbox"}


def drawn(*some: Task) -> Markup:
    return parse_markup(task_graph.task_graph_svg(task_graph.layout_tasks(some)))


def task(id_: str, *needs: str, layer: Layer | None = Layer.DATA) -> Task:
    return Task(id_, f"Title of {id_}", layer, depends_on=needs)


def arrows(some: task_graph.TaskGraph) -> list[tuple[str, str]]:
    return [(some.nodes[edge.source].task.id, some.nodes[edge.target].task.id) for edge in some.edges]


def test_example_has_four_layers() -> None:
    found = task_graph.layout_tasks(TASKS)
    assert found.columns == ("data", "logic", "integration", "testing")
    assert [(node.task.id, node.column, node.row) for node in found.nodes] == [
        ("1.1", 0, 0),
        ("1.2", 0, 1),
        ("2.1", 1, 0),
        ("2.2", 1, 1),
        ("3.1", 2, 0),
        ("3.2", 2, 1),
        ("4.1", 3, 0),
    ]


def test_every_dependency_of_the_example_is_an_edge() -> None:
    found = task_graph.layout_tasks(TASKS)
    assert set(arrows(found)) == {(need, one.id) for one in TASKS for need in one.depends_on}
    implied = [pair for pair, edge in zip(arrows(found), found.edges, strict=True) if edge.is_implied]
    assert implied == [("2.1", "3.1")]


def test_task_label_names_its_status_and_dependencies() -> None:
    found = drawn(*TASKS)
    assert found.one("svg")["aria-label"] == "7 tasks by layer, 0 done or waived"
    assert "2.2 Handle the callback, pending; needs 1.2, 2.1" in [one.text for one in found.all("title")]
    nodes = found.all("g", "node")
    assert [node["data-task"] for node in nodes] == [one.id for one in TASKS]
    assert [node["data-line"] for node in nodes] == [str(one.line) for one in TASKS]
    assert all(node["role"] == "img" for node in nodes)


@pytest.mark.parametrize(
    ("status", "sign"), [(TaskStatus.PENDING, ""), (TaskStatus.DONE, "✓"), (TaskStatus.WAIVED, "–")]
)
def test_status_is_a_class_and_a_sign(status: TaskStatus, sign: str) -> None:
    found = drawn(replace(TASKS[0], status=status))
    assert str(status) in found.one("g", "node").classes
    assert found.one("text", "sign").text == sign


def test_tasks_within_a_layer_are_ordered_by_dependency() -> None:
    found = task_graph.layout_tasks([task("1.1", "1.3"), task("1.2"), task("1.3")])
    assert [node.task.id for node in found.nodes] == ["1.2", "1.3", "1.1"]


def test_dependency_cycle_is_marked() -> None:
    found = task_graph.layout_tasks(
        [task("1.9", "1.1"), task("1.1", "1.2"), task("1.2", "1.1"), task("1.3", "1.3"), task("1.4")]
    )
    circles = [pair for pair, edge in zip(arrows(found), found.edges, strict=True) if edge.is_circle]
    assert sorted(circles) == [("1.1", "1.2"), ("1.2", "1.1"), ("1.3", "1.3")]
    assert len(parse_markup(task_graph.task_graph_svg(found)).all("g", "circle")) == 3


def test_every_edge_of_a_long_cycle_is_marked() -> None:
    found = task_graph.layout_tasks([task(f"1.{number}", f"1.{(number + 1) % 5}") for number in range(5)])
    assert [edge.is_circle for edge in found.edges] == [True] * 5


def test_unknown_dependency_is_shown_at_its_task() -> None:
    found = drawn(task("1.1", "7.7", "1.2"), task("1.2"))
    assert len(found.all("g", "edge")) == 1
    (told,) = [one.text for one in found.all("title") if "1.1" in one.text]
    assert told.endswith("needs 1.2; needs 7.7, which is no task here")
    assert len(found.all("g", "unknown-dependency")) == 1


def test_duplicate_id_and_task_without_layer_are_drawn() -> None:
    found = task_graph.layout_tasks([task("1.1"), task("1.1", "2.1"), task("2.1"), task("x", "1.1", layer=None)])
    assert found.columns == ("data", "other") and len(found.nodes) == 4
    assert sorted(arrows(found)) == [("1.1", "x"), ("2.1", "1.1")]


def test_forty_tasks_do_not_overlap_and_their_text_fits() -> None:
    some = [
        task(f"{number % 4 + 1}.{number}", *(f"{one % 4 + 1}.{one}" for one in range(max(0, number - 3), number)),
             layer=list(Layer)[number % 4])
        for number in range(40)
    ]  # fmt: skip
    long = replace(some[0], title="a very long title that goes on " * 5)
    found = drawn(long, *some[1:])
    boxes = [tuple(float(one[name]) for name in ("x", "y", "width", "height")) for one in found.all("rect")]
    assert len(boxes) == 40
    for number, (x, y, width, height) in enumerate(boxes):
        for x2, y2, _, _ in boxes[number + 1 :]:
            assert abs(x - x2) >= width or abs(y - y2) >= height
    right, bottom = (float(found.one("svg")[name]) for name in ("width", "height"))
    assert all(x + width < right and y + height < bottom for x, y, width, height in boxes)
    assert all(len(one.text) <= 27 for one in found.all("text")) and any("…" in one.text for one in found.all("text"))


def test_wide_characters_are_truncated_earlier() -> None:
    texts = [one.text for one in drawn(replace(TASKS[0], title="課題" * 30)).all("text")]
    assert max(map(len, texts)) <= 14


@pytest.mark.parametrize(
    "words", ["<script>alert(1)</script>", '" onload="x', "]]><!-- </svg>", "a\u202eb\0\ud800", "&amp;"]
)
def test_hostile_text_is_escaped(words: str) -> None:
    found = drawn(replace(TASKS[0], id=words, title=words, depends_on=(words, words + "2")))
    assert found.tags <= {"svg", "g", "title", "rect", "text", "path", "polygon"} and not found.others
    allowed = GEOMETRY | {"class", "role", "aria-label", "aria-hidden", "data-task", "data-line"}
    assert all(set(one.attributes) <= allowed for one in found.elements)
    assert all(re.fullmatch("[a-z -]+", one["class"]) for one in found.elements if "class" in one.attributes)
    assert not re.search(
        "[\u202e\0\ud800]", task_graph.task_graph_svg(task_graph.layout_tasks([replace(TASKS[0], title=words)]))
    )


def test_graph_without_tasks_is_empty() -> None:
    assert drawn().one("svg")["aria-label"] == "0 tasks by layer, 0 done or waived"

"""Tasks in an order that their dependencies allow; circles and unknown ids are told."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.documents.task import Task, cycle_message, dependency_cycle, order_tasks, unknown_dependencies
from agentd.domain.errors import FormatInvalid


def make(*pairs: tuple[str, str]) -> list[Task]:
    return [Task(id_, id_, depends_on=tuple(depends.split())) for id_, depends in pairs]


def ids(tasks: tuple[Task, ...]) -> str:
    return " ".join(task.id for task in tasks)


def test_dependencies_come_first_and_file_order_is_kept() -> None:
    tasks = make(("1.1", "2.2"), ("1.2", ""), ("2.1", "1.2"), ("2.2", ""), ("3.1", "1.1"))
    assert ids(order_tasks(tasks)) == "1.2 2.1 2.2 1.1 3.1"


def test_order_is_unchanged_without_dependencies() -> None:
    assert ids(order_tasks(make(("3.1", ""), ("1.1", ""), ("2.1", "")))) == "3.1 1.1 2.1"


def test_cycle_is_reported_by_layer() -> None:
    tasks = make(("1.1", "2.1"), ("2.1", "1.1"))
    assert cycle_message(dependency_cycle(tasks)) == "Circular dependency detected: data.1 → logic.1 → data.1"
    with pytest.raises(FormatInvalid, match=r"^Circular dependency detected: data.1 → logic.1 → data.1$"):
        order_tasks(tasks)


def test_cycle_starts_with_its_first_task() -> None:
    tasks = make(("1.1", "2.1"), ("1.2", "5.1"), ("2.1", "5.1"), ("5.1", "1.2"))
    assert cycle_message(dependency_cycle(tasks)) == "Circular dependency detected: data.2 → 5.1 → data.2"


def test_task_that_depends_on_itself_is_a_cycle() -> None:
    assert dependency_cycle(make(("1.1", "1.1"))) == ("1.1", "1.1")


def test_unknown_ids_are_reported_and_do_not_block() -> None:
    tasks = make(("1.1", "9.9"), ("1.2", "1.1 7"))
    assert [(task.id, other) for task, other in unknown_dependencies(tasks)] == [("1.1", "9.9"), ("1.2", "7")]
    assert ids(order_tasks(tasks)) == "1.1 1.2"


@given(st.lists(st.tuples(st.integers(0, 12), st.lists(st.integers(0, 12), max_size=4)), max_size=13))
def test_order_respects_dependencies_unless_there_is_a_cycle(rows: list[tuple[int, list[int]]]) -> None:
    tasks = make(*((f"1.{id_}", " ".join(f"1.{one}" for one in depends)) for id_, depends in rows))
    circle = dependency_cycle(tasks)
    if circle:
        depends = {task.id: {one for same in tasks if same.id == task.id for one in same.depends_on} for task in tasks}
        assert circle[0] == circle[-1]
        assert all(second in depends[first] for first, second in pairwise(circle))
        return
    found = order_tasks(tasks)
    assert sorted(map(id, found)) == sorted(map(id, tasks))
    place = {task.id: number for number, task in reversed(list(enumerate(found)))}
    last = {task.id: number for number, task in enumerate(found)}
    assert all(last[one] < place[task.id] for task in found for one in task.depends_on if one in place)


def test_long_dependency_chain_needs_no_recursion() -> None:
    count = 20_000
    tasks = make(*((f"1.{number}", f"1.{number + 1}") for number in range(count)))
    assert order_tasks(tasks)[0].id == f"1.{count - 1}"
    closed = [*tasks, Task(f"1.{count}", "", depends_on=("1.0",))]
    assert len(dependency_cycle(closed)) == count + 2

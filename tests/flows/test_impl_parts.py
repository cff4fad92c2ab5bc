"""`agentd impl` in parts: runs of the implementer, some of the tasks, the phase commands, and every phase."""

import json

import pytest

from agentd.change import lifecycle
from agentd.domain.state_machine import TransitionEvent
from agentd.domain.terms import Phase
from agentd.project.layout import find_project
from plans import BAD_CODE, GREETING_DOCUMENTS, GREETING_ID, greeting_plan, greeting_tasks, task
from playbooks import APPROVED, edit, implement, say, usage, write
from scenario import Scenario, move, project_files

SEVEN = (
    task("1.1", "a.py", ref="data:R1"),
    task("1.2", "b.py", ref="data:R2", needs=["1.1"]),
    task("2.1", "c.py", ref="logic:R1", needs=["1.2"]),
    task("2.2", "d.py", ref="data:R1", needs=["2.1"]),
    task("3.1", "e.py", ref="logic:R2", needs=["2.2"]),
    task("4.1", "tests/f.py", ref="logic:R1", needs=["3.1"]),
    task("4.2", "g.py", ref="data:R2"),
)
FILES = {"1.1": "a.py", "1.2": "b.py", "2.1": "c.py", "2.2": "d.py", "3.1": "e.py", "4.1": "tests/f.py", "4.2": "g.py"}
PLAN = greeting_plan(*SEVEN, specs=("data", "logic"))


def makes(*ids: str) -> list[dict[str, object]]:
    return [*(write(FILES[one], f"{one}\n") for one in ids), usage(0.01), say("Made.")]


def made(box: Scenario) -> list[tuple[str, int, list[str]]]:
    """Each run of the implementer, with its tasks."""
    rows = [row for row in box.state().steps if row.name.startswith("implement") and row.status == "done"]
    return [(row.name, row.number, list(row.extra["tasks"])) for row in rows]


# ---- runs


def test_adjacent_tasks_of_a_spec_are_grouped_into_runs(project: Scenario) -> None:
    steps = {
        "implement-data#1": makes("1.1", "1.2"),
        "implement-data#2": makes("2.2"),
        "implement-data#3": makes("4.2"),
        "implement-logic#1": makes("2.1"),
        "implement-logic#2": makes("3.1", "4.1"),
    }
    project.greeting_approved(steps, more="", documents=PLAN)
    end = project.agentd("implement", "greet", "--json")
    assert end.code == 0, end.out
    assert end.json["message"] == "7 of 7 tasks" and end.json["phase"] == "implementing"
    assert made(project) == [
        ("implement-data", 1, ["1.1", "1.2"]),
        ("implement-logic", 1, ["2.1"]),
        ("implement-data", 2, ["2.2"]),
        ("implement-logic", 2, ["3.1", "4.1"]),
        ("implement-data", 3, ["4.2"]),
    ]


def test_dependencies_are_implemented_first(project: Scenario) -> None:
    rows = [task("1.1", "a.py", ref="data:R1", needs=["2.1"]), task("2.1", "c.py", ref="logic:R1")]
    steps = {"implement-data": makes("1.1"), "implement-logic": makes("2.1")}
    project.greeting_approved(steps, more="", documents=greeting_plan(*rows, specs=("data", "logic")))
    assert project.agentd("implement", "greet").code == 0
    assert [name for name, *_ in made(project)] == ["implement-logic", "implement-data"]


@pytest.mark.parametrize("why", ["not sequential", "no specs"])
def test_all_tasks_form_one_run_without_specs_or_sequential_mode(why: str, project: Scenario) -> None:
    if why == "no specs":
        documents, workflow = greeting_plan(*(task(one, FILES[one], ref="") for one in ("1.1", "2.1")), specs=()), ""
        ids = ["1.1", "2.1"]
    else:
        documents, workflow, ids = PLAN, "sequential_implementation = false\n", list(FILES)
    project.greeting_approved(
        {"implement": makes(*ids), "review": APPROVED}, more="", workflow=workflow, documents=documents
    )
    end = project.run("impl")
    assert made(project) == [("implement", 1, ids)], end.err
    assert project.state().phase is Phase.COMPLETE


# ---- some tasks


def test_selected_tasks_are_implemented_first_and_the_rest_later(project: Scenario) -> None:
    steps = {"implement-data#1": makes("1.1", "1.2"), "implement-logic": makes("2.1", "3.1", "4.1")}
    steps |= {"implement-data#2": makes("2.2"), "implement-data#3": makes("4.2")}
    project.greeting_approved(steps, more="", documents=PLAN)
    end = project.run("impl", "--tasks", "data.1,1.2", "--json")
    assert (end.code, end.json["message"], end.json["phase"]) == (0, "2 of 7 tasks", "implementing"), end.out
    assert end.json["next"] == "agentd impl greet" and not (project.folder / "REVIEW.md").exists()
    assert made(project) == [("implement-data", 1, ["1.1", "1.2"])]
    again = project.run("impl", "--tasks", "1.1", "--json")
    assert (again.code, again.json["message"]) == (0, "2 of 7 tasks"), "what is made is not made again"
    rest = project.run("impl", "--json")
    assert rest.json["phase"] == "complete", rest.json["findings"]
    assert [greeting_tasks for _, _, greeting_tasks in made(project)] == [
        ["1.1", "1.2"],
        ["2.1"],
        ["2.2"],
        ["3.1", "4.1"],
        ["4.2"],
    ]


def test_invalid_task_selection_is_refused_before_anything_runs(project: Scenario) -> None:
    project.greeting_approved({}, documents=PLAN)
    unknown = project.run("impl", "--tasks", "1.1,9.9", "--json")
    assert (unknown.code, unknown.json["error"]["message"]) == (2, "there is no task 9.9")
    assert "1.1, 1.2, 2.1" in unknown.json["error"]["hint"]
    alone = project.run("impl", "--tasks", "2.1", "--json")
    assert alone.code == 1
    assert alone.json["error"]["message"] == "task 2.1 depends on 1.2, which is not done yet"
    assert alone.json["error"]["hint"] == "add it: --tasks 1.2,2.1"
    both = project.run("impl", "--tasks", "1.1", "--review")
    assert both.code == 2 and "give one of them" in both.err
    assert not project.state().llm_calls


# ---- phase commands


def test_phase_commands_do_only_their_part(project: Scenario) -> None:
    mended = [edit("greeting.py", "{name}", "{name or 'world'}"), usage(0.02), say("Mended.")]
    project.greeting_approved({"implement-greeting": implement(BAD_CODE), "resolve/2": mended})
    early = project.agentd("resolve-reviews", "greet")
    assert early.code == 1 and "greet is challenged" in early.err
    made = project.agentd("implement", "greet")
    assert made.code == 0 and "2 of 2 tasks" in made.out + made.err
    assert project.finished_steps() == ["implement-greeting"]
    unjudged = project.agentd("resolve-reviews", "greet")
    assert unjudged.code == 1 and "was never reviewed" in unjudged.err and "agentd review greet" in unjudged.err
    assert project.agentd("review", "greet").code == 1
    assert project.finished_steps() == ["implement-greeting", "review"]
    same = project.agentd("review", "greet", "--json")
    assert (same.code, same.json["round"]) == (1, 1), "the same tree is not judged again"
    answered = project.agentd("resolve-reviews", "greet", "--json")
    assert answered.code == 0 and "agentd review greet" in answered.json["message"]
    assert project.finished_steps()[2:] == ["resolve"]
    assert project.agentd("review", "greet").code == 0
    assert project.finished_steps()[3:] == ["review"] and project.state().phase is Phase.COMPLETE
    over = project.agentd("resolve-reviews", "greet")
    assert over.code == 1 and "greet is complete" in over.err


# ---- before anything runs


def test_dry_run_lists_the_steps_and_changes_nothing(project: Scenario) -> None:
    project.greeting_approved({}, documents=PLAN)
    before = project_files(project.root)
    end = project.run("impl", "--dry-run", "--json")
    assert end.code == 0, end.err
    data, logic = "implement-data", "implement-logic"
    assert [one["step"] for one in end.json["steps"]] == [data, logic, data, logic, data, "review"], "what costs"
    part = project.run("impl", "--dry-run", "--tasks", "1.1,1.2")
    assert part.code == 0 and "implement-data" in part.out.lower().replace("implement data", "implement-data")
    assert "review" not in part.out.lower()
    assert project_files(project.root) == before


@pytest.mark.parametrize(
    ("phase", "words", "hint"),
    [
        (Phase.DRAFTING, "greet is drafting: its plan is not approved yet", "agentd plan greet"),
        (Phase.PROPOSED, "greet is proposed: its plan is not approved yet", "agentd plan greet"),
        (Phase.REJECTED, "greet is rejected: its plan was rejected", "agentd view greet"),
    ],
)
def test_unapproved_plan_is_not_implemented(phase: Phase, words: str, hint: str, project: Scenario) -> None:
    project.change_id = GREETING_ID
    change = lifecycle.create_change(find_project(), GREETING_ID, "Greet people")
    for name, text in GREETING_DOCUMENTS.items():
        project.write(f"agentd/changes/greet/{name}", text)
    events = {Phase.DRAFTING: [], Phase.PROPOSED: [TransitionEvent.PLAN_GENERATED]}
    for event in events.get(phase, [TransitionEvent.PLAN_GENERATED, TransitionEvent.CHALLENGE_REJECTED]):
        move(change, event)
    for command in ("impl", "implement"):
        end = project.agentd(command, "greet", "--json")
        assert end.code == 1
        error = end.json["error"]
        assert (error["code"], error["message"], error["hint"]) == ("change-not-ready", words, hint)
    assert project.state().phase is phase


def test_impl_of_an_unknown_or_complete_change_says_so(project: Scenario) -> None:
    nothing = project.agentd("impl", "greet", "--json")
    assert (nothing.code, nothing.json["error"]["code"]) == (1, "change-not-found")
    change = project.greeting_approved({}).change
    for event in (TransitionEvent.IMPLEMENTATION_STARTED, TransitionEvent.REVIEW_APPROVED):
        move(change, event)
    end = project.run("impl", "--json")
    assert (end.code, end.json["message"], end.json["next"]) == (0, "greet is complete", "agentd archive greet")
    assert not project.state().steps


def test_circular_tasks_are_refused_before_anything_runs(project: Scenario) -> None:
    circle = greeting_tasks(task("1.1", "a.py", needs=["2.1"]), task("2.1", "b.py", needs=["1.1"]))
    project.greeting_approved({}, documents=GREETING_DOCUMENTS | {"tasks.md": circle})
    end = project.run("impl", "--json")
    assert (end.code, end.json["error"]["code"]) == (1, "format-invalid")
    assert end.json["error"]["message"] == "Circular dependency detected: data.1 → logic.1 → data.1"
    assert "agentd/changes/greet/tasks.md" in end.json["error"]["hint"]
    assert project.run("impl", "--dry-run").code == 1
    assert project.state().phase is Phase.CHALLENGED and not project.state().steps


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([task("1.1", "a.py", needs=["7.7"])], "task 1.1 depends on 7.7, which is not a task"),
        ([task("1.1", "a.py"), task("data.1", "b.py")], "task 1.1 appears twice"),
        ([], "greet has no tasks to implement"),
    ],
)
def test_invalid_tasks_are_refused_before_anything_runs(rows: list[str], words: str, project: Scenario) -> None:
    project.greeting_approved({}, documents=greeting_plan(*rows))
    end = project.run("impl", "--json")
    assert (end.code, end.json["error"]["message"]) == (1, words)
    assert "agentd validate greet" in end.json["error"]["hint"] and not project.state().steps


def test_last_event_is_the_result(project: Scenario) -> None:
    project.greeting_approved({"implement-greeting": implement()}, more="")
    end = project.run("impl", "--events")
    rows = [json.loads(line) for line in end.out.splitlines()]
    assert end.code == 0 and rows[-1]["phase"] == "complete" and rows[-1]["command"] == "impl"
    started = [one["step"] for one in rows if one.get("type") == "step.started"]
    assert started == ["checks", "implement-greeting", "checks", "review"]
    moves = [one["event"] for one in rows if one.get("type") == "transition"]
    assert moves == ["implementation-started", "review-approved"]

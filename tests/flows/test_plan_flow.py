"""`agentd plan` with scripted agents: the real program, its server, its files."""

import json
from typing import Any

import pytest

from agentd.change.folder import document_hash
from agentd.domain import yaml12
from agentd.storage import files
from plans import EXAMPLE, EXAMPLE_SPECS, SIGN_IN
from playbooks import example_plan_steps
from scenario import Result, Scenario

MAKERS = [
    "proposal-gen",
    "proposal-review",
    *(f"spec-{what}-{spec}" for spec in EXAMPLE_SPECS for what in ("gen", "review")),
    "tasks-gen",
    "tasks-review",
]
DOCUMENTS = ["proposal.md", *(f"specs/{spec}.md" for spec in EXAMPLE_SPECS), "tasks.md"]


@pytest.fixture
def planned(project: Scenario) -> tuple[Scenario, Result]:
    """A straight plan of three specs, told as events."""
    project.with_agents(example_plan_steps())
    return project, project.run("plan", "--events")


def test_straightforward_plan_matches_the_contract(planned: tuple[Scenario, Result]) -> None:
    box, ran = planned
    assert ran.code == 0, ran.err
    state = yaml12.load((box.folder / "STATE.yaml").read_text())
    _state_has_the_examples_form(state)
    _steps_calls_and_sums(state)
    _bases_are_kept(box, state)
    _history_says_who_and_why(box, state)
    told = _events_then_the_result(ran)
    _the_result_has_the_examples_form(box, told, state)
    _what_is_only_for_agents_is_not_in_git(box)


def _state_has_the_examples_form(state: dict[str, Any]) -> None:
    like = yaml12.load((EXAMPLE / "STATE.yaml").read_text())
    assert list(state) == list(like)
    for name in ("git", "base"):
        assert list(state[name]) == list(like[name])
    for name in ("steps", "history", "llm_calls"):
        assert {tuple(row) for row in state[name]} == {tuple(like[name][0])}
    same = ("change_id", "schema_version", "description", "phase", "lane", "run", "checks")
    assert {name: state[name] for name in same} == {name: like[name] for name in same}


def _steps_calls_and_sums(state: dict[str, Any]) -> None:
    steps = state["steps"]
    assert [one["name"] for one in steps] == ["clarify", *MAKERS, "challenge"]
    assert {one["status"] for one in steps[1:]} == {"done"} and steps[0]["status"] == "skipped"
    assert {(one["round"], one["number"], one["attempt"]) for one in steps} == {(1, 1, 1)}
    calls = state["llm_calls"]
    assert [one["step"] for one in calls] == [*MAKERS, "challenge"]
    assert len({one["session"] for one in calls}) == len(calls)
    assert state["session_id"] == calls[0]["session"]
    assert state["round"] == 1
    assert state["total_cost"] == round(sum(one["cost"] for one in calls), 6) == 0.105
    assert state["total_tokens_in"] == 1000 * len(calls) and state["total_tokens_out"] == 10 * len(calls)


def _bases_are_kept(box: Scenario, state: dict[str, Any]) -> None:
    main = (EXAMPLE / "base" / "api-endpoints.md").read_bytes()
    assert state["base"]["commit"] == box.git("rev-parse", "HEAD") and state["base"]["tree"] is None
    kept = {"user-model": None, "auth-flow": None, "api-endpoints": files.hash_bytes(main)}
    assert state["base"]["specs"] == kept and list(state["base"]["specs"]) == list(kept)
    assert {path.name: path.read_bytes() for path in (box.folder / "base").iterdir()} == {"api-endpoints.md": main}


def _history_says_who_and_why(box: Scenario, state: dict[str, Any]) -> None:
    generated, approved = state["history"]
    assert (generated["event"], generated["by"]) == ("plan-generated", "agentd")
    assert generated["why"] == "proposal, 3 specs and 7 tasks generated and valid"
    assert (approved["event"], approved["by"], approved["to"]) == ("challenge-approved", "agent:play", "challenged")
    assert approved["why"] == "nothing open (reviews/challenge-1.yaml)"
    now = {name: document_hash(box.folder / name) for name in DOCUMENTS}
    assert generated["hashes"] == approved["hashes"] == now
    assert list(now) == list(generated["hashes"])
    outputs = {name: digest for step in state["steps"] for name, digest in step["outputs"].items()}
    assert {name: outputs[name] for name in DOCUMENTS} == now


def _events_then_the_result(ran: Result) -> dict[str, Any]:
    *lines, last = [json.loads(line) for line in ran.out.splitlines()]
    like = [json.loads(line) for line in (EXAMPLE / "events.jsonl").read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[0]["type"], lines[-1]["type"]) == ("run.started", "run.finished")
    known = {(one["type"], tuple(one)) for one in like if one["type"] in ("usage", "step.started", "transition")}
    assert {(one["type"], tuple(one)) for one in lines if one["type"] in dict(known)} == known
    assert "type" not in last
    return dict(last)


def _the_result_has_the_examples_form(box: Scenario, told: dict[str, Any], state: dict[str, Any]) -> None:
    like = json.loads((EXAMPLE / "result.json").read_text())
    assert list(told) == list(like)
    for name in ("findings", "git", "cost", "tokens"):
        assert list(told[name]) == list(like[name])
    assert told["message"] == "APPROVED - Ready for implementation!"
    assert (told["phase"], told["verdict"], told["round"]) == ("challenged", "APPROVED", 1)
    assert (told["next"], told["error"], told["exit_code"]) == ("agentd impl add-oauth", None, 0)
    assert (told["description"], told["session_id"]) == (SIGN_IN, state["session_id"])
    assert told["decision_needed"] is None
    assert told["findings"] == {"open": {"high": 0, "medium": 0, "low": 0}, "list": []}
    assert (told["cost"]["run"], told["cost"]["change"]) == (0.105, 0.105)
    named = [*DOCUMENTS, "CHALLENGE.md", "reviews/challenge-1.yaml"]
    assert told["files"] == [f"agentd/changes/add-oauth/{name}" for name in named]
    again = box.run("plan", "--json").json
    assert list(again) == list(like) and again["message"] == "Planning of add-oauth is complete"
    assert again["cost"] == {**told["cost"], "run": 0.0}


def _what_is_only_for_agents_is_not_in_git(box: Scenario) -> None:
    there = {path.name for path in box.folder.iterdir()}
    assert {"GEMINI.md", "AGENTS.md"} <= there
    status = box.git("status", "--porcelain", "-uall")
    assert "GEMINI.md" not in status and "AGENTS.md" not in status and "STATE.yaml" in status
    assert {line.split()[-1].partition("/changes/add-oauth/")[0] for line in status.splitlines()} == {"agentd"}

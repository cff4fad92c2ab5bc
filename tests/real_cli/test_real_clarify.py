"""The questions before a plan, asked by the real CLIs on a model that plays a script, and answered at a terminal."""

from typing import Any

import pytest

from agentd.engine.tools.tool import Stage
from agentd.engine.tools.tool_table import tools_of
from loopback import plans
from loopback.gemini_api import Own
from loopback.model import Call, Model, Request, Turn
from loopback.plans import CONTEXT, PREFIXES, Step, heard, seat, sessions, turns_of
from plans import SIGN_IN
from program import AGENTD
from questions import COMMAND, PROVIDERS, TOKEN, answer, clarifications_text, clarified, paid, rows_of
from scenario import Scenario
from terminal import DOWN, ENTER, start_on_terminal

FIRST_WORDS = "Ask what must be known before the change `add-oauth` is planned"
OWN_TOOLS = {"gemini": {"glob", "grep_search"}, "claude": {"Read", "Grep", "Glob"}}  # to read and search with
GIVEN = ((PROVIDERS, "Google only"), (TOKEN, TOKEN["recommended"]))


def asking() -> Step:
    """It reads what it is given, and asks two questions."""
    return Step("clarify", (CONTEXT,), (Call("ask_questions", {"questions": [PROVIDERS, TOKEN]}),), "They are asked.")


def writing() -> Step:
    """The whole plan, in the session that follows."""
    proposing, breaking, _ = plans.without_specs()
    return Step("plan-gen", (CONTEXT,), (*proposing.calls, *breaking.calls))


def offered(request: Request) -> set[str]:
    """The names of the tools that the model may call."""
    groups = request.body["tools"]
    return {tool["name"] for group in groups for tool in group.get("functionDeclarations", [group])}


def answered_at_terminal(box: Scenario) -> None:
    person = start_on_terminal([AGENTD, *COMMAND, "--git", "in-place"], box.env, width=110, height=40)
    answer(person, PROVIDERS, DOWN + ENTER)
    answer(person, TOKEN)
    assert person.waits() == 0, person.display.text


@pytest.mark.parametrize("cli", ["gemini", "claude"])
def test_planner_asks_with_only_its_stage_tools_and_gets_the_answers(project: Scenario, model: Model, cli: str) -> None:
    log = seat(project, model, turns_of(asking(), writing()), [Turn(text="Never asked.")], (cli, "codex"))
    answered_at_terminal(project)
    first, second = sessions(log)
    ours = {PREFIXES[cli] + tool.name for tool in tools_of(Stage.CLARIFY)}
    assert len(ours) == 3 and offered(first[0]) == ours | OWN_TOOLS[cli]
    assert FIRST_WORDS in heard(first[0]) and SIGN_IN in heard(first[-1])
    assert len(first) == len(asking().turns), "it ends with its questions"
    assert clarified(project) == clarifications_text(*GIVEN)
    assert "- **Answer**: Google only" in heard(second[-1]) and FIRST_WORDS not in heard(second[-1])
    assert (paid(project), rows_of(project)) == (["clarify", "plan-gen"], [(1, "done", ["clarifications.md"])])


def test_planner_cannot_write_or_run_anything_during_clarify(project: Scenario, model: Model) -> None:
    tries: tuple[Any, ...] = (
        Own("write_file", {"file_path": str(project.root / "notes.txt"), "content": "x"}),
        Own("run_shell_command", {"command": "touch notes.txt"}),
        Call("create_proposal", plans.propose().arguments),
    )
    turns = [Turn(calls=tries), *turns_of(asking(), writing())]
    log = seat(project, model, turns, [Turn(text="Never asked.")])
    answered_at_terminal(project)
    assert clarified(project) == clarifications_text(*GIVEN)
    assert not (project.root / "notes.txt").exists()
    assert len(sessions(log)[0]) == 1 + len(asking().turns)

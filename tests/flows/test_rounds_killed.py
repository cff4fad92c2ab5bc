"""Rounds whose command is killed anywhere come, run again, to what they would have come to, and to no more rounds."""

import itertools
import random
import re
from pathlib import Path
from typing import Any

import pytest

from agentd.change.folder import read_state
from crash import (
    PLAN_COMMAND,
    journal_lines,
    kill_at_event,
    kill_at_write,
    nothing_repeated,
    restorable,
    resume,
    started_calls,
)
from crash import plan_result as in_lines
from exhaustive import Exhaustive
from plans import SIGN_IN, SIGN_IN_DOCUMENTS
from playbooks import HANG, Action, call, edit_spec_by_tool, finding, report, say, usage, write_document
from scenario import PATIENT, Scenario

AUTOMATED = "human_in_loop = false\nself_review_iterations = 0\n"
ONE_ROUND = (*PLAN_COMMAND, "--rounds", "1")
CLUMSY = edit_spec_by_tool(
    "## Overview\n\nA user is one person.", "## About\n\nA user is one living person."
)  # a planner mends it
LOOSE = edit_spec_by_tool("### R1: User record", "#### R1. The user's record")  # agentd mends it
LOOK = call("read_file", path="proposal.md")
STEPS = (
    ("challenge", 1),
    ("reproposal", 2),
    ("format-fix", 2),
    ("challenge", 2),
    ("reproposal", 3),
    ("challenge", 3),
)


def rounds() -> dict[str, list[Action]]:
    """Three of them with one of everything: fixed or not, disputed and withdrawn, faults in form for both menders.

    In the last one no document changes, so only STATE.yaml tells that the planner has answered. The last
    word is NEEDS_REVISION, so a command that had a round too many would go on.
    """
    found = (finding(), finding("medium", "It is slow"))
    return {
        "plan-gen": [*(write_document(name) for name in SIGN_IN_DOCUMENTS), usage(0.03)],
        "challenge/1": report("NEEDS_REVISION", *found),
        "reproposal/2": answering(CLUMSY, LOOSE, C1="fixed", C2="disputed"),
        "format-fix/2": [edit_spec_by_tool("## About", "## Overview"), usage(0.003), say("Mended.")],
        "challenge/2": report("NEEDS_REVISION", finding("low", "It is long"), previous=said(C1="open", C2="withdrawn")),
        "reproposal/3": answering(C1="disputed", C3="disputed"),
        "challenge/3": report("NEEDS_REVISION", previous=said(C1="open", C3="withdrawn")),
    }


def answering(*changes: Action, **words: str) -> list[Action]:
    answers = [call("answer_finding", id=id_, answer=word, note="Because.") for id_, word in words.items()]
    return [*changes, *answers, usage(0.02), say("So.")]


def said(**states: str) -> list[dict[str, Any]]:
    return [{"id": id_, "state": state, "note": "Seen."} for id_, state in states.items()]


def cut_off_after_each_act(steps: dict[str, list[Action]]) -> dict[str, list[Action]]:
    """The first attempts at each step do one thing, two things and so on, look at it, and do not end."""
    cut = dict(steps)
    for (name, round_), acts in acts_of(steps).items():
        for count in range(1, len(acts) + 1):
            cut[f"{name}/{round_}/{count}"] = [*acts[:count], LOOK, HANG]
    return cut


def acts_of(steps: dict[str, list[Action]]) -> dict[tuple[str, int], list[Action]]:
    """What each step does through its tools."""
    return {(name, round_): [one for one in steps[f"{name}/{round_}"] if "call" in one] for name, round_ in STEPS}


def draft(box: Scenario, steps: dict[str, list[Action]]) -> None:
    """The documents are there, and nobody has judged them."""
    box.with_agents(steps, PATIENT, AUTOMATED)
    ran = box.agentd("proposal", "add-oauth", SIGN_IN, "--skip-clarify")
    assert ran.code == 0, ran.err


def result(box: Scenario) -> list[str]:
    """As of any plan; what a later round wrote anew has no hash left to compare, as there are times in it."""
    outdated = re.compile(r"('(?:reviews/[\w-]+\.yaml|CHALLENGE\.md)': ')sha256:\w+")
    return [outdated.sub(r"\1outdated", line) for line in in_lines(box)]


def end(box: Scenario) -> list[str]:
    """The same command to its end."""
    resume(box, code=1)
    return answered(box)


def answered(box: Scenario) -> list[str]:
    """What it came to; the planner answered in its own session, whoever was killed meanwhile."""
    answering = [one for one in journal_lines(box) if one["type"] == "step.started" and one["step"] == "reproposal"]
    assert {(one["session"], one["resumed"]) for one in answering} == {(read_state(box.folder).session_id, True)}
    return result(box)


def elsewhere(place: Path) -> Scenario:
    """A box for a whole session of tests."""
    box = Scenario(place / "notes-service", place / "home")
    box.write("README.md", "notes\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(box.root)
        for name in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"):
            patch.setenv(name, box.env[name])
        draft(box, rounds())
    return box


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What three rounds come to when nobody kills anything, and agentd's own server does the work."""
    box = elsewhere(tmp_path_factory.mktemp("undisturbed-rounds"))
    ran = box.agentd(*PLAN_COMMAND)
    assert ran.code == 1, ran.err
    found = answered(box)
    assert [(name, round_) for name, round_, _ in started_calls(journal_lines(box))[1:]] == list(STEPS)
    assert "rounds-used" in [one["code"] for one in journal_lines(box) if one["type"] == "warning"]
    return found


# ---- killed by what it tells


@pytest.mark.parametrize("kind", ["step.started", "step.finished"])
def test_rounds_killed_at_every_step_boundary_give_the_same_result(
    kind: str, project: Scenario, undisturbed: list[str]
) -> None:
    draft(project, rounds())
    for name, round_ in STEPS:
        with nothing_repeated(project):
            kill_at_event(project, type=kind, step=name, round=round_)
    assert end(project) == undisturbed


def test_rounds_killed_after_every_agent_action_give_the_same_result(project: Scenario, undisturbed: list[str]) -> None:
    steps = rounds()
    draft(project, cut_off_after_each_act(steps))
    cuts = [(*key, attempt) for key, acts in acts_of(steps).items() for attempt in range(1, len(acts) + 1)]
    for name, round_, attempt in cuts:
        with nothing_repeated(project):
            kill_at_event(
                project, type="agent.activity", text="read_file", ok=True, step=name, round=round_, attempt=attempt
            )
    assert end(project) == undisturbed


def test_rounds_killed_around_every_transition_give_the_same_result(project: Scenario, undisturbed: list[str]) -> None:
    draft(project, rounds())
    for number, round_ in enumerate((1, 2, 3), 1):
        with nothing_repeated(project):
            kill_at_event(project, type="usage", step="challenge", round=round_)
        kill_at_event(project, type="transition", event="challenge-needs-revision")
        judged = [one for one in read_state(project.folder).history if one.event.startswith("challenge")]
        assert len(judged) == number
    assert end(project) == undisturbed


# ---- killed at a write


def test_rounds_killed_repeatedly_at_random_writes_give_the_same_result(
    exhaustive: Exhaustive, project: Scenario, undisturbed: list[str]
) -> None:
    draft(project, rounds())
    with restorable(project) as put_back:
        for seed in exhaustive.seeds(10):
            dice = random.Random(seed)
            is_killed, kills = True, 0
            while is_killed and not is_over(project, 3):
                moment, number = dice.choice(("before", "after")), dice.randint(1, 40 + 4 * kills)
                with nothing_repeated(project):
                    is_killed = kill_at_write(project, moment, number, project.root, codes=(1,))
                kills += is_killed
            assert kills > 0, seed
            assert result(project) == undisturbed, seed
            put_back()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_round_killed_at_each_write_gives_the_same_result_and_stays_one_round(
    moment: str, exhaustive: Exhaustive, project: Scenario
) -> None:
    draft(project, rounds() | {"reproposal/2": answering(LOOSE, C1="fixed", C2="disputed")})
    assert project.agentd("challenge", "add-oauth").code == 1
    with restorable(project) as put_back:
        resume(project, ONE_ROUND, code=1)
        straight = result(project)
        put_back()
        for number in exhaustive.points(itertools.count(1)):
            if not kill_at_write(project, moment, number, project.folder, ONE_ROUND, codes=(1,)) or is_over(project, 2):
                break
            resume(project, ONE_ROUND, code=1)
            assert result(project) == straight, f"{moment} write {number}"
            put_back()
    assert number > 12, "documents, both records, CHALLENGE.md, the block and STATE.yaml were among them"


def is_over(box: Scenario, last: int) -> bool:
    """The command had only its last words left to say: another one would be granted rounds of its own."""
    state = read_state(box.folder)
    return state.run is None and state.round == last

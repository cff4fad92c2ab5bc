"""Running is resuming, among questions too: killed anywhere, no call is paid twice and no answer asked for twice."""

import os
import signal
from pathlib import Path

import pytest

from agentd.change.folder import STATE_FILE
from agentd.documents import clarifications
from crash import kill_at_write, restorable
from playbooks import plan_steps
from processes import wait_until
from program import AGENTD, CrashPoint
from questions import (
    COMMAND,
    PROVIDERS,
    SESSION,
    THREE,
    TOKEN,
    answer,
    answers_in,
    clarifications_text,
    clarified,
    decided,
    is_open,
    paid,
    proposed_without,
    proposing,
    questions_asked,
    rows_of,
    stage_questions,
)
from scenario import Scenario
from terminal import DOWN, ENTER, Person, start_on_terminal

GIVEN = ((PROVIDERS, "Google only"), (TOKEN, TOKEN["recommended"]), (SESSION, "7 days"))
BY_ITSELF = tuple((one, one["recommended"]) for one in THREE)
OWN_WORD = " (the planner's own recommendation)"
LAST = 4  # change of what is kept: three answers, and that it goes


def room(box: Scenario) -> Path:
    """Where the questions lie until all is answered."""
    return box.root / ".git" / "agentd" / "questions"


def is_kept(box: Scenario) -> bool:
    return (room(box) / "add-oauth.json").exists()


def mortal(box: Scenario, moment: str, number: int, below: Path) -> Person:
    """Somebody at the terminal of a command that dies at that write."""
    crash = CrashPoint(moment, number, str(below))
    return start_on_terminal([AGENTD, *COMMAND], box.env, width=110, height=40, crash=crash)


def is_killed(box: Scenario, person: Person) -> None:
    assert person.waits() == -signal.SIGKILL
    wait_until(lambda: box.change.active_run() is None, "the lock is free")


def no_more_questions(box: Scenario) -> None:
    """From now on a planner that is asked for questions fails."""
    box.replay(plan_steps(clarify=[{"fault": "crash"}]))


def killed_at_first_question(box: Scenario) -> None:
    stage_questions(box, *THREE)
    person = proposing(box)
    person.sees(lambda display: is_open(display.text, PROVIDERS))
    os.kill(person.pid, signal.SIGKILL)
    is_killed(box, person)
    no_more_questions(box)


@pytest.mark.parametrize(("moment", "calls"), [("before", 2), ("after", 1)])
def test_saved_questions_are_not_paid_for_again(project: Scenario, moment: str, calls: int) -> None:
    stage_questions(project, *THREE)
    is_killed(project, mortal(project, moment, 1, room(project)))
    assert rows_of(project) == [(1, "running", [])] and questions_asked(project) == []
    if calls == 1:
        no_more_questions(project)
    person = proposing(project)
    for one, keys in zip(THREE, (DOWN + ENTER, ENTER, ENTER), strict=True):
        answer(person, one, keys)
    assert person.waits() == 0
    assert clarified(project) == clarifications_text(*GIVEN)
    assert paid(project) == ["clarify"] * calls + ["plan-gen"]
    assert rows_of(project)[-1] == (calls, "done", [clarifications.CLARIFICATIONS_FILE])


def test_each_answer_is_given_once_despite_kills(project: Scenario) -> None:
    """An answer counts from when it is kept."""
    killed_at_first_question(project)
    with restorable(project) as put_back:
        for number in range(1, len(THREE) + 1):
            for moment in ("before", "after"):
                _killed_at_answer(project, moment, number)
                put_back()
                os.chdir(project.root)  # it is another folder now


def _killed_at_answer(box: Scenario, moment: str, number: int) -> None:
    keys = (DOWN + ENTER, ENTER, ENTER)
    person = mortal(box, moment, number, room(box))
    for one, pressed in zip(THREE[:number], keys, strict=False):
        answer(person, one, pressed)
    is_killed(box, person)
    assert clarified(box) == ""
    person, answered = proposing(box), number - (moment == "before")
    for one, pressed in zip(THREE[answered:], keys[answered:], strict=True):
        answer(person, one, pressed)
    assert person.waits() == 0
    assert not any(one["question"] in person.display.text for one in THREE[:answered])
    assert clarified(box) == clarifications_text(*GIVEN), f"{moment} answer {number} was kept"
    assert paid(box) == ["clarify", "plan-gen"] and rows_of(box) == [(1, "done", [clarifications.CLARIFICATIONS_FILE])]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_kill_around_writing_the_document_keeps_the_answers(project: Scenario, moment: str) -> None:
    killed_at_first_question(project)
    person = mortal(project, moment, 1, project.folder / clarifications.CLARIFICATIONS_FILE)
    for one, keys in zip(THREE, (DOWN + ENTER, ENTER, ENTER), strict=True):
        answer(person, one, keys)
    is_killed(project, person)
    assert bool(clarified(project)) == (moment == "after")
    before = len(decided(project))
    assert proposing(project).waits() == 0
    assert clarified(project) == clarifications_text(*GIVEN)
    assert (len(decided(project)), rows_of(project)) == (before, [(1, "done", [clarifications.CLARIFICATIONS_FILE])])
    assert paid(project) == ["clarify", "plan-gen"] and not is_kept(project)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_kill_at_the_end_of_clarify_gives_the_same_result(project: Scenario, moment: str) -> None:
    """Nobody is at a terminal: the planner's own answers are taken."""
    killed_at_first_question(project)
    places = [(project.folder / STATE_FILE, number) for number in (1, 2, 3)]
    with restorable(project) as put_back:
        for below, number in [*places, (room(project), LAST)]:
            assert kill_at_write(project, moment, number, below, (*COMMAND, "--yes")), f"{moment} {number} {below}"
            assert proposed_without(project, "--yes").code == 0
            assert clarified(project) == clarifications_text(*BY_ITSELF, note=OWN_WORD), f"{moment} {number} {below}"
            assert paid(project) == ["clarify", "plan-gen"] and not is_kept(project), f"{moment} {number} {below}"
            assert rows_of(project) == [(1, "done", [clarifications.CLARIFICATIONS_FILE])]
            put_back()


def test_edit_of_the_document_after_a_kill_is_kept(project: Scenario) -> None:
    killed_at_first_question(project)
    assert kill_at_write(project, "after", 1, project.folder / clarifications.CLARIFICATIONS_FILE, (*COMMAND, "--yes"))
    path = project.folder / clarifications.CLARIFICATIONS_FILE
    path.write_text(path.read_text().replace("7 days", "8 days"))
    assert proposing(project).waits() == 0
    assert answers_in(project)[-1] == "8 days"

"""Before a plan its planner asks what it must know, and the person at the terminal answers."""

import json
import shutil
from typing import Any

import pytest

from agentd.change.folder import document_hash
from agentd.change.inbox import Decision, Inbox, InboxReply
from agentd.documents import clarifications
from agentd.domain import events
from agentd.domain.terms import Lane
from plans import EXAMPLE, SIGN_IN
from playbooks import Action, say
from processes import wait_until
from program import AGENTD
from questions import (
    PROVIDERS,
    SESSION,
    THREE,
    TOKEN,
    answer,
    answers_in,
    asks,
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
from terminal import DOWN, ENTER, INTERRUPT, UP, Display, Person, start_on_terminal

WHOLE = ["clarify", "plan-gen"]


# ---- asked and answered


def test_questions_are_asked_with_reasons_and_answers_are_written(project: Scenario) -> None:
    stage_questions(project, *THREE)
    person = proposing(project)
    person.sees(lambda display: is_open(display.text, PROVIDERS) and "Something else" in display.text)
    shown = person.display.text.rstrip().splitlines()
    assert shown[shown.index(f"Question 1 of 3. {PROVIDERS['why']}") :] == [
        f"Question 1 of 3. {PROVIDERS['why']}",
        f"? {PROVIDERS['question']} (↑↓)",
        " ❯ Google and GitHub (recommended)",
        "   Google only",
        "   Any OpenID provider",
        "   Something else",
    ]
    person.press(DOWN + ENTER)
    answer(person, TOKEN, DOWN + ENTER)
    person.sees("Your answer:")
    person.press("Until 見 June" + ENTER)
    answer(person, SESSION)
    assert person.waits() == 0
    given = ((PROVIDERS, "Google only"), (TOKEN, "Until 見 June"), (SESSION, "7 days"))
    assert clarified(project) == clarifications_text(*given)
    assert rows_of(project) == [(1, "done", [clarifications.CLARIFICATIONS_FILE])]
    (digest,) = project.change.read().steps[0].outputs.values()
    assert digest == document_hash(project.folder / clarifications.CLARIFICATIONS_FILE)
    assert paid(project) == WHOLE
    assert decided(project) == [
        ("clarify-1", "Google only", "terminal", None),
        ("clarify-2", "Something else", "terminal", "Until 見 June"),
        ("clarify-3", "7 days", "terminal", None),
    ]
    context = (project.folder / "GEMINI.md").read_text()
    assert all(context.count(f"- **Answer**: {words}\n") == 1 for _, words in given)


def test_clarifications_have_the_format_of_the_example(project: Scenario) -> None:
    example = clarifications.parse_clarifications((EXAMPLE / clarifications.CLARIFICATIONS_FILE).read_text())
    questions = [
        {
            "topic": one.topic,
            "question": one.question,
            "why": one.rationale,
            "options": [one.answer, "No"],
            "recommended": one.answer,
        }
        for one in example.questions
    ]
    stage_questions(project, *questions)
    person = proposing(project)
    for one in questions:
        answer(person, one)
    assert person.waits() == 0
    text = (EXAMPLE / clarifications.CLARIFICATIONS_FILE).read_text()
    assert clarified(project) == text.replace(f"date: {example.date}", "date: today")


def test_clear_description_has_no_questions_and_no_file(project: Scenario) -> None:
    stage_questions(project)
    person = proposing(project)
    assert person.waits() == 0
    assert (questions_asked(project), clarified(project)) == ([], "")
    assert rows_of(project) == [(1, "done", [])]
    [ended] = [one.message for one in project.journal(events.StepFinished) if one.step == "clarify"]
    assert ended == "no questions" and "no questions" in person.display.text
    assert paid(project) == WHOLE


def test_custom_answer_must_not_be_empty(project: Scenario) -> None:
    stage_questions(project, TOKEN)
    person = proposing(project)
    answer(person, TOKEN, UP * 2 + ENTER)  # from the recommended one around to the last
    person.sees("Your answer:")
    person.press("  " + ENTER)
    person.sees("Please type an answer")
    person.sees(lambda display: display.text.count("Your answer:") == 2)
    person.press("Ask the users" + ENTER)
    assert person.waits() == 0
    assert answers_in(project) == ["Ask the users"]


@pytest.mark.parametrize("width", [80, 40])
def test_questions_are_readable_at_any_width(project: Scenario, width: int) -> None:
    long = {
        **PROVIDERS,
        "why": "Whoever signs in elsewhere must be registered there, reviewed there and renewed there, year by year.",
        "options": [PROVIDERS["recommended"], "Every provider that publishes its endpoints at the well-known address"],
    }
    stage_questions(project, long, plan_gen=[{"wait": 600}])
    person = proposing(project, width=width)
    person.sees(lambda display: any("❯" in line for line in display.screen) and "Something else" in display.text)
    shown = person.display.lines[person.display.lines.index("add-oauth lives here, on main") + 1 :]
    start = next(number for number, line in enumerate(shown) if line.startswith("Question 1 of 1."))
    words = " ".join(" ".join(shown[start:]).split())
    assert words == (
        f"Question 1 of 1. {long['why']} ? {long['question']} (↑↓) ❯ {long['options'][0]} (recommended) "
        f"{long['options'][1]} Something else"
    ), "no word is broken at the edge"
    assert max(map(len, shown)) <= width
    person.press(ENTER)
    person.sees(lambda display: _row(display, "✓ Questions") and _row(display, "Proposal, specs and tasks"))
    person.press(INTERRUPT)
    assert person.waits() == 130
    assert not person.display.strange


def _row(display: Display, label: str) -> bool:
    return any(label in line for line in display.screen) and display.is_whole


def test_questions_step_is_shown_while_the_planner_works(project: Scenario) -> None:
    stage_questions(project, clarify=[{"wait": 600}])
    person = proposing(project, width=40)
    person.sees(lambda display: any(line.strip()[2:].startswith("Questions") for line in display.screen))
    person.sees("· Proposal, specs and tasks")
    person.press(INTERRUPT)
    assert person.waits() == 130


# ---- cut off


def test_only_open_questions_are_asked_after_an_interrupt(project: Scenario) -> None:
    stage_questions(project, *THREE)
    person = proposing(project)
    answer(person, PROVIDERS, DOWN + ENTER)
    answer(person, TOKEN, INTERRUPT)
    assert person.waits() == 130
    assert (paid(project), clarified(project)) == (["clarify"], "")
    project.replay({"clarify": [{"fault": "crash"}]} | _writing(project))
    person = proposing(project)
    answer(person, TOKEN)
    assert PROVIDERS["question"] not in person.display.text and "Question 2 of 3." in person.display.text
    answer(person, SESSION)
    assert person.waits() == 0
    given = ((PROVIDERS, "Google only"), (TOKEN, TOKEN["recommended"]), (SESSION, "7 days"))
    assert clarified(project) == clarifications_text(*given)
    assert paid(project) == WHOLE
    assert rows_of(project) == [(1, "done", [clarifications.CLARIFICATIONS_FILE])]
    assert questions_asked(project) == ["clarify-1", "clarify-2", "clarify-2", "clarify-3"]


def _writing(box: Scenario) -> dict[str, list[Action]]:
    steps = json.loads((box.root / "playbook.json").read_text())["steps"]
    return {"plan-gen": steps["plan-gen"]}


@pytest.mark.parametrize(
    ("flags", "given"),
    [
        (("--skip-clarify",), ["Google only"]),
        (("--yes",), ["Google only", TOKEN["recommended"], "7 days"]),
    ],
)
def test_given_answers_count_when_the_remaining_questions_are_skipped(
    project: Scenario, flags: tuple[str, ...], given: list[str]
) -> None:
    stage_questions(project, *THREE)
    _interrupted(project)
    nobody = proposed_without(project)
    assert (nobody.code, nobody.json["error"]["code"]) == (1, "unanswered")
    assert proposed_without(project, *flags).code == 0
    assert answers_in(project) == given
    assert (paid(project), rows_of(project)) == (WHOLE, [(1, "done", [clarifications.CLARIFICATIONS_FILE])])


def _interrupted(box: Scenario, *flags: str) -> None:
    """With one question answered."""
    person = proposing(box, *flags)
    answer(person, PROVIDERS, DOWN + ENTER)
    answer(person, TOKEN, INTERRUPT)
    assert person.waits() == 130


def test_manual_clarifications_file_ends_the_questions(project: Scenario) -> None:
    stage_questions(project, *THREE)
    _interrupted(project)
    mine = (EXAMPLE / clarifications.CLARIFICATIONS_FILE).read_text()
    (project.folder / clarifications.CLARIFICATIONS_FILE).write_text(mine)
    person = proposing(project)
    assert person.waits() == 0
    assert (project.folder / clarifications.CLARIFICATIONS_FILE).read_text() == mine
    assert questions_asked(project) == ["clarify-1", "clarify-2"]


def test_recreated_change_has_its_own_questions(project: Scenario) -> None:
    stage_questions(project, *THREE)
    _interrupted(project)
    shutil.rmtree(project.folder)
    project.replay({"clarify": asks(SESSION)} | _writing(project))
    assert proposed_without(project, "--yes").code == 0
    assert clarified(project) == clarifications_text((SESSION, "7 days"), note=" (the planner's own recommendation)")


@pytest.mark.parametrize(
    ("first", "then"), [(("--light",), ("--light",)), (("--light",), ()), ((), ("--light",))], ids=str
)
def test_lane_can_be_changed_until_something_is_written(
    project: Scenario, first: tuple[str, ...], then: tuple[str, ...]
) -> None:
    stage_questions(project, TOKEN)
    person = _planning(project, *first)
    answer(person, TOKEN, INTERRUPT)
    assert person.waits() == 130
    person = _planning(project, *then)
    answer(person, TOKEN)
    assert person.waits() == 0
    assert project.change.read().lane is Lane.LIGHT and "stays in it" not in person.display.text
    assert paid(project) == WHOLE


def _planning(box: Scenario, *flags: str) -> Person:
    return start_on_terminal([AGENTD, "proposal", "add-oauth", SIGN_IN, *flags], box.env, width=110, height=40)


# ---- answered from elsewhere


def test_questions_can_be_answered_through_the_inbox(project: Scenario) -> None:
    stage_questions(project, *THREE)
    person = proposing(project)
    person.sees(lambda display: is_open(display.text, PROVIDERS))
    inbox = Inbox(project.change)
    asked = inbox.asked()
    assert asked and [one["id"] for one in asked["options"]] == [*PROVIDERS["options"], "Something else"]

    def post(number: int, words: str, reason: str = "") -> str:
        return inbox.post(Decision(f"clarify-{number}", words, reason, "person:ann", asked["hashes"]))

    bad = {
        "the question is clarify-1 now": post(2, TOKEN["recommended"]),
        "Facebook is not one of Google and GitHub, Google only, Any OpenID provider, Something else": post(
            1, "Facebook"
        ),
        "Something else needs a reason": post(1, "Something else"),
    }
    wait_until(lambda: all(map(inbox.has_reply, bad.values())), "all have a reply")
    assert {why: inbox.reply_to(name) for why, name in bad.items()} == {why: InboxReply(False, why) for why in bad}
    taken = post(1, "Something else", "Whatever they\nhave")
    person.sees("person:ann decided: Something else")
    assert inbox.reply_to(taken) == InboxReply(True, "taken")
    person.sees(lambda display: is_open(display.text, TOKEN))
    post(2, "Yes, for a release")
    answer(person, SESSION)
    assert person.waits() == 0
    assert answers_in(project) == ["Whatever they\nhave", "Yes, for a release", "7 days"]
    assert [(name, via) for name, _, via, _ in decided(project)] == [
        ("clarify-1", "inbox"),
        ("clarify-2", "inbox"),
        ("clarify-3", "terminal"),
    ]


# ---- planners that ask otherwise than they should


def _refused(box: Scenario, clarify: list[Action]) -> tuple[int, str, str]:
    stage_questions(box, clarify=clarify)
    ended = proposed_without(box, "--yes")
    error = ended.json["error"] or {"code": "", "message": ""}
    return ended.code, error["code"], error["message"]


def test_planner_that_sends_no_questions_is_reminded_once(project: Scenario) -> None:
    again = [{"expect": "You have not sent your questions"}, {"expect": "ask_questions"}, say("Hm again.")]
    stage_questions(project, clarify=[say("Hm.")])
    steps = json.loads((project.root / "playbook.json").read_text())["steps"]
    project.replay(steps | {"clarify/1/2": again})
    ended = proposed_without(project, "--yes")
    assert (ended.code, ended.json["error"]["code"]) == (4, "did-nothing")
    assert rows_of(project) == [(1, "failed", []), (2, "failed", [])]
    project.replay(steps | {"clarify": asks(TOKEN)})
    assert proposed_without(project, "--yes").code == 0
    assert rows_of(project)[-1] == (3, "done", [clarifications.CLARIFICATIONS_FILE])


@pytest.mark.parametrize("path", ["src/notes.py", "agentd/changes/add-oauth/clarifications.md"])
def test_planner_that_writes_during_clarify_has_failed(project: Scenario, path: str) -> None:
    writing: Action = {"write": path, "text": "# Mine\n"}
    code, error, message = _refused(project, [writing, *asks(TOKEN)])
    assert (code, error) == (4, "changed-files")
    assert f"it may only read, but {path} changed during the call" in message
    assert rows_of(project)[-1][1] == "failed" and questions_asked(project) == []
    assert clarified(project) == ""


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([{**TOKEN, "recommended": "Maybe"}], "questions[0].recommended is none of its options"),
        ([TOKEN] * 6, "questions is a list of 6"),
        ([{**TOKEN, "options": ["Yes", "Yes"], "recommended": "Yes"}], "questions[0].options has 'Yes' twice"),
        ([{**TOKEN, "options": ["Yes", " Yes"], "recommended": "Yes"}], "questions[0].options has 'Yes' twice"),
        ([{**TOKEN, "options": ["Yes"], "recommended": "Yes"}], "questions[0].options is a list of 1"),
        ([{**TOKEN, "why": " "}], 'questions[0].why is " "; send a text'),
    ],
)
def test_invalid_questions_are_refused_by_the_tool(project: Scenario, bad: list[dict[str, Any]], words: str) -> None:
    first: Action = {"call": "ask_questions", "with": {"questions": bad}, "refused": True}
    stage_questions(project, clarify=[first, *asks(TOKEN)])
    assert proposed_without(project, "--yes").code == 0
    said = [one.text for one in project.journal(events.AgentActivity) if one.ok is False]
    assert any(words in text for text in said), said
    assert answers_in(project) == [TOKEN["recommended"]]

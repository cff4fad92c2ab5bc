"""The questions before a plan: what a planner asks, and somebody at a terminal who answers."""

import re
from typing import Any

from agentd.documents import clarifications
from agentd.domain import events
from plans import SIGN_IN
from playbooks import Action, call, plan_steps, say, usage
from program import AGENTD
from scenario import Result, Scenario
from terminal import ENTER, Person, start_on_terminal

PROVIDERS: dict[str, Any] = {
    "topic": "Providers",
    "question": "Which providers should people be able to sign in with?",
    "why": "Each one is an adapter and a registration of its own.",
    "options": ["Google and GitHub", "Google only", "Any OpenID provider"],
    "recommended": "Google and GitHub",
}
TOKEN: dict[str, Any] = {
    "topic": "Shared token",
    "question": "Should the shared token in the query string keep working?",
    "why": "It ends up in logs and cannot be taken back for one person.",
    "options": ["Yes, for a release", "No, remove it in this change"],
    "recommended": "No, remove it in this change",
}
SESSION: dict[str, Any] = {
    "topic": "Session length",
    "question": "How long should a person stay signed in?",
    "why": "A long session needs a way to end it from elsewhere.",
    "options": ["7 days", "Until the browser closes"],
    "recommended": "7 days",
}
THREE = (PROVIDERS, TOKEN, SESSION)
COMMAND = ("proposal", "add-oauth", SIGN_IN, "--light")  # the documents in one session, and no verdict


def asks(*questions: dict[str, Any]) -> list[Action]:
    """The planner sends these, and costs something."""
    return [call("ask_questions", questions=list(questions)), usage(0.02), say("Asked.")]


def stage_questions(box: Scenario, *questions: dict[str, Any], workflow: str = "", **other: list[Action]) -> None:
    """A project whose planner asks these before it writes."""
    box.with_agents(plan_steps(**{"clarify": asks(*questions), **other}), workflow=workflow)


def proposing(box: Scenario, *flags: str, width: int = 110, height: int = 40) -> Person:
    """Somebody has the documents made, at a terminal."""
    return start_on_terminal([AGENTD, *COMMAND, *flags], box.env, width=width, height=height)


def proposed_without(box: Scenario, *flags: str) -> Result:
    """The same without a terminal."""
    return box.agentd(*COMMAND, *flags, "--json")


def answer(person: Person, question: dict[str, Any], keys: str = ENTER) -> None:
    """As soon as it can be answered."""
    person.sees(lambda display: is_open(display.text, question))
    person.press(keys)


def is_open(text: str, question: dict[str, Any]) -> bool:
    """Its options are there to be chosen from."""
    return "❯" in text.rpartition(question["question"])[2] and question["question"] in text


def clarified(box: Scenario) -> str:
    """clarifications.md, whatever the day."""
    path = box.folder / clarifications.CLARIFICATIONS_FILE
    return re.sub(r"date: \d{4}-\d\d-\d\d", "date: today", path.read_text()) if path.exists() else ""


def clarifications_text(*rows: tuple[dict[str, Any], str], note: str = "") -> str:
    """What these answers become, in the form of the contract's example."""
    text = "---\nchange: add-oauth\ndate: today\n---\n\n# Clarifications\n"
    for number, (one, words) in enumerate(rows, 1):
        text += f"\n## Q{number}: {one['topic']}\n\n- **Question**: {one['question']}\n- **Answer**: {words}\n"
        text += f"- **Rationale**: {one['why']}{note}\n"
    return text


def answers_in(box: Scenario) -> list[str]:
    return [
        one.answer
        for one in clarifications.parse_clarifications(
            (box.folder / clarifications.CLARIFICATIONS_FILE).read_text()
        ).questions
    ]


def rows_of(box: Scenario) -> list[tuple[int, str, list[str]]]:
    """What STATE.yaml says of the questions: attempt, how it stands, what came of it."""
    steps = [step for step in box.change.read().steps if step.name == "clarify"]
    return [(step.attempt, str(step.status), [*step.outputs]) for step in steps]


def paid(box: Scenario) -> list[str]:
    """The calls that told what they used; one that was cut off before is of unknown cost."""
    return [one.step for one in box.change.read().llm_calls if one.tokens_in is not None]


def questions_asked(box: Scenario) -> list[str]:
    return [one.id for one in box.journal(events.DecisionRequested)]


def decided(box: Scenario) -> list[tuple[str, str, str, str | None]]:
    return [(one.id, one.answer, one.via, one.reason) for one in box.journal(events.DecisionMade)]

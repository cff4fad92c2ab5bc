"""The inbox of a change: one question, decisions from anywhere, and a reply to each."""

import json
import os

import pytest

from agentd.change import lifecycle
from agentd.change.inbox import Decision, Inbox
from agentd.engine.workflows.decision_questions import Question, QuestionOption, refusal_reason
from agentd.project.layout import find_project
from scenario import Scenario, names_in

HASHES = {"proposal.md": "sha256:1", "tasks.md": "sha256:2"}
OFFERED = (QuestionOption("fix", "Fix"), QuestionOption("accept", "Accept", asks="Why?"))
QUESTION = Question(
    "after-challenge-1", "What next?", OFFERED, "fix", (QuestionOption("reject", "Reject", asks="Why?"),)
)


def decision(answer: str = "accept", question: str = "after-challenge-1", reason: str = "Good enough.") -> Decision:
    return Decision(question, answer, reason, "person:ann", HASHES)


@pytest.fixture
def inbox(project: Scenario) -> Inbox:
    return Inbox(lifecycle.create_change(find_project(), "add-oauth", "Let people sign in"))


def test_question_exists_until_it_is_closed(inbox: Inbox) -> None:
    assert inbox.asked() is None and inbox.take() is None
    inbox.open({"id": "after-challenge-1"})
    assert inbox.asked() == {"id": "after-challenge-1"}
    inbox.close("over")
    assert inbox.asked() is None


def test_decisions_are_taken_in_order_and_each_gets_a_reply(inbox: Inbox, project: Scenario) -> None:
    inbox.open({"id": "after-challenge-1"})
    first, second = inbox.post(decision("fix")), inbox.post(decision())
    assert inbox.take() == (first, decision("fix"))
    assert inbox.reply_to(first) is None and not inbox.has_reply(first)
    inbox.reply(first, True, "taken")
    assert inbox.take() == (second, decision())
    inbox.close("person:ann decided first: fix")
    told = [inbox.reply_to(name) for name in (first, second)]
    assert [(one.taken, one.why) for one in told if one] == [(True, "taken"), (False, "person:ann decided first: fix")]
    assert names_in(project.inbox) == [], "what was read is gone"


def test_decision_on_an_outdated_question_is_rejected(inbox: Inbox) -> None:
    name = inbox.post(decision())
    inbox.open({"id": "after-challenge-2"})
    assert inbox.take() is None
    reply = inbox.reply_to(name)
    assert reply and (reply.taken, reply.why) == (False, "this question has already been answered")


def test_withdrawn_decision_is_not_taken(inbox: Inbox) -> None:
    inbox.open({"id": "after-challenge-1"})
    inbox.withdraw(inbox.post(decision()))
    assert inbox.take() is None


GARBAGE = {
    "half": b'{"question": "after-chal',
    "nothing": b"",
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "not text": b"\xff\xfe\x00",
    "without hashes": json.dumps({"question": "a", "answer": "accept", "reason": "r", "by": "person:ann"}).encode(),
    "odd hashes": json.dumps(
        {"question": "a", "answer": "accept", "reason": "r", "by": "person:ann", "hashes": [1]}
    ).encode(),
}


def test_invalid_decision_files_are_rejected_and_do_not_block_others(inbox: Inbox, project: Scenario) -> None:
    inbox.open({"id": "after-challenge-1"})
    for name, data in GARBAGE.items():
        (project.inbox / f"0 {name}.json").write_bytes(data)  # before any other
    (project.inbox / "0 folder.json").mkdir()
    os.mkfifo(project.inbox / "0 pipe.json")
    (project.inbox / "note.txt").write_text("hello")
    posted = inbox.post(decision())
    assert inbox.take() == (posted, decision())
    assert inbox.has_reply("0 folder") and inbox.has_reply("0 pipe")
    told = [inbox.reply_to(f"0 {name}") for name in GARBAGE]
    assert {(one.taken, one.why) for one in told if one} == {
        (False, "this is not a valid decision")
    } and None not in told


@pytest.mark.parametrize("data", [b"{", b"[]", b"[" * 100_000])
def test_unreadable_question_is_treated_as_none(inbox: Inbox, project: Scenario, data: bytes) -> None:
    inbox.open({"id": "after-challenge-1"})
    (project.inbox / "asked.json").write_bytes(data)
    assert inbox.asked() is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (decision(), None),
        (decision("reject"), None),
        (decision("fix", reason=""), None),
        (decision(question="after-challenge-2"), "the question is after-challenge-1 now"),
        (decision("approve"), "approve is not one of fix, accept, reject"),
        (decision(reason=" \n"), "accept needs a reason"),
        (decision("reject", reason=""), "reject needs a reason"),
        (Decision("after-challenge-1", "accept", "r", "agent:codex", HASHES), "only a person can decide"),
        (Decision("after-challenge-1", "accept", "r", "person:ann", {**HASHES, "tasks.md": "sha256:3"}),
         "tasks.md changed since this was decided"),
        (Decision("after-challenge-1", "accept", "r", "person:ann", {}),
         "proposal.md, tasks.md changed since this was decided"),
        (Decision("after-challenge-1", "accept", "r", "person:ann", {**HASHES, "specs/a.md": "sha256:4"}),
         "specs/a.md changed since this was decided"),
    ],
)  # fmt: skip
def test_decision_must_match_the_question_and_the_read_hashes(given: Decision, why: str | None) -> None:
    assert refusal_reason(given, QUESTION, HASHES) == why

"""clarifications.md: the example byte for byte, and answers of every shape."""

import json
from pathlib import Path

import pytest

from agentd.documents import clarifications
from agentd.documents.clarifications import Clarification, Clarifications

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
TEXT = (EXAMPLE / "clarifications.md").read_bytes().decode()


def test_example_is_rendered_byte_for_byte() -> None:
    assert clarifications.render_clarifications(clarifications.parse_clarifications(TEXT)) == TEXT


def test_tool_call_renders_the_example() -> None:
    section = (EXAMPLE / "tools.md").read_text().split("\n## create_clarifications\n")[1]
    data = json.loads(section.split("```json\n")[1].split("```")[0])
    questions = tuple(Clarification(**one) for one in data["questions"])
    made = Clarifications(data["change_id"], "2026-01-19", questions)
    assert clarifications.render_clarifications(made) == TEXT
    assert clarifications.parse_clarifications(TEXT) == made


def test_questions_have_their_line_numbers() -> None:
    assert [one.line for one in clarifications.parse_clarifications(TEXT).questions] == [8, 14, 20]


@pytest.mark.parametrize(
    "body",
    [
        "## Q1: Topic\n\n- **Question**: q\n- **Answer**: a\n",
        "### Question 1 - Topic\n**Question**: q\n\n**Answer**: a\n",
        "## Q1. Topic\n\nQuestion: q\nAnswer:\n\na\n",
        "\ufeff## q1 Topic\r\n\r\n* **Question:** q\r\n* **Answer:** a\r\n",
    ],
)
def test_alternative_formats_are_parsed(body: str) -> None:
    assert clarifications.parse_clarifications(body).questions == (Clarification("Topic", "q", "a"),)


@pytest.mark.parametrize(
    "answer",
    ["one\ntwo", "one\n\ntwo", "one\n- two\n- **Rationale**: three", "see\n```\n# code\n```\nend", "  indented", ""],
)
def test_multiline_answer_round_trips(answer: str) -> None:
    made = Clarifications("x", "2026-01-19", (Clarification("T", "q", answer, "r"), Clarification("U", "q", "a")))
    found = clarifications.parse_clarifications(clarifications.render_clarifications(made))
    assert [one.topic for one in found.questions] == ["T", "U"]
    assert found.questions[0].answer == answer.strip()
    assert found.questions[0].rationale == "r"


@pytest.mark.parametrize("answer", ["a\n## Q9: injected", "a\n```\nnever closed", "<!-- never closed"])
def test_answer_cannot_break_the_surrounding_document(answer: str) -> None:
    made = Clarifications("x", "2026-01-19", (Clarification("T", "q", answer, "r"), Clarification("U", "q", "a")))
    found = clarifications.parse_clarifications(clarifications.render_clarifications(made))
    assert [(one.topic, one.rationale) for one in found.questions] == [("T", "r"), ("U", "")]

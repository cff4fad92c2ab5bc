"""Questions that are answered before they are asked: by a file, by another session, by flags, or not at all."""

import json
import os
import subprocess
import threading
from typing import Any

import pytest

from agentd.agents.playbook_player import McpClient
from agentd.change.locator import ChangeLocator
from agentd.documents import clarifications
from agentd.domain import events
from agentd.project.layout import find_project
from plans import EXAMPLE, SIGN_IN
from program import AGENTD, PATIENCE
from questions import (
    COMMAND,
    SESSION,
    THREE,
    TOKEN,
    answer,
    answers_in,
    clarifications_text,
    clarified,
    decided,
    paid,
    proposed_without,
    proposing,
    questions_asked,
    rows_of,
    stage_questions,
)
from scenario import NO_REVIEWS, Result, Scenario, project_files
from terminal import INTERRUPT, start_on_terminal

ROWS = [
    {"topic": "Providers", "question": "Which ones?", "answer": " Google ", "rationale": "All have it."},
    {"topic": "Token", "question": "Does it stay?", "answer": "No"},
]
FORM = '[{"topic": "…", "question": "…", "answer": "…", "rationale": "…"}], at most 5'


def answers_file(box: Scenario, data: Any, name: str = "answers.json") -> str:
    """Beside the project, where it changes nothing."""
    path = box.home / name
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return str(path)


def given(box: Scenario, path: str, *flags: str) -> Result:
    return proposed_without(box, "--clarifications", path, *flags)


# ---- by a file


@pytest.mark.parametrize("data", [ROWS, {"questions": ROWS}, {"change_id": "add-oauth", "questions": ROWS}])
def test_answers_file_accepts_a_list_or_a_tool_call(project: Scenario, data: Any) -> None:
    stage_questions(project, *THREE)
    ended = given(project, answers_file(project, data))
    assert ended.code == 0, ended.out
    assert clarified(project) == (
        "---\nchange: add-oauth\ndate: today\n---\n\n# Clarifications\n\n"
        "## Q1: Providers\n\n- **Question**: Which ones?\n- **Answer**: Google\n- **Rationale**: All have it.\n\n"
        "## Q2: Token\n\n- **Question**: Does it stay?\n- **Answer**: No\n"
    )
    assert (paid(project), questions_asked(project)) == (["plan-gen"], [])
    assert rows_of(project) == [(1, "skipped", [clarifications.CLARIFICATIONS_FILE])]
    assert "- **Answer**: Google\n" in (project.folder / "GEMINI.md").read_text()
    assert ended.json["files"][0].endswith(clarifications.CLARIFICATIONS_FILE)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'[{"topic": ', "is not JSON: Expecting value: line 1 column 12"),
        (b"\xff\xfe", "is not JSON: "),
        (b"", "is not JSON: "),
        (b"[" * 200_000, "is not JSON: "),
        ([], "questions is a list of 0; send a list of 1 to 5"),
        (ROWS * 3, "questions is a list of 6; send a list of 1 to 5"),
        ("Google", 'questions is "Google"; send a list of 1 to 5'),
        ({"answers": ROWS}, "questions is nothing; send a list of 1 to 5"),
        ([{"topic": "A", "question": "B?"}], "questions[0].answer is missing; add it"),
        ([ROWS[0], {**ROWS[1], "answer": 7}], "questions[1].answer is 7; send a text in quotes that is not empty"),
        ([{**ROWS[0], "anser": "A"}], "unknown key questions[0].anser; did you mean answer?"),
        ([{**ROWS[0], "topic": "A\n## Q9: B"}], "questions[0].topic is a text with a line break; send a single line"),
        (
            [{**ROWS[0], "answer": "x" * 2001}],
            "questions[0].answer is a text of 2001 characters; send at most 2000 characters",
        ),
    ],
)
def test_invalid_answers_file_is_refused_and_nothing_is_written(project: Scenario, data: Any, words: str) -> None:
    stage_questions(project)
    path, before = answers_file(project, data), project_files(project.root)
    ended = given(project, path)
    error = ended.json["error"]
    assert (ended.code, error["hint"]) == (2, FORM)
    assert error["message"].startswith(path) and words in error["message"]
    assert project_files(project.root) == before


def test_unreadable_answers_path_is_refused(project: Scenario) -> None:
    stage_questions(project)
    before = project_files(project.root)
    for path in (str(project.home), str(project.home / "no-such.json"), "/proc/self/mem"):
        ended = given(project, path)
        assert ended.code == 2 and path in ended.out + ended.err
    assert project_files(project.root) == before


def test_answers_can_be_read_from_a_pipe(project: Scenario) -> None:
    stage_questions(project)
    pipe = project.home / "answers"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=[json.dumps(ROWS)])
    writer.start()
    ended = subprocess.run(
        [AGENTD, *COMMAND, "--clarifications", str(pipe)],
        cwd=project.root,
        env=project.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    writer.join()
    assert ended.returncode == 0, ended.stderr
    assert answers_in(project) == ["Google", "No"]


def test_late_answers_file_is_ignored_with_a_note(project: Scenario) -> None:
    stage_questions(project, plan_gen=[{"fault": "crash"}])
    assert proposed_without(project, "--skip-clarify").code == 4
    assert given(project, answers_file(project, ROWS)).code == 4
    assert clarified(project) == ""
    notes = [one.message for one in project.journal(events.NoticeIssued) if one.code == "clarifications"]
    assert notes == ["add-oauth is past its questions, so the answers in the file are ignored"]


def test_answers_file_ends_open_questions(project: Scenario) -> None:
    stage_questions(project, *THREE)
    person = proposing(project)
    answer(person, THREE[0])
    answer(person, TOKEN, INTERRUPT)
    assert person.waits() == 130
    assert given(project, answers_file(project, ROWS)).code == 0
    assert answers_in(project) == ["Google", "No"]
    assert rows_of(project) == [(1, "done", [clarifications.CLARIFICATIONS_FILE])]


# ---- words of any kind

WILD = [
    "One line\nand another\n\nand a paragraph",
    "# A title\n## Q2: Not a question\n- **Answer**: not this\n\n---\nchange: other\n---",
    "```\nan open fence",
    "x" * 2000,
    "سلام، 見る、привет 🎉\u2028e\u0301",
]


def test_arbitrary_answers_give_a_valid_document(project: Scenario) -> None:
    rows = [
        {"topic": f"Topic {number} ##", "question": words[:400], "answer": words} for number, words in enumerate(WILD)
    ]
    stage_questions(project)
    assert given(project, answers_file(project, rows)).code == 0
    checked = project.agentd("validate", "add-oauth", "--strict", "--json")
    assert [one for one in checked.json["findings"] if one["file"] == clarifications.CLARIFICATIONS_FILE] == []
    found = clarifications.parse_clarifications((project.folder / clarifications.CLARIFICATIONS_FILE).read_text())
    assert (found.change, len(found.questions)) == ("add-oauth", len(WILD))
    said = [one.answer for one in found.questions]
    assert (said[0], said[3:]) == (WILD[0], WILD[3:])
    assert "Not a question" in said[1] and "change: other" in said[1] and "an open fence" in said[2]


def test_hostile_question_is_shown_on_one_line_and_written_completely(project: Scenario) -> None:
    wild = {
        **TOKEN,
        "question": "Is\n## Q7: this\n- **Answer**: one?",
        "why": "It \x1b[31mmatters\nmuch",
        "topic": "見 #",
    }
    stage_questions(project, wild)
    person = proposing(project)
    person.sees("? Is ## Q7: this - **Answer**: one? (↑↓)")
    person.sees("Question 1 of 1. It �[31mmatters much")
    person.press("\r")
    assert person.waits() == 0
    (found,) = clarifications.parse_clarifications(
        (project.folder / clarifications.CLARIFICATIONS_FILE).read_text()
    ).questions
    assert found.answer == TOKEN["recommended"] and "Q7: this" in found.question
    checked = project.agentd("validate", "add-oauth", "--strict", "--json")
    assert [one for one in checked.json["findings"] if one["file"] == clarifications.CLARIFICATIONS_FILE] == []


# ---- by another session


def test_change_clarified_by_another_session_keeps_its_id_and_asks_nothing(project: Scenario) -> None:
    stage_questions(project, *THREE)
    server = McpClient((AGENTD, "mcp"))
    server.greet()
    refused, told = server.call("create_clarifications", {"change_id": "add-oauth", "questions": ROWS})
    server.close()
    assert not refused, told
    text = clarified(project)
    shown = project.agentd("plan", "add-oauth", SIGN_IN, "--dry-run", "--json")
    assert "clarify" not in [one["step"] for one in shown.json["steps"]]
    person = start_on_terminal([AGENTD, *COMMAND], project.env, width=110, height=40)
    assert person.waits() == 0
    assert (clarified(project), answers_in(project)) == (text, ["Google", "No"])
    assert [one.id for one in ChangeLocator(find_project()).open()] == ["add-oauth"]
    assert (paid(project), rows_of(project)) == (["plan-gen"], [(1, "skipped", [clarifications.CLARIFICATIONS_FILE])])
    assert "Questions" not in person.display.text


# ---- by flags, and by nobody


def test_missing_terminal_names_the_three_flags_and_writes_nothing(project: Scenario) -> None:
    stage_questions(project, *THREE)
    before = project_files(project.root)
    for command in ("plan", "proposal"):
        ended = project.agentd(command, "add-oauth", SIGN_IN)
        assert ended.code == 1 and "nobody is available to answer questions about add-oauth" in ended.err
        words = " ".join(ended.err.split())
        assert all(flag in words for flag in ("--skip-clarify", "--clarifications FILE.json", "--yes"))
    assert project_files(project.root) == before


def test_skip_clarify_also_applies_on_a_terminal(project: Scenario) -> None:
    stage_questions(project, *THREE)
    assert proposing(project, "--skip-clarify").waits() == 0
    assert (paid(project), clarified(project), rows_of(project)) == (["plan-gen"], "", [(1, "skipped", [])])


def test_yes_takes_the_recommended_answers_and_records_that(project: Scenario) -> None:
    stage_questions(project, *THREE)
    assert proposed_without(project, "--yes").code == 0
    rows = [(one, one["recommended"]) for one in THREE]
    assert clarified(project) == clarifications_text(*rows, note=" (the planner's own recommendation)")
    assert [(name, via) for name, _, via, _ in decided(project)] == [(f"clarify-{n}", "flag") for n in (1, 2, 3)]
    assert rows_of(project) == [(1, "done", [clarifications.CLARIFICATIONS_FILE])]


def test_project_without_human_in_loop_asks_nothing(project: Scenario) -> None:
    stage_questions(project, *THREE, workflow=f"human_in_loop = false\n{NO_REVIEWS}")
    person = start_on_terminal([AGENTD, "proposal", "add-oauth", SIGN_IN], project.env, width=110, height=40)
    assert person.waits() == 0
    assert (project.started_steps(), rows_of(project)) == (["plan-gen"], [(1, "skipped", [])])


# ---- a dry run


def steps_ahead(box: Scenario, *flags: str) -> list[str]:
    before = project_files(box.root)
    shown = box.agentd("plan", "add-oauth", SIGN_IN, "--dry-run", "--json", *flags)
    assert project_files(box.root) == before
    return [one["step"] for one in shown.json["steps"]]


def test_dry_run_shows_whether_questions_would_be_asked(project: Scenario) -> None:
    stage_questions(project, SESSION, clarify=[{"fault": "crash"}])
    rest = ["plan-gen", "challenge"]
    path = answers_file(project, ROWS)
    assert steps_ahead(project, "--light") == ["clarify", *rest]
    assert steps_ahead(project, "--light", "--skip-clarify") == rest
    assert steps_ahead(project, "--light", "--clarifications", path) == rest
    assert proposed_without(project, "--yes").code == 4
    assert steps_ahead(project, "--light") == ["clarify", *rest], "they are still to come"
    (project.folder / clarifications.CLARIFICATIONS_FILE).write_text(
        (EXAMPLE / clarifications.CLARIFICATIONS_FILE).read_text()
    )
    assert steps_ahead(project, "--light") == rest
    assert project.change.read().run is not None

"""Questions on a terminal: answered with arrow keys, left with Esc or Ctrl-C, drawn on stderr."""

import os
import sys
from pathlib import Path

import pytest

from terminal import DOWN, ENTER, ESCAPE, INTERRUPT, UP, Person, start_on_terminal

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
LABELS = ("Fix and challenge again", "Look at it", "Accept with a reason", "Stop here")
QUESTION = "The challenge found 1 high, 1 medium and 1 low. What next?"
OPTIONS = """(
    PromptOption("fix", "Fix and challenge again", "The planner answers each finding, then the challenger looks again"),
    PromptOption("view", "Look at it"),
    PromptOption("accept", "Accept with a reason"),
    PromptOption("stop", "Stop here"),
)"""
ASK = f"ask_choice({QUESTION!r}, {OPTIONS}, 'fix')"


def answering(call: str, width: int = 80, first: str = "", **env: str) -> Person:
    """A program that asks and tells the answer on stdout."""
    code = f"""
from agentd.cli.terminal_prompts import *
{first}
try:
    print("The answer is", repr({call}))
except KeyboardInterrupt:
    print("No answer")
"""
    return start_on_terminal([sys.executable, "-c", code], {**ENV, **env}, width)


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    ("keys", "answer"),
    [("", "fix"), (DOWN, "view"), (DOWN * 2, "accept"), (UP, "stop"), (DOWN * 2 + UP, "view")],
    ids=["none", "down", "down twice", "up", "down and up"],
)
def test_arrow_keys_select_an_option(width: int, keys: str, answer: str) -> None:
    person = answering(ASK, width)
    person.sees(LABELS[-1])
    words = " ".join(person.display.text.split())
    assert "❯ Fix and challenge again (recommended) The planner answers each finding, then the" in words
    assert all(label in words for label in LABELS)
    assert max(map(len, person.display.lines)) < width
    person.press(keys)
    person.press(ENTER)
    assert person.waits() == 0
    assert f"The answer is '{answer}'" in person.display.text
    assert not person.display.strange


def test_question_and_answer_stay_on_screen_without_the_options() -> None:
    person = answering(ASK)
    person.sees(LABELS[-1])
    person.press(DOWN + ENTER)
    person.waits()
    assert person.display.lines[:2] == [f"? {QUESTION} Look at it", "The answer is 'view'"]


def test_recommended_option_is_preselected() -> None:
    person = answering(ASK.replace("'fix')", "'accept')"))
    person.sees("❯ Accept with a reason (recommended)")
    person.press(ENTER)
    person.waits()
    assert "The answer is 'accept'" in person.display.text


def test_first_option_is_preselected_without_a_recommendation() -> None:
    person = answering(ASK.replace("'fix')", "None)"))
    person.sees("❯ Fix and challenge again")
    assert "recommended" not in person.display.text
    person.press(ENTER)
    person.waits()
    assert "The answer is 'fix'" in person.display.text


@pytest.mark.parametrize("key", [ESCAPE, INTERRUPT], ids=["Esc", "Ctrl-C"])
@pytest.mark.parametrize(("call", "shown"), [(ASK, LABELS[-1]), ("ask_text('Why?')", "Why?")])
def test_question_can_be_cancelled(call: str, shown: str, key: str) -> None:
    person = answering(call)
    person.sees(shown)
    person.press(key)
    assert person.waits() == 0
    assert person.display.lines[-2] == "No answer"


def test_keys_pressed_before_the_question_are_ignored() -> None:
    person = answering(ASK, first="import select, sys; print('Busy', flush=True); select.select([sys.stdin], [], [])")
    person.sees("Busy")
    person.press("\n" * 3)
    person.sees("❯ Fix and challenge again")
    person.press(DOWN + ENTER)
    person.waits()
    assert "The answer is 'view'" in person.display.text


def test_reason_must_not_be_empty() -> None:
    person = answering("ask_text('Why?')", 40)
    person.sees("Why?")
    person.press(f"   {ENTER}")
    person.sees("Please type an answer")
    person.press(f"  it is {ENTER}")
    person.waits()
    assert "The answer is 'it is'" in person.display.text


def test_confirm_when_ready_waits_for_enter() -> None:
    person = answering("confirm_when_ready('Press Enter when the files are right.')", 40)
    person.sees("right.")
    person.press(ENTER)
    assert person.waits() == 0
    assert "The answer is None" in person.display.text


def test_dumb_terminal_gets_numbered_options() -> None:
    person = answering(ASK, TERM="dumb")
    person.sees("1 to 4:")
    assert "1  Fix and challenge again (recommended)" in person.display.text
    person.press("9\n")
    person.sees(lambda display: display.text.count("1 to 4:") == 2)
    person.press("3\n")
    person.waits()
    assert "The answer is 'accept'" in person.display.text
    assert b"\x1b" not in person.raw


def test_control_characters_in_questions_do_not_move_the_cursor() -> None:
    evil = (
        r"'Who\x1b[2J\n\n\u202e?', [PromptOption('a', 'A\x1b[H\nB', 'why\x1b[2J'), PromptOption('b', '变更' * 60)], 'a'"
    )
    person = answering(f"ask_choice({evil})", 40)
    person.sees("变更")
    assert b"\x1b[2J\xef" not in person.raw and "\u202e" not in person.raw.decode()
    assert "A�[H B" in person.display.text and "Who�[2J �?" in person.display.text
    person.press(ENTER)
    person.waits()
    assert "The answer is 'a'" in person.display.text


def test_no_color_disables_colors() -> None:
    person = answering(ASK, NO_COLOR="1")
    person.sees(LABELS[-1])
    person.press(ENTER)
    person.waits()
    assert b"[36m" not in person.raw and b"[90m" not in person.raw and b";36m" not in person.raw


def test_stdout_is_reserved_for_the_result(tmp_path: Path) -> None:
    code = f"from agentd.cli.terminal_prompts import *\nprint({ASK})"
    out = tmp_path / "out"
    person = start_on_terminal(["/bin/sh", "-c", 'exec "$0" -c "$1" > "$2"', sys.executable, code, str(out)], ENV)
    person.sees(LABELS[-1])
    person.press(ENTER)
    assert person.waits() == 0
    assert out.read_text() == "fix\n"

"""A run as a person sees it: a list of steps that fills in on a terminal, plain lines elsewhere."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from live_events import COURSE, did, started

from agentd.cli import live_display
from agentd.engine.workflows.progress import ProgressBoard
from scenario import Result
from terminal import ENTER, Display, Person, start_on_terminal

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parent)}
HEAD = "import sys\nfrom live_events import *\n"
LABELS = [one.label for one in COURSE]

# A usual run: two steps done, one failed and tried again, one at work.
USUAL = """
with watch_run("plan add-oauth", lambda: COURSE, "live") as view:
    view(started("proposal-gen"))
    view(used("proposal-gen"))
    view(finished("proposal-gen"))
    view(started("proposal-review"))
    view(finished("proposal-review", message="Review 1: PASS", ms=12_000))
    view(started("spec-gen-auth-flow"))
    view(failed("spec-gen-auth-flow", "gemini: 429, too many requests", 7.0))
    view(finished("spec-gen-auth-flow", status="failed", ms=22_000))
    wait()
    view(started("spec-gen-auth-flow", attempt=2))
    view(did("spec-gen-auth-flow", "create_spec"))
    wait()
    view(finished("spec-gen-auth-flow", ms=31_000))
    view(started("spec-gen-user-model"))
"""


def driven(code: str) -> list[str]:
    """A program that shows a run and goes on, at each `wait()`, when Enter is pressed."""
    return [sys.executable, "-c", f"{HEAD}\nwait = sys.stdin.readline\n{code}"]


def seen_by_person(code: str, width: int = 80, height: int = 24, **env: str) -> Person:
    return start_on_terminal(driven(code), {**ENV, **env}, width, height)


def piped(code: str, **env: str) -> Result:
    done = subprocess.run(
        driven(code), env={**ENV, **env}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


def shows(*words: str) -> Callable[[Display], bool]:
    """All of it on the screen at once, in a whole picture."""
    return lambda display: all(any(word in line for line in display.screen) for word in words) and display.is_whole


def row(person: Person, label: str) -> str:
    return next(line for line in person.display.screen if label in line)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_live_view_shows_step_progress(width: int) -> None:
    person = seen_by_person(USUAL, width)
    person.sees(shows("↻ Spec 1/2: auth-flow"))
    assert row(person, "✓ Proposal").endswith("0:38") and "0:12" in row(person, "✓ Review")
    assert "Review 1: PASS" in person.display.text
    assert "retrying in" in person.display.text and "429, too many" in person.display.text
    assert [label for label in LABELS if f"· {label}" in person.display.text] == LABELS[3:]
    person.press(ENTER)
    person.sees(shows("create_spec"))
    assert "attempt 2" in person.display.text
    assert ("gemini, gemini-3-flash-preview" in person.display.text) == (width > 40)
    assert "0.01 USD, 0.20 USD in all" in person.display.text
    assert max(map(len, person.display.lines)) < width
    person.press(ENTER)
    assert person.waits() == 0
    assert not person.display.strange


@pytest.mark.parametrize("width", [40, 80, 200])
def test_finished_list_stays_on_screen_once(width: int) -> None:
    person = seen_by_person(USUAL, width)
    person.sees(shows("plan add-oauth"))
    person.press(ENTER * 2)
    assert person.waits() == 0
    text = person.display.text
    assert [sum(line[4:].startswith(label) for line in text.splitlines()) for label in LABELS] == [1, 1, 1, 1, 0, 0]
    assert text.splitlines()[0] == "plan add-oauth" and text.count("plan add-oauth") == 1
    assert "0:53" in row(person, "✓ Spec 1/2: auth-flow") and "2 attempts" in text  # both tries
    assert "■ Spec 2/2: user-model" in text and "interrupted" in text
    assert "… 2 steps not started" in text


def test_steps_with_negative_results_are_marked_differently() -> None:
    code = """
with watch_run("t", lambda: COURSE, "live") as view:
    view(started("challenge"))
    view(finished("challenge", message="NEEDS_REVISION"))
    view(started("checks", agent=None))
    view(checked("checks", "tests", "failed"))
    view(checked("checks", "lint", "passed"))
    view(finished("checks", message="1 failed, 1 passed"))
    view(started("review"))
    view(finished("review", message="APPROVED"))
"""
    person = seen_by_person(code)
    person.waits()
    assert row(person, "! Challenge") and row(person, "✗ Checks") and row(person, "✓ Review")
    for mark in ("\x1b[33m!", "\x1b[31m✗", "\x1b[32m✓"):
        assert mark in person.raw.decode()
    plain = seen_by_person(code, NO_COLOR="1")
    plain.waits()
    assert row(plain, "! Challenge") and row(plain, "✗ Checks") and row(plain, "✓ Review")


@pytest.mark.parametrize(("exit_code", "is_told"), [(1, False), (7, True)], ids=["as asked", "over budget"])
def test_remaining_steps_are_mentioned_only_if_the_run_was_cut_short(exit_code: int, is_told: bool) -> None:
    code = f"""
with watch_run("t", lambda: COURSE, "live") as view:
    view(started("proposal-gen"))
    view(finished("proposal-gen"))
    view(over({exit_code}))
"""
    person = seen_by_person(code)
    person.waits()
    assert ("… 5 steps not started" in person.display.text) == is_told


def test_final_failure_shows_its_reason() -> None:
    code = """
with watch_run("t", lambda: COURSE, "live") as view:
    view(started("proposal-gen"))
    view(failed("proposal-gen", "gemini: it ended with exit code 3"))
    view(finished("proposal-gen", status="failed"))
"""
    person = seen_by_person(code)
    person.waits()
    lines = person.display.lines
    place = next(number for number, line in enumerate(lines) if "✗ Proposal" in line)
    assert lines[place + 1].strip() == "gemini: it ended with exit code 3"


def test_silent_agent_is_reported_after_a_while() -> None:
    board = ProgressBoard(lambda: COURSE)
    board.add(started("proposal-gen").event, 100.0)
    board.add(did("proposal-gen", "read_file").event, 105.0)

    def picture(at: float) -> str:
        return "\n".join(line.plain for line in live_display.running_frame("t", board, 90.0, at, 80, 24))

    assert "      ✓ read_file" in picture(114.0) and "quiet" not in picture(114.0)
    assert "      quiet for 0:15, ✓ read_file" in picture(120.0)
    assert " Proposal               0:20  gemini" in picture(120.0) and picture(120.0).endswith("  0:30")
    board.add(did("proposal-gen", "create_proposal", ok=None).event, 121.0)
    assert "      … create_proposal" in picture(122.0)
    board.add(started("checks", agent=None).event, 200.0)
    assert "quiet" not in picture(300.0).partition("Checks")[2]  # agentd is at work, and says how long


def test_earlier_steps_are_done_and_unplanned_steps_are_inserted() -> None:
    code = """
with watch_run("t", lambda: COURSE, "live") as view:
    view(started("tasks-gen"))
    view(finished("tasks-gen"))
    view(started("format-fix", round_=2, agent=None))
    wait()
"""
    person = seen_by_person(code)
    person.sees(shows("Format fix, round 2"))
    marks = [line.split(maxsplit=1) for line in person.display.screen if line.startswith("  ") and line.strip()]
    assert [(mark, words) for mark, words in marks[:4]] == [("✓", label) for label in LABELS[:4]]
    assert marks[4][1].startswith("Tasks") and marks[5][1].startswith("Format fix") and marks[6] == ["·", "Challenge"]
    person.press(ENTER)
    person.waits()


def test_planned_steps_can_grow_during_a_run() -> None:
    code = """
known = [COURSE[0]]
with watch_run("t", lambda: known, "live") as view:
    view(started("proposal-gen"))
    wait()
    known = COURSE
    view(finished("proposal-gen"))
    wait()
"""
    person = seen_by_person(code)
    person.sees(shows("Proposal"))
    assert "Challenge" not in person.display.text
    person.press(ENTER)
    person.sees(shows("· Challenge", "✓ Proposal"))
    person.press(ENTER)
    assert person.waits() == 0


def test_warnings_stay_above_the_list() -> None:
    code = """
with watch_run("the title", lambda: COURSE, "live") as view:
    view(started("proposal-gen"))
    for number in range(40):
        view(warned(f"warning number {number}", "proposal-gen"))
        view(entry(events.NoticeIssued(code="n", message=f"note number {number}")))
    wait()
    view(finished("proposal-gen"))
"""
    person = seen_by_person(code)
    person.sees(shows("the title", "Proposal"))
    person.press(ENTER)
    person.waits()
    text = person.display.text
    for number in range(40):
        assert text.count(f"Proposal: warning: warning number {number}\n") == 1
        assert text.count(f"note number {number}\n") == 1
    assert text.index("number 39") < text.index("the title") < text.index("✓ Proposal")
    assert text.count("the title") == 1


LONG = """
with watch_run("the title", course([f"step number {n}" for n in range(60)]), "live") as view:
    for number in range(30):
        view(started(f"s{number}"))
        view(finished(f"s{number}"))
    view(started("s30"))
    view(did("s30", "create_spec"))
    wait()
"""


@pytest.mark.parametrize("height", [24, 10, 5])
def test_long_list_folds_around_the_current_step(height: int) -> None:
    person = seen_by_person(LONG, 80, height)
    person.sees(shows("step number 30", "create_spec"))
    screen = person.display.screen
    assert len(person.display.lines) <= height
    assert any(re.search(r"\d:\d\d", line) and "tokens" not in line for line in screen[-2:])  # the foot
    if height == 24:
        assert screen[0] == "the title"
        assert "  … 28 steps done" in screen and "✓ step number 29" in person.display.text
        assert "· step number 31" in person.display.text and any(line.endswith(" more") for line in screen)
    person.press(ENTER)
    assert person.waits() == 0
    assert [f"step number {n} " in person.display.text for n in range(31)] == [True] * 31
    assert person.display.text.count("step number 30") == 1


@pytest.mark.parametrize(("before", "after"), [(120, 50), (80, 40), (40, 120)])
def test_window_can_be_resized(before: int, after: int) -> None:
    code = USUAL.replace('"create_spec"', '"words " * 30').replace('"plan add-oauth"', '"The title is long. " * 10')
    person = seen_by_person(code, before)
    person.sees(shows("↻ Spec 1/2: auth-flow"))
    person.press(ENTER)
    person.sees(shows("words words"))
    person.resize(after)
    drawn = len(person.raw)
    person.sees(lambda display: len(person.raw) > drawn + 4000)
    person.press(ENTER)
    person.waits()
    assert person.display.text.count("The title") == person.display.lines[0].count("The title")
    assert person.display.text.count("✓ Proposal") == 1
    assert max(map(len, person.display.lines)) < after


HOSTILE = {
    "escape codes": r'"\x1b[2J\x1b[H\x1b]0;owned\x07gone\x9b2J"',
    "newlines": r'"one\ntwo\r\nthree\x0b\x0cfour\u2028five\x85six"',
    "other directions": r'"abc\u202egpj.exe\u2066\u200f\ud800"',
    "a megabyte": '"word " * 200_000',
    "wide letters": '"变更" * 200',
    "letters of doubtful width": r'"e\u0301\u200b\U0001f469\u200d\U0001f469" * 200',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("mode", ["live", "lines"])
def test_control_characters_from_agents_do_not_move_the_cursor(text: str, mode: str) -> None:
    code = f"""
said = {text}
with watch_run("The title " + said, course([said, "Review"]), "{mode}") as view:
    view(started("s0", agent=said))
    view(did("s0", said, "text"))
    view(warned(said))
    view(failed("s0", said, 3.0))
    look()
    view(started("s0", attempt=2))
    view(finished("s0", message=said))
    view(started("s1"))
    look()
"""
    person = seen_by_person(code)
    person.sees(lambda display: display.text.count("Review") > 0)
    assert person.waits() == 0
    raw = person.raw.decode()
    assert not person.display.strange
    assert not any(char in raw for char in "\x9b\x07\x85\u202e\u2066\u200f\u2028") and "\x1b[2J" not in raw
    assert person.display.text.count("Review") == 1
    assert person.display.text.count("The title") == (mode == "live")
    assert len(person.display.lines) < 60


def test_pause_hides_the_list_during_a_question() -> None:
    code = """
with watch_run("the title", lambda: COURSE, "live") as view:
    view(started("proposal-gen"))
    wait()
    with view.pause():
        print("What now? ", end="", file=sys.stderr, flush=True)
        view(warned("while you think"))
        look()
        print("Say: ", end="", file=sys.stderr, flush=True)
        answer = wait()
    view(finished("proposal-gen", message=answer))
    wait()
"""
    person = seen_by_person(code)
    person.sees(shows("the title", "Proposal"))
    person.press("unseen")  # an impatient person
    person.press(ENTER)
    person.sees(lambda display: display.lines == ["What now? Say:"])
    person.press("go on")
    person.press(ENTER)
    person.sees(shows("✓ Proposal", "the title"))
    assert "unseen" not in person.display.text
    assert person.display.lines[:2] == ["What now? Say: go on", "warning: while you think"]
    person.press(ENTER)
    assert person.waits() == 0
    assert person.display.text.count("✓ Proposal") == 1


def test_pressing_enter_does_not_scroll_the_list() -> None:
    person = seen_by_person(USUAL)
    person.sees(shows("↻ Spec 1/2: auth-flow"))
    person.press(ENTER * 9)
    person.waits()
    assert person.display.text.count("plan add-oauth") == 1


def test_terminal_is_restored_after_an_interrupt() -> None:
    code = f"import subprocess\ntry:\n{USUAL.replace(chr(10), chr(10) + '    ')}\nexcept KeyboardInterrupt: pass\n"
    person = seen_by_person(code + "subprocess.run(['stty', '-a'])")
    person.sees(shows("↻ Spec 1/2: auth-flow"))
    os.kill(person.pid, signal.SIGINT)
    assert person.waits() == 0
    assert " echo " in person.display.text and "-echo " not in person.display.text
    assert "↻ Spec 1/2: auth-flow" in person.display.text
    assert person.display.wraps


def test_events_from_several_threads_are_shown() -> None:
    code = """
import threading
def tell(name):
    for number in range(50):
        view(started(f"{name}{number}"))
        view(did(f"{name}{number}", "x"))
        view(warned(f"{name} {number} warns"))
        view(finished(f"{name}{number}"))
with watch_run("t", lambda: COURSE, MODE) as view:
    threads = [threading.Thread(target=tell, args=(name,)) for name in "ab"]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""
    person = seen_by_person(f'MODE = "live"\n{code}')
    assert person.waits() == 0
    for name in "ab":
        assert all(person.display.text.count(f"warning: {name} {number} warns\n") == 1 for number in range(50))
        assert all(person.display.text.count(f"✓ {name.upper()}{number} ") == 1 for number in range(50))
    lines = piped(f'MODE = "lines"\n{code}').err.splitlines()
    assert len(lines) == 300 and sum("warns" in line for line in lines) == 100
    told = piped(f'MODE = "events"\n{code}').out.splitlines()
    assert len([json.loads(line) for line in told]) == 400


def test_no_color_disables_colors() -> None:
    person = seen_by_person(USUAL, NO_COLOR="1")
    person.press(ENTER * 2)
    person.waits()
    assert "✓ Proposal" in person.display.text and not person.display.is_bright
    person = seen_by_person(USUAL)
    person.press(ENTER * 2)
    person.waits()
    assert person.display.is_bright


def test_dumb_terminal_gets_plain_lines() -> None:
    person = seen_by_person(USUAL, TERM="dumb")
    person.press(ENTER * 2)
    assert person.waits() == 0
    assert b"\x1b" not in person.raw
    assert "Proposal  done after 38 s" in person.display.text


def test_background_job_prints_lines_instead_of_drawing() -> None:
    code = f"import os, signal\nsignal.signal(signal.SIGTTOU, signal.SIG_IGN)\nos.setpgid(0, 0)\n{USUAL}"
    inner = driven(code.replace("wait()", ""))
    code = f"import subprocess\nsubprocess.run({inner!r}, stdin=subprocess.DEVNULL)"
    person = seen_by_person(code)
    assert person.waits() == 0
    assert b"\x1b" not in person.raw and "Proposal  done after 38 s" in person.display.text


def test_piped_output_has_a_plain_line_per_important_event() -> None:
    ran = piped(
        """
with watch_run("t", lambda: COURSE, "live") as view:
    view(entry(events.RunStarted(workflow="plan", command="agentd plan add-oauth")))
    view(started("spec-gen-auth-flow"))
    view(did("spec-gen-auth-flow", "read_file"))
    view(used("spec-gen-auth-flow"))
    view(failed("spec-gen-auth-flow", "gemini: 429", 7.0))
    view(finished("spec-gen-auth-flow", status="failed"))
    view(started("spec-gen-auth-flow", attempt=2))
    view(finished("spec-gen-auth-flow", message="written"))
    view(warned("no price is known"))
    view(entry(events.NoticeIssued(code="n", message="No specs required for this change")))
    view(entry(events.FindingReported(**at("challenge"), id="C1", severity="high", title="A hole", where="a.md:3",
                                  verified=True, by="agent:codex", state="open")))
    view(entry(events.Transition(from_="drafting", to="proposed", event="plan-generated", by="agentd", why="")))
    view(entry(events.RunFinished(workflow="plan", exit_code=0, message="")))
"""
    )
    assert ran.code == 0 and ran.out == ""
    assert "\x1b" not in ran.err
    clock, first = ran.err.splitlines()[0].split("  ", 1)
    assert len(clock) == 8 and first == "agentd plan add-oauth"
    assert [line[10:] for line in ran.err.splitlines()[1:]] == [
        "Spec 1/2: auth-flow  started: gemini, gemini-3-flash-preview",
        "Spec 1/2: auth-flow  failed: gemini: 429; retrying in 7 s",
        "Spec 1/2: auth-flow  started: gemini, gemini-3-flash-preview, attempt 2",
        "Spec 1/2: auth-flow  done after 38 s: written",
        "warning: no price is known",
        "No specs required for this change",
        "Challenge  C1 high, open: A hole (a.md:3)",
        "drafting → proposed by agentd",
    ]


def test_events_mode_prints_journal_lines() -> None:
    ran = piped(
        """
with watch_run("t", lambda: COURSE, "events") as view:
    for told in (started("proposal-gen"), did("proposal-gen", "变更 \\ud800"), finished("proposal-gen")):
        sys.stdout.reconfigure(errors="replace")
        view(told)
        print(told.line(), file=sys.stderr)
"""
    )
    assert ran.code == 0 and ran.err.count("\n") == 3
    assert [json.loads(line)["type"] for line in ran.out.splitlines()] == [
        "step.started",
        "agent.activity",
        "step.finished",
    ]
    assert ran.out.splitlines()[0] == ran.err.splitlines()[0]


@pytest.mark.parametrize(("mode", "stream"), [("events", "stdout"), ("lines", "stderr")])
def test_reader_that_closes_the_pipe_does_not_end_the_run(tmp_path: Path, mode: str, stream: str) -> None:
    code = f"""
with watch_run("t", lambda: COURSE, "{mode}") as view:
    for number in range(3000):
        view(started("proposal-gen"))
open("{tmp_path}/end", "w").close()
"""
    read, write = os.pipe()
    with subprocess.Popen(driven(code), env=ENV, **{stream: write}) as program:  # type: ignore[call-overload]
        os.close(write)
        os.read(read, 100)
        os.close(read)
    assert (tmp_path / "end").exists() and program.returncode == 0


def test_quiet_prints_nothing() -> None:
    ran = piped(USUAL.replace('"live"', '"quiet"').replace("wait()", "with view.pause(): pass"))
    assert ran == Result(0, "", "")

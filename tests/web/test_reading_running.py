"""A run under way as it is looked at from elsewhere, how the last one ended, and the story of a change."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.change.journal import Journal
from agentd.domain import events
from agentd.project.layout import find_project
from agentd.web import run_view
from plans import SIGN_IN
from playbooks import NEEDS_REVISION, plan_steps, say, usage, write_document
from processes import wait_until
from program import AGENTD, PATIENCE, Program
from scenario import NO_REVIEWS, Scenario
from terminal import INTERRUPT, at_question

STEP: dict[str, Any] = {"step": "tasks-gen", "round": 1, "number": 1, "attempt": 1}


@contextmanager
def planning(box: Scenario) -> Iterator[subprocess.Popen[bytes]]:
    """Until somebody stops it."""
    command = [AGENTD, "plan", "add-oauth", SIGN_IN, "--skip-clarify", "--yes"]
    quiet = subprocess.DEVNULL
    with Program(command, cwd=box.root, env=box.env, stdin=quiet, stdout=quiet, stderr=quiet) as program:
        try:
            yield program
        finally:
            program.terminate()
            program.wait(PATIENCE)


def did(change: Change, count: int, ok: bool | None = True, text: str = "read_file") -> None:
    journal = change.journal()
    for number in range(count):
        journal.append(events.AgentActivity(**STEP, kind="tool", text=f"{text} {number}", ok=ok))


def started(change: Change, step: str = "tasks-gen") -> None:
    named = {**STEP, "step": step}
    change.journal().append(
        events.StepStarted(**named, role="planner", agent="play", model="m1", session=None, resumed=False)
    )


def began(change: Change, command: str = "agentd plan add-oauth", workflow: str = "plan") -> None:
    change.journal().append(events.RunStarted(workflow=workflow, command=command))


@pytest.fixture
def drafted(project: Scenario) -> Change:
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


# ---- a real run


def test_active_run_shows_its_step_actions_and_remaining_steps(project: Scenario) -> None:
    hanging = [say("Thinking."), write_document("tasks.md"), usage(0.5), {"wait": 600}]
    project.with_agents(plan_steps(tasks_gen=hanging), workflow=NO_REVIEWS)
    start = time.monotonic()
    with planning(project):
        change = project.change

        def seen() -> run_view.ActiveRunView | None:
            return run_view.active_run_view(change) if (change.folder / "STATE.yaml").is_file() else None

        wait_until(lambda: (found := seen()) is not None and found.step == "tasks-gen", "the step")
        wait_until(lambda: (found := seen()) is not None and found.cost > 0.5, "its cost")
        found = seen()
        assert found
        assert found.command.split()[:3] == ["agentd", "plan", "add-oauth"]
        assert (found.label, found.agent) == ("Tasks", "play")
        assert [(one.label, one.stand) for one in found.steps] == [
            ("Proposal", "done"),
            ("Spec 1/1: user-model", "done"),
            ("Tasks", "running"),
            ("Challenge", "ahead"),
        ]
        assert "Thinking." in [one.text for one in found.actions if one.kind == "text"]
        assert found.total == found.cost == pytest.approx(0.52), "the call under way counts"
        assert found.quiet_for is not None and found.quiet_for <= time.monotonic() - start + 1
        assert found.last_output_at >= found.since[:19]
        assert found.asked is None and run_view.last_run(change) is None
    ended = run_view.last_run(change)
    assert run_view.active_run_view(change) is None and ended
    assert (ended.exit_code, ended.message) == (130, "interrupted") and "to continue" in ended.hint
    story = run_view.run_history(change, 1000)
    assert story[0].type == "run.started"
    assert story[-1].words == "ended with exit code 130: interrupted"
    assert ("proposal-gen", "step.started") in [(one.label, one.type) for one in story]
    assert run_view.run_history(change, 2) == story[-2:]


def test_open_question_is_shown(project: Scenario) -> None:
    project.proposed(NEEDS_REVISION, rounds=1)
    person = at_question(project)
    found = run_view.active_run_view(project.change)
    assert found and found.asked and found.asked.question == "The challenge found 1 high and 1 medium. What next?"
    assert found.asked.at and found.step == ""
    person.press(INTERRUPT)
    person.waits()
    assert run_view.active_run_view(project.change) is None


def test_ended_run_shows_its_result(project: Scenario) -> None:
    project.challenged("NEEDS_REVISION", ("high", "It breaks"))
    assert project.run("plan", "--rounds", "0").code == 1
    ended = run_view.last_run(project.change)
    assert ended and (ended.exit_code, ended.hint) == (1, "")
    assert ended.message == "NEEDS_REVISION - Found 1 HIGH severity issues" and ended.command.startswith("agentd plan")


def test_killed_run_has_no_known_result(drafted: Change) -> None:
    assert run_view.last_run(drafted) is None
    began(drafted)
    started(drafted)
    ended = run_view.last_run(drafted)
    assert ended and (ended.exit_code, ended.message) == (None, "it was interrupted")
    assert ended.command == "agentd plan add-oauth"


def test_active_archive_does_not_show_the_previous_run(project: Scenario) -> None:
    project.with_notes(start="specs")
    change = project.notes_complete("short-titles", {})
    began(change, "agentd impl short-titles", "impl")
    started(change, "review")
    change.journal().append(events.RunFinished(workflow="impl", exit_code=0, message=""))
    with change.running("agentd archive short-titles"):
        found = run_view.active_run_view(change)
    assert found and (found.command, found.step, found.steps) == ("agentd archive short-titles", "", ())


# ---- from the end of the journal


def test_only_the_last_actions_are_shown_each_once(drafted: Change) -> None:
    began(drafted)
    started(drafted)
    did(drafted, 60)
    drafted.journal().append(events.AgentActivity(**STEP, kind="tool", text="write", ok=None))
    drafted.journal().append(events.AgentActivity(**STEP, kind="tool", text="write", ok=False))
    drafted.journal().append(events.WarningIssued(code="x", message="Mind the gap"))
    with drafted.running("agentd plan add-oauth"):
        found = run_view.active_run_view(drafted)
    assert found and len(found.actions) == 40 and found.warnings == ("Mind the gap",)
    assert [(one.text, one.ok) for one in found.actions[-2:]] == [("read_file 59", True), ("write", False)]
    assert found.actions[0].text == "read_file 21"


def test_run_with_thousands_of_actions_is_read_completely(drafted: Change) -> None:
    began(drafted, "an earlier run")
    drafted.journal().append(events.RunFinished(workflow="plan", exit_code=0, message=""))
    began(drafted)
    started(drafted)
    did(drafted, 3000, text="read_file " + "x" * 100)
    with drafted.running("agentd plan add-oauth"):
        found = run_view.active_run_view(drafted)
    assert found and (found.step, found.command) == ("tasks-gen", "agentd plan add-oauth")
    assert found.actions[-1].text.endswith("x 2999") and len(found.actions) == 40


def test_consecutive_agent_actions_are_grouped_in_the_history(drafted: Change) -> None:
    began(drafted)
    started(drafted)
    did(drafted, 500)
    finished: dict[str, Any] = {**STEP, "status": "done", "duration_ms": 1, "message": "", "outputs": {}}
    drafted.journal().append(events.StepFinished(**finished))
    began(drafted)
    started(drafted)
    did(drafted, 3)
    whole = run_view.run_history(drafted, 200)
    assert [one.type.partition(".")[0] for one in whole] == ["run", "step", "agent", "step", "run", "step", "agent"]
    many, few = (one for one in whole if one.actions)
    assert (many.is_cut, len(many.actions), many.words) == (True, 40, "read_file 499")
    assert (few.is_cut, [one.text for one in few.actions]) == (False, [f"read_file {number}" for number in range(3)])
    assert run_view.run_history(drafted, 2) == whole[-2:], "a thousand actions push nothing out"


def test_agent_text_cannot_forge_a_run_in_the_journal(drafted: Change) -> None:
    began(drafted)
    started(drafted)
    fake = '\n{"seq": 1, "at": "x", "change_id": "y", "run": null, "type": "run.started"}'
    drafted.journal().append(events.AgentActivity(**STEP, kind="text", text=fake + ' "type": "run.started"', ok=None))
    with drafted.running("agentd plan add-oauth"):
        found = run_view.active_run_view(drafted)
    assert found and found.step == "tasks-gen" and found.command == "agentd plan add-oauth"


def test_broken_config_is_reported_and_the_rest_is_shown(drafted: Change, project: Scenario) -> None:
    began(drafted)
    started(drafted)
    project.write("agentd/config.toml", "schema_version = [")
    with drafted.running("agentd plan add-oauth"):
        found = run_view.active_run_view(drafted)
    assert found and found.problem and found.step == "tasks-gen" and len(found.steps) == 1


@pytest.mark.parametrize("size", [1, 63, 64 * 1024 - 1, 64 * 1024, 200_000])
def test_journal_is_read_backwards_for_any_line_length(tmp_path: Path, size: int) -> None:
    path = tmp_path / "journal.jsonl"
    lines = [b"first", b"x" * size, b"last", b"y" * size]
    path.write_bytes(b"\n".join(lines) + b"\n" + b"torn")
    assert list(Journal(path, "x", None).backwards()) == lines[::-1]
    path.write_bytes(b"torn" * size)
    assert list(Journal(path, "x", None).backwards()) == []
    assert list(Journal(tmp_path / "none.jsonl", "x", None).backwards()) == []

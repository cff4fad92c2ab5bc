"""`agentd log`: the journal in words, as lines and as data, and what the agents said."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent_calls import call_planner, planner_request, play
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.domain import events
from agentd.domain.errors import AgentFailed
from agentd.engine.calls import retries
from agentd.project.layout import find_project
from playbooks import propose, say, usage
from program import AGENTD, PATIENCE, Program
from scenario import Scenario, open_run

NAMES: dict[str, Any] = {"step": "challenge", "round": 1, "number": 1, "attempt": 1}


@pytest.fixture
def change(project: Scenario) -> Change:
    """Two runs: the first failed, the second wrote the proposal."""
    script = [say("Reading the project."), propose(), usage(0.25)]
    change = play(project, proposal_gen_r1_a1=[{"fault": "key-refused"}], proposal_gen=script)
    with pytest.raises(AgentFailed):
        call_planner(change)
    with open_run(change) as run:
        work = planner_request(run)
        retries.finish_step(run, work, retries.perform_call(run, work), {})
    return change


def test_log_shows_the_journal_oldest_first(project: Scenario, change: Change) -> None:
    ran = project.agentd("log", "add-oauth")
    assert ran.code == 0
    lines = [line[21:] for line in ran.out.splitlines()]
    assert lines[0] == "agentd plan add-oauth"
    assert "proposal-gen  started: play, attempt 2" in lines
    assert "proposal-gen  ✓ create_proposal" in lines
    assert "proposal-gen  … create_proposal" not in lines  # what ended need not be told twice
    assert "proposal-gen  1,000 tokens in, 10 out, 0.25 USD" in lines
    assert any(line.startswith("proposal-gen  failed: play:") for line in lines)
    assert any(line.startswith("ended with exit code 4: ") for line in lines)
    assert lines[-1] == "ended with exit code 0"
    assert "agentd log add-oauth --transcript --step proposal-gen" in ran.err


def test_log_can_be_limited_to_the_last_run_or_one_step(project: Scenario, change: Change) -> None:
    change.journal().append(events.WarningIssued(**NAMES, code="x", message="a word"))
    assert project.agentd("log", "add-oauth", "--last").out.count("agentd plan add-oauth") == 1
    assert [line[21:] for line in project.agentd("log", "add-oauth", "--step", "challenge").out.splitlines()] == [
        "challenge  warning: a word"
    ]


def test_log_is_available_as_events_and_json(project: Scenario, change: Change) -> None:
    lines = project.agentd("log", "add-oauth", "--events").out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    data = project.agentd("log", "add-oauth", "--json").json
    assert data["entries"] == [json.loads(line) for line in lines]
    assert [(one["step"], one["attempt"]) for one in data["transcripts"]] == [("proposal-gen", 1), ("proposal-gen", 2)]
    assert all(os.path.isfile(one["file"]) for one in data["transcripts"])


def test_transcript_option_shows_the_latest_call(project: Scenario, change: Change) -> None:
    ran = project.agentd("log", "add-oauth", "--transcript")
    assert "in| Write the proposal." in ran.out
    assert "Reading the project." in ran.out
    assert "attempt 2" in ran.out
    assert project.agentd("log", "add-oauth", "--transcript", "--step", "challenge").code == 2


def test_control_characters_from_agents_are_removed(project: Scenario) -> None:
    change = play(project, proposal_gen=[say("\x1b[2Jgone\rover"), propose()])
    call_planner(change)
    assert "\x1b" not in project.agentd("log", "add-oauth").out + project.agentd("log", "add-oauth", "--transcript").out


def test_log_of_a_new_change_is_empty_and_of_an_unknown_change_an_error(project: Scenario) -> None:
    lifecycle.create_change(find_project(), "fresh", "words")
    ran = project.agentd("log", "fresh")
    assert (ran.code, ran.out, ran.err) == (0, "", "Nothing has happened to fresh yet.\n")
    assert project.agentd("log", "stale").code == 1
    assert project.agentd("log", "fresh", "--json", "--follow").code == 2


def test_dropped_change_still_has_its_log(project: Scenario, change: Change) -> None:
    assert project.agentd("drop", "add-oauth", "--yes").code == 0
    assert "dropped" in project.agentd("log", "add-oauth").out


@contextmanager
def following(project: Scenario, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = Program(
        [AGENTD, "log", "add-oauth", "--follow", *arguments],
        cwd=project.root,
        env=project.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_follow_prints_new_entries_until_ctrl_c(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "add-oauth", "words")
    change.journal().append(events.WarningIssued(**NAMES, code="x", message="the first"))
    with following(project) as process:
        assert process.stdout
        assert "the first" in process.stdout.readline()
        change.journal().append(events.WarningIssued(**NAMES, code="x", message="the second"))
        assert "the second" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_follow_ends_when_the_reader_closes_the_pipe(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "add-oauth", "words")
    change.journal().append(events.WarningIssued(**NAMES, code="x", message="the first"))
    with following(project, "--events") as process:
        assert process.stdout
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        change.journal().append(events.WarningIssued(**NAMES, code="x", message="the second"))
        assert process.wait(timeout=PATIENCE) == 0


def test_follow_prints_a_growing_transcript(project: Scenario, change: Change) -> None:
    with following(project, "--transcript") as process:
        assert process.stdout
        while "# ended" not in (line := process.stdout.readline()):
            assert line
        (path,) = [one["file"] for one in project.agentd("log", "add-oauth", "--json").json["transcripts"][-1:]]
        with open(path, "a") as file:
            file.write("out| half a")
            file.flush()
            file.write(" line\n")
        assert process.stdout.readline() == "out| half a line\n"

"""`--detach`, and `agentd wait`: a run in the background, and whoever comes back to it."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentd import trust
from agentd.project import find_project
from planned import NO_LOOKS, change_of, files_of, quick_plan, ran, replay
from plays import DESCRIPTION, finding, plan, stage, verdict
from program import AGENTD, Program
from support import Box, Ran
from terminal import before_terminal
from working import Action, say

LONG = {"wait": 600.0}
REVISE = verdict("NEEDS_REVISION", finding(), finding("medium", "It is slow"))


@pytest.fixture(autouse=True)
def nothing_left(project: Box) -> Iterator[None]:
    yield
    project.agentd("stop", "add-oauth")


def detach(box: Box, *flags: str) -> Ran:
    return plan(box, "--detach", "--json", *flags)


def wait(box: Box, *flags: str) -> tuple[int, dict[str, Any]]:
    ended = box.agentd("wait", "add-oauth", "--json", *flags)
    return ended.code, ended.json


def slow(steps: dict[str, list[Action]] | None = None) -> dict[str, list[Action]]:
    """The first step never ends."""
    found = steps or quick_plan()
    return found | {"proposal-gen": [say("Reading."), LONG]}


@contextmanager
def at_gate(box: Box, steps: dict[str, list[Action]]) -> Iterator[None]:
    """The first step waits until this block is left, and the run goes on then."""
    gate = box.root.with_name("gate")
    os.mkfifo(gate)
    (box.root / "gate").symlink_to(gate)
    steps["proposal-gen"].insert(0, {"write": "gate", "text": "open"})
    stage(box, steps, workflow=NO_LOOKS)
    yield
    threading.Thread(target=gate.read_text, daemon=True).start()


def test_it_says_at_once_that_it_runs_and_wait_tells_the_end(project: Box) -> None:
    with at_gate(project, quick_plan()):
        begun = detach(project)
        assert change_of(project).active_run(), "it works while we are told so"
    assert begun.code == 0 and not begun.err.strip().startswith("Error")
    data = begun.json
    assert (data["command"], data["change_id"], data["state"]) == ("plan", "add-oauth", "running")
    assert data["git"]["setup"] == "in-place" and data["next"] == "agentd wait add-oauth"
    code, told = wait(project)
    assert (code, told["state"], told["decision"], told["run"]) == (0, "ended", None, None)
    assert told["result"]["phase"] == "challenged" and told["result"]["command"] == "plan"
    assert told["result"]["message"] == "APPROVED - Ready for implementation!"
    assert wait(project) == (code, told), "asked again, it says the same"


def test_a_person_reads_it_in_words(project: Box) -> None:
    stage(project, slow())
    begun = plan(project, "--detach")
    assert "in the background" in begun.out and "Next    agentd wait add-oauth" in begun.out
    late = project.agentd("wait", "add-oauth", "--timeout", "0")
    assert late.code == 1 and "still being worked on" in late.out and "agentd wait add-oauth" in late.out
    replay(project, quick_plan())
    project.agentd("stop", "add-oauth")
    told = project.agentd("wait", "add-oauth")
    assert told.code == 130 and "to go on: agentd plan add-oauth" in told.out


def test_whoever_waits_no_longer_is_told_that_it_goes_on(project: Box) -> None:
    stage(project, slow())
    assert plan(project, "--detach").code == 0
    person = before_terminal([AGENTD, "wait", "add-oauth"], {**project.env, "PWD": str(project.root)})
    person.sees("Waiting for the run of add-oauth; Ctrl-C ends the waiting, not the run.")
    person.press("\x03")
    assert person.waits() == 130
    assert "no longer waiting; the run of add-oauth goes on" in person.display.text
    assert "→ agentd wait add-oauth waits again, agentd stop add-oauth ends it" in person.display.text
    assert change_of(project).active_run()


@pytest.mark.parametrize("how", ["its group is killed", "its terminal is closed"])
def test_it_survives_the_death_of_whoever_started_it(project: Box, how: str) -> None:
    shell = f'{AGENTD} plan add-oauth "{DESCRIPTION}" --skip-clarify --detach && echo started && sleep 600'
    with at_gate(project, quick_plan()):
        if how == "its terminal is closed":
            person = before_terminal(["/bin/sh", "-c", shell], project.env)
            person.sees("started")
            os.close(person.handle)
            assert os.waitstatus_to_exitcode(os.waitpid(person.pid, 0)[1]) == -signal.SIGHUP
        else:
            caller = subprocess.Popen(
                ["sh", "-c", shell], cwd=project.root, env=project.env, stdout=subprocess.PIPE, start_new_session=True
            )
            assert caller.stdout
            while b"started" not in caller.stdout.readline():
                assert caller.poll() is None
            os.killpg(caller.pid, signal.SIGKILL)
            caller.wait()
            caller.stdout.close()
        assert change_of(project).active_run()
    code, told = wait(project)
    assert (code, told["state"], told["result"]["phase"]) == (0, "ended", "challenged")


def test_wait_returns_at_its_timeout_and_the_run_goes_on(project: Box) -> None:
    stage(project, slow())
    pid = detach(project).json["pid"]
    code, told = wait(project, "--timeout", "0.3")
    assert (code, told["state"], told["result"], told["decision"]) == (1, "running", None, None)
    assert told["run"]["pid"] == pid and told["run"]["command"] == "agentd plan add-oauth --json"
    assert change_of(project).active_run()


def test_wait_returns_at_a_decision_that_a_run_has_left(project: Box) -> None:
    stage(project, quick_plan(challenge=REVISE), workflow=NO_LOOKS)
    assert detach(project, "--rounds", "0").code == 0
    code, told = wait(project)
    assert (code, told["state"], told["run"]) == (1, "decision", None)
    options = {one["id"]: one for one in told["decision"]["options"]}
    assert options["fix"]["recommended"] and options["fix"]["command"] == "agentd plan add-oauth --rounds 1"
    assert options["accept"]["command"] == 'agentd plan add-oauth --accept "REASON"'
    assert told["result"]["verdict"] == "NEEDS_REVISION" and told["result"]["decision_needed"] == told["decision"]
    assert project.agentd("plan", "add-oauth", "--accept", "Good enough.").code == 0
    code, told = wait(project)
    assert (code, told["state"], told["result"]["phase"]) == (0, "ended", "challenged")


def test_wait_returns_at_a_question_that_a_run_asks_at_its_terminal(project: Box) -> None:
    stage(project, quick_plan(challenge=REVISE), workflow=NO_LOOKS)
    argv = [AGENTD, "plan", "add-oauth", DESCRIPTION, "--skip-clarify"]
    person = before_terminal(argv, project.env, 100)
    person.sees("Fix and challenge again")
    code, told = wait(project)
    assert (code, told["state"], told["result"]) == (1, "decision", None)
    assert told["decision"]["id"] == "after-challenge-1" and told["run"]["pid"] == person.pid
    commands = {one["id"]: one["command"] for one in told["decision"]["options"]}
    assert commands["accept"] and commands["view"] and not commands["fix"], "a second run would find it busy"
    words = project.agentd("wait", "add-oauth")
    assert words.code == 1 and "waits for a decision" in words.out
    assert project.agentd("plan", "add-oauth", "--accept", "Good enough.").code == 0
    assert person.waits() == 0


def test_what_a_failed_run_said_is_told_later(project: Box) -> None:
    stage(project, quick_plan(challenge=[{"fault": "crash"}]), workflow=NO_LOOKS)
    assert detach(project).code == 0
    code, told = wait(project)
    assert (code, told["state"]) == (4, "ended")
    assert told["result"]["error"]["code"] == "crashed" and told["result"]["exit_code"] == 4
    assert wait(project) == (code, told)
    project.agentd("drop", "add-oauth", "--yes")
    assert project.agentd("wait", "add-oauth").code == 1


def test_a_run_that_was_killed_is_said_to_be_and_goes_on(project: Box) -> None:
    stage(project, slow(), workflow=NO_LOOKS)
    pid = detach(project).json["pid"]
    watching = Program(
        [AGENTD, "wait", "add-oauth", "--json"], cwd=project.root, env=project.env, stdout=subprocess.PIPE
    )
    time.sleep(0.5)  # it may be early: then it finds the run gone, which must be told alike
    os.kill(pid, signal.SIGKILL)
    out, _ = watching.communicate()
    told = json.loads(out)
    assert (watching.returncode, told["state"], told["result"]["error"]["code"]) == (130, "ended", "interrupted")
    assert told["result"]["error"]["hint"] == "to go on: agentd plan add-oauth --json"
    assert wait(project)[1]["result"]["error"]["code"] == "interrupted", "also for one who comes later"
    replay(project, quick_plan())
    assert detach(project).code == 0
    assert wait(project)[0] == 0


def test_what_stands_against_it_is_told_at_once_and_nothing_is_made(project: Box) -> None:
    stage(project, quick_plan())
    trust.withdraw(find_project(), os.environ)
    before = files_of(project.root)
    refused = detach(project)
    assert (refused.code, refused.json["error"]["code"]) == (3, "not-trusted")
    unclear = project.agentd("plan", "add-oauth", DESCRIPTION, "--detach", "--trust", "--json")
    assert (unclear.code, unclear.json["error"]["code"]) == (1, "unanswered")
    assert files_of(project.root) == before


def test_what_the_child_says_before_it_runs_is_told(project: Box) -> None:
    """The agent's program goes between our look and the run."""
    stage(project, slow())
    assert plan(project, "--max-cost", "5", "--rounds", "0", "--detach").code == 0
    holder = change_of(project).active_run()
    assert holder and holder.command == "agentd plan add-oauth --rounds 0 --max-cost 5"
    second = detach(project)
    assert (second.code, second.json["error"]["code"]) == (5, "busy")
    assert second.json["error"]["hint"] == "agentd wait add-oauth"
    project.agentd("stop", "add-oauth")
    project.write("agentd/config.toml", "schema_version = 99\n")
    early = detach(project)
    assert (early.code, early.json["error"]["code"]) == (3, "bad-config")
    assert ran(project) == ["proposal-gen"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [(["--dry-run"], "dry-run"), (["--accept", "So be it."], "accept"), (["--events"], "--events")],
)
def test_what_makes_no_sense_in_the_background_is_refused(project: Box, flags: list[str], word: str) -> None:
    stage(project, quick_plan())
    refused = plan(project, "--detach", *flags)
    assert refused.code == 2 and word in refused.err


def test_wait_for_nothing_tells_how_the_change_stands(project: Box) -> None:
    stage(project, quick_plan(), workflow=NO_LOOKS)
    unknown = project.agentd("wait", "add-oauth", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "change-not-found")
    assert plan(project).code == 0
    code, told = wait(project, "--timeout", "0")
    assert (code, told["state"], told["result"]["phase"]) == (0, "ended", "challenged")
    assert project.agentd("wait", "add-oauth", "--timeout", "-1").code == 2


def test_the_id_that_it_became_is_told(project: Box) -> None:
    stage(project, quick_plan(), workflow=NO_LOOKS)
    project.write("agentd/changes/add-oauth/notes.txt", "somebody's")
    begun = detach(project)
    assert (begun.json["change_id"], begun.json["resolved_from"]) == ("add-oauth-1", "add-oauth")
    assert project.agentd("wait", "add-oauth-1", "--timeout", "300").code in (0, 4)
    project.agentd("stop", "add-oauth-1")

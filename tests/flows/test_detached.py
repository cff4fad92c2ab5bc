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

from agentd.project.layout import find_project
from agentd.project.trust.store import revoke_trust
from plans import SIGN_IN
from playbooks import Action, finding, plan_steps, report, say
from processes import wait_until
from program import AGENTD, Program
from scenario import NO_REVIEWS, Result, Scenario, project_files
from terminal import start_on_terminal

LONG = {"wait": 600.0}
REVISE = report("NEEDS_REVISION", finding(), finding("medium", "It is slow"))


@pytest.fixture(autouse=True)
def nothing_left(project: Scenario) -> Iterator[None]:
    yield
    project.agentd("stop", "add-oauth")


def detach(box: Scenario, *flags: str) -> Result:
    return box.run("plan", "--detach", "--json", *flags)


def wait(box: Scenario, *flags: str) -> tuple[int, dict[str, Any]]:
    ended = box.agentd("wait", "add-oauth", "--json", *flags)
    return ended.code, ended.json


def slow(steps: dict[str, list[Action]] | None = None) -> dict[str, list[Action]]:
    """The first step never ends."""
    found = steps or plan_steps()
    return found | {"proposal-gen": [say("Reading."), LONG]}


@contextmanager
def at_gate(box: Scenario, steps: dict[str, list[Action]]) -> Iterator[None]:
    """The first step waits until this block is left, and the run goes on then."""
    gate = box.root.with_name("gate")
    os.mkfifo(gate)
    (box.root / "gate").symlink_to(gate)
    steps["proposal-gen"].insert(0, {"write": "gate", "text": "open"})
    box.with_agents(steps, workflow=NO_REVIEWS)
    yield
    threading.Thread(target=gate.read_text, daemon=True).start()


def test_detach_returns_at_once_and_wait_reports_the_result(project: Scenario) -> None:
    with at_gate(project, plan_steps()):
        begun = detach(project)
        assert project.change.active_run(), "it works while we are told so"
    assert begun.code == 0 and not begun.err.strip().startswith("Error")
    data = begun.json
    assert (data["command"], data["change_id"], data["state"]) == ("plan", "add-oauth", "running")
    assert data["git"]["setup"] == "in-place" and data["next"] == "agentd wait add-oauth"
    code, told = wait(project)
    assert (code, told["state"], told["decision"], told["run"]) == (0, "ended", None, None)
    assert told["result"]["phase"] == "challenged" and told["result"]["command"] == "plan"
    assert told["result"]["message"] == "APPROVED - Ready for implementation!"
    assert wait(project) == (code, told), "asked again, it says the same"


def test_detach_and_wait_print_readable_text(project: Scenario) -> None:
    project.with_agents(slow())
    begun = project.run("plan", "--detach")
    assert "in the background" in begun.out and "Next    agentd wait add-oauth" in begun.out
    late = project.agentd("wait", "add-oauth", "--timeout", "0")
    assert late.code == 1 and "is still running" in late.out and "agentd wait add-oauth" in late.out
    wait_until(lambda: project.started_steps() == ["proposal-gen"], "the first step has started")
    project.agentd("stop", "add-oauth")
    told = project.agentd("wait", "add-oauth")
    assert told.code == 130 and "to continue: agentd plan add-oauth" in told.out


def test_interrupting_wait_says_that_the_run_continues(project: Scenario) -> None:
    project.with_agents(slow())
    assert project.run("plan", "--detach").code == 0
    person = start_on_terminal([AGENTD, "wait", "add-oauth"], {**project.env, "PWD": str(project.root)})
    person.sees("Waiting for the run of add-oauth; Ctrl-C stops waiting, not the run.")
    person.press("\x03")
    assert person.waits() == 130
    assert "stopped waiting; add-oauth is still running" in person.display.text
    assert "→ agentd wait add-oauth to wait again, agentd stop add-oauth to stop it" in person.display.text
    assert project.change.active_run()


@pytest.mark.parametrize("how", ["its group is killed", "its terminal is closed"])
def test_detached_run_survives_its_caller(project: Scenario, how: str) -> None:
    shell = f'{AGENTD} plan add-oauth "{SIGN_IN}" --skip-clarify --detach && echo started && sleep 600'
    with at_gate(project, plan_steps()):
        if how == "its terminal is closed":
            person = start_on_terminal(["/bin/sh", "-c", shell], project.env)
            person.sees("started")
            os.close(person.handle)
            assert person.program.wait() == -signal.SIGHUP
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
        assert project.change.active_run()
    code, told = wait(project)
    assert (code, told["state"], told["result"]["phase"]) == (0, "ended", "challenged")


def test_wait_returns_at_its_timeout_while_the_run_continues(project: Scenario) -> None:
    project.with_agents(slow())
    pid = detach(project).json["pid"]
    code, told = wait(project, "--timeout", "0.3")
    assert (code, told["state"], told["result"], told["decision"]) == (1, "running", None, None)
    assert told["run"]["pid"] == pid and told["run"]["command"] == "agentd plan add-oauth --json"
    assert project.change.active_run()


def test_wait_returns_when_a_run_ended_with_an_open_decision(project: Scenario) -> None:
    project.with_agents(plan_steps(challenge=REVISE), workflow=NO_REVIEWS)
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


def test_wait_returns_when_a_run_asks_on_its_terminal(project: Scenario) -> None:
    project.with_agents(plan_steps(challenge=REVISE), workflow=NO_REVIEWS)
    argv = [AGENTD, "plan", "add-oauth", SIGN_IN, "--skip-clarify"]
    person = start_on_terminal(argv, project.env, 100)
    person.sees("Fix and challenge again")
    code, told = wait(project)
    assert (code, told["state"], told["result"]) == (1, "decision", None)
    assert told["decision"]["id"] == "after-challenge-1" and told["run"]["pid"] == person.pid
    commands = {one["id"]: one["command"] for one in told["decision"]["options"]}
    assert commands["accept"] and commands["view"] and not commands["fix"], "a second run would find it busy"
    words = project.agentd("wait", "add-oauth")
    assert words.code == 1 and "is waiting for a decision" in words.out
    assert project.agentd("plan", "add-oauth", "--accept", "Good enough.").code == 0
    assert person.waits() == 0


def test_wait_reports_the_error_of_a_failed_run(project: Scenario) -> None:
    project.with_agents(plan_steps(challenge=[{"fault": "crash"}]), workflow=NO_REVIEWS)
    assert detach(project).code == 0
    code, told = wait(project)
    assert (code, told["state"]) == (4, "ended")
    assert told["result"]["error"]["code"] == "crashed" and told["result"]["exit_code"] == 4
    assert wait(project) == (code, told)
    project.agentd("drop", "add-oauth", "--yes")
    assert project.agentd("wait", "add-oauth").code == 1


def test_killed_run_is_reported_as_interrupted_and_can_continue(project: Scenario) -> None:
    project.with_agents(slow(), workflow=NO_REVIEWS)
    pid = detach(project).json["pid"]
    watching = Program(
        [AGENTD, "wait", "add-oauth", "--json"], cwd=project.root, env=project.env, stdout=subprocess.PIPE
    )
    time.sleep(0.5)  # it may be early: then it finds the run gone, which must be told alike
    os.kill(pid, signal.SIGKILL)
    out, _ = watching.communicate()
    told = json.loads(out)
    assert (watching.returncode, told["state"], told["result"]["error"]["code"]) == (130, "ended", "interrupted")
    assert told["result"]["error"]["hint"] == "to continue: agentd plan add-oauth --json"
    assert wait(project)[1]["result"]["error"]["code"] == "interrupted", "also for one who comes later"
    project.replay(plan_steps())
    assert detach(project).code == 0
    assert wait(project)[0] == 0


def test_detach_reports_obstacles_at_once_and_writes_nothing(project: Scenario) -> None:
    project.with_agents(plan_steps())
    revoke_trust(find_project(), os.environ)
    before = project_files(project.root)
    refused = detach(project)
    assert (refused.code, refused.json["error"]["code"]) == (3, "not-trusted")
    unclear = project.agentd("plan", "add-oauth", SIGN_IN, "--detach", "--trust", "--json")
    assert (unclear.code, unclear.json["error"]["code"]) == (1, "unanswered")
    assert project_files(project.root) == before


def test_detach_reports_errors_of_the_child_before_it_runs(project: Scenario) -> None:
    """The agent's program goes between our look and the run."""
    project.with_agents(slow())
    assert project.run("plan", "--max-cost", "5", "--rounds", "0", "--detach").code == 0
    holder = project.change.active_run()
    assert holder and holder.command == "agentd plan add-oauth --rounds 0 --max-cost 5"
    second = detach(project)
    assert (second.code, second.json["error"]["code"]) == (5, "busy")
    assert second.json["error"]["hint"] == "agentd wait add-oauth"
    wait_until(lambda: project.started_steps() == ["proposal-gen"], "the first step has started")
    project.agentd("stop", "add-oauth")
    project.write("agentd/config.toml", "schema_version = 99\n")
    early = detach(project)
    assert (early.code, early.json["error"]["code"]) == (3, "bad-config")
    assert project.started_steps() == ["proposal-gen"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [(["--dry-run"], "dry-run"), (["--accept", "So be it."], "accept"), (["--events"], "--events")],
)
def test_flags_that_make_no_sense_with_detach_are_refused(project: Scenario, flags: list[str], word: str) -> None:
    project.with_agents(plan_steps())
    refused = project.run("plan", "--detach", *flags)
    assert refused.code == 2 and word in refused.err


def test_wait_without_a_run_reports_the_last_result(project: Scenario) -> None:
    project.with_agents(plan_steps(), workflow=NO_REVIEWS)
    unknown = project.agentd("wait", "add-oauth", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "change-not-found")
    assert project.run("plan").code == 0
    code, told = wait(project, "--timeout", "0")
    assert (code, told["state"], told["result"]["phase"]) == (0, "ended", "challenged")
    assert project.agentd("wait", "add-oauth", "--timeout", "-1").code == 2


def test_detach_reports_the_resolved_id(project: Scenario) -> None:
    project.with_agents(plan_steps(), workflow=NO_REVIEWS)
    project.write("agentd/changes/add-oauth/notes.txt", "somebody's")
    begun = detach(project)
    assert (begun.json["change_id"], begun.json["resolved_from"]) == ("add-oauth-1", "add-oauth")
    assert project.agentd("wait", "add-oauth-1", "--timeout", "300").code in (0, 4)
    project.agentd("stop", "add-oauth-1")

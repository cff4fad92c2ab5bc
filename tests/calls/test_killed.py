"""A run that is killed, interrupted or stopped: nothing is left running, nothing is lost, the next one goes on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_calls import call_planner, play
from agentd.change.folder import Change
from agentd.domain import events
from agentd.domain.errors import Busy
from playbooks import Action, usage, write_document
from processes import wait_until
from program import PATIENCE
from scenario import PLAY, ROLES, Scenario, journal_of, open_run

DRIVE = str(Path(__file__).with_name("run_planner.py"))
STUBBORN = """\
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("agent.new", "w").write(f"{os.getpid()} {os.getppid()}")
os.rename("agent.new", "agent.pid")
print("at work", flush=True)
time.sleep(600)
"""

pytestmark = pytest.mark.usefixtures("forked_servers")


@contextmanager
def driven(box: Scenario) -> Iterator[subprocess.Popen[str]]:
    """The run in a process of its own, which is gone at the end."""
    process = subprocess.Popen(
        [sys.executable, DRIVE], cwd=box.root, env=box.env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def stubborn(box: Scenario) -> Change:
    """A planner that ignores TERM."""
    change = play(box)
    box.write("agent.py", STUBBORN)
    command = f"[agents.stubborn]\nkind = 'command'\ncommand = '{sys.executable}'\nargs = ['agent.py']\n"
    box.configure(f"schema_version = 1\n[roles]\nplanner = 'stubborn'\n{command}")
    return change


def has_spent(change: Change, cost: float) -> bool:
    slips = Path(change.project.local_state_path("calls", "add-oauth")).glob("*.json")
    return any(f'"cost": {cost}' in slip.read_text() for slip in slips)


def test_kill_9_leaves_no_agent_and_the_next_run_waits_for_the_lock(project: Scenario) -> None:
    change = stubborn(project)
    with driven(project) as first:
        wait_until((project.root / "agent.pid").exists, "the agent is at work")
        agent, watcher = map(int, (project.root / "agent.pid").read_text().split())
        os.kill(watcher, signal.SIGSTOP)  # it ends the agent later
        first.kill()
        first.wait()
        with pytest.raises(Busy, match="is being worked on by 'agentd plan add-oauth'") as caught:
            call_planner(change)
        assert caught.value.exit_code == 5
        os.kill(watcher, signal.SIGCONT)
        wait_until(lambda: not is_alive(agent), "the agent is gone")
    wait_until(lambda: change.active_run() is None, "the lock is free")
    project.write("playbook.json", json.dumps({"steps": {"proposal-gen": [write_document("proposal.md")]}}))
    project.configure(f"schema_version = 1\n{ROLES}{PLAY}")
    assert call_planner(change).attempt == 2
    assert [str(step.status) for step in change.read().steps] == ["failed", "running"]


def test_cost_of_a_killed_run_is_counted_by_the_next_run(project: Scenario) -> None:
    change = play(
        project, proposal_gen_r1_a1=[usage(0.25), {"wait": 600}], proposal_gen=[write_document("proposal.md")]
    )
    with driven(project) as first:
        wait_until(lambda: has_spent(change, 0.25), "it has spent")
        first.kill()
        first.wait()
    wait_until(lambda: change.active_run() is None, "the lock is free")
    assert call_planner(change).attempt == 2
    cut, whole = change.read().llm_calls
    assert (cut.cost, cut.extra) == (0.25, {"cut": True}) and not whole.extra
    call_planner(change)
    assert [call.cost for call in change.read().llm_calls] == [0.25, None, None]


def test_protected_files_changed_by_a_killed_runs_agent_are_restored(project: Scenario) -> None:
    hostile: list[Action] = [
        {"write": "agentd/config.toml", "text": "[budget]\nper_change = 0.0\n"},
        {"write": "agentd/specs/auth.md", "text": "Nothing is required.\n"},
        {"write": "touched", "text": ""},
        {"wait": 600},
    ]
    change = play(project, "[budget]\nper_change = 3.0\n", proposal_gen=hostile)
    text = (project.root / "agentd/config.toml").read_text()
    with driven(project) as first:
        wait_until((project.root / "touched").exists, "the agent has done its work")
        first.kill()
        first.wait()
    wait_until(lambda: change.active_run() is None, "the lock is free")
    late = project.write("agentd/specs/late.md", "A person's, written after the agent was gone.\n")
    with open_run(change) as run:
        assert run.config.budget.per_change == 3.0
    assert (project.root / "agentd/config.toml").read_text() == text
    assert not (project.root / "agentd/specs/auth.md").exists()
    assert late.exists()
    assert {one.where for one in change.read().findings} == {"agentd/config.toml", "agentd/specs/auth.md"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_a_run_cleanly(project: Scenario, number: signal.Signals) -> None:
    change = play(
        project, proposal_gen_r1_a1=[usage(0.25), {"wait": 600}], proposal_gen=[write_document("proposal.md")]
    )
    with driven(project) as first:
        wait_until(lambda: has_spent(change, 0.25), "it has spent")
        first.send_signal(number)
        _, err = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130
    assert "to continue: agentd plan add-oauth" in err
    assert change.active_run() is None
    assert change.read().total_cost == 0.25
    assert [str(step.status) for step in change.read().steps] == ["failed"]
    assert journal_of(change, events.ErrorOccurred)[0].code == "interrupted"
    assert journal_of(change, events.RunFinished)[0].exit_code == 130
    assert not os.listdir(change.project.local_state_path("runs"))
    assert call_planner(change).attempt == 2


def test_stop_command_ends_the_run_of_a_change(project: Scenario) -> None:
    change = play(project, proposal_gen=[{"write": "begun", "text": ""}, {"wait": 600}])
    assert project.agentd("stop", "add-oauth").out == "Nothing is running for add-oauth.\n"
    with driven(project) as first:
        wait_until((project.root / "begun").exists, "the agent has begun")
        ran = project.agentd("stop", "add-oauth")
        first.communicate(timeout=PATIENCE)
    assert (ran.code, ran.out) == (0, "Stopped the run of add-oauth.\nNext    agentd plan add-oauth\n")
    assert first.returncode == 130
    assert change.active_run() is None
    assert project.agentd("stop", "add-oauth", "--json").json["stopped"] is False
    assert project.agentd("stop", "nothing").code == 1


def test_stop_waits_for_the_agent_of_a_killed_run(project: Scenario) -> None:
    stubborn(project)
    with driven(project) as first:
        wait_until((project.root / "agent.pid").exists, "the agent is at work")
        agent = int((project.root / "agent.pid").read_text().split()[0])
        first.kill()
        first.wait()
        ran = project.agentd("stop", "add-oauth")
    assert ran.code == 0
    assert not is_alive(agent)


@pytest.mark.parametrize("word", ["", '{"pid": "4711", "command": "agentd plan", "since": "now", "token": "abc"}'])
def test_stop_signals_nothing_when_the_lock_names_no_process(project: Scenario, word: str) -> None:
    change = play(project)
    with change.running("agentd plan add-oauth"):
        Path(change.project.local_state_path("locks", "add-oauth.run")).write_text(word)
        ran = project.agentd("stop", "add-oauth")
    assert ran.code == 5
    assert ran.err == (
        "Error: add-oauth has an active run, but its lock does not name the process\n"
        "  → press Ctrl-C in the terminal where it was started\n"
    )

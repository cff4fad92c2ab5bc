"""Every error of a run and of those who look on, met as a person meets it."""

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from error_messages import leads_on, refused, shown, told

from agentd.change import lifecycle
from agentd.change.comment_store import CommentChanged
from agentd.demo.playback import DemoFailed
from agentd.domain.errors import (
    AgentFailed,
    AgentMissing,
    Busy,
    CallsUsedUp,
    Interrupted,
    OverBudget,
    SessionLost,
    VerdictUnknown,
)
from agentd.project.layout import find_project
from agentd.web.actions import InvalidForm
from plans import SIGN_IN
from playbooks import plan_steps, say, write_document
from program import AGENTD, Program
from raw_http import Answer, Server, open_server
from scenario import NO_REVIEWS, Result, Scenario

PLAN = ("plan", "add-oauth", SIGN_IN, "--skip-clarify", "--light")
CRASH = [{"fault": "crash"}]


# ---- agents


def test_missing_agent_names_the_install_command(project: Scenario, tmp_path: Path) -> None:
    """Before anything is made for it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").symlink_to(str(shutil.which("git")))
    project.env["PATH"] = str(tmp_path / "bin")
    hint = refused(AgentMissing, project, *PLAN, names="gemini (gemini) is not installed, and it is the planner")
    assert hint == "npm install -g @google/gemini-cli, then log in with: gemini"
    assert not (project.root / "agentd/changes").exists()


def test_failed_agent_points_to_the_transcript(project: Scenario) -> None:
    project.with_agents(plan_steps(plan_gen=CRASH))
    hint = refused(AgentFailed, project, *PLAN, names="plan-gen: play: ", code="crashed")
    assert hint == "agentd log add-oauth --transcript shows its output; run the command again to resume"
    assert leads_on(project, "agentd log add-oauth --transcript").code == 0
    project.replay(plan_steps())
    assert project.agentd(*PLAN).code == 0


def test_lost_session_suggests_new_session(project: Scenario) -> None:
    steps = plan_steps(proposal_gen=[write_document("proposal.md", "no proposal\n"), say("Written.")])
    project.with_agents({**steps, "format-fix": [{"fault": "session-lost"}]}, workflow=NO_REVIEWS)
    hint = refused(SessionLost, project, *PLAN[:-1], names="Session not found, please re-run proposal")
    assert hint == "agentd plan add-oauth --new-session"
    leads_on(project, hint)


def test_unreadable_verdict_points_to_the_transcript(project: Scenario) -> None:
    project.proposed([say("Looks good to me, ship it.")])
    hint = refused(VerdictUnknown, project, "challenge", "add-oauth", names="Could not parse challenge verdict")
    assert hint.startswith("agentd log add-oauth --transcript --step challenge ")
    assert "ship it" in leads_on(project, "agentd log add-oauth --transcript --step challenge").out


# ---- money


def test_exhausted_budget_suggests_raise_budget(project: Scenario) -> None:
    project.with_agents(plan_steps(), "[budget]\nper_change = 0.02\n")
    hint = refused(OverBudget, project, *PLAN, names="add-oauth has cost 0.03 USD of its 0.02 USD")
    (typed,) = re.findall(r"^(agentd plan add-oauth --raise-budget \S+) continues", hint)
    assert "person:dev decided: 0.04" in leads_on(project, typed).err


def test_exhausted_calls_per_step_name_the_limit(project: Scenario) -> None:
    project.with_agents(plan_steps(plan_gen=CRASH), "[limits]\ncalls_per_step = 1\n")
    assert project.agentd(*PLAN).code == AgentFailed.exit_code
    hint = refused(CallsUsedUp, project, *PLAN, names="plan-gen has used all of its 1 calls")
    assert hint.startswith("raise limits.calls_per_step in agentd/config.toml")
    project.replay(plan_steps())
    assert project.agentd("--set", "limits.calls_per_step=2", *PLAN).code == 0


# ---- two at once, and one who stops


def test_busy_change_suggests_wait_or_stop(project: Scenario) -> None:
    change = lifecycle.create_change(find_project(), "add-oauth", SIGN_IN)
    with change.running("agentd impl add-oauth"):
        hint = refused(Busy, project, "drop", "add-oauth", "--yes", names="'agentd impl add-oauth' (process ")
        assert hint == "agentd wait add-oauth, or agentd stop add-oauth"
        leads_on(project, "agentd wait add-oauth --timeout 0")
    assert project.agentd("drop", "add-oauth", "--yes").code == 0


def test_interrupted_run_names_the_command_to_continue(project: Scenario) -> None:
    project.with_agents(plan_steps(plan_gen=[{"wait": 600}]))
    with Program([AGENTD, *PLAN], cwd=project.root, env=project.env, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr
        before = ""
        while "started" not in before:
            before += run.stderr.readline()
            assert run.poll() is None, before
        run.send_signal(signal.SIGINT)
        rest = run.stderr.read()
    hint = told(Interrupted, Result(run.returncode, "", before + rest), names="interrupted")
    assert hint == "to continue: agentd plan add-oauth"
    project.replay(plan_steps())
    assert leads_on(project, hint.removeprefix("to continue: ")).code == 0


def test_failed_demo_suggests_keep(box: Scenario, tmp_path: Path) -> None:
    """The disk is full after its first act, as git tells it."""
    shim = tmp_path / "bin/git"
    shim.parent.mkdir()
    shim.write_text(
        "#!/bin/sh\nif [ -e agentd/changes/split-by-weight/clarifications.md ]; then\n"
        'case "$*" in *write-tree*) echo "fatal: no space left" >&2; exit 128 ;; esac\n'
        f'fi\nexec {shutil.which("git")} "$@"\n'
    )
    shim.chmod(0o755)
    ran = box.agentd("demo", PATH=f"{shim.parent}:{box.env['PATH']}", TMPDIR=str(tmp_path))
    hint = told(DemoFailed, ran, names="agentd plan split-by-weight")
    assert hint.startswith("agentd demo --keep ")


# ---- in the browser


@pytest.fixture
def door(project: Scenario) -> Iterator[Server]:
    project.proposed([])
    with open_server((AGENTD, "view", "--no-open"), project.root, project.env) as door:
        yield door


def post(door: Server, path: str, **fields: str) -> Answer:
    """As the page's script does, with the secret that stands in the page."""
    cookie = door.enter()
    page = door.ask("/changes/add-oauth", cookie).body.decode()
    (secret,) = set(re.findall(r'name="csrf" value="([^"]+)"', page))
    headers = ("Content-Type: application/x-www-form-urlencoded", "HX-Request: true", f"Origin: http://{door.host}")
    body = urlencode({"csrf": secret, **fields}).encode()
    return door.ask(f"/changes/add-oauth/{path}", cookie, *headers, method="POST", body=body)


def test_incomplete_form_is_a_bad_request(door: Server) -> None:
    answer = post(door, "decide", choice="accept")
    assert answer.status == 400
    shown(InvalidForm, answer.body.decode(), names="the form has no shown that can be read")


def test_comment_edited_on_another_page_is_a_conflict(door: Server) -> None:
    selected = {"document": "proposal.md", "quote": "People are users", "after": ".", "line": "18"}
    assert post(door, "comments", **selected, text="Who?", weight="should").status == 200
    assert post(door, "comments/K1/edit", number="0", text="Who is that?", was="Who?").status == 200
    answer = post(door, "comments/K1/edit", number="0", text="Who are they?", was="Who?")
    assert answer.status == 409 and json.loads(answer.body)["text"] == "Who is that?"
    words = "K1 was edited by someone else in the meantime"
    shown(CommentChanged, answer.body.decode(), words, hint="load its current text and edit that")

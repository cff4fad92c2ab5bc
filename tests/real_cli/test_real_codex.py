"""Codex itself at work for agentd, with a scripted model instead of OpenAI's."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_calls import challenger_request, planner_request
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.change.state import CallRecord as Counted
from agentd.domain import events
from agentd.domain.errors import AgentFailed, SessionLost
from agentd.domain.terms import Role
from agentd.engine.calls import retries
from agentd.engine.calls.call_request import CallResult
from agentd.engine.tools.tool import Stage
from agentd.project.layout import find_project
from loopback import clis, recording
from loopback.codex_api import CodexApi, Elsewhere
from loopback.codex_home import KEY, before_our_server, codex_home, own_server
from loopback.model import Call, Conversation, Model, Request, Turn
from plans import example_calls
from scenario import ROLES, Scenario, journal_of, open_run

PROPOSE = Turn(calls=(Call("create_proposal", example_calls()["create_proposal"]),))
APPROVE = Turn(calls=(Call("append_review", {"verdict": "APPROVED", "summary": "It holds.", "findings": []}),))
DONE = Turn(text="Done.")
WRITE = Turn(calls=(Elsewhere("exec_command", {"cmd": "echo x > made.txt; ls made.txt"}),))
SETTINGS = """schema_version = 1
[workflow]
retry_delay_secs = 0.05
script_retries = 0
[agents.codex]
command = "{program}"
env = ["{key}"]
[[agents.codex.models]]
id = "only"
model = "gpt-5.5"
complexity = ["low", "medium", "high", "critical"]
reasoning = "high"
"""


def seat(box: Scenario, monkeypatch: pytest.MonkeyPatch, more: str = "") -> Change:
    """A change whose every role is Codex's, with the person's key in the environment."""
    monkeypatch.setenv(KEY, "a-dummy-key")
    box.configure(SETTINGS.format(program=clis.need("codex"), key=KEY) + ROLES.replace("play", "codex") + more)
    return lifecycle.create_change(find_project(), "add-oauth", "Let people sign in")


def plan(change: Change, **other: Any) -> CallResult:
    with open_run(change) as run:
        return retries.perform_call(run, planner_request(run, **other))


def seen(request: Request) -> str:
    """What the model gets to see."""
    return json.dumps(request.body["input"])


def tokens(call: Counted) -> tuple[int, int, int]:
    return call.tokens_in or 0, call.tokens_cached or 0, call.tokens_out or 0


def test_planner_writes_its_document_through_mcp(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = replace(PROPOSE, text="I begin.", tokens_in=3448, cached=1664, tokens_out=8)
    conversation = model.conversation(CodexApi(), first, replace(DONE, tokens_in=4000, cached=3448, tokens_out=5))
    codex_home(project.home, conversation)
    change = seat(project, monkeypatch)
    done = plan(change)
    recording.keep("codex", "propose", change, project)
    assert (change.folder / "proposal.md").is_file()
    assert done.text == "I begin.\nDone.\n"
    (call,) = change.read().llm_calls
    assert tokens(call) == (7448, 5112, 13)
    assert call.session == done.session and done.session
    request = conversation.asked[0]
    assert request.headers["authorization"] == "Bearer a-dummy-key"
    assert (request.body["model"], request.body["reasoning"]["effort"]) == ("gpt-5.5", "high")
    assert "Write the proposal." in seen(request)
    assert "nobody can answer a question" in seen(request)
    assert not list(Path(change.project.local_state_path("runs")).iterdir())  # where its instructions were


def test_tool_of_another_stage_and_invalid_call_are_refused(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Turn(calls=(Call("create_proposal", {}),))
    conversation = model.conversation(CodexApi(), APPROVE, wrong, PROPOSE, DONE)
    codex_home(project.home, conversation)
    change = seat(project, monkeypatch)
    with open_run(change) as run:
        retries.perform_call(run, planner_request(run))
        assert not (run.folder / "report.json").exists()
    recording.keep("codex", "refusals", change, project)
    assert "unsupported call" in seen(conversation.asked[1])
    assert "summary is missing" in seen(conversation.asked[2])
    did = [(one.text, one.ok) for one in journal_of(change, events.AgentActivity) if one.ok is not None]
    assert did == [("create_proposal", False), ("create_proposal", True)]


def test_judge_reports_and_cannot_write(project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = model.conversation(CodexApi(), WRITE, APPROVE, DONE)
    codex_home(project.home, conversation)
    change = seat(project, monkeypatch)
    with open_run(change) as run:
        retries.perform_call(run, challenger_request(run))
        assert json.loads((run.folder / "report.json").read_text())["verdict"] == "APPROVED"
    recording.keep("codex", "judge", change, project)
    assert not (project.root / "made.txt").exists()
    assert "made.txt: Read-only file system" in seen(conversation.asked[1])


def test_users_edit_during_a_challenge_is_not_blamed_on_the_judge(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("src/app.py", "one = 1\n")
    is_done: list[bool] = []

    class AfterPerson(CodexApi):
        def answer(self, request: Request, turn: Turn) -> tuple[str, list[bytes]]:
            if not is_done:
                is_done.append(True)
                project.write("src/app.py", "one = 2\n")
                project.commit("meanwhile")
            return super().answer(request, turn)

    conversation = model.conversation(AfterPerson(), APPROVE, DONE)
    codex_home(project.home, conversation)
    change = seat(project, monkeypatch)
    with open_run(change) as run:
        retries.perform_call(run, challenger_request(run))
    [note] = journal_of(change, events.NoticeIssued)
    assert note.message.endswith("src/app.py changed during the call; codex cannot write, so someone else did it")
    assert (project.root / "src/app.py").read_text() == "one = 2\n"


def test_implementer_can_write(project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    codex_home(project.home, model.conversation(CodexApi(), WRITE, DONE))
    change = seat(project, monkeypatch)
    made = project.root / "made.txt"
    plan(change, step="implement", role=Role.IMPLEMENTER, stage=Stage.IMPLEMENT, effect=made.is_file)
    recording.keep("codex", "implement", change, project)
    assert made.read_text() == "x\n"


def test_resumed_session_continues_and_counts_only_its_own_tokens(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (
        model.conversation(
            CodexApi(), replace(DONE, text=f"Answer {number}.", tokens_in=3448, cached=1664, tokens_out=8)
        )
        for number in (1, 2, 3)
    )
    codex_home(project.home, first)
    change = seat(project, monkeypatch)
    session = plan(change, prompt="The first words.", effect=None).session
    for conversation, round_ in ((second, 1), (third, 2)):
        codex_home(project.home, conversation)
        done = plan(change, step="reproposal", round=round_, prompt="More words.", effect=None, resume=session)
        assert done.session == session
    recording.keep("codex", "resumed", change, project)
    (request,) = second.asked
    assert all(words in seen(request) for words in ("The first words.", "Answer 1.", "More words."))
    assert [tokens(call) for call in change.read().llm_calls] == [(3448, 1664, 8)] * 3


@pytest.mark.parametrize("session", ["01a1e211-d2e4-76e1-8c64-955c84bcee39", "yesterday"])
def test_unknown_session_is_lost(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    conversation = model.conversation(CodexApi(), DONE)
    codex_home(project.home, conversation)
    change = seat(project, monkeypatch)
    with pytest.raises(SessionLost, match="Session not found, please re-run proposal"):
        plan(change, step="reproposal", effect=None, resume=session)
    assert not conversation.asked


def test_slow_mcp_server_is_waited_for(project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    more = before_our_server(project.home / "late", "import time; time.sleep(3)")
    codex_home(project.home, model.conversation(CodexApi(), PROPOSE, DONE), more)
    change = seat(project, monkeypatch)
    assert plan(change).attempt == 1


def test_failed_mcp_server_prevents_the_call(project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = model.conversation(CodexApi(), DONE)
    codex_home(project.home, conversation, before_our_server(project.home / "dead", "import os; os._exit(3)"))
    change = seat(project, monkeypatch)
    with pytest.raises(AgentFailed, match="codex: agentd: ") as caught:
        plan(change)
    assert caught.value.code == "tools-missing"
    assert not conversation.asked


FAULTS = {
    "401": (Turn(status=401), "key-refused", "unexpected status 401 Unauthorized: Incorrect API key provided."),
    "404": (Turn(status=404), "model-unknown", "The model `gpt-0` does not exist"),
    "429": (Turn(status=429, headers={"Retry-After": "7"}), "rate-limited", "last status: 429 Too Many Requests"),
    "500": (Turn(status=500), "server-error", "experiencing high demand"),
    "cut": (Turn(text="Half an", cut=True), "network-down", "stream disconnected before completion"),
    "empty": (Turn(), "did-nothing", "did not do what was asked"),
    "hang": (Turn(hang=True), "idle", "it printed nothing for 8 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_model_failure_is_reported_with_its_cause(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    turn, code, words = FAULTS[fault]
    codex_home(project.home, model.conversation(CodexApi(), turn))
    change = seat(project, monkeypatch, "[limits.idle_secs]\nplanner = 8\n" if turn.hang else "")
    with pytest.raises(AgentFailed) as caught:
        plan(change)
    recording.keep("codex", fault, change, project)
    assert caught.value.code == code
    assert words in caught.value.message and "127.0.0.1" not in caught.value.message


def test_refused_connection_is_reported_as_network_down(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex_home(project.home, Conversation(CodexApi(), "http://127.0.0.1:1", [DONE]))
    change = seat(project, monkeypatch)
    with pytest.raises(AgentFailed, match="Connection failed") as caught:
        plan(change)
    recording.keep("codex", "refused", change, project)
    assert caught.value.code == "network-down"


def test_missing_key_is_named(project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    codex_home(project.home, model.conversation(CodexApi(), DONE))
    change = seat(project, monkeypatch)
    monkeypatch.delenv(KEY)
    with pytest.raises(AgentFailed, match=KEY) as caught:
        plan(change)
    recording.keep("codex", "no-key", change, project)
    assert caught.value.code == "not-logged-in"
    assert "[agents.codex] env" in caught.value.hint


def test_rate_limit_is_retried_by_codex_and_is_not_a_failure(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = Turn(status=429, headers={"Retry-After": "1"})
    conversation = model.conversation(CodexApi(), limited, PROPOSE, DONE)
    codex_home(project.home, conversation, retries=2)
    change = seat(project, monkeypatch)
    assert plan(change).attempt == 1
    recording.keep("codex", "reconnected", change, project)
    assert len(conversation.asked) == 3


def test_users_settings_apply_and_stay_unchanged(
    project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = project.home / "looked-up"
    look_up = Turn(calls=(Elsewhere("look_up", {}, server="own"),))
    conversation = model.conversation(CodexApi(), look_up, PROPOSE, DONE)
    config = codex_home(project.home, conversation, own_server(mark))
    config.with_name("AGENTS.md").write_text("The person likes short words.\n")
    project.write("AGENTS.md", "Notes are never deleted.\n")
    text = config.read_text()
    change = seat(project, monkeypatch)
    plan(change)
    assert mark.exists()
    assert "it ran" in seen(conversation.asked[1])
    assert "The person likes short words." in seen(conversation.asked[0])
    assert "Notes are never deleted." not in seen(conversation.asked[0])  # agentd's context file quotes the project
    assert config.read_text() == text
    assert project.git("status", "--porcelain", "--untracked-files=all", "--", ":!agentd") == ""


def test_codex_works_inside_another_cli(project: Scenario, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    codex_home(project.home, model.conversation(CodexApi(), PROPOSE, DONE))
    change = seat(project, monkeypatch)
    for name in ("CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "CODEX_SANDBOX_NETWORK_DISABLED"):
        monkeypatch.setenv(name, "1")
    assert plan(change).attempt == 1

"""A step's calls, played by a scripted agent in a process of its own against the real MCP server."""

import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_calls import call_planner, challenger_request, planner_request, play
from agentd.change import lifecycle
from agentd.change.folder import Change
from agentd.domain import events
from agentd.domain.errors import (
    AgentdError,
    AgentFailed,
    AgentMissing,
    CallsUsedUp,
    NotTrusted,
    OverBudget,
    SessionLost,
    StateError,
)
from agentd.domain.terms import StepStatus
from agentd.engine.calls import retries
from agentd.project.layout import find_project
from playbooks import Action, propose, say, usage, write_document
from scenario import PLAY, RETRY_AT_ONCE, ROLES, Scenario, journal_of, open_run

APPROVED = {"verdict": "APPROVED", "summary": "It holds.", "findings": [], "previous": []}

pytestmark = pytest.mark.usefixtures("forked_servers")


def statuses(change: Change) -> list[tuple[int, str]]:
    return [(step.attempt, str(step.status)) for step in change.read().steps]


def test_planner_call_through_mcp_is_recorded(project: Scenario) -> None:
    change = play(project, proposal_gen=[say("Reading."), propose(), usage(0.5), say("Done.")])
    with open_run(change) as run:
        work = planner_request(run)
        done = retries.perform_call(run, work)
        retries.finish_step(run, work, done, {"proposal.md": "sha256:1"})
    assert (change.folder / "proposal.md").is_file()
    assert done.attempt == 1
    assert done.text == "Reading.Done."
    state = change.read()
    (step,) = state.steps
    assert (step.name, step.status, step.outputs) == ("proposal-gen", StepStatus.DONE, {"proposal.md": "sha256:1"})
    (call,) = state.llm_calls
    assert (call.agent, call.role, call.tokens_in, call.tokens_out, call.cost) == ("play", "planner", 1000, 10, 0.5)
    assert call.session == done.session
    kinds = [entry.event.type for entry in change.journal().since(0)[0]]
    assert [kind for kind in kinds if kind != "agent.activity"] == [
        "run.started",
        "warning",  # the price is not known before the call
        "step.started",
        "usage",
        "step.finished",
        "run.finished",
    ]
    seen = [(one.kind, one.text, one.ok) for one in journal_of(change, events.AgentActivity)]
    assert seen == [
        ("text", "Reading.", None),
        ("tool", "create_proposal", None),
        ("tool", "create_proposal", True),
        ("text", "Done.", None),
    ]
    runs = {entry.run for entry in change.journal().since(0)[0]}
    assert len(runs) == 1 and None not in runs


def test_transcript_has_prompt_and_output_without_secrets(project: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    change = play(project, proposal_gen=[say("the key is hunter2-hunter2"), propose()])
    project.configure(project.root.joinpath("agentd/config.toml").read_text().replace("[agents.play]", KEY))
    monkeypatch.setenv("PLAY_API_KEY", "hunter2-hunter2")
    call_planner(change)
    (path,) = Path(change.project.local_state_path("transcripts")).glob("*/*/*.log")
    text = path.read_text()
    assert "in| Write the proposal." in text
    assert "create_proposal" in text
    assert "[redacted]" in text
    everything = [text, *(entry.line() for entry in change.journal().since(0)[0])]
    assert not any("hunter2" in one for one in everything)
    assert path.stat().st_mode & 0o777 == 0o600


KEY = '[agents.play]\nenv = ["PLAY_API_KEY"]'


def test_agent_that_did_nothing_is_reminded_once(project: Scenario) -> None:
    reminded = [{"expect": "There is no proposal yet"}, write_document("proposal.md")]
    change = play(project, proposal_gen_r1_a1=[say("All done!")], proposal_gen_r1_a2=reminded)
    done = call_planner(change)
    assert done.attempt == 2
    assert statuses(change) == [(1, "failed"), (2, "running")]
    (failed,) = journal_of(change, events.ErrorOccurred)
    assert (failed.code, failed.final) == ("did-nothing", False)


def test_agent_that_does_nothing_twice_fails(project: Scenario) -> None:
    change = play(project, proposal_gen=[say("All done!")])
    with pytest.raises(AgentFailed, match="play: it exited normally but did not do what was asked") as caught:
        call_planner(change)
    assert caught.value.code == "did-nothing"
    assert statuses(change) == [(1, "failed"), (2, "failed")]
    assert change.read().run is None


def test_step_that_may_change_nothing_is_not_reminded(project: Scenario) -> None:
    change = play(project, proposal_review=[say("<review>PASS</review>")])
    done = call_planner(change, step="proposal-review", effect=None)
    assert (done.attempt, done.text) == (1, "<review>PASS</review>")


@pytest.mark.parametrize("cause", ["rate-limited", "server-error", "network-down"])
def test_transient_failure_is_retried_in_a_new_session(project: Scenario, cause: str) -> None:
    fault = [{"fault": cause}]
    change = play(
        project, proposal_gen=[write_document("proposal.md")], proposal_gen_r1_a1=fault, proposal_gen_r1_a2=fault
    )
    assert call_planner(change).attempt == 3
    waits = [one.retry_in_secs for one in journal_of(change, events.ErrorOccurred)]
    assert waits == [0.05, 0.1]
    sessions = [one.session for one in journal_of(change, events.StepStarted)]
    assert len(set(sessions)) == 3
    assert [one.code for one in journal_of(change, events.ErrorOccurred)] == [cause, cause]


def test_retries_are_limited(project: Scenario) -> None:
    change = play(project, proposal_gen=[{"fault": "server-error"}])
    with pytest.raises(AgentFailed) as caught:
        call_planner(change)
    assert caught.value.code == "server-error"
    assert caught.value.exit_code == 4
    assert [number for number, _ in statuses(change)] == [1, 2, 3]


def test_rate_limit_wait_is_respected(project: Scenario) -> None:
    limited: list[Any] = [{"fault": "rate-limited", "wait": 0.3}]
    change = play(project, proposal_gen_r1_a1=limited, proposal_gen=[write_document("proposal.md")])
    call_planner(change)
    assert [one.retry_in_secs for one in journal_of(change, events.ErrorOccurred)] == [0.3]


def test_rate_limit_of_hours_is_reported_instead_of_waited_for(project: Scenario) -> None:
    change = play(project, proposal_gen=[{"fault": "rate-limited", "wait": 18000}])
    with pytest.raises(AgentFailed) as caught:
        call_planner(change)
    assert caught.value.hint == "wait 5.0 h, then run the command again"
    assert len(statuses(change)) == 1


@pytest.mark.parametrize(
    ("fault", "code", "hint"),
    [
        ({"fault": "not-logged-in"}, "not-logged-in", "log in to play"),
        ({"fault": "key-refused"}, "key-refused", "check the key"),
        ({"fault": "model-unknown"}, "model-unknown", "[[agents.play.models]]"),
        ({"fault": "crash"}, "crashed", "agentd log"),
        ({"fault": "die"}, "crashed", "agentd log"),
        ({"fault": "garbage"}, "garbage", "output format"),
        ({"fault": "silent-end"}, "garbage", "output format"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_permanent_failure_fails_at_once_with_a_hint(
    project: Scenario, fault: dict[str, Any], code: str, hint: str
) -> None:
    change = play(project, proposal_gen=[fault])
    with pytest.raises(AgentFailed) as caught:
        call_planner(change)
    assert caught.value.code == code
    assert hint in caught.value.hint
    assert statuses(change) == [(1, "failed")]
    (failed,) = journal_of(change, events.ErrorOccurred)
    assert (failed.code, failed.final, failed.retry_in_secs) == (code, True, None)


def test_lost_session_raises_session_lost(project: Scenario) -> None:
    change = play(project, reproposal=[{"fault": "session-lost"}])
    with pytest.raises(SessionLost, match="Session not found, please re-run proposal"):
        call_planner(change, step="reproposal", resume="d7a10a4e-8328-41a2-a4fa-bd06fb7ab471", effect=None)


@pytest.mark.parametrize(("limit", "code"), [("wall_secs", "wall-clock"), ("idle_secs", "idle")])
def test_hanging_agent_is_ended_by_its_time_limit(project: Scenario, limit: str, code: str) -> None:
    change = play(project, f"[limits.{limit}]\nplanner = 1\n", proposal_gen=[{"fault": "hang"}])
    with pytest.raises(AgentFailed) as caught:
        call_planner(change)
    assert caught.value.code == code
    assert f"limits.{limit}.planner" in caught.value.hint


def test_too_much_output_ends_the_call(project: Scenario) -> None:
    change = play(project, "[limits]\noutput_mb = 1\n", proposal_gen=[say("x" * 1000)] * 1500)
    with pytest.raises(AgentFailed, match="more than 1 MB") as caught:
        call_planner(change)
    assert caught.value.code == "too-much-output"


def test_missing_agent_makes_no_call(project: Scenario) -> None:
    change = play(project)
    text = '[agents.play]\nkind = "command"\ncommand = "no-such-agent"\n'
    project.configure("schema_version = 1\n[roles]\nplanner = 'play'\n" + text)
    with pytest.raises(AgentMissing, match="no-such-agent"):
        call_planner(change)
    assert statuses(change) == []


def test_untrusted_agent_is_not_run(project: Scenario) -> None:
    change = play(project, proposal_gen=[write_document("proposal.md")])
    project.write("playbook.json", json.dumps({"steps": {"proposal-gen": [{"write": "owned", "text": ""}]}}))
    with pytest.raises(NotTrusted):
        call_planner(change)
    assert not (project.root / "owned").exists()


def test_resuming_does_not_reset_the_call_limit(project: Scenario) -> None:
    change = play(project, "[limits]\ncalls_per_step = 4\n", proposal_gen=[{"fault": "server-error"}])
    with pytest.raises(AgentFailed):
        call_planner(change)
    with pytest.raises(CallsUsedUp, match="has used all of its 4 calls") as caught:
        call_planner(change)
    assert caught.value.exit_code == 7
    assert "limits.calls_per_step" in caught.value.hint
    with pytest.raises(CallsUsedUp):
        call_planner(change)
    assert len(statuses(change)) == 4


def test_budget_ends_the_call_in_flight_and_counts_it(project: Scenario) -> None:
    script = [usage(0.6), usage(0.6), {"wait": 600}, write_document("proposal.md")]
    change = play(project, "[budget]\nper_change = 1.0\n", proposal_gen=script)
    with pytest.raises(OverBudget, match=r"add-oauth has cost 1\.20 USD of its 1\.00 USD") as caught:
        call_planner(change)
    assert "budget.per_change" in caught.value.hint
    assert change.read().total_cost == pytest.approx(1.2)
    assert statuses(change) == [(1, "failed")]
    assert journal_of(change, events.ErrorOccurred)[0].code == "budget"
    with pytest.raises(OverBudget):  # the next call does not even start
        call_planner(change)
    assert len(statuses(change)) == 1


def test_daily_budget_applies_to_every_change(project: Scenario) -> None:
    change = play(project, "[budget]\nper_day = 1.0\n", proposal_gen=[usage(1.0), write_document("proposal.md")])
    call_planner(change)
    other = lifecycle.create_change(change.project, "other", "words")
    with pytest.raises(OverBudget, match="today's calls have cost"):
        call_planner(other)


def test_unknown_price_warns_once_or_stops_by_configuration(project: Scenario) -> None:
    change = play(project, proposal_gen=[usage(), write_document("proposal.md")])
    with open_run(change) as run:
        retries.perform_call(run, planner_request(run))
        retries.perform_call(run, planner_request(run, number=2))
    (warned,) = journal_of(change, events.WarningIssued)
    assert warned.code == "price-unknown"
    assert [call.cost for call in change.read().llm_calls] == [None, None]
    project.configure((project.root / "agentd/config.toml").read_text() + "[budget]\nunknown_price = 'stop'\n")
    with pytest.raises(OverBudget, match="is not known"):
        call_planner(change, number=3)
    assert len(statuses(change)) == 2


def test_judge_reports_through_mcp(project: Scenario) -> None:
    change = play(project, challenge=[{"call": "append_review", "with": APPROVED}])
    with open_run(change) as run:
        retries.perform_call(run, challenger_request(run))
        assert json.loads((run.folder / "report.json").read_text())["verdict"] == "APPROVED"


def test_report_of_a_judge_that_died_is_discarded(project: Scenario) -> None:
    report = {"call": "append_review", "with": APPROVED}
    change = play(
        project, challenge_r1_a1=[report, {"fault": "server-error"}], challenge_r1_a2=[say("hm")], challenge=[say("hm")]
    )
    with open_run(change) as run, pytest.raises(AgentFailed) as caught:
        retries.perform_call(run, challenger_request(run))
    assert caught.value.code == "did-nothing"
    assert not os.path.exists(change.project.local_state_path("runs", "report.json"))


def test_judge_that_wrote_files_has_failed(project: Scenario) -> None:
    report = {"call": "append_review", "with": APPROVED}
    change = play(project, challenge=[{"write": "src/notes.py", "text": "x = 1\n"}, report])
    with open_run(change) as run, pytest.raises(AgentFailed, match=r"src/notes\.py changed") as caught:
        retries.perform_call(run, challenger_request(run))
    assert caught.value.code == "changed-files"


def test_protected_files_changed_by_an_agent_are_restored_and_reported(project: Scenario) -> None:
    before = (project.root / "agentd/config.toml").read_text
    script = [
        propose(),
        {"write": "agentd/config.toml", "text": "[budget]\nper_change = 0\n"},
        {"write": ".git/hooks/post-commit", "text": "#!/bin/sh\n"},
        {"edit": "agentd/changes/add-oauth/STATE.yaml", "old": "round: 0", "new": "round: 9"},
    ]
    change = play(project, proposal_gen=script)
    text = before()
    call_planner(change)
    assert before() == text
    assert not (project.root / ".git/hooks/post-commit").exists()
    state = change.read()
    assert state.round == 0
    found = {one.where: one for one in state.findings}
    assert set(found) == {"agentd/config.toml", ".git/hooks/post-commit", "agentd/changes/add-oauth/STATE.yaml"}
    assert {str(one.severity) for one in found.values()} == {"high"}
    assert [one.id for one in state.findings] == ["G1", "G2", "G3"]
    assert [one.id for one in journal_of(change, events.FindingReported)] == ["G1", "G2", "G3"]
    assert project.agentd("status", "add-oauth").out.count("  G") == 3
    assert project.agentd("list", "--json").json["changes"][0]["open"]["high"] == 3


def test_session_id_is_saved_as_soon_as_it_is_known(project: Scenario) -> None:
    change = play(project, proposal_gen=[propose(), {"fault": "crash"}])

    with open_run(change) as run:
        save = lambda session: run.update(lambda old: replace(old, session_id=session))  # noqa: E731
        with pytest.raises(AgentFailed):
            retries.perform_call(run, planner_request(run, on_session=save))
    (started,) = journal_of(change, events.StepStarted)
    assert change.read().session_id == started.session
    assert not change.read().findings  # agentd's own write is no trespass


def command_agent(box: Scenario, script: str) -> Change:
    """A planner and challenger that are a program of their own."""
    change = play(box)
    box.write("agent.py", script)
    mine = f"[agents.mine]\nkind = 'command'\ncommand = '{sys.executable}'\nargs = ['agent.py', '{{mcp_config}}']\n"
    box.configure(f"schema_version = 1\n{RETRY_AT_ONCE}{mine}{ROLES.replace('play', 'mine')}")
    return change


def test_any_program_can_be_the_planner(project: Scenario) -> None:
    script = (
        "import sys; print('You said:', sys.stdin.read()); open('agentd/changes/add-oauth/proposal.md', 'w').close()"
    )
    done = call_planner(command_agent(project, script))
    assert done.text == "You said: Write the proposal.\n"
    assert done.session is None


def test_command_agent_reaches_the_server_through_the_config_file(project: Scenario) -> None:
    script = """
import json, subprocess, sys
server = json.load(open(sys.argv[1]))["mcpServers"]["agentd"]
hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "mine", "version": "1"}}
lines = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]
with subprocess.Popen([server["command"], *server["args"]], stdin=-1, stdout=-1, text=True) as process:
    for line in lines:
        print(json.dumps(line), file=process.stdin, flush=True)
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.stdin.close()
print([tool["name"] for tool in answers[1]["result"]["tools"]])
"""
    done = call_planner(command_agent(project, script), effect=None)
    assert "create_proposal" in done.text


def test_command_agent_gets_only_allowed_environment_variables(
    project: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not yours")
    done = call_planner(command_agent(project, "import os; print(sorted(os.environ))"), effect=None)
    assert "'PATH'" in done.text and "'HOME'" in done.text
    assert "CLAUDECODE" not in done.text and "AWS" not in done.text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("Error: 401 Unauthorized: invalid API key", "key-refused"),
        ("getaddrinfo ENOTFOUND api.example.invalid", "network-down"),
        ("Please log in first", "not-logged-in"),
        ("segmentation fault", "crashed"),
    ],
)
def test_failure_cause_of_a_command_agent_is_read_from_stderr(project: Scenario, words: str, code: str) -> None:
    change = command_agent(project, f"import sys; print({words!r}, file=sys.stderr); sys.exit(3)")
    with pytest.raises(AgentFailed) as caught:
        call_planner(change, effect=None)
    assert caught.value.code == code
    assert words in caught.value.message


def test_agent_that_switches_the_branch_stops_the_run(project: Scenario) -> None:
    change = command_agent(project, "import subprocess; subprocess.run(['git', 'switch', '-qc', 'elsewhere'])")
    with pytest.raises(StateError, match="elsewhere") as caught:
        call_planner(change, effect=None)
    assert caught.value.exit_code == 6
    assert "git switch main" in caught.value.hint
    project.git("switch", "-q", "main")
    with open_run(change):
        pass
    assert not os.listdir(change.project.local_state_path("runs"))


def test_budget_and_call_limits_hold_for_random_streams_and_resumes(project: Scenario) -> None:
    """With one seed that is told, so that a failure can be seen again."""
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    for number in range(4):
        limit = chance.choice([0.5, 1.0, 2.5])
        cap = chance.randint(2, 5)
        largest = 0.0
        steps: dict[str, list[Action]] = {}
        for attempt in range(1, 10):
            costs = [round(chance.random(), 3) for _ in range(chance.randint(0, 3))]
            largest = max(largest, *costs, 0.0)
            fault = chance.choice(["server-error", "crash", "silent-end", "key-refused"])
            steps[f"proposal-gen/1/{attempt}"] = [*(usage(cost) for cost in costs), {"fault": fault}]
        project.write("playbook.json", json.dumps({"steps": steps}))
        settings = f"[budget]\nper_change = {limit}\n[limits]\ncalls_per_step = {cap}\n"
        project.configure(f"schema_version = 1\n{RETRY_AT_ONCE}{ROLES}{PLAY}{settings}")
        change = lifecycle.create_change(find_project(), f"change-{number}", "words")
        for _ in range(6):
            with pytest.raises(AgentdError):
                call_planner(change)
            state = change.read()
            assert state.total_cost <= limit + largest + 1e-9, f"seed {seed}"
            assert len(state.steps) <= cap, f"seed {seed}"


def test_unknown_price_does_not_hide_known_costs(project: Scenario) -> None:
    script = [usage(), usage(0.7), usage(0.7), {"wait": 600}]
    change = play(project, "[budget]\nper_change = 1.0\n", proposal_gen=script)
    with pytest.raises(OverBudget):
        call_planner(change)
    assert change.read().total_cost == pytest.approx(1.4)


def test_failure_message_is_redacted_and_truncated(project: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-ant-" + "a1B2" * 12
    change = play(project, proposal_gen=[{"fault": "key-refused", "message": f"bad key {key} " + "x" * 5000}])
    with pytest.raises(AgentFailed) as caught:
        call_planner(change)
    assert key not in caught.value.message
    assert len(caught.value.message) < 600
    assert not any(key in entry.line() for entry in change.journal().since(0)[0])


def test_unwritable_journal_does_not_end_the_run(project: Scenario) -> None:
    change = play(project, proposal_gen=[write_document("proposal.md")])
    os.makedirs(change.project.local_state_path("journal", "add-oauth.jsonl"))
    seen: list[events.JournalEntry] = []
    with open_run(change, seen.append) as run:
        retries.perform_call(run, planner_request(run))
    assert "journal" in [one.event.code for one in seen if isinstance(one.event, events.WarningIssued)]
    assert (change.folder / "proposal.md").is_file()


def test_folder_in_place_of_the_report_does_not_fail_the_call(project: Scenario) -> None:
    change = play(project, challenge=[{"call": "append_review", "with": APPROVED}])
    with open_run(change) as run:
        (run.folder / "report.json" / "deep").mkdir(parents=True)
        retries.perform_call(run, challenger_request(run))


def test_many_guard_violations_are_reported_as_twenty_findings(project: Scenario) -> None:
    script = "import os\nfor n in range(60): open(f'agentd/new-{n}', 'w').close()"
    change = command_agent(project, script)
    call_planner(change, effect=None)
    found = change.read().findings
    assert len(found) == 20
    assert found[-1].title == "41 more protected files were changed"


def test_lone_surrogate_in_a_prompt_is_tolerated(project: Scenario) -> None:
    change = play(project, proposal_gen=[write_document("proposal.md")])
    assert call_planner(change, prompt="Write \ud800 the proposal.").attempt == 1


def test_agent_that_deletes_local_state_is_still_detected(project: Scenario) -> None:
    script = """
import shutil
open(".git/hooks/pre-commit", "w").write("#!/bin/sh")
open("agentd/config.toml", "a").write("# mine")
shutil.rmtree(".git/agentd")
"""
    change = command_agent(project, script)
    text = (project.root / "agentd/config.toml").read_text()
    with pytest.raises(StateError) as caught:
        call_planner(change, effect=None)
    assert caught.value.exit_code == 6
    assert (project.root / "agentd/config.toml").read_text() == text
    assert not (project.root / ".git/hooks/pre-commit").exists()
    with open_run(change):
        pass
    assert {".git/agentd", ".git/hooks/pre-commit", "agentd/config.toml"} <= {
        one.where for one in change.read().findings
    }
    assert not os.listdir(change.project.local_state_path("runs"))

"""The scripted agent: a real process plays a playbook and calls tools through the real MCP server."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from briefs import agent, brief

from agentd.agents.failures import FailureCause
from agentd.agents.playbook import InvalidPlaybook, PlaybookTurn, SayAction, parse_playbook
from agentd.agents.protocol import (
    AgentAction,
    AgentEnded,
    AgentEvent,
    AgentText,
    SessionStarted,
    TokenUsage,
    UsageUpdate,
)
from agentd.agents.scripted import ScriptedAgent
from agentd.engine.tools.tool import Stage
from assertions import assert_grows_linearly
from mcp_session import staged
from plans import example_calls
from processes import wait_until
from program import AGENTD, PATIENCE
from scenario import Scenario

ADAPTER = ScriptedAgent()
WELL = AgentEnded()


@dataclass(frozen=True)
class Played:
    code: int
    events: list[AgentEvent]
    err: str

    @property
    def ended(self) -> AgentEnded | None:
        last = self.events[-1] if self.events else None
        return last if isinstance(last, AgentEnded) else None

    def only(self, *kinds: type) -> list[AgentEvent]:
        return [event for event in self.events if isinstance(event, kinds)]


@contextlib.contextmanager
def playing(box: Scenario, playbook: str, **parts: Any) -> "Iterator[subprocess.Popen[bytes]]":
    box.write("agentd/demo.yaml", playbook)
    command = ADAPTER.command(agent(kind="scripted", playbook="agentd/demo.yaml"), brief(box.root, **parts))
    with subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env={**box.env, **command.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin
        process.stdin.write(command.stdin.encode())
        process.stdin.close()
        process.stdin = None
        try:
            yield process
        finally:
            process.kill()


def play(box: Scenario, playbook: str, **parts: Any) -> Played:
    with playing(box, playbook, **parts) as process:
        out, err = process.communicate(timeout=PATIENCE)
    heard = [event for line in out.decode("utf-8", "replace").split("\n") for event in ADAPTER.read(line)]
    return Played(process.returncode, heard, err.decode())


def one_step(*actions: str, step: str = "proposal-gen") -> str:
    return f"steps:\n  {step}:\n" + "".join(f"    - {action}\n" for action in actions)


# ---- a run


def test_playbook_actions_are_performed_and_reported(box: Scenario) -> None:
    box.write("src/a.py", "one\ntwo\n")
    box.write("src/old.py")
    played = play(
        box,
        one_step(
            "say: Reading the project.",
            "{write: src/new/b.py, text: \"x = 'é'\\n\"}",
            "{edit: src/a.py, old: two, new: three}",
            "delete: src/old.py",
            "wait: 0.01",
            "usage: {in: 15234, out: 892, cached: 100, cost: 0.00188, model: m-1}",
            "usage: {in: 10}",
        ),
    )
    assert played == Played(
        0,
        [
            AgentText("Reading the project."),
            AgentAction("tool", "write src/new/b.py", True),
            AgentAction("tool", "edit src/a.py", True),
            AgentAction("tool", "delete src/old.py", True),
            UsageUpdate(TokenUsage(tokens_in=15234, tokens_out=892, tokens_cached=100, cost=0.00188, model="m-1"), "1"),
            UsageUpdate(TokenUsage(tokens_in=10), "2"),
            WELL,
        ],
        "",
    )
    assert (box.root / "src/new/b.py").read_text() == "x = 'é'\n"
    assert (box.root / "src/a.py").read_text() == "one\nthree\n"
    assert not (box.root / "src/old.py").exists()


def test_given_or_resumed_session_id_is_reported(box: Scenario) -> None:
    quiet = one_step("say: hello")
    assert play(box, quiet, session="s-1").events[0] == SessionStarted("s-1")
    assert play(box, quiet, session="s-1", resume="r-1").events[0] == SessionStarted("r-1")
    assert play(box, quiet).only(SessionStarted) == []


def test_repositorys_own_agentd_package_is_never_imported(box: Scenario) -> None:
    for module in ("agentd/__init__.py", "agentd/agents/player.py", "json.py", "yaml.py"):
        box.write(module, "raise SystemExit('imported the repository')\n")
    played = play(box, one_step("say: hello"))
    assert (played.code, played.ended, played.err) == (0, WELL, "")


def test_long_prompt_is_read_completely(box: Scenario) -> None:
    prompt = "x" * 3_000_000 + " the end é"
    assert play(box, one_step("expect: the end é"), prompt=prompt).ended == WELL


def test_missing_expected_prompt_text_fails_the_run(box: Scenario) -> None:
    played = play(box, one_step("expect: C1", "say: not reached"), prompt="no findings")
    assert played.events == [
        AgentEnded(cause=FailureCause.CRASHED, message="the prompt does not contain the expected text: C1")
    ]
    assert played.code == 1


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("{edit: a.py, old: x, new: y}", "edit a.py: the old text occurs 2 times, not once"),
        ("{edit: a.py, old: z, new: y}", "edit a.py: the old text occurs 0 times, not once"),
        ("{edit: b.py, old: x, new: y}", "edit b.py: [Errno 2] No such file or directory: 'b.py'"),
        ("delete: b.py", "delete b.py: [Errno 2] No such file or directory: 'b.py'"),
        ("{write: a.py/b, text: x}", "write a.py/b: [Errno 17] File exists: 'a.py'"),
    ],
)
def test_action_that_does_not_match_the_files_fails_the_run(box: Scenario, action: str, message: str) -> None:
    box.write("a.py", "x x\n")
    played = play(box, one_step(action))
    assert (played.code, played.ended) == (1, AgentEnded(cause=FailureCause.CRASHED, message=message))


def test_playbook_without_the_step_fails_the_run(box: Scenario) -> None:
    played = play(box, one_step("say: hello"), step="challenge", round=3)
    assert played.ended and played.ended.cause is FailureCause.CRASHED
    assert played.ended.message == "the playbook has no entry for challenge, round 3, attempt 1 (demo.yaml)"


def test_missing_playbook_fails_the_run(box: Scenario) -> None:
    command = ADAPTER.command(agent(playbook="no.yaml"), brief(box.root))
    done = subprocess.run(command.argv, env=box.env, input=b"", capture_output=True, check=False, timeout=PATIENCE)
    (ended,) = (event for line in done.stdout.decode().splitlines() for event in ADAPTER.read(line))
    assert isinstance(ended, AgentEnded) and ended.cause is FailureCause.CRASHED
    assert ended.message.startswith(f"cannot read the playbook {box.root}/no.yaml: ")


# ---- tools, through the real server


def calls(*rows: tuple[str, dict[str, Any], bool]) -> str:
    actions = [{"call": tool, "with": arguments, **({"refused": True} if no else {})} for tool, arguments, no in rows]
    return one_step(*map(json.dumps, actions))


def test_tools_are_called_on_the_real_mcp_server(project: Scenario) -> None:
    arguments = example_calls()["create_spec"]
    with staged(project, Stage.PLAN) as on:
        played = play(
            project,
            calls(
                ("create_spec", {**arguments, "title": "Played"}, False),
                ("read_file", {"path": "../outside"}, True),
                ("append_review", {}, True),
                ("validate_change", {}, False),
            ),
            server=(AGENTD, *on.arguments),
        )
        assert "Played" in (on.change.folder / f"specs/{arguments['spec_id']}.md").read_text()
    tools = [event for event in played.events if isinstance(event, AgentAction)]
    assert [(tool.text.partition(":")[0], tool.ok) for tool in tools] == [
        ("create_spec", None),
        ("create_spec", True),
        ("read_file", None),
        ("read_file", False),
        ("append_review", None),
        ("append_review", False),
        ("validate_change", None),
        ("validate_change", True),
    ]
    assert tools[3].text.startswith("read_file: outside: ")
    assert (played.code, played.ended, played.err) == (0, WELL, "")


# Speaks as little of the protocol as a server must; takes note of its start and its end in files.
DOUBLE = """
import json, os, sys, time
number = len([name for name in os.listdir() if name.startswith("started")])
open(f"started-{number}", "w").write(str(os.getpid()))
slow = 0.0
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    tool = message["params"].get("name")
    if tool == "be-slow":
        slow = 0.5
    if tool == "leave":
        sys.exit(3)
    if tool == "babble":
        print("what is no JSON", flush=True)
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
    if tool == "unknown":
        answer = {"error": {"code": -32602, "message": "Unknown tool: unknown"}}
    else:
        answer = {"result": {"content": [{"type": "text", "text": "ok: fine\\nmore"}], "isError": tool == "refuse"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
time.sleep(slow)
open("ended", "w").close()
"""


def double(box: Scenario) -> tuple[str, ...]:
    return (sys.executable, str(box.write("server.py", DOUBLE)))


def test_one_server_is_used_per_run_and_ends_before_the_run(box: Scenario) -> None:
    """It is ended by closing its stdin, and takes its time."""
    playbook = calls(("a", {}, False), ("be-slow", {}, False), ("refuse", {}, True))
    with playing(box, playbook, server=double(box)) as process:
        assert process.wait(timeout=PATIENCE) == 0
        assert (box.root / "ended").exists()
    assert (box.root / "started-0").exists() and not (box.root / "started-1").exists()


def test_no_server_is_started_without_tool_calls(box: Scenario) -> None:
    assert play(box, one_step("say: hello"), server=double(box)).ended == WELL
    assert not (box.root / "started-0").exists()


@pytest.mark.parametrize(
    ("tool", "refused", "message"),
    [
        ("refuse", False, "refuse was refused: ok: fine"),
        ("take", True, "take should have been refused, but the server accepted it: ok: fine"),
        ("unknown", False, "unknown was refused: Unknown tool: unknown"),
        ("leave", False, "the MCP server ended with exit code 3"),
        ("babble", False, "the MCP server wrote invalid JSON: b'what is no JSON\\n'"),
    ],
)
def test_tool_call_with_an_unexpected_outcome_fails_the_run(
    box: Scenario, tool: str, refused: bool, message: str
) -> None:
    played = play(box, calls((tool, {}, refused), ("never", {}, False)), server=double(box))
    assert played.ended == AgentEnded(cause=FailureCause.CRASHED, message=message)
    assert played.code == 1
    assert AgentAction("tool", "never") not in played.events


def test_refusal_of_an_unknown_tool_can_be_expected(box: Scenario) -> None:
    assert play(box, calls(("unknown", {}, True)), server=double(box)).ended == WELL


def test_server_that_does_not_start_fails_the_run(box: Scenario) -> None:
    played = play(box, calls(("a", {}, False)), server=("/no/such/program",))
    assert played.ended and played.ended.message.startswith("the MCP server could not be started: ")
    ended = play(box, calls(("a", {}, False)), server=(sys.executable, "-c", "raise SystemExit(4)"))
    assert ended.ended == AgentEnded(cause=FailureCause.CRASHED, message="the MCP server ended with exit code 4")


def test_killing_the_player_ends_its_server(box: Scenario) -> None:
    server = double(box)
    with playing(box, calls(("a", {}, False)) + "    - fault: hang\n", server=server) as process:
        assert process.stdout
        while AgentAction("tool", "a", True) not in ADAPTER.read(process.stdout.readline().decode()):
            assert process.poll() is None  # a server that is answering would die of its own
        process.kill()
        process.wait(timeout=PATIENCE)
    wait_until((box.root / "ended").exists, "the server has ended")


# ---- faults


@pytest.mark.parametrize(
    "cause",
    [
        FailureCause.RATE_LIMITED,
        FailureCause.SERVER_ERROR,
        FailureCause.NETWORK_DOWN,
        FailureCause.NOT_LOGGED_IN,
        FailureCause.KEY_REFUSED,
        FailureCause.MODEL_UNKNOWN,
        FailureCause.SESSION_LOST,
    ],
)
def test_fault_with_a_cause_is_reported_in_the_final_event(box: Scenario, cause: FailureCause) -> None:
    played = play(box, one_step("say: hello", f"fault: {cause}"))
    assert (played.code, played.events[0]) == (1, AgentText("hello"))
    assert played.ended and played.ended.cause is cause and played.ended.message


def test_rate_limit_states_how_long_to_wait(box: Scenario) -> None:
    played = play(box, one_step("{wait: 30, message: slow down, fault: rate-limited}"))
    assert played.ended == AgentEnded(cause=FailureCause.RATE_LIMITED, message="slow down", wait_secs=30)


@pytest.mark.parametrize(
    ("action", "code", "err"),
    [
        ("{fault: crash, code: 7, message: out of memory}", 7, "out of memory\n"),
        ("fault: crash", 1, "crashed as the playbook asks\n"),
        ("fault: die", -signal.SIGKILL, ""),
        ("fault: garbage", 0, ""),
        ("fault: silent-end", 0, ""),
    ],
)
def test_sudden_fault_has_no_final_event(box: Scenario, action: str, code: int, err: str) -> None:
    played = play(box, one_step("say: hello", action))
    assert played == Played(code, [AgentText("hello")], err)
    assert ADAPTER.failure(code, err) is None


def test_hanging_run_hangs_until_it_is_ended(box: Scenario) -> None:
    with playing(box, one_step("say: hello", "fault: hang")) as process:
        assert process.stdout and process.stdout.readline() == b'{"type": "text", "text": "hello"}\n'
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == -signal.SIGTERM
        assert process.stdout.read() == b""


# ---- what is heard


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        "null",
        "[]",
        "7",
        "{}",
        '{"type": "no such"}',
        '{"type": "session", "id": 7}',
        '{"type": "text"}',
        '{"type": "tool", "text": "x", "ok": "yes"}',
        '{"type": "usage"}',
        '{"type": "end"}',
        "[" * 100_000,
        "9" * 10_000,
        "\x00\ufffd",
    ],
    ids=lambda line: line[:20],
)
def test_unknown_lines_are_ignored(line: str) -> None:
    assert list(ADAPTER.read(line)) == []


def test_invalid_usage_figures_are_ignored() -> None:
    line = '{"type": "usage", "part": "1", "in": -1, "out": NaN, "cached": true, "cost": Infinity, "model": 7}'
    assert list(ADAPTER.read(line)) == [UsageUpdate(TokenUsage(), "1")]


def test_unknown_end_cause_is_a_crash() -> None:
    assert list(ADAPTER.read('{"type": "end", "cause": "moon phase", "message": "m"}')) == [
        AgentEnded(cause=FailureCause.CRASHED, message="m")
    ]


# ---- which entry plays

ORDER = """
steps:
  spec-gen-*: [say: any spec]
  spec-gen-auth-*: [say: any auth spec]
  spec-gen-auth-flow: [say: this spec]
  spec-gen-*/2/1: [say: any spec in round 2]
  challenge: [say: any]
  challenge/2: [say: round 2]
  challenge/*/2: [say: attempt 2]
  challenge/2/2: [say: round 2 attempt 2]
  resolve: [say: any]
  resolve/*/2: [say: attempt 2]
  resolve#2: [say: the second]
  resolve/2: [say: round 2]
  implement*/2: [say: a pattern with a round]
  implement: [say: the full name]
  tasks-review: [say: any]
  tasks-review#2: [say: the second]
  tasks-review#2/2: [say: the second of round 2]
"""


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (PlaybookTurn("spec-gen-user-model", 1, 1, 1), "any spec"),
        (PlaybookTurn("spec-gen-auth-keys", 1, 1, 1), "any auth spec"),
        (PlaybookTurn("spec-gen-auth-flow", 1, 1, 1), "this spec"),
        (PlaybookTurn("spec-gen-auth-flow", 2, 1, 1), "this spec"),
        (PlaybookTurn("spec-gen-user-model", 2, 1, 1), "any spec in round 2"),
        (PlaybookTurn("challenge", 1, 1, 1), "any"),
        (PlaybookTurn("challenge", 2, 1, 1), "round 2"),
        (PlaybookTurn("challenge", 3, 1, 2), "attempt 2"),
        (PlaybookTurn("challenge", 2, 1, 2), "round 2 attempt 2"),
        (PlaybookTurn("challenge", 22, 1, 22), "any"),
        (PlaybookTurn("resolve", 2, 1, 2), "round 2"),
        (PlaybookTurn("resolve", 2, 2, 2), "round 2"),
        (PlaybookTurn("resolve", 1, 2, 2), "the second"),
        (PlaybookTurn("implement", 2, 1, 1), "the full name"),
        (PlaybookTurn("implement-auth-flow", 2, 1, 1), "a pattern with a round"),
        (PlaybookTurn("tasks-review", 1, 1, 1), "any"),
        (PlaybookTurn("tasks-review", 1, 2, 1), "the second"),
        (PlaybookTurn("tasks-review", 2, 2, 1), "the second of round 2"),
    ],
    ids=str,
)
def test_most_specific_playbook_entry_is_used(turn: PlaybookTurn, words: str) -> None:
    assert parse_playbook(ORDER, "demo.yaml").find(turn) == (SayAction(words),)


def test_missing_entry_error_names_the_step_number() -> None:
    with pytest.raises(InvalidPlaybook, match="no entry for review, number 2, round 1, attempt 1"):
        parse_playbook(ORDER, "demo.yaml").find(PlaybookTurn("review", 1, 2, 1))


# ---- mistakes in a playbook


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps:\n  challenge/x: []", "demo.yaml: step challenge/x: the round must be a number"),
        ("steps:\n  challenge/1/0: []", "demo.yaml: step challenge/1/0: the attempt must be a number"),
        ("steps:\n  challenge#a: []", "demo.yaml: step challenge#a: the number must be a number"),
        (
            "steps:\n  challenge/1/2/3: []",
            "demo.yaml: step challenge/1/2/3: write a step as name, name/round or name/round/attempt",
        ),
        (
            "steps:\n  chalenge: []",
            "demo.yaml: step chalenge: there is no step chalenge; did you mean challenge?",
        ),
        ("steps:\n  challenge:", "demo.yaml: step challenge: the actions must be a list"),
        ("steps: []", "demo.yaml: `steps` must map each step to its actions"),
        ("stepps: {}", "demo.yaml: unknown key stepps; did you mean steps?"),
        ("", "demo.yaml: a playbook starts with `steps:`"),
        ("steps:\n  challenge: [\n", "demo.yaml, line 2: "),
        ("steps:\n  review: []\n  review: []", "demo.yaml, line 3: the key 'review' occurs twice"),
        (
            "steps:\n  review: [say: x, {cal: y}]",
            "demo.yaml: step review, action 2: unknown action cal; did you mean call?",
        ),
        ("steps:\n  review: [hang]", "demo.yaml: step review, action 1: write an action as `say: text`"),
        ("steps:\n  review: [say: 7]", "demo.yaml: step review, action 1: say must be text"),
        (
            "steps:\n  review: [{call: x, whith: {}}]",
            "demo.yaml: step review, action 1: unknown key whith; did you mean with?",
        ),
        ("steps:\n  review: [{call: x, with: []}]", "demo.yaml: step review, action 1: with must be a mapping"),
        (
            "steps:\n  review: [{call: x, refused: 1}]",
            "demo.yaml: step review, action 1: refused must be true or false",
        ),
        ("steps:\n  review: [{write: a}]", "demo.yaml: step review, action 1: text must be text"),
        (
            "steps:\n  review: [{write: ../a, text: x}]",
            "demo.yaml: step review, action 1: write must be a path inside the working directory",
        ),
        (
            "steps:\n  review: [delete: /etc/passwd]",
            "demo.yaml: step review, action 1: delete must be a path inside the working directory",
        ),
        (
            "steps:\n  review: [usage: {cashed: 1}]",
            "demo.yaml: step review, action 1: usage: unknown key cashed; did you mean cached?",
        ),
        (
            "steps:\n  review: [usage: {in: -1}]",
            "demo.yaml: step review, action 1: usage: in must be a whole number from 0",
        ),
        (
            "steps:\n  review: [usage: {cost: .inf}]",
            "demo.yaml: step review, action 1: usage: cost must be a number, at least 0",
        ),
        ("steps:\n  review: [wait: long]", "demo.yaml: step review, action 1: wait must be a number, at least 0"),
        (
            "steps:\n  review: [fault: rate-limitted]",
            "demo.yaml: step review, action 1: unknown fault rate-limitted; did you mean rate-limited?",
        ),
        (
            "steps:\n  review: [{fault: crash, code: 256}]",
            "demo.yaml: step review, action 1: code must be a whole number from 0 to 255",
        ),
        (
            "steps:\n  review: [fault: die, say: x]",
            "demo.yaml: step review: a fault ends the run, so it must be the last action",
        ),
    ],
)
def test_playbook_error_names_its_location(text: str, message: str) -> None:
    with pytest.raises(InvalidPlaybook) as caught:
        parse_playbook(text, "demo.yaml")
    assert caught.value.message.startswith(message)


def test_playbook_error_fails_the_run_with_its_message(box: Scenario) -> None:
    played = play(box, "steps:\n  challenge/x: []\n")
    assert (played.code, played.events) == (
        1,
        [AgentEnded(cause=FailureCause.CRASHED, message="demo.yaml: step challenge/x: the round must be a number")],
    )


def test_wildcard_pattern_matching_takes_linear_time() -> None:
    name = "*a" * 12 + "*b"
    playbook = parse_playbook(f"steps: {{'{name}': []}}", "demo.yaml")
    assert_grows_linearly(lambda step: playbook.find(PlaybookTurn(step, 1, 1, 1)), "", "a", count=100)


def test_player_imports_no_heavy_modules(box: Scenario) -> None:
    code = (
        "import sys, agentd.agents.playbook_player\n"
        "heavy = {'agentd.project.config', 'agentd.engine', 'mcp', 'tomlkit', 'click', 'argparse'}\n"
        "heavy |= {'difflib', 'asyncio'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    ran = box.python(code)
    assert (ran.code, ran.err) == (0, "")
